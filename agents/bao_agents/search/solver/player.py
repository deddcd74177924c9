"""Play with the solver: win proven wins, and resist proven losses as long as possible.

An eighth of each position's limit is spent on a proof. If one is found, the rest is spent on a
shorter win, or on the action after which the loss takes longest. Otherwise alpha-beta uses the rest
to choose among the actions that are not proven to lose.
"""

from __future__ import annotations

import numpy as np

from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import MAX_NODES, nanoseconds
from bao_agents.search.player import Question, has_choice, only_actions
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN
from bao_agents.search.solver.proof_search import ProofSearch
from bao_agents.search.solver.solver import HIGHEST, LOWEST, TABLE_BITS
from bao_agents.support.array_types import Int64Array

PROOF_PART = 8
"""One eighth of a limit is spent on the proof."""


class SolverAgent(AlphaBetaAgent):
    """Win proven wins, and otherwise play the best action of an alpha-beta search.

    With a node limit each move needs its own proof, so a choice depends on what alpha-beta's choice
    depends on. With a time limit it keeps its proofs for the next move.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: time, positions to visit, or both, for each position.
        threads: see :class:`~bao_agents.search.player.SearchPlayer`.

    Raises:
        TypeError, ValueError: the limit is not one, or out of range.
    """

    NAME = "solver"
    LOWEST, HIGHEST = LOWEST, HIGHEST
    PART = 1

    def _prepare(self) -> None:
        super()._prepare()
        bits = min(TABLE_BITS, (self.limit.nodes or MAX_NODES).bit_length())
        self._proofs = ProofSearch.for_threads(self.ruleset, bits, len(self._deadlines))

    def _expire(self) -> None:
        super()._expire()
        for search in self._proofs:
            search.deadline[0] = 0

    def _search(self, question: Question, thread: int) -> Int64Array:
        good = np.array([self._good_actions(question, thread)], np.uint64)
        if not len(has_choice(good)):
            return np.array([[only_actions(good)[0], 0]])
        nodes = question.limit.nodes
        rest = question.limit._replace(nodes=nodes and nodes - nodes // PROOF_PART)
        return self._find(question._replace(legal=good, limit=rest), thread)

    def _good_actions(self, question: Question, thread: int) -> int:
        """Return the bits of the actions that alpha-beta may choose from.

        Returns:
            one action if the winner is known, otherwise all that are not proven to lose; if the
            mask leaves these out, all of its actions.
        """
        position, legal = question.positions[0], int(question.legal[0])
        _, seconds, nodes = question.limit
        search, now, end = self._proofs[thread], nanoseconds(), int(self._deadlines[thread][0])
        if seconds is None:
            search.table.clear()
        search.begin(nodes and nodes // PROOF_PART, now + (end - now) // PROOF_PART)
        value = search.prove(position)
        lost = sum(1 << one.action for one in search.known() if one.value == LOSS)
        open_actions = legal & ~lost or legal
        if value == UNKNOWN:
            return open_actions
        search.begin(nodes and nodes - search.nodes, end)
        action = search.bisect(position, value, search.distance(value)).action
        assert action is not None
        return legal & 1 << action or open_actions
