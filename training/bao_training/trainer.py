"""Provide what all training methods need: model, optimiser, workers, counters, saving.

A training method is a :class:`Trainer` and its :class:`~bao_training.worker.Worker`:
:mod:`bao_training.td` or :mod:`bao_training.search_guided`. Workers play and compute gradients side
by side, each in its own thread; the trainer updates the model. All methods have the same verbs. A
worker has ``play``, ``targets`` (what the model should say) and ``loss`` (how far it is from that).
A trainer has ``collect``, which lets its workers play, and ``learn``.
"""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

import numpy as np
import torch

from bao_agents.arena.elo import Score, wilson_interval
from bao_agents.arena.pairs import play_match
from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Arrays, Checkpoint, CheckpointError, model_arrays
from bao_agents.nets.checkpoint_files import find_checkpoint
from bao_agents.nets.network import PolicyNetwork
from bao_agents.nets.player import NetworkAgent
from bao_agents.players import registry
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_agents.support.array_types import Int64Array
from bao_env.compiled.threads import Threads
from bao_training import distributed
from bao_training.config import C, ConfigError, TrainConfig
from bao_training.memory import keep_freed_memory
from bao_training.nnue_model import NNUEModel
from bao_training.saved import check_arrays, digest, join
from bao_training.worker import Model, Worker

NODES = 2000
"""The nodes of guided alpha-beta and of its opponent in an evaluation."""
GUIDED_OPPONENT = f"alphabeta:{NODES}n"
"""Its opponent: alpha-beta with the shipped tables."""
GUIDED = "guided_"
"""The beginning of the column for its score."""

_BOT_SEED = 1
_MATCH_SEED = 12345
"""Seeds of every evaluation, so that two evaluations of a run play the same openings."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread here: the workers are the threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class DivergedError(RuntimeError):
    """The network is no longer finite, so the run cannot continue."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"training has diverged: {what} not finite. If it diverges again, start another run "
            "from the last checkpoint (--set start=FILE) with a smaller learning_rate"
        )


W = TypeVar("W", bound=Worker[Any])
P = ParamSpec("P")
T = TypeVar("T")


