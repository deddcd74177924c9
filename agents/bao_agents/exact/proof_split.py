"""Split a long proof into pieces that others can check.

In each position the winner plays one winning action, and the loser may play any. A *piece* is a
position that the solver proves from an empty table within a limit of positions. A file has an
answer for each position before the pieces, in the form of a proof in pieces
(:mod:`bao_agents.exact.proof_tree`). Of such an answer, the actions that lead to a piece are
proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bao_agents.exact.proof_tree import Answer, Answers
from bao_agents.search.limits import Limit
from bao_agents.search.sharing import search_in_threads
from bao_agents.search.solver.proof_number import INFINITE, UNKNOWN, WIN
from bao_agents.search.solver.proof_search import KnownAction, ProofSearch
from bao_agents.search.solver.solver import table_bits
from bao_env.engine.position import PackedPositions, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import format_position

_SPLIT = (1, 1)
"""The numbers of an action whose position is split further."""
_NOT_NEEDED = (int(INFINITE) - 1, int(INFINITE) - 1)
"""The numbers of an action that the proof does not need: as hard as can be."""


class ProofSplitter:
    """Split a proof that is in a table.

    Args:
        search: a search that has proven the position. What its table has lost is proven again.
        ruleset: the rules.
        nodes: the most positions to visit for a piece.
    """

    def __init__(self, search: ProofSearch, ruleset: Ruleset, nodes: int) -> None:
        self._search = search
        self._nodes = nodes
        self._pieces = ProofSearch(ruleset, table_bits(Limit(nodes=nodes), 1, None))

    def split(self, position: PackedPositions, answers: Answers) -> Iterator[Answer]:
        """Yield the answers about a position and those after it, but for the known ones.

        Args:
            position: uint64[6], a proven position.
            answers: the answers known so far; the others are added.
        """
        waiting, split = [position], set[str]()
        while waiting:
            position = waiting.pop()
            text = format_position(unpack(position))
            if text in split:
                continue
            split.add(text)
            if text not in answers:
                answers[text] = self._answer(position, text)
                yield answers[text]
            actions = answers[text].actions
            for child, action in zip(self._search.children(position), actions, strict=True):
                if (action.phi, action.delta) == _SPLIT:
                    waiting.append(child.position)

    def _answer(self, position: PackedPositions, text: str) -> Answer:
        """Return what the proof needs to know about the actions of a proven position."""
        value = _prove(self._search, position, None)
        actions_by_number = {action.action: action for action in self._search.known()}
        needed = set(actions_by_number)
        if value == WIN:
            winning = [action for action in actions_by_number.values() if action.value == WIN]
            needed = {min(winning, key=lambda action: action.plies).action}
        visited, actions = 0, []
        for child in self._search.children(position):
            action = actions_by_number[child.action]
            if child.action not in needed:
                action = KnownAction(child.action, *_NOT_NEEDED, 0)
            elif not child.result:
                self._pieces.clear()
                if _prove(self._pieces, child.position, self._nodes) == UNKNOWN:
                    action = KnownAction(child.action, *_SPLIT, 0)
                visited += self._pieces.nodes
            actions.append(action)
        return Answer(text, visited, actions)


def _prove(search: ProofSearch, position: PackedPositions, nodes: int | None) -> int:
    """Search a position with a limit of positions, in another thread: this one notices Ctrl-C."""
    values: list[int] = []

    def work(part: slice, thread: int) -> None:
        values.append(search.prove(position))

    search.begin(nodes)
    search_in_threads(1, 1, work, 1, search.expire, math.inf)
    return values[0]
