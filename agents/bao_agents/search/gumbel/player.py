"""Play with a Gumbel search and a network."""

from __future__ import annotations

import numpy as np

from bao_agents.nets.network import PolicyNetwork
from bao_agents.nets.player import NetworkAgent
from bao_agents.search.gumbel.action_selection import STANDARD, GumbelSettings
from bao_agents.search.gumbel.search import MAX_SIMULATIONS, GumbelSearch
from bao_agents.search.gumbel.simulation import SearchOutput
from bao_agents.search.limits import Limit
from bao_agents.search.player import Question, SearchPlayer
from bao_agents.support.opinion import Opinion, by_probability
from bao_env.board import Board
from bao_env.engine.position import Actions
from bao_env.engine.ruleset import Ruleset

_MAX_SEARCHES = 256
"""The most positions that are searched together."""
_SIMULATION = 3e-5
"""Seconds that a simulation takes with a large network, roughly."""
_MAX_TREE_NODES = 1 << 17
"""The most nodes in all trees of a thread, about 120 MB, unless a single tree needs more."""


class SearchAgent(SearchPlayer):
    """Play the action that a Gumbel search with a network finds best.

    Args:
        network: the network, which is put into evaluation mode.
        ruleset: the rules to play by.
        limit: the simulations of each search, as ``nodes``.
        settings: how the searches choose actions.
        threads: see :class:`SearchPlayer`.

    Raises:
        TypeError, ValueError: the limit or a setting is not a number, or is out of range.
    """

    NAME = "search"
    LOWEST = Limit(None, None, 2)
    HIGHEST = Limit(None, None, MAX_SIMULATIONS)

    def __init__(
        self,
        network: PolicyNetwork,
        ruleset: str | Ruleset,
        limit: Limit,
        *,
        settings: GumbelSettings = STANDARD,
        threads: int | None = None,
    ) -> None:
        self.network = network.eval()
        self._settings = settings
        super().__init__(ruleset, limit, threads=threads)

    def _prepare(self) -> None:
        self._make_searches(self.limit.nodes or 2)

    def _make_searches(self, simulations: int) -> None:
        """Make the searches of the threads."""
        self._games = max(1, min(_MAX_SEARCHES, _MAX_TREE_NODES // simulations))
        weights = None  # the first search compiles them for all
        self._searches: list[GumbelSearch] = []
        for _ in self._deadlines:
            search = GumbelSearch(
                self.ruleset.kernel,
                self.network,
                self._games,
                simulations,
                settings=self._settings,
                weights=weights,
            )
            weights = search.weights
            self._searches.append(search)
        self._deadlines = [search.deadline for search in self._searches]

    def _limit(self, limit: Limit | None) -> Limit:
        limit = self.limit if limit is None else self._checked(limit)
        if limit.nodes and limit.nodes != self._searches[0].simulations:
            self._make_searches(limit.nodes)
        return super()._limit(limit)

    def _expected_seconds(self, limit: Limit) -> float:
        return (limit.nodes or 2) * _SIMULATION

    def _part(self, size: int) -> int:
        # Parts of equal size: a small last one would waste a thread.
        parts = max(len(self._searches), -(-size // self._games))
        return max(1, -(-size // parts))

    def _search(self, question: Question, thread: int) -> Actions:
        return self._searches[thread].search(question.positions, legal=question.legal).actions

    def analyse(self, board: Board, limit: Limit | None = None) -> list[Opinion]:
        """Return an opinion of each legal action of a board, best first.

        An action that the search has not visited has the value of the network.

        Args:
            board: a game that is not over.
            limit: the simulations, instead of the player's limit.
        """
        searched: list[SearchOutput] = []

        def search(part: slice, thread: int) -> None:
            searched.append(self._searches[thread].search(board.packed[None]))

        with self._exclusive:
            self._share(1, self._limit(limit), search)
        [found] = searched
        policy, values = found.policies[0], found.qvalues[0].clip(-1, 1)
        opinions = []
        for action, score, *_ in NetworkAgent(self.network, self.ruleset).analyse(board):
            visited = not np.isnan(values[action])
            score = float(values[action]) if visited else score
            opinions.append(Opinion(action, score, float(policy[action])))
        return sorted(opinions, key=by_probability, reverse=True)
