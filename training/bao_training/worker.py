"""Define workers, each with its games and with its copy of the model and its gradients."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from bao_agents.evaluators.nnue import NNUE
from bao_agents.nets.checkpoint import Arrays, Checkpoint
from bao_agents.nets.network import PolicyNetwork
from bao_agents.support.array_types import Float64Array, Int64Array, Uint64Array
from bao_env.engine.batch import Engine
from bao_env.engine.position import (
    PLY,
    WORDS,
    Actions,
    Flags,
    Legal,
    PackedPositions,
    Seats,
    movers,
)
from bao_env.engine.sampling import RandomStates, random_actions, random_states
from bao_env.envs.openings import Openings
from bao_training.config import C, TrainConfig

_MAX_CHUNK = 2048
"""Decisions per pass through the network in learning; their activations fit in the L2 cache."""


class Games:
    """The B games that one worker plays at once.

    Args:
        config: the common settings.
        seed: the seed of all random numbers in these games.
    """

    def __init__(self, config: TrainConfig, seed: np.random.SeedSequence) -> None:
        size = config.envs // config.workers
        self._seed, game_seed = seed.spawn(2)
        self.engine: Engine = Engine(config.get_ruleset())
        self.generator: np.random.Generator = np.random.default_rng(self._seed)
        """Source of the worker's own random numbers; :meth:`start_update` makes a new one."""
        self.rng: RandomStates = random_states(size, game_seed)
        """uint64[B], the random state of each game."""
        self.positions: PackedPositions = np.empty((size, WORDS), np.uint64)
        """uint64[B, 6], packed (:mod:`bao_env.engine.position`)."""
        self.legal: Legal = np.zeros(size, np.uint64)
        """uint64[B], the legal actions as bits; 0 where a game is over."""
        self.winners: Seats = np.full(size, -1, np.int8)
        """int8[B], the seat that has won; -1 while the game runs."""
        self._max_plies = config.max_plies
        opening_plies = min(config.opening_plies, config.max_plies - 1)
        self._openings = Openings(self.engine.ruleset, (0, opening_plies))

    def __len__(self) -> int:
        return len(self.legal)

    @property
    def seats(self) -> Seats:
        """int8[B], the seat to move in each game."""
        return movers(self.positions)

    @property
    def plies(self) -> Uint64Array:
        """uint64[B], the actions played so far in each game."""
        return self.positions[:, PLY]

    @property
    def ended(self) -> Flags:
        """bool[B], the games that are won or were cut off."""
        return (self.winners >= 0) | (self.plies >= self._max_plies)

    def totals(self, ended: Int64Array) -> Int64Array:
        """Return int64[2], the number of ended games and the sum of their plies.

        Args:
            ended: int64[N], the numbers of the ended games.
        """
        return np.array([len(ended), self.plies[ended].sum()], np.int64)

    def start_update(self, update: int) -> None:
        """Make a new :attr:`generator` from the run's seed and the number of the update.

        A saved run therefore does not need the state of the generator.
        """
        key = *self._seed.spawn_key, update
        seed = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
        self.generator = np.random.default_rng(seed)

    def reset(self, games: Int64Array) -> None:
        """Restart games by number, int64[N], each after some random actions that do not end it."""
        starts = self._openings.draw(len(games), self.generator)
        self.positions[games], self.legal[games] = starts
        self.winners[games] = -1

    def step(self, actions: Actions) -> None:
        """Play an action, int64[B], in every game that is not over."""
        self.engine.step(self.positions, actions, self.legal, self.winners)

    def step_randomly(self, moving: Flags) -> None:
        """Play a random legal action in each selected game that is not over.

        Args:
            moving: bool[B], the selected games.
        """
        legal = np.where(moving, self.legal, np.uint64(0))
        actions = np.zeros(len(legal), np.int64)
        random_actions(legal, self.rng, actions)
        self.engine.step(self.positions, actions, legal, self.winners)
        self.legal = np.where(moving, legal, self.legal)

    def state(self) -> Arrays:
        """Return the running games and their random states: the arrays themselves, not copies."""
        return {"positions": self.positions, "legal": self.legal, "rng": self.rng}


class Model(nn.Module):
    """The model that a run trains: a policy network, and other parts that a method may add."""

    def __init__(self, network: PolicyNetwork) -> None:
        super().__init__()
        self.network = network

    def take_over(self, start: Checkpoint) -> None:
        """Copy the weights of a checkpoint, whose network must have the same shape."""
        self.network.load_state_dict(start.network.state_dict())

    def quantised_nnue(self) -> NNUE | None:
        """Return the NNUE to store in a checkpoint, or None if the method trains none."""
        return None

    def unsaved_tensors(self) -> dict[str, Tensor]:
        """Return the weights that a checkpoint rounds or omits, by their names in a saved run."""
        return {}


M = TypeVar("M", bound=Model)


