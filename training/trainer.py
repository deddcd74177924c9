"""What every trainer has: a network, its optimiser, workers, counters; and how it is saved."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agents import registry
from agents.arena.match import play_match
from agents.nets import checkpoint
from agents.nets.checkpoint import Arrays, Checkpoint, CheckpointError
from agents.nets.network import PolicyNetwork
from agents.nets.policy import PolicyAgent
from training import distributed
from training.config import ConfigError, TrainConfig
from training.memory import keep_freed_memory


class Trainer(ABC):
    """The state of a run: network, optimiser, workers, counters."""

    COLUMNS: ClassVar[list[str]]
    """Of metrics.csv."""
    OPPONENTS: ClassVar[tuple[str, ...]] = ("random", "greedy")
    """Whom the bare policy is evaluated against."""

    def __init__(self, config: TrainConfig) -> None:
        keep_freed_memory()
        torch.set_num_threads(1)  # the workers are the threads
        self.config = config
        self.ruleset = config.get_ruleset()
        self.device = pick_device(config.device)
        seeds = np.random.SeedSequence(config.seed).spawn(config.workers + 2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0].generate_state(1)[0]))
            self.network = PolicyNetwork(config.network_config()).to(self.device)
        if config.start:
            self.network.load_state_dict(self.load_weights("start", config.start))
        self.generator = np.random.Generator(np.random.PCG64(seeds[1]))
        count = distributed.processes()
        if config.workers % count:
            raise ConfigError(
                f"workers={config.workers} cannot be shared out over {count} processes"
            )
        here = config.workers // count
        first = distributed.process() * here
        self._here = range(first, first + here)
        self.workers = [self.make_worker(seeds[2 + i]) for i in self._here]
        """Those of this process."""
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self.update = 0
        self.steps = 0
        self.seconds = 0.0
        self._threads = ThreadPoolExecutor(here, initializer=torch.set_num_threads, initargs=(1,))

    @property
    def updates(self) -> int:
        """Updates in the whole run."""
        return math.ceil(self.config.steps / (self.config.envs * self.config.rollout))

    def load_weights(self, key: str, name: str) -> dict[str, Tensor]:
        """The weights of a checkpoint that a setting names.

        Raises:
            ConfigError: there is none, or its rules or network are others than this run's.
        """
        path = registry.find_checkpoint(name)
        if path is None:
            raise ConfigError(f"{key}={name!r}: there is no such checkpoint")
        network = checkpoint.load(path, self.ruleset).network
        if network.config != self.config.network_config():
            raise ConfigError(
                f"{key}={name!r} has the network {network.config}, this run has "
                f"{self.config.network_config()}"
            )
        return {name: t.to(self.device) for name, t in network.state_dict().items()}

    @abstractmethod
    def make_worker(self, seed: np.random.SeedSequence) -> Any:
        """A worker: a :class:`~training.learner.Learner` that plays."""

    @abstractmethod
    def train_update(self) -> dict[str, float]:
        """Play, learn, and return the row of metrics."""

    def own_state(self) -> tuple[Arrays, dict[str, Any]]:
        """What a subclass saves beside the rest: arrays, and plain values for JSON."""
        return {}, {}

    def take_own_state(self, arrays: Arrays, info: dict[str, Any]) -> None:
        """Take over what :meth:`own_state` gave."""
        del arrays, info  # nothing, unless a subclass has more

    def set_learning_rate(self) -> float:
        """Let the learning rate fall in a half cosine; returns it."""
        config = self.config
        fall = 0.5 * (1.0 + math.cos(math.pi * self.update / max(1, self.updates)))
        rate = config.final_learning_rate + fall * (
            config.learning_rate - config.final_learning_rate
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def finish_update(self, start: float) -> dict[str, float]:
        """Count the update that began at ``start``; the first columns of its metrics."""
        steps = self.config.envs * self.config.rollout
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

    def each(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers side by side; results in the workers' order, those of other
        processes among them."""
        return distributed.gather(
            list(self._threads.map(lambda worker: getattr(worker, method)(*args), self.workers))
        )

    def descend(self) -> float:
        """Add up the workers' gradients and take one step; returns the gradient's norm."""
        totals = [
            torch.stack([worker.gradients[i] for worker in self.workers]).sum(dim=0)
            for i in range(len(self.workers[0].gradients))
        ]
        distributed.add_up(totals)
        for parameter, total in zip(self.network.parameters(), totals, strict=True):
            parameter.grad = total
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_gradient)
        self.optimizer.step()
        for worker in self.workers:
            worker.follow(self.network)
        return float(norm)

    def evaluate(self) -> dict[str, float]:
        """Scores of the bare policy against the baseline bots, in paired games."""
        player = PolicyAgent(self._cpu_network(), self.ruleset)
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
        return scores

    def _cpu_network(self) -> PolicyNetwork:
        network = PolicyNetwork(self.config.network_config())
        network.load_state_dict(self.network.state_dict())
        return network

    def _info(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "steps": self.steps, "seconds": self.seconds}

    def save_policy(self, path: Path) -> None:
        """Write the network alone."""
        checkpoint.save(path, Checkpoint(self.network, self.ruleset, self._info()))

    def save(self, path: Path) -> None:
        """Write everything the run needs to go on exactly. All processes of a run call this; the
        first one writes."""
        arrays: Arrays = {}
        generators = []
        for i, (state, generator) in enumerate(self.each("state")):
            arrays |= {f"worker.{i}.{name}": array for name, array in state.items()}
            generators.append(generator)
        for i, state in self.optimizer.state_dict()["state"].items():
            arrays |= {f"adam.{i}.{name}": t.cpu().numpy() for name, t in state.items()}
        info = self._info() | {
            "update": self.update,
            "learnt": bool(self.optimizer.state_dict()["state"]),
            "generator": self.generator.bit_generator.state,
            "workers": generators,
        }
        own_arrays, own_info = self.own_state()
        arrays |= own_arrays
        info |= own_info
        if distributed.process() == 0:
            checkpoint.save(path, Checkpoint(self.network, self.ruleset, info, arrays))

    def restore(self, saved: Checkpoint) -> None:
        """Take over what :meth:`save` wrote.

        Raises:
            CheckpointError: it holds no run, or one of another shape.
        """
        try:
            self._restore(saved)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint does not hold this run: {error!r}") from error

    def _restore(self, saved: Checkpoint) -> None:
        info, arrays = saved.info, saved.arrays
        self.network.load_state_dict(saved.network.state_dict())
        self.generator.bit_generator.state = info["generator"]
        if len(info["workers"]) != self.config.workers:
            raise ValueError(f"it has {len(info['workers'])} workers")
        for i, worker in zip(self._here, self.workers, strict=True):
            prefix = f"worker.{i}."
            saved_arrays = {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            worker.restore(saved_arrays, info["workers"][i])
        self.take_own_state(arrays, info)
        adam = self.optimizer.state_dict()
        if info["learnt"]:
            adam["state"] = {
                i: {
                    name: torch.from_numpy(arrays[f"adam.{i}.{name}"].copy())
                    for name in ("step", "exp_avg", "exp_avg_sq")
                }
                for i in range(len(list(self.network.parameters())))
            }
        self.optimizer.load_state_dict(adam)
        self.update, self.steps = int(info["update"]), int(info["steps"])
        self.seconds = float(info["seconds"])


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