class Trainer(ABC, Generic[W, C]):
    """The state of a run, and its learning loop; a method fills in :meth:`collect`, :meth:`learn`.

    Args:
        config: the common settings.
        method_config: the method's settings.

    Raises:
        ConfigError: a device or a checkpoint that the settings name does not exist, or the workers
            cannot be divided among the processes.
    """

    config_class: type[C]
    """The class of the method's table of settings."""
    worker_class: type[W]
    """The class of its workers."""
    COLUMNS: ClassVar[tuple[str, ...]] = ()
    """The columns of metrics.csv that :meth:`collect` and :meth:`learn` return, besides the
    worker's statistics, ``gradient_norm`` and ``plies_per_game``."""
    OPPONENTS: ClassVar[tuple[str, ...]] = ("greedy", "alphabeta:2", "alphabeta:4")
    """The opponents of the network alone in each evaluation."""

    def __init__(self, config: TrainConfig, method_config: C) -> None:
        keep_freed_memory()
        self.config = config
        self.method_config = method_config
        self.ruleset = config.get_ruleset()
        self.device = pick_device(config.device)
        self._here = _workers_here(config.workers)
        seeds = np.random.SeedSequence(config.seed).spawn(config.workers + 1)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(int(seeds[0].generate_state(1)[0]))
            self.model = self.make_model().to(self.device)
        self._won = self._won_positions()
        if config.start:
            self._start_with(config.start)
        self.workers = [
            self.worker_class(config, method_config, self.model, seeds[1 + i]) for i in self._here
        ]
        """The workers of this process."""
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        for parameter in self.model.parameters():  # from the start, so that it can be saved
            self.optimizer.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=self.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        self.update = 0
        self.steps = 0
        self.seconds = 0.0
        self.scores: dict[str, Score] = {}
        """The results of the last evaluation, by their columns in metrics.csv."""
        self._threads = Threads(len(self._here) - 1)

    @property
    def network(self) -> PolicyNetwork:
        """The policy network."""
        return self.model.network

    def make_model(self) -> Model:
        """Make the untrained model."""
        return Model(PolicyNetwork(self.config.hidden))

    # What a method fills in.

    @abstractmethod
    def collect(self) -> dict[str, float]:
        """Let the workers play ``config.rollout`` actions in every game; return columns of the
        metrics."""

    @abstractmethod
    def learn(self) -> dict[str, float]:
        """Learn from what was played (:meth:`take_steps`), and return columns of the metrics."""

    def state(self) -> Arrays:
        """Return everything that a resumed run needs besides the network's weights.

        All processes of a run call this.
        """
        arrays: Arrays = {}
        for i, worker in enumerate(self.map_workers(lambda worker: worker.state())):
            arrays |= join(f"worker.{i}", worker)
        # A checkpoint has no scalars.
        return arrays | {
            name: tensor.cpu().numpy().reshape(-1) for name, tensor in self._tensors().items()
        }

    def load(self, arrays: Arrays) -> None:
        """Continue from what :meth:`state` returned."""
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(arrays[name]).view_as(tensor))
        for i, worker in zip(self._here, self.workers, strict=True):
            for name, array in join(f"worker.{i}", worker.state()).items():
                array[:] = arrays[name]
            worker.replica.sync_weights(self.model)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Adam's state, and the weights of the NNUE, which a checkpoint rounds for the search."""
        tensors = {
            f"adam.{i}.{name}": tensor
            for i, parameter in enumerate(self.model.parameters())
            for name, tensor in self.optimizer.state[parameter].items()
        }
        if self.model.nnue is not None:
            tensors |= {f"nnue.{name}": t for name, t in self.model.nnue.state_dict().items()}
        return tensors

    @property
    def opponents(self) -> dict[str, str]:
        """Return the opponents of an evaluation, by the column of metrics.csv for the score."""
        found = {f"score_against_{name}": name for name in self.OPPONENTS}
        if self.model.nnue is not None:
            found[f"{GUIDED}score_against_{GUIDED_OPPONENT}"] = GUIDED_OPPONENT
        return found

    @property
    def measures(self) -> list[str]:
        """Return the columns that an evaluation fills, without those of their intervals."""
        return [*self.opponents, *(["blunders"] if self._won else [])]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of this run's metrics.csv."""
        columns = ["update", "steps", "seconds", "steps_per_second", "learning_rate"]
        columns += [*self.COLUMNS, *self.worker_class.STATS, "gradient_norm", "plies_per_game"]
        return (*columns, *(name + end for name in self.measures for end in ("", "_low", "_high")))

    # An update and its parts.

    @one_thread()
    @torch.enable_grad()
    def train_update(self) -> dict[str, float]:
        """Play, learn, and return a row of metrics.

        If an exception or Ctrl-C ends it, the trainer cannot go on: make another one, and restore
        the last checkpoint.

        Raises:
            DivergedError: the network is no longer finite, and must not be saved.
        """
        start, rate = time.perf_counter(), self.learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for worker in self.workers:
            worker.games.start_update(self.update)
        collected = self.collect()
        learnt = self.learn()
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
        return row | collected | learnt

    @property
    def updates(self) -> int:
        """Return the number of updates in the whole run."""
        return math.ceil(self.config.steps / self.config.steps_per_update)

    @property
    def learning_rate(self) -> float:
        """Return this update's learning rate, on a half cosine."""
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
        totals, *others = (replica.gradients for replica in replicas)
        for gradients in others:
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

    # Other players and checkpoints.

    @one_thread()
    def evaluate(self) -> dict[str, float]:
        """Return the scores of paired games against :attr:`opponents`, each with its interval.

        The network plays alone, without search. If it has an NNUE, guided alpha-beta also plays
        with both, against plain alpha-beta with the same number of nodes. If the settings name won
        positions, also return ``blunders``: the share of the network's moves from them that give
        the win away. ``NAME_low`` and ``NAME_high`` are the ends of the 95% interval of ``NAME``.
        """
        guide = self._checkpoint()
        player = NetworkAgent(copy.deepcopy(self.network).cpu(), self.ruleset)
        for column, name in self.opponents.items():
            guided = column.startswith(GUIDED)
            self.scores[column] = play_match(
                AlphaBetaAgent(self.ruleset, Limit(nodes=NODES), guide=guide) if guided else player,
                registry.load(name, ruleset=self.ruleset, seed=_BOT_SEED),
                ruleset=self.ruleset,
                pairs=self.config.evaluate_pairs,
                seed=_MATCH_SEED,
            ).score
        measured = {
            column: (score.rate, score.low, score.high) for column, score in self.scores.items()
        }
        if self._won is not None:
            mistakes = self._won.mistakes(player)
            share = float(mistakes.mean())
            measured["blunders"] = (share, *wilson_interval(share, len(mistakes)))
        return {
            name + end: value
            for name, values in measured.items()
            for end, value in zip(("", "_low", "_high"), values, strict=True)
        }

    def _won_positions(self) -> SolvedPositions | None:
        """The won positions that the settings name.

        Raises:
            ConfigError: the file does not exist, or is for other rules.
        """
        name = self.config.blunder_positions
        if not name:
            return None
        try:
            return SolvedPositions.load(name, self.ruleset).won
        except ValueError as error:
            raise ConfigError(f"blunder_positions={name!r}: {error}") from error

    def _start_with(self, name: str) -> None:
        """Take over the weights of a checkpoint: a path, or the name of a shipped one.

        Raises:
            ConfigError: the checkpoint does not exist, or its network differs from this run's.
            CheckpointError: it cannot be read.
        """
        path = find_checkpoint(name)
        if path is None:
            raise ConfigError(
                f"start={name!r}: there is no such checkpoint; expected a file or a shipped name"
            )
        found = checkpoint.load(path)
        network = found.network
        if network.hidden != self.config.hidden:
            raise ConfigError(
                f"start={name!r} has hidden={list(network.hidden)}, this run has "
                f"hidden={list(self.config.hidden)}"
            )
        self.network.load_state_dict(network.state_dict())
        if self.model.nnue is not None and found.nnue is not None:
            self.model.nnue.load_state_dict(NNUEModel(found.nnue).state_dict())

    # How a run is saved.

    def settings(self) -> dict[str, Any]:
        """Return all settings of the run as plain values, the method's in its table."""
        return self.config.to_dict() | {self.config.method: self.method_config.to_dict()}

    def _checkpoint(self, arrays: Arrays | None = None) -> Checkpoint:
        """Return the model, with the settings and the progress of the run."""
        nnue = None if self.model.nnue is None else self.model.nnue.quantised()
        info = {"config": self.settings(), "steps": self.steps, "seconds": self.seconds}
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
            made = self._checkpoint(arrays)
            made.info["update"] = self.update
            made.info["digest"] = digest(made.info, arrays | model_arrays(made))
            checkpoint.save(path, made)

    def restore(self, path: Path) -> None:
        """Continue from what :meth:`save` wrote.

        Raises:
            CheckpointError: it cannot be read, is damaged, or does not hold this run.
        """
        saved = checkpoint.load(path, arrays=True)
        info, arrays = saved.info, saved.arrays
        try:
            if "digest" not in info:
                raise ValueError("it holds only a network, or has another version")
            if info["digest"] != digest(info, arrays | model_arrays(saved)):
                raise ValueError("it is damaged: its digest does not match")
            check_arrays(arrays, self.state())
        except ValueError as error:
            raise CheckpointError(f"{path} does not hold this run: {error}") from error
        self.network.load_state_dict(saved.network.state_dict())
        self.load(arrays)
        self.update, self.seconds = info["update"], info["seconds"]
        self.steps = self.update * self.config.steps_per_update


def plies_per_game(totals: Sequence[Int64Array]) -> dict[str, float]:
    """Return the column ``plies_per_game``, if a game has ended.

    Args:
        totals: int64[2] of each worker, the games that have ended and their plies.
    """
    games, plies = np.sum(totals, axis=0).tolist()
    return {"plies_per_game": plies / games} if games else {}


def _workers_here(workers: int) -> range:
    """Return the indices of this process's workers.

    Raises:
        ConfigError: the workers cannot be divided evenly among the processes.
    """
    count = distributed.world_size()
    if workers % count:
        raise ConfigError(
            f"workers={workers} cannot be divided among {count} processes: expected a multiple of "
            f"{count}"
        )
    here = workers // count
    return range(distributed.rank() * here, (distributed.rank() + 1) * here)


def pick_device(name: str) -> torch.device:
    """Return the device of a configuration; ``auto`` is a GPU if there is one.

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
