"""What all trainers share: network, optimiser, workers, counters; and how a run is saved.

A training method is a :class:`Trainer` and its :class:`Worker` (:mod:`training.ppo`,
:mod:`training.alphazero`). Workers play and compute gradients side by side, each in its own thread;
the trainer updates the network.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
)

import numpy as np
import torch
from torch import Tensor

from agents import registry
from agents.arena.match import play_match
from agents.nets import checkpoint
from agents.nets.checkpoint import Arrays, Checkpoint, CheckpointError
from agents.nets.network import PolicyNetwork
from agents.nets.policy import NetworkAgent
from agents.search.solver.solved_positions import SolvedPositions
from training import distributed
from training.config import ConfigError, MethodConfig, TrainConfig, table_name
from training.games import Games
from training.memory import check_memory, keep_freed_memory
from training.replica import Replica
from training.saved import (
    ADAM,
    Layout,
    RunState,
    adam_layout,
    check_adam,
    check_layout,
    layout_of,
    read_state,
    require,
    under,
)


class DivergedError(RuntimeError):
    """The network is no longer made of finite numbers, and there is no way on from there."""


class Worker(Protocol):
    """What a trainer needs of a worker: one thread's games and its copy of the network."""

    games: Games
    replica: Replica

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """What a resumed worker needs: arrays, and plain values for JSON."""

    def check(self, arrays: Arrays) -> None:
        """Check the content of arrays that have the types and shapes of :meth:`state`'s.

        Raises:
            ValueError: it is not what a worker of this run would have saved.
        """

    def restore(self, arrays: Arrays, generator: Mapping[str, Any]) -> None:
        """Restore what :meth:`state` returned and :meth:`check` has accepted."""


_PREFIX: Final = "worker.{}."
"""How the names of a worker's arrays begin in a checkpoint."""

W = TypeVar("W", bound=Worker)
P = ParamSpec("P")
T = TypeVar("T")