class Replica(Generic[M]):
    """One thread's copy of the model, whose network computes in bfloat16 or float32.

    Args:
        model: the float32 model to copy.
        bfloat16: compute in bfloat16 instead of float32 if the device supports it in hardware.
            In software it would take twenty times as long.
    """

    def __init__(self, model: M, bfloat16: bool) -> None:
        self.device: torch.device = next(model.parameters()).device
        dtype = torch.bfloat16 if bfloat16 and has_bfloat16(self.device) else torch.float32
        self.model = copy.deepcopy(model)
        self.network: PolicyNetwork = self.model.network.to(dtype)
        self._parameters = list(self.model.parameters())
        self.gradients: list[torch.Tensor] = [torch.zeros_like(p) for p in model.parameters()]
        """float32, one for each parameter. :meth:`backward` adds to them."""

    def sync_weights(self, model: Model) -> None:
        """Copy the weights of ``model``."""
        with torch.no_grad():
            for parameter, trained in zip(self._parameters, model.parameters(), strict=True):
                parameter.copy_(trained)

    def to_device(self, array: npt.NDArray[Any]) -> Tensor:
        """Return an array as a tensor on the network's device."""
        return torch.from_numpy(array).to(self.device)

    def clear_gradients(self) -> None:
        """Set the gradients to 0."""
        for total in self.gradients:
            total.zero_()

    def backward(self, loss: Tensor) -> None:
        """Propagate the gradient of a loss through the model; add it to :attr:`gradients`."""
        loss.backward()
        with torch.no_grad():
            for total, parameter in zip(self.gradients, self._parameters, strict=True):
                if parameter.grad is not None:
                    total += parameter.grad
        self.model.zero_grad(set_to_none=True)


class Worker(ABC, Generic[C, M]):
    """One thread's games and its copy of the model. Each method has its own subclass.

    Args:
        config: the common settings.
        method_config: the method's settings.
        model: the float32 model to copy.
        seed: the seed of this worker's games.
    """

    STATS: ClassVar[tuple[str, ...]]
    """The names of the statistics that :meth:`loss` returns."""

    def __init__(
        self,
        config: TrainConfig,
        method_config: C,
        model: M,
        seed: np.random.SeedSequence,
    ) -> None:
        self.config = config
        self.method_config = method_config
        self.replica: Replica[M] = Replica(model, config.bfloat16)
        self.games: Games = Games(config, seed)
        self.games.reset(np.arange(len(self.games)))
        self.minibatches: list[Int64Array] = []
        """This worker's part of each minibatch: indices of decisions, for :meth:`targets`."""

    @abstractmethod
    def draw_minibatches(self, count: int) -> None:
        """Draw this worker's part of ``count`` minibatches, and store it in :attr:`minibatches`."""

    @abstractmethod
    def targets(self, decisions: Int64Array) -> Any:
        """Return the targets of decisions int64[N]: what the model should say about them."""

    @abstractmethod
    def loss(self, decisions: Int64Array, targets: Any) -> tuple[Tensor, Tensor]:
        """Return the loss of the model on some decisions, and statistics of it.

        Args:
            decisions: int64[N], the indices of the decisions.
            targets: their targets, as :meth:`targets` returns them.

        Returns:
            the loss, and the statistics named in :attr:`STATS`, float[S], each averaged over the
            decisions.
        """

    def gradient(self, minibatch: int, size: int) -> Float64Array:
        """Compute this worker's part of a minibatch's gradient, in ``replica.gradients``.

        Args:
            minibatch: the index of the minibatch.
            size: the number of decisions in the minibatch, over all workers.

        Returns:
            float64[S], the statistics, summed over this worker's decisions.
        """
        self.replica.clear_gradients()
        total = np.zeros(len(self.STATS))
        decisions = self.minibatches[minibatch]
        for low in range(0, len(decisions), _MAX_CHUNK):
            chunk = decisions[low : low + _MAX_CHUNK]
            loss, stats = self.loss(chunk, self.targets(chunk))
            self.replica.backward(loss * (len(chunk) / size))
            total += len(chunk) * stats.detach().cpu().numpy()
        return total

    def state(self) -> Arrays:
        """Return the arrays that a resumed worker needs.

        They are the arrays themselves, not copies: resuming a run fills them. A rollout is not
        among them, because a resumed run starts with a new one.
        """
        return self.games.state()


def log_softmax(logits: Tensor, decisions: Tensor, count: int) -> Tensor:
    """Return the log probabilities of the legal actions of ``count`` decisions.

    Args:
        logits: float[K], of the legal actions.
        decisions: int64[K], the decision that each action belongs to, in ascending order.
        count: the number of decisions.
    """
    tops = logits.new_full((count,), -torch.inf).scatter_reduce(
        0, decisions, logits.detach(), "amax"
    )
    above = logits - tops[decisions]
    totals = logits.new_zeros(count).index_add(0, decisions, above.exp())
    return above - totals.log()[decisions]


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device (a GPU, or a CPU with AVX-512) multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")
