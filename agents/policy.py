"""A checkpoint as a player: one network call a position, or a search with it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.gumbel import GumbelSearch
from agents.network import Inputs, PolicyNetwork
from agents.options import best_options, encode, sample_options
from agents.threads import check_threads, share
from bao_env.engine.batch import random_states
from bao_env.engine.ruleset import Ruleset

_CHUNK: Final = 4096
_SEARCHES: Final = 256
"""Most positions that go through a search together."""
_TREE_NODES: Final = 1 << 17
"""Most nodes of all trees of a thread, some 120 MB, unless a single tree needs more."""


class Judgement(NamedTuple):
    """What a network says of a batch of B positions with K options in all."""

    logits: npt.NDArray[np.float32]
    """float32[K]."""
    values: npt.NDArray[np.float32]
    """float32[B], or float32[K] from a network that judges each option."""
    options: npt.NDArray[np.int64]
    """int64[K], position * 64 + action."""
    offsets: npt.NDArray[np.int64]
    """int64[B + 1], where each position's options lie."""


class PolicyAgent:
    """Plays what a network prefers.

    Args:
        network: it is put into evaluation mode.
        ruleset: the rules to play by.
        sample: draw from the policy's probabilities instead of taking its best action.
        seed: of the draws.
    """

    def __init__(
        self, network: PolicyNetwork, ruleset: Ruleset, *, sample: bool = False, seed: int = 0
    ) -> None:
        self.network = network.eval()
        self.sample = sample
        self._rules = ruleset.kernel_rules()
        self._seeds = np.random.SeedSequence(seed)
        self._states = np.zeros(0, np.uint64)

    def judge(self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]) -> Judgement:
        """Run the network on positions uint64[B, 6] with legal actions uint64[B]."""
        config = self.network.config
        device = next(self.network.parameters()).device
        parts = []
        with torch.inference_mode():
            for low in range(0, len(positions), _CHUNK):
                part = slice(low, low + _CHUNK)
                rows, options, offsets = encode(self._rules, positions[part], masks[part], config)
                inputs = Inputs(torch.from_numpy(rows), torch.from_numpy(options).to(device))
                logits, values = (out.cpu().numpy() for out in self.network(inputs))
                count = len(options) if config.per_option else len(offsets) - 1
                parts.append(
                    Judgement(logits[: len(options)], values[:count], options + low * 64, offsets)
                )
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        logits, values, options = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return Judgement(logits, values, options, offsets)

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        size = len(masks)
        actions = np.zeros(size, np.int64)
        if not masks.any():
            return actions
        logits, values, _, offsets = self.judge(positions, masks)
        if not self.sample:
            best_options(logits, offsets, masks, actions)
            return actions
        missing = size - len(self._states)
        if missing > 0:
            more = random_states(missing, self._seeds.spawn(1)[0])
            self._states = np.concatenate([self._states, more])
        sample_options(
            logits,
            values,
            offsets,
            masks,
            self.network.config.per_option,
            self._states[:size],
            actions,
            np.empty(size, np.float32),
            np.empty(size, np.float32),
        )
        return actions


class SearchAgent:
    """Plays what a Gumbel search with a network finds best.

    Args:
        network: it is put into evaluation mode.
        ruleset: the rules to play by.
        simulations: of each search.
        threads: a batch is shared out over so many threads; all cores by default.

    Raises:
        ValueError: ``simulations`` is out of range.
    """

    def __init__(
        self,
        network: PolicyNetwork,
        ruleset: Ruleset,
        simulations: int,
        *,
        threads: int | None = None,
    ) -> None:
        self.network = network.eval()
        self._threads = check_threads(threads)
        games = max(1, min(_SEARCHES, _TREE_NODES // max(1, simulations)))
        self._searches = [
            GumbelSearch(ruleset.kernel_rules(), self.network, games, simulations)
            for _ in range(self._threads)
        ]
        self._games = games

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        actions = np.zeros(len(masks), np.int64)
        single = (masks != 0) & ((masks & (masks - np.uint64(1))) == 0)
        for i in np.flatnonzero(single):
            actions[i] = int(masks[i]).bit_length() - 1  # nothing to think about
        open_ended = np.flatnonzero((masks != 0) & ~single)
        # Even parts, so that no thread is left with a small, slow batch.
        parts = -(-len(open_ended) // self._games)
        step = max(1, -(-len(open_ended) // max(self._threads, parts)))

        def search(part: slice, thread: int) -> None:
            index = open_ended[part]
            actions[index] = self._searches[thread].search(positions[index]).actions

        share(len(open_ended), min(step, self._games), self._threads, search)
        return actions
