"""Play with the solver: win proven wins, and resist proven losses as long as possible.

An eighth of each position's limit is spent on a proof. If one is found, the rest is spent on a
shorter win, or on the action after which the loss takes longest. Otherwise alpha-beta uses the rest
to choose among the actions that are not proven to lose.
"""

from __future__ import annotations

import time

import numpy as np

from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import check_nodes, check_seconds, check_threads
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN
from bao_agents.search.solver.proof_search import ProofSearch, share_proofs
from bao_agents.search.solver.solver import TABLE_BITS
from bao_agents.support.legal_bits import bits_of
from bao_agents.support.remade import Remade
from bao_env.engine.array_checks import as_batch
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.position import Actions, Flags, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset, get_ruleset

PROOF_PART = 8
"""One eighth of a limit is spent on the proof."""
_LEAST_SECONDS = 0.001
"""Shortest time for a search."""


class SolverAgent(Remade):
    """Win proven wins, and otherwise play the best action of an alpha-beta search.

    With a node limit its choice depends only on the position, so each move needs its own proof.
    With a time limit it keeps its proofs for the next move.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        seconds: time limit per position.
        nodes: limit of positions to visit per position.
        threads: number of threads that share a batch; each position is searched on one. None for
            all cores.

    Raises:
        ValueError: there is no limit, or one is out of range.
    """

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        seconds: float | None = None,
        nodes: int | None = None,
        threads: int | None = None,
    ) -> None:
        if seconds is None and nodes is None:
            raise ValueError("solver: give a time or a number of nodes")
        bits = TABLE_BITS
        if nodes is not None:
            nodes = check_nodes("solver", nodes)
            bits = min(bits, nodes.bit_length())
        self._seconds = None if seconds is None else check_seconds("solver", seconds)
        self._nodes = nodes
        rules, count = get_ruleset(ruleset), check_threads(threads)
        self._exclusive = Exclusive("player")
        self._searches = ProofSearch.for_threads(rules, bits, count)
        self._alphabeta = AlphaBetaAgent(
            rules,
            seconds=seconds and max(seconds - seconds / PROOF_PART, _LEAST_SECONDS),
            nodes=nodes and nodes - nodes // PROOF_PART,
            threads=count,
        )

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        good, spent = legal.copy(), np.zeros(len(legal))

        def work(part: slice, thread: int) -> None:
            for i in np.flatnonzero(_choices(legal[part])) + part.start:
                begun = time.monotonic()
                good[i] = self._good_actions(self._searches[thread], positions[i], int(legal[i]))
                spent[i] = time.monotonic() - begun

        with self._exclusive:
            share_proofs(self._searches, len(legal), 1, work, self._nodes, self._seconds)
            left, seconds = _choices(good), None
            if self._seconds is not None and left.any():  # on a busy machine a proof takes longer
                seconds = max(self._seconds - float(spent[left].mean()), _LEAST_SECONDS)
            return self._alphabeta.act(positions, good, seconds=seconds)

    def _good_actions(self, search: ProofSearch, position: PackedPositions, legal: int) -> int:
        """Return the bits of the actions that alpha-beta may choose from.

        Args:
            search: the thread's search.
            position: uint64[6].
            legal: its legal actions, at least two.

        Returns:
            one action if the winner is known, otherwise all that are not proven to lose.
        """
        begun = time.monotonic()
        seconds, nodes = self._seconds, self._nodes
        if seconds is None:
            search.table.clear()
        search.begin(
            None if nodes is None else nodes // PROOF_PART,
            None if seconds is None else seconds / PROOF_PART,
        )
        value = search.prove(position)
        if value == UNKNOWN:
            return legal & ~bits_of(one.action for one in search.known() if one.value == LOSS)
        search.begin(
            None if nodes is None else nodes - search.nodes,
            None if seconds is None else max(begun + seconds - time.monotonic(), _LEAST_SECONDS),
        )
        action = search.bisect(position, value, search.distance(value)).action
        assert action is not None
        return 1 << action


def _choices(legal: Legal) -> Flags:
    """Return which positions have two legal actions or more, from their bits uint64[N]."""
    return (legal & (legal - np.uint64(1))) != 0
