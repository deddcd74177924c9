"""Play with the solver: win proven wins, and resist proven losses as long as possible.

An eighth of each position's limit is spent on looking for a proof. If a proof is found, the rest is
spent on finding a shorter win or the action after which the loss takes longest. Otherwise
alpha-beta uses the rest to choose among the actions that are not proven to lose.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import MAX_NODES, nanoseconds
from bao_agents.search.player import Question, has_choice, only_actions
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN
from bao_agents.search.solver.proof_search import TABLE_BITS, ProofSearch
from bao_agents.search.solver.solver import HIGHEST, LOWEST, table_bits
from bao_agents.support.array_types import Int64Array

PROOF_PART = 8
"""The proof gets one part in eight of a limit."""


class SolverAgent(AlphaBetaAgent):
    """Win proven wins, and otherwise play the best action of an alpha-beta search.

    With a node limit each move is proven from an empty table. So a choice depends only on what
    alpha-beta's choice depends on. With a time limit the agent keeps its proofs for later moves.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: the time, the positions to visit, or both, for each position.
        threads, memory: see :class:`~bao_agents.search.player.SearchPlayer`.

    Raises:
        TypeError, ValueError: the limit is not a valid one, or is out of range.
    """

    NAME: ClassVar[str] = "solver"
    LOWEST, HIGHEST = LOWEST, HIGHEST
    PART: ClassVar[int] = 1

    def _prepare(self) -> None:
        super()._prepare()
        bits = min(TABLE_BITS, (self.limit.nodes or MAX_NODES).bit_length())
        if self._memory is not None:
            bits = min(bits, table_bits(self.limit, 1, self._memory))
        count = len(self._deadlines)
        # All threads use the first one together to search a single position.
        self._proofs = [ProofSearch(self.ruleset, bits, 1 if i else count) for i in range(count)]
        self._proofs[0].get_ready()

    def _expire(self) -> None:
        super()._expire()
        for search in self._proofs:
            search.expire()

    def _search(self, question: Question, thread: int) -> Int64Array:
        proof = self._proofs[thread]
        question = self._prove(question, proof, int(self._deadlines[thread][0]), 1)
        if not len(has_choice(question.legal)):
            return np.array([[only_actions(question.legal)[0], 0]])
        return self._find(question, thread)

    def _choose_alone(self, question: Question, end: int) -> int:
        threads = self._threads_alone(question.limit)
        if threads == 1:
            return int(self._ask(question, self._search)[0, 0])
        self._proofs[0].allow(table_bits(question.limit, threads, self._memory))
        question = self._prove(question, self._proofs[0], end, threads)
        if not len(has_choice(question.legal)):
            return int(only_actions(question.legal)[0])
        return super()._choose_alone(question, end)

    def _prove(self, question: Question, search: ProofSearch, end: int, threads: int) -> Question:
        """Look for a proof, and return the question that remains for alpha-beta.

        Args:
            question: the position.
            search: the search for the proof.
            end: the deadline.
            threads: the number of threads.

        Returns:
            a question about one action if the winner is proven, otherwise about all actions that
            are not proven to lose. If the mask leaves these out, the question is about all actions
            of the mask.
        """
        position, legal = question.positions[0], int(question.legal[0])
        _, seconds, nodes, _ = question.limit
        start = nanoseconds()
        if seconds is None:
            search.clear()
        search.begin(nodes and nodes // PROOF_PART, start + (end - start) // PROOF_PART, threads)
        value = search.prove(position)
        lost = sum(1 << action.action for action in search.known() if action.value == LOSS)
        open_actions = good = legal & ~lost or legal
        if value != UNKNOWN:
            search.begin(nodes and nodes - search.nodes, end, threads)
            action = search.bisect(position, value, search.distance(value)).action
            assert action is not None
            good = legal & 1 << action or open_actions
        rest_limit = question.limit._replace(nodes=nodes and nodes - nodes // PROOF_PART)
        return question._replace(legal=np.array([good], np.uint64), limit=rest_limit)
