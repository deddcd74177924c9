"""Play with a Gumbel search and a network."""

from __future__ import annotations

import numpy as np

from bao_agents.nets.legal_actions import list_legal_actions
from bao_agents.nets.network import PolicyNetwork
from bao_agents.search.gumbel.action_selection import STANDARD, GumbelSettings
from bao_agents.search.gumbel.search import GumbelSearch
from bao_agents.search.limits import NEVER, SHORT, check_threads, share
from bao_agents.support.remade import Remade
from bao_env.engine.array_checks import as_batch
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.position import Actions, Legal, PackedPositions, packed_opening
from bao_env.engine.ruleset import Ruleset

_MAX_SEARCHES = 256
"""The most positions that are searched together."""
_SIMULATION = 3e-5
"""Seconds that a simulation takes with a large network, roughly."""
_MAX_TREE_NODES = 1 << 17
"""The most nodes in all trees of a thread, about 120 MB, unless a single tree needs more."""


class SearchAgent(Remade):
    """Play the action that a Gumbel search with a network finds best.

    Args:
        network: the network, which is put into evaluation mode.
        ruleset: the rules to play by.
        simulations: simulations of each search.
        settings: how the searches choose actions.
        threads: number of threads that share a batch; None for one per core.

    Raises:
        TypeError, ValueError: a number is out of range.
    """

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""

    def __init__(
        self,
        network: PolicyNetwork,
        ruleset: Ruleset,
        simulations: int,
        *,
        settings: GumbelSettings = STANDARD,
        threads: int | None = None,
    ) -> None:
        self.network = network.eval()
        self.ruleset = ruleset
        self._threads = check_threads(threads)
        self._exclusive = Exclusive("player")
        games = max(1, min(_MAX_SEARCHES, _MAX_TREE_NODES // max(1, simulations)))
        rules = ruleset.kernel
        self._searches: list[GumbelSearch] = []
        weights = None  # the first search compiles them for all
        for _ in range(self._threads):
            search = GumbelSearch(
                rules, self.network, games, simulations, settings=settings, weights=weights
            )
            weights = search.weights
            self._searches.append(search)
        self._games = games
        self._expected_seconds = self._searches[0].simulations * _SIMULATION
        if self._expected_seconds > SHORT:  # compile before Ctrl-C may come
            list_legal_actions(np.zeros(1, np.uint64))
            self._searches[0].deadline[0] = 0
            self._searches[0].search(packed_opening(ruleset)[None])

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        actions = np.zeros(len(legal), np.int64)
        indptr, legal_actions = list_legal_actions(legal)
        counts = np.diff(indptr)
        single = counts == 1  # no choice, no search
        actions[single] = legal_actions[indptr[:-1][single]] & 63
        undecided = np.flatnonzero(counts > 1)
        # Even parts: a small batch at the end would be slow.
        parts = -(-len(undecided) // self._games)
        step = max(1, -(-len(undecided) // max(self._threads, parts)))

        def search(part: slice, thread: int) -> None:
            index = undecided[part]
            self._searches[thread].deadline[0] = NEVER
            actions[index] = self._searches[thread].search(positions[index]).actions

        deadlines = [search.deadline for search in self._searches]
        with self._exclusive:
            share(len(undecided), step, search, deadlines, self._expected_seconds)
        return actions