class Trainer(ABC, Generic[W]):
    """The state of a run.

    Args:
        config: the common settings.
        method_config: the method's settings.

    Raises:
        ConfigError: a device or a checkpoint that the settings name does not exist, the workers
            cannot be divided among the processes, or the run does not fit into memory.
    """

    COLUMNS: ClassVar[tuple[str, ...]]
    """The columns of metrics.csv, but for ``blunders``."""
    OPPONENTS: ClassVar[tuple[str, ...]] = ("random", "greedy")
    """The players against which the network alone is evaluated."""

    def __init__(self, config: TrainConfig, method_config: MethodConfig) -> None:
        keep_freed_memory()
        torch.set_num_threads(1)  # the workers are the threads
        self.config = config
        self.method_config = method_config
        self.ruleset = config.get_ruleset()
        self.device = pick_device(config.device)
        self._here = _workers_here(config.workers)
        check_memory(config, method_config, self.device, len(self._here))
        seeds = np.random.SeedSequence(config.seed).spawn(config.workers + 2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0].generate_state(1)[0]))
            self.network = PolicyNetwork(config.network_config()).to(self.device)
        self._won = self._won_positions()
        if config.start:
            self.network.load_state_dict(self.load_weights("start", config.start))
        self.generator = np.random.Generator(np.random.PCG64(seeds[1]))
        self.workers: list[W] = [self.make_worker(seeds[2 + i]) for i in self._here]
        """The workers of this process."""
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self.update = 0
        self.steps = 0
        self.seconds = 0.0
        self.part_seconds: dict[str, float] = defaultdict(float)
        """Seconds that this process has spent in each part of the updates: ``play``, ``learn``, and
        others that a method times."""
        self._threads = ThreadPoolExecutor(
            len(self._here), initializer=torch.set_num_threads, initargs=(1,)
        )

    # What a method fills in.

    @abstractmethod
    def make_worker(self, seed: np.random.SeedSequence) -> W:
        """A new worker. The base class calls this when all its attributes but the workers exist."""

    @abstractmethod
    def train_update(self) -> dict[str, float]:
        """Play, learn, and return the row of metrics.

        Raises:
            DivergedError: the network is no longer finite; it must not be saved.
        """

    def extra_state(self) -> Arrays:
        """The arrays that a method saves besides the rest."""
        return {}

    def extra_layout(self, update: int) -> Layout:
        """Types and shapes of :meth:`extra_state`'s arrays after so many updates."""
        del update
        return {}

    def load_extra_state(self, arrays: Arrays) -> None:
        """Restore what :meth:`extra_state` returned, from arrays of the right types and shapes.

        Raises:
            ValueError: their content is not what a run would have saved.
        """
        del arrays  # nothing to restore, unless a method saves more

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of this run's metrics.csv."""
        return (*self.COLUMNS, *(["blunders"] if self._won else []))

    # The parts of an update.

    @property
    def updates(self) -> int:
        """Updates in the whole run."""
        return math.ceil(self.config.steps / self.config.steps_per_update)

    def set_learning_rate(self) -> float:
        """Set this update's learning rate, on a half cosine; returns it."""
        config = self.config
        fall = 0.5 * (1.0 + math.cos(math.pi * self.update / max(1, self.updates)))
        rate = config.final_learning_rate + fall * (
            config.learning_rate - config.final_learning_rate
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def map_workers(
        self, method: Callable[Concatenate[W, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Call a method of all workers side by side, for example
        ``self.map_workers(PpoWorker.collect)``. Returns the results in the workers' order, those of
        other processes included."""
        return distributed.gather(
            list(self._threads.map(lambda worker: method(worker, *args, **kwargs), self.workers))
        )

    def optimizer_step(self) -> float:
        """Add up the workers' gradients, take one step and give the workers the new weights;
        returns the gradient's norm before clipping.

        Raises:
            DivergedError: the gradient is not finite; no step was taken.
        """
        replicas = [worker.replica for worker in self.workers]
        totals = [
            torch.stack(list(parts)).sum(dim=0)
            for parts in zip(*(replica.gradients for replica in replicas), strict=True)
        ]
        distributed.all_reduce_sum(totals)
        for parameter, total in zip(self.network.parameters(), totals, strict=True):
            parameter.grad = total
        norm = float(
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_gradient)
        )
        if not math.isfinite(norm):
            raise DivergedError(f"the gradient of update {self.update + 1} is not finite")
        self.optimizer.step()
        for replica in replicas:
            replica.sync_weights(self.network)
        return norm

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count the time spent inside as part of :attr:`part_seconds`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.part_seconds[part] += time.perf_counter() - start

    def finish_update(self, start: float) -> dict[str, float]:
        """Count the update that began at ``start``; returns the first columns of its metrics.

        Raises:
            DivergedError: the update has left weights that are not finite.
        """
        if not all(bool(p.isfinite().all()) for p in self.network.parameters()):
            raise DivergedError(f"the weights after update {self.update + 1} are not finite")
        steps = self.config.steps_per_update
        seconds = time.perf_counter() - start
        self.update += 1
        self.steps += steps
        self.seconds += seconds
        return {
            "update": self.update,
            "steps": self.steps,
            "seconds": self.seconds,
            "steps_per_second": steps / seconds,
        }

    # Other networks: the bots it is measured against, checkpoints that a setting names.

    def evaluate(self) -> dict[str, float]:
        """Scores of the network alone against :attr:`OPPONENTS`, in paired games; and its
        ``blunders``, the share of moves from won positions that give the win away, if the settings
        name such positions."""
        network = PolicyNetwork(self.config.network_config())
        network.load_state_dict(self.network.state_dict())
        player = NetworkAgent(network, self.ruleset)
        scores = {}
        for name in self.OPPONENTS:
            match = play_match(
                player,
                registry.load(name, ruleset=self.ruleset, seed=1),
                ruleset=self.ruleset,
                pairs=self.config.evaluate_pairs,
                seed=12345,
            )
            scores[f"score_against_{name}"] = match.score.rate
        if self._won is not None:
            scores["blunders"] = float(self._won.mistakes(player).mean())
        return scores

    def _won_positions(self) -> SolvedPositions | None:
        """The won positions that the settings name.

        Raises:
            ConfigError: there is no such file, or it is of other rules.
        """
        name = self.config.blunder_positions
        if not name:
            return None
        try:
            return SolvedPositions.load(name, self.ruleset).won
        except ValueError as error:
            raise ConfigError(f"blunder_positions={name!r}: {error}") from error

    def load_weights(self, key: str, name: str) -> dict[str, Tensor]:
        """The weights of a checkpoint that the setting ``key`` names.

        Raises:
            ConfigError: there is none, or its network differs from this run's.
            CheckpointError: it cannot be read, or was trained under other rules.
        """
        path = registry.find_checkpoint(name)
        if path is None:
            raise ConfigError(
                f"{key}={name!r}: there is no such checkpoint; expected a file or a shipped name"
            )
        network = checkpoint.load(path, self.ruleset).network
        if network.config != self.config.network_config():
            raise ConfigError(
                f"{key}={name!r} has the network {network.config}, this run has "
                f"{self.config.network_config()}"
            )
        return {name: t.to(self.device) for name, t in network.state_dict().items()}

    # How a run is saved.

    def settings(self) -> dict[str, Any]:
        """All settings of the run as plain values, the method's in its table."""
        table = table_name(self.config.method)
        return self.config.to_dict() | {table: self.method_config.to_dict()}

    def _info(self) -> dict[str, Any]:
        return {"config": self.settings(), "steps": self.steps, "seconds": self.seconds}

    def save_policy(self, path: Path) -> None:
        """Write the network alone."""
        checkpoint.save(path, Checkpoint(self.network, self.ruleset, self._info()))

    def save(self, path: Path) -> None:
        """Write everything that the run needs to resume. All processes of a run call this; the
        first one writes."""
        arrays: Arrays = {}
        generators = []
        for i, (state, generator) in enumerate(self.map_workers(lambda worker: worker.state())):
            arrays |= {_PREFIX.format(i) + name: array for name, array in state.items()}
            generators.append(generator)
        for i, state in self.optimizer.state_dict()["state"].items():
            arrays |= {
                f"adam.{i}.{name}": t.cpu().numpy().reshape(t.shape or 1)
                for name, t in state.items()
            }
        info = self._info() | {
            "update": self.update,
            "learnt": bool(self.optimizer.state_dict()["state"]),
            "generator": self.generator.bit_generator.state,
            "workers": generators,
        }
        arrays |= self.extra_state()
        if distributed.rank() == 0:
            checkpoint.save(path, Checkpoint(self.network, self.ruleset, info, arrays))

    def check_header(self, info: Mapping[str, Any], layout: Layout) -> RunState:
        """Compare what a checkpoint says of itself with what this run would write.

        Args:
            info: its plain values.
            layout: types and shapes of its arrays, without the network's.

        Returns:
            the plain values that the run resumes from.

        Raises:
            CheckpointError: it holds no run, or one that does not fit.
        """
        with _refusing():
            state = read_state(info)
            steps = state.update * self.config.steps_per_update
            require("info.steps", (state.steps == steps, f"{steps} after {state.update} updates"))
            require("info.update", (state.update <= self.updates, f"at most {self.updates}"))
            workers = self.config.workers
            require("info.workers", (len(state.workers) == workers, f"the states of {workers}"))
            check_layout(layout, self._layout(state))
            return state

    def _layout(self, state: RunState) -> Layout:
        """The arrays that :meth:`save` writes in this state."""
        shapes = [tuple(p.shape) for p in self.network.parameters()] if state.learnt else []
        worker = layout_of(self.workers[0].state()[0])
        workers = {
            _PREFIX.format(i) + name: kind
            for i in range(self.config.workers)
            for name, kind in worker.items()
        }
        return workers | adam_layout(shapes) | self.extra_layout(state.update)

    def restore(self, saved: Checkpoint) -> None:
        """Restore what :meth:`save` wrote.

        Raises:
            CheckpointError: it holds no run, or one that does not fit.
        """
        arrays = saved.arrays
        state = self.check_header(saved.info, layout_of(arrays))
        parameters = list(self.network.parameters())
        worker_arrays = [under(_PREFIX.format(i), arrays) for i in range(self.config.workers)]
        with _refusing():
            if state.learnt:
                check_adam(arrays, len(parameters))
            for i, mine in enumerate(worker_arrays):  # those of other processes, too
                try:
                    self.workers[0].check(mine)
                except ValueError as error:
                    raise ValueError(f"worker {i}: {error}") from None
            self.update, self.steps, self.seconds = state.update, state.steps, state.seconds
            self.load_extra_state(arrays)
        self.network.load_state_dict(saved.network.state_dict())
        self.generator.bit_generator.state = state.generator.model_dump()
        for i, worker in zip(self._here, self.workers, strict=True):
            worker.restore(worker_arrays[i], state.workers[i].model_dump())
            worker.replica.sync_weights(self.network)
        if state.learnt:
            adam = self.optimizer.state_dict()
            adam["state"] = {
                i: {
                    part: torch.from_numpy(arrays[f"adam.{i}.{part}"].copy()).view(
                        () if part == "step" else parameter.shape
                    )
                    for part in ADAM
                }
                for i, parameter in enumerate(parameters)
            }
            self.optimizer.load_state_dict(adam)


class Method(NamedTuple):
    """A way to train."""

    config: type[MethodConfig]
    """Its table of settings."""
    trainer: type[Trainer[Any]]
    """Takes the common settings and the method's."""


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn a fault that a check has found into a CheckpointError."""
    try:
        yield
    except ValueError as error:
        raise CheckpointError(f"the checkpoint does not hold this run: {error}") from error


def _workers_here(workers: int) -> range:
    """Which of the run's workers this process has.

    Raises:
        ConfigError: the processes cannot all have the same number.
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
    """The device of a configuration: ``auto`` takes a GPU if there is one.

    Raises:
        ConfigError: ``cuda`` was asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device='cuda', but torch sees no CUDA device; use device='cpu'")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
