"""Prove the winner, the number of plies and the line within the limits of an answer.

The search itself is :mod:`bao_agents.search.solver.proof_number`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.evaluators.tables import load_tables
from bao_agents.search.limits import NEVER
from bao_agents.search.solver.proof_number import (
    LOSS,
    PROOF_MEMORY,
    UNBOUNDED,
    UNKNOWN,
    WIN,
    Table,
    prove,
)
from bao_agents.support.array_types import Int64Array
from bao_env.engine.position import PackedPositions, Rows, packed_opening, turn_of
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

_GLANCE = 1
"""The limit with which a search only reads the table."""


class Child(NamedTuple):
    """A position after a legal action."""

    action: int
    position: PackedPositions
    result: int
    """1 if the action wins at once, -1 if it loses at once, else 0."""
    sign: int
    """1 if the same player is to move again, else -1."""


class KnownAction(NamedTuple):
    """What a search knows about an action of its position."""

    action: int
    phi: int
    """This and the next: its numbers (:mod:`bao_agents.search.solver.proof_number`), as the player
    who chooses it counts them."""
    delta: int
    plies: int
    """Plies to the end of the game after it, in the proof found."""

    @property
    def value(self) -> int:
        """WIN, LOSS or UNKNOWN for the player who chooses it."""
        return WIN if self.delta == 0 else LOSS if self.phi == 0 else UNKNOWN


class Distance(NamedTuple):
    """The distance of a proven win."""

    plies: int
    """Plies within which the winner can win."""
    is_shortest: bool
    """Whether the loser can hold out this long."""
    action: int | None
    """The winner's action that wins within these plies, or the loser's that is known to hold out
    longest. None if there is no action."""


class ProofSearch:
    """The search of one thread, with the limits of its current answer.

    Args:
        ruleset: the rules.
        table_bits: the table has 2^``table_bits`` slots of 96 bytes.
    """

    def __init__(self, ruleset: Ruleset, table_bits: int) -> None:
        self.table = Table.empty(table_bits, load_tables(ruleset).cells)
        self.nodes = 0
        """Positions visited for the answer."""
        self._rules = ruleset.kernel
        self._limit: int | None = None
        self._memory = np.zeros(1, PROOF_MEMORY)
        self._rows = np.empty((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)

    @classmethod
    def for_threads(cls, ruleset: Ruleset, table_bits: int, threads: int) -> list[ProofSearch]:
        """Return a search for each thread, already compiled, so no time limit includes that."""
        searches = [cls(ruleset, table_bits) for _ in range(threads)]
        searches[0].begin(1)
        searches[0].prove(packed_opening(ruleset))
        return searches

    @property
    def deadline(self) -> Int64Array:
        """The deadline of its current answer, int64[1]; see :mod:`bao_agents.search.limits`."""
        return self._memory["deadline"]

    def begin(self, nodes: int | None, deadline: int = NEVER) -> None:
        """Begin an answer with a limit of nodes and a deadline."""
        self.nodes, self._limit = 0, nodes
        self.deadline[0] = deadline

    @property
    def plies(self) -> int:
        """Plies to the end of the game in the proof just found."""
        return int(self._memory["plies"][0])

    def prove(
        self,
        position: PackedPositions,
        bound: int = UNBOUNDED,
        attacker: int = 0,
        nodes: int | None = None,
    ) -> int:
        """Call :func:`prove` with what is left of the limits, or with ``nodes``."""
        if nodes is None:
            left = np.iinfo(np.int64).max if self._limit is None else self._limit - self.nodes
            nodes = max(left, _GLANCE)
        memory = self._memory
        memory["bound"], memory["attacker"], memory["node_limit"] = bound, attacker, nodes
        found = int(prove(self._rules, self.table, memory[0], position))
        self.nodes += int(memory["nodes"][0])
        return found

    def children(self, position: PackedPositions) -> list[Child]:
        """Return the positions after the legal actions, by action."""
        count = successors(self._rules, Rows.of(position), self._rows, 0)
        children = []
        for row in self._rows[:count]:
            after = np.zeros(6, np.uint64)
            after[:5] = row[:5]
            result = int(row[RESULT])
            sign = 1 if turn_of(after) == turn_of(position) else -1
            children.append(Child(int(row[ACTION]), after, result if result < 2 else -1, sign))
        return sorted(children, key=lambda child: child.action)

    def known(self) -> list[KnownAction]:
        """Return what the last search, even if unfinished, knows about each action."""
        memory = self._memory[0]
        rows = slice(1, int(memory["frames"][0]["end"]))
        return [
            KnownAction(
                int(position[ACTION]), int(row["phi"]), int(row["delta"]), int(row["plies"])
            )
            for position, row in zip(memory["stack"][rows], memory["rows"][rows], strict=True)
        ]

    def distance(self, value: int) -> Distance:
        """Return the distance of the win in the proof just found.

        Args:
            value: the proved value, WIN or LOSS.
        """
        return Distance(self.plies, self.plies <= 1, self._best(value))

    def bisect(self, position: PackedPositions, value: int, distance: Distance) -> Distance:
        """Find the shortest distance that the limits allow.

        Args:
            position: a proved position.
            value: its value, WIN or LOSS.
            distance: the distance in its first proof.
        """
        high, _, action = distance
        low = 0  # no win within `low`, a win within `high`
        while high - low > 1:
            middle = (low + high) // 2
            found = self.prove(position, middle, value)
            if found == UNKNOWN:
                break
            if found == WIN:  # in time, or the other side's win is delayed
                action = self._best(WIN)
            if found == value:
                high = self.plies
            else:
                low = middle
        return Distance(high, high - low <= 1, action)

    def _best(self, value: int) -> int | None:
        """Return the quickest win or the slowest loss among the actions known to have ``value``."""
        found = [one for one in self.known() if one.value == value]
        pick = min if value == WIN else max
        best = pick(found, key=lambda one: one.plies, default=None)
        return best and best.action

    def line(self, position: PackedPositions, value: int, bound: int | None) -> tuple[int, ...]:
        """Return a line of the proof or, with a bound, of the shortest win, within the limits."""
        line: list[int] = []
        seen = set()
        while position.tobytes() not in seen:
            seen.add(position.tobytes())
            child = self._step(position, value, bound)
            if child is None:
                break
            value *= child.sign
            line.append(child.action)
            bound = None if bound is None else bound - 1
            if child.result:
                break
            position = child.position
        return tuple(line)

    def _step(self, position: PackedPositions, value: int, bound: int | None) -> Child | None:
        """Return the position after an action of the proof.

        Return None if there is no action, or the limits do not suffice to find one.
        """
        children = self.children(position)
        for last_try in (False, True):
            found = []
            for child in children:
                plies = self._plies_after(child, value, bound)
                if plies is not None:
                    found.append((plies, child))
            if found and (value == WIN or len(found) == len(children)):
                pick = min if value == WIN else max
                return pick(found, key=lambda one: one[0])[1]
            if not last_try:  # the table has lost a part of the proof
                self.prove(position, bound or UNBOUNDED, 0 if bound is None else value)
        return None

    def _plies_after(self, child: Child, value: int, bound: int | None) -> int | None:
        """Return the plies to the end after an action that keeps the value.

        Return None if the table does not know that it keeps the value or the bound.

        Args:
            child: the position after the action.
            value: WIN or LOSS for the player who chooses the action.
            bound: plies left before the action.
        """
        after = value * child.sign

        def is_known(bound: int) -> bool:
            return self.prove(child.position, bound, after, _GLANCE) == after

        if child.result:
            return 0 if child.result == value else None
        if bound is None:
            return self.plies if is_known(UNBOUNDED) else None
        left = bound - 1
        if left == 0:
            return None if self.children(child.position) else 0  # 1.2: no legal move
        if not is_known(left):
            return None
        if value == WIN or left == 1:
            return left
        sooner = self.prove(child.position, left - 1, after)  # the loser may do better elsewhere
        return None if sooner == UNKNOWN else left - 1 if sooner == after else left
