"""Provide what all training methods need: model, optimiser, workers, counters, saving.

A training method is a :class:`Trainer` and its :class:`~bao_training.worker.Worker`:
:mod:`bao_training.td` or :mod:`bao_training.search_guided`. Workers play and compute gradients side
by side, each in its own thread; the trainer updates the model. All methods use the same names. A
worker has ``play``, ``targets`` (what the model should say) and ``loss`` (how far it is from that).
A trainer has ``collect``, which lets its workers play, and ``learn``.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

import numpy as np
import torch

from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Arrays, Checkpoint, CheckpointError, model_arrays
from bao_agents.nets.network import PolicyNetwork
from bao_agents.support.array_types import Int64Array
from bao_agents.support.provenance import provenance
from bao_env.compiled.threads import Threads
from bao_env.engine.ruleset import Ruleset
from bao_training import distributed
from bao_training.config import C, ConfigError, TrainConfig, config_to_dict
from bao_training.evaluation import OPPONENTS, Evaluation, Opponent
from bao_training.inputs import Inputs, read_inputs
from bao_training.memory import keep_freed_memory
from bao_training.run_settings import MAY_CHANGE, differing
from bao_training.run_state import check_arrays, digest, with_prefix
from bao_training.worker import Model, Worker


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread within this block, because each worker has its own thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class DivergedError(RuntimeError):
    """Raised if the network is no longer finite, so that the run cannot continue."""

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"training has diverged: {subject} not finite. If it diverges again, start another run "
            "from the last checkpoint (--set start=FILE) with a smaller learning_rate"
        )


W = TypeVar("W", bound=Worker[Any, Any])
P = ParamSpec("P")
T = TypeVar("T")


class Trainer(ABC, Generic[W, C]):
    """The state of a run, and its updates; a method defines :meth:`collect` and :meth:`learn`.

    Args:
        config: the common settings.
        method_config: the method's settings.
        inputs: the contents of the files that the settings name; by default, they are read.

    Raises:
        ConfigError: a device or a file that the settings name does not exist or does not fit them,
            or the workers cannot be divided among the processes.
        CheckpointError: the checkpoint that the run starts with cannot be read.
    """

    worker_class: type[W]
    """The class of its workers."""
    COLUMNS: ClassVar[tuple[str, ...]] = ()
    """The columns of metrics.csv that :meth:`collect` and :meth:`learn` return, besides the
    worker's statistics, ``gradient_norm`` and ``plies_per_game``."""
    OPPONENTS: ClassVar[tuple[Opponent, ...]] = OPPONENTS
    """The opponents in each evaluation."""

    @torch.inference_mode(False)  # even if the caller has switched it on
    def __init__(self, config: TrainConfig, method_config: C, inputs: Inputs | None = None) -> None:
        keep_freed_memory()
        self.config = config
        self.method_config = method_config
        self.ruleset: Ruleset = config.get_ruleset()
        self.device: torch.device = pick_device(config.device)
        self._worker_indices = _worker_indices_here(config.workers)
        seeds = np.random.SeedSequence(config.seed).spawn(config.workers + 1)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(int(seeds[0].generate_state(1)[0]))
            self.model: Model = self.make_model().to(self.device)
        inputs = inputs or read_inputs(config)
        if inputs.start is not None:
            self.model.take_over(inputs.start)
        self.evaluation: Evaluation = Evaluation(self.OPPONENTS, config.evaluate_pairs, inputs.won)
        self.workers: list[W] = [
            self.worker_class(config, method_config, self.model, seeds[1 + i])
            for i in self._worker_indices
        ]
        """The workers of this process."""
        self.optimizer: torch.optim.Adam = torch.optim.Adam(
            self.model.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        for parameter in self.model.parameters():  # from the start, so that it can be saved
            self.optimizer.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=self.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        self.update: int = 0
        self.steps: int = 0
        self.seconds: float = 0.0
        """Seconds of all updates; not in checkpoints, so that equal runs write equal files."""
        self.made_with: dict[str, Any] = provenance(self.ruleset, with_machine=False)
        """The provenance of the checkpoints: the same for equal runs on two machines."""
        self._threads = Threads(len(self._worker_indices) - 1)

    @property
    def network(self) -> PolicyNetwork:
        """The policy network."""
        return self.model.network

    def make_model(self) -> Model:
        """Make the untrained model."""
        return Model(PolicyNetwork(self.config.hidden))

    # What a method defines.

    @abstractmethod
    def collect(self) -> dict[str, float]:
        """Let the workers play ``config.rollout`` actions in every game.

        Return columns of the metrics.
        """

    @abstractmethod
    def learn(self) -> dict[str, float]:
        """Learn from what was played (:meth:`take_steps`), and return columns of the metrics."""

    def state(self) -> Arrays:
        """Return everything that a resumed run needs besides the network's weights.

        All processes of a run call this.
        """
        arrays: Arrays = {}
        for i, worker in enumerate(self.map_workers(lambda worker: worker.state())):
            arrays |= with_prefix(f"worker.{i}", worker)
        # A checkpoint has no scalars.
        return arrays | {
            name: tensor.cpu().numpy().reshape(-1) for name, tensor in self._tensors().items()
        }

    def load(self, arrays: Arrays) -> None:
        """Continue from what :meth:`state` returned."""
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(arrays[name]).view_as(tensor))
        for i, worker in zip(self._worker_indices, self.workers, strict=True):
            for name, array in with_prefix(f"worker.{i}", worker.state()).items():
                array[:] = arrays[name]
            worker.replica.sync_weights(self.model)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return Adam's state, and the weights that a checkpoint of the network rounds or omits."""
        return {
            f"adam.{i}.{name}": tensor
            for i, parameter in enumerate(self.model.parameters())
            for name, tensor in self.optimizer.state[parameter].items()
        } | self.model.unsaved_tensors()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of this run's metrics.csv."""
        columns = ["update", "steps", "seconds", "steps_per_second", "learning_rate"]
        columns += [*self.COLUMNS, *self.worker_class.STATS, "gradient_norm", "plies_per_game"]
        return (*columns, *self.evaluation.columns)

    # An update and its parts.

    @one_thread()
    @torch.inference_mode(False)  # also switches gradients on
    def train_update(self) -> dict[str, float]:
        """Play, learn, and return a row of metrics.

        After an exception or Ctrl-C, the trainer cannot continue: make another one, and restore the
        last checkpoint.

        Raises:
            DivergedError: the network is no longer finite, and must not be saved.
        """
        start, rate = time.perf_counter(), self.learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for worker in self.workers:
            worker.games.start_update(self.update)
        playing_columns = self.collect()
        learning_columns = self.learn()
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise DivergedError(f"the weights after update {self.update + 1} are")
        steps = self.config.steps_per_update
        seconds = time.perf_counter() - start
        self.update += 1
        self.steps += steps
        self.seconds += seconds
        row = {
            "update": self.update,
            "steps": self.steps,
            "seconds": self.seconds,
            "steps_per_second": steps / seconds,
            "learning_rate": rate,
        }
        return row | playing_columns | learning_columns

    @property
    def updates(self) -> int:
        """The number of updates in the whole run."""
        return math.ceil(self.config.steps / self.config.steps_per_update)

    @property
    def finished(self) -> bool:
        """Whether the run has played all its steps."""
        return self.steps >= self.config.steps

    def has_passed(self, every: int) -> bool:
        """Return whether the last update passed a multiple of ``every`` steps.

        Return False if ``every`` is 0.
        """
        before = self.steps - self.config.steps_per_update
        return every > 0 and self.steps // every > before // every

    @property
    def learning_rate(self) -> float:
        """This update's learning rate, which falls along a half cosine."""
        config = self.config
        fall = 0.5 * (1.0 + math.cos(math.pi * self.update / max(1, self.updates)))
        return config.final_learning_rate + fall * (
            config.learning_rate - config.final_learning_rate
        )

    def map_workers(
        self, method: Callable[Concatenate[W, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call a method of all workers side by side: ``self.map_workers(TdWorker.variances)``.

        Return the results in the workers' order, including those of other processes.
        """
        results: dict[int, T] = {}

        def work(part: slice) -> None:
            with one_thread():
                results[part.start] = method(self.workers[part.start], *args, **kwargs)

        self._threads.run(work, [slice(i, i + 1) for i in range(len(self.workers))])
        return distributed.gather([results[i] for i in sorted(results)])

    def take_steps(self, minibatches: int, epochs: int = 1) -> dict[str, float]:
        """Take a gradient step on each minibatch; draw new minibatches in each epoch.

        Returns:
            the means of the worker's statistics over all decisions, and ``gradient_norm``, the mean
            norm of a gradient before clipping.

        Raises:
            DivergedError: a gradient is not finite.
        """
        names = self.worker_class.STATS
        sums, decisions, norm = np.zeros(len(names)), 0, 0.0
        for _ in range(epochs):
            self.map_workers(lambda worker: worker.draw_minibatches(minibatches))
            parts = self.map_workers(lambda worker: [len(part) for part in worker.minibatches])
            for minibatch, size in enumerate(np.sum(parts, axis=0).tolist()):
                if size:
                    sums += np.sum(self.map_workers(self.worker_class.gradient, minibatch, size), 0)
                    norm += self.optimizer_step()
                    decisions += size
        means = dict(zip(names, (sums / max(1, decisions)).tolist(), strict=True))
        return means | {"gradient_norm": norm / (epochs * minibatches)}

    def optimizer_step(self) -> float:
        """Add up the workers' gradients, take one step, and give the workers the new weights.

        Returns:
            the gradient's norm before clipping.

        Raises:
            DivergedError: the gradient is not finite; no step was taken.
        """
        replicas = [worker.replica for worker in self.workers]
        totals, *addends = (replica.gradients for replica in replicas)
        for gradients in addends:
            for total, gradient in zip(totals, gradients, strict=True):
                total += gradient
        distributed.all_reduce_sum(totals)
        for parameter, total in zip(self.model.parameters(), totals, strict=True):
            parameter.grad = total
        norm = float(
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_gradient)
        )
        if not math.isfinite(norm):
            raise DivergedError(f"the gradient of update {self.update + 1} is")
        self.optimizer.step()
        for replica in replicas:
            replica.sync_weights(self.model)
        return norm

    @one_thread()
    def measure(self) -> dict[str, float]:
        """Measure how strong the network is; see :meth:`Evaluation.measure`."""
        return self.evaluation.measure(self._checkpoint())

    # How a run is saved.

    def settings(self) -> dict[str, Any]:
        """Return all settings of the run as plain values, the method's in its table."""
        return config_to_dict(self.config, self.method_config)

    def _checkpoint(self, arrays: Arrays | None = None) -> Checkpoint:
        """Return the model, with the settings and the progress of the run."""
        info = {"config": self.settings(), "steps": self.steps, "made_with": self.made_with}
        nnue = self.model.quantised_nnue()
        return Checkpoint(self.network.arrays(), self.ruleset, info, arrays or {}, nnue)

    def save_policy(self, path: Path) -> None:
        """Write the model alone."""
        checkpoint.save(path, self._checkpoint())

    def save(self, path: Path) -> None:
        """Write everything that the run needs to resume.

        All processes of a run call this; the first one writes.
        """
        arrays = self.state()
        if distributed.rank() == 0:
            whole_run = self._checkpoint(arrays)
            whole_run.info["update"] = self.update
            whole_run.info["digest"] = digest(whole_run.info, arrays | model_arrays(whole_run))
            checkpoint.save(path, whole_run)

    def restore(self, path: Path) -> None:
        """Continue from what :meth:`save` wrote.

        Raises:
            CheckpointError: the file cannot be read, is damaged, or does not hold this run.
        """
        saved = checkpoint.load(path, arrays=True)
        info, arrays = saved.info, saved.arrays
        try:
            if "digest" not in info:
                raise ValueError("it holds only a network, or was written by another version")
            if info["digest"] != digest(info, arrays | model_arrays(saved)):
                raise ValueError("it is damaged: its digest does not match")
            others = differing(info.get("config", {}), self.settings())
            if others := [name for name in others if name not in MAY_CHANGE]:
                raise ValueError(f"it is of a run with other {', '.join(others)}")
            check_arrays(arrays, self.state())
        except ValueError as error:
            raise CheckpointError(f"{path} does not hold this run: {error}") from error
        self.network.load_state_dict(saved.network.state_dict())
        self.load(arrays)
        self.update = info["update"]
        self.steps = self.update * self.config.steps_per_update


def plies_per_game(totals: Sequence[Int64Array]) -> dict[str, float]:
    """Return the mean plies of the ended games as the column ``plies_per_game``.

    Return an empty dict if no game has ended.

    Args:
        totals: int64[2] of each worker, the number of ended games and the sum of their plies.
    """
    games, plies = np.sum(totals, axis=0).tolist()
    return {"plies_per_game": plies / games} if games else {}


def _worker_indices_here(workers: int) -> range:
    """Return the indices of this process's workers.

    Raises:
        ConfigError: the workers cannot be divided evenly among the processes.
    """
    processes = distributed.world_size()
    if workers % processes:
        raise ConfigError(
            f"workers={workers} cannot be divided among {processes} processes: expected a multiple "
            f"of {processes}"
        )
    per_process = workers // processes
    return range(distributed.rank() * per_process, (distributed.rank() + 1) * per_process)


def pick_device(name: str) -> torch.device:
    """Return the device that a setting names; ``auto`` is a GPU if there is one.

    Raises:
        ConfigError: ``name`` is ``cuda``, and there is no GPU; or there are fewer GPUs than
            processes.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device='cuda', but torch sees no CUDA device; use device='cpu'")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not distributed.has_a_gpu_each():
        raise ConfigError(
            f"device={name!r}: more processes than GPUs ({torch.cuda.device_count()}) on this "
            "machine; give torchrun a smaller --nproc-per-node, or use device='cpu'"
        )
    return torch.device(name)
