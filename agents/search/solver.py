"""Exact values: who wins a position, proved, and how.

    python -m agents.search.solver                             # the opening of kujifunza
    python -m agents.search.solver "POSITION" --ruleset zanzibar --shortest

A win or a loss that is reported is true for perfect play of both sides, whatever the search's
limits; an honest answer to what they do not suffice for is "unknown". The search is
:mod:`agents.search.proof_number`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.search.evaluation import load_weights
from agents.search.proof_number import (
    LOSS,
    MAX_BOUND,
    MEMORY,
    UNBOUNDED,
    UNKNOWN,
    WIN,
    Table,
    prove,
)
from agents.search.threads import check_seconds, check_threads, share, stop_after
from bao_env.board import Board
from bao_env.engine.arrays import as_batch
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.position import Packed, packed_opening, turn_of
from bao_env.engine.ruleset import KernelRules, Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move
from bao_env.rule_files import RULESET_HELP, ruleset_argument

TABLE_BITS: Final = 18
"""Size of a thread's table: 2^18 slots, 24 MiB."""
MAX_NODES: Final = 10_000_000
"""Positions that a search visits by default, if it has no limit of time."""
_GLANCE: Final = 1
"""Positions to visit in order to see what the table knows."""
_PART: Final = 16
"""Positions of a batch that a thread solves with one table."""

Words = npt.NDArray[np.uint64]


class Solution(NamedTuple):
    """What is known of a position."""

    winner: int | None
    """The seat that wins with perfect play, SOUTH (0) or NORTH (1); None if it is not known."""
    plies: int | None
    """Plies within which the winner can win; None if the winner is not known."""
    is_shortest: bool
    """Whether the loser can hold out for so many."""
    line: tuple[int, ...]
    """How it may go, as actions. The winner follows the proof, the loser resists as long as that
    allows. Empty if the winner is not known, or the game is over; shorter if the limits do not
    suffice for all of it."""
    nodes: int
    """Positions visited."""


class Judgement(NamedTuple):
    """What is known of the actions of a batch of positions."""

    values: npt.NDArray[np.int8]
    """int8[B]: WIN (1) if the player to move wins, LOSS (-1) if they lose, UNKNOWN (0) if that is
    not known or the game is over."""
    winning: Words
    """uint64[B], masks of the actions after which that player wins."""
    losing: Words
    """uint64[B], masks of the actions after which they lose."""
    nodes: npt.NDArray[np.int64]
    """int64[B], positions visited."""


class Solver:
    """Finds out who wins positions of one rule set.

    :meth:`solve` keeps its table from one position to the next, so that related positions are
    solved faster. Who wins does not depend on it; numbers of nodes, proofs and their lines may. A
    batch begins with an empty table, so that it has the same answers on any number of threads. One
    solver is for one thread of Python.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        nodes: positions to visit for an answer, at most.
        seconds: time for an answer, at most.
        table_bits: each thread's table has 2^``table_bits`` slots of 96 bytes.
        threads: among which a batch is divided; all cores by default.
        guided: look first where alpha-beta's evaluation promises a proof. That takes two to three
            times fewer positions.

    Raises:
        ValueError: a limit is out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        nodes: int | None = None,
        seconds: float | None = None,
        table_bits: int = TABLE_BITS,
        threads: int | None = 1,
        guided: bool = False,
    ) -> None:
        if nodes is not None and nodes < 1:
            raise ValueError(f"solver: {nodes} nodes: expected at least 1")
        if seconds is not None:
            check_seconds("solver", seconds)
        self.ruleset = get_ruleset(ruleset)
        self._seconds = seconds
        self._node_limit = MAX_NODES if nodes is None and seconds is None else nodes
        self._threads = check_threads(threads)
        self._exclusive = Exclusive("Solver")
        rules = self.ruleset.kernel_rules()
        weights = load_weights(self.ruleset) if guided else None
        tables = [Table.empty(table_bits, weights) for _ in range(self._threads)]
        self._searches = [_Search(rules, table) for table in tables]
        with self._searches[0].answer(1, None) as search:  # compile before a clock runs
            search.prove(packed_opening(self.ruleset))

    def clear(self) -> None:
        """Forget what has been found out."""
        for search in self._searches:
            search.table.clear()

    def values(
        self, positions: Words, masks: Words
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Who wins each position of a batch; each has its own limits.

        Args:
            positions: uint64[B, 6].
            masks: uint64[B], their legal actions; 0 where the game is over.

        Returns:
            values int8[B], 1 if the player to move wins, -1 if they lose, 0 if that is not known;
            and int64[B], the positions visited. A game that is over is worth 0.
        """
        positions, masks = as_batch(positions, masks)
        values, nodes = np.zeros(len(masks), np.int8), np.zeros(len(masks), np.int64)

        def work(i: int, search: _Search) -> None:
            values[i] = search.prove(positions[i])
            nodes[i] = search.nodes

        self._answer_each(masks, work)
        return values, nodes

    def judge(self, positions: Words, masks: Words) -> Judgement:
        """Which actions of each position of a batch win, and which lose; each has its own limits.

        Args:
            positions: uint64[B, 6].
            masks: uint64[B], their legal actions; 0 where the game is over.
        """
        positions, masks = as_batch(positions, masks)
        size = len(masks)
        values, nodes = np.zeros(size, np.int8), np.zeros(size, np.int64)
        winning, losing = np.zeros(size, np.uint64), np.zeros(size, np.uint64)

        def work(i: int, search: _Search) -> None:
            for child in search.children(positions[i]):
                value = child.result or search.value_of(child, positions[i])
                if value != UNKNOWN:
                    (winning if value == WIN else losing)[i] |= np.uint64(1 << child.action)
            if winning[i]:
                values[i] = WIN
            elif losing[i] == masks[i]:
                values[i] = LOSS
            else:  # an action that is not known may matter to no proof of the position
                values[i] = search.prove(positions[i])
            nodes[i] = search.nodes

        self._answer_each(masks, work)
        return Judgement(values, winning, losing, nodes)

    def solve(self, position: Words, *, shortest: bool = False) -> Solution:
        """Who wins a position, and how.

        Args:
            position: uint64[6]; its game is not over by a capture.
            shortest: also find the shortest win. That takes many times longer; if the limits do
                not suffice for it, the answer is that of the first proof.
        """
        with (
            self._exclusive,
            self._searches[0].answer(self._node_limit, self._seconds) as search,
        ):
            value = search.prove(position)
            if value == UNKNOWN:
                return Solution(None, None, False, (), search.nodes)
            mover, plies = turn_of(position), search.plies
            winner = mover if value == WIN else 1 - mover
            bound = search.shortest(position, value, plies) if shortest else None
            line = search.line(position, value, bound)
            if bound is not None:
                plies = bound
            return Solution(winner, plies, bound is not None, line, search.nodes)

    def _answer_each(self, masks: Words, work: Callable[[int, _Search], None]) -> None:
        """Call ``work(i, search)`` for each position ``i`` whose game is not over."""

        def work_off(part: slice, thread: int) -> None:
            search = self._searches[thread]
            search.table.clear()
            for i in np.flatnonzero(masks[part]) + part.start:
                with search.answer(self._node_limit, self._seconds):
                    work(i, search)

        with self._exclusive:
            share(len(masks), _PART, self._threads, work_off)


class _Child(NamedTuple):
    """A position after a legal action."""

    action: int
    words: Words
    result: int
    """1 if the action wins at once, -1 if it loses at once, else 0."""


class _Search:
    """What a thread searches with, and what is left of the limits of its present answer."""

    def __init__(self, rules: KernelRules, table: Table) -> None:
        self.table = table
        self.nodes = 0
        """Positions visited for the answer."""
        self._rules = rules
        self._limit: int | None = None
        self._memory = np.zeros(1, MEMORY)
        self._rows = np.empty((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)

    @contextmanager
    def answer(self, nodes: int | None, seconds: float | None) -> Iterator[_Search]:
        """All that is searched for one answer; its limits are counted from here."""
        self.nodes, self._limit = 0, nodes
        with stop_after(self._memory["stop"], seconds):
            yield self

    @property
    def plies(self) -> int:
        """Plies to the end of the game in the proof just found."""
        return int(self._memory["plies"][0])

    def prove(self, position: Words, bound: int = UNBOUNDED, attacker: int = 0) -> int:
        """:func:`prove` with what is left of the limits."""
        left = np.iinfo(np.int64).max if self._limit is None else self._limit - self.nodes
        return self._prove(position, bound, attacker, max(left, _GLANCE))

    def _prove(self, position: Words, bound: int, attacker: int, nodes: int) -> int:
        """:func:`prove` with a limit of its own."""
        memory = self._memory
        memory["bound"], memory["attacker"], memory["node_limit"] = bound, attacker, nodes
        found = int(prove(self._rules, self.table, memory[0], position))
        self.nodes += int(memory["nodes"][0])
        return found

    def children(self, position: Words) -> list[_Child]:
        """The positions after the legal actions."""
        count = successors(self._rules, Packed.of(position), self._rows, 0)
        children = []
        for row in self._rows[:count]:
            words = np.zeros(6, np.uint64)
            words[:5] = row[:5]
            result = int(row[RESULT])
            children.append(_Child(int(row[ACTION]), words, result if result < 2 else -1))
        return sorted(children, key=lambda child: child.action)

    def value_of(self, child: _Child, position: Words) -> int:
        """The value of the position after an action, for the player who chooses it."""
        value = self.prove(child.words)
        return value if turn_of(child.words) == turn_of(position) else -value

    def shortest(self, position: Words, value: int, plies: int) -> int | None:
        """The fewest plies in which the winner can win; None if the limits do not suffice."""
        for bound in range(1, min(plies, MAX_BOUND) + 1):
            found = self.prove(position, bound, value)
            if found == value:
                return bound
            if found == UNKNOWN:
                break
        return None

    def line(self, position: Words, value: int, bound: int | None) -> tuple[int, ...]:
        """A line of the proof, as far as the limits suffice; with a bound, of the shortest win."""
        line: list[int] = []
        seen = set()
        while position.tobytes() not in seen:
            seen.add(position.tobytes())
            step = self._step(position, value, bound)
            if step is None:
                break
            child, value = step
            line.append(child.action)
            bound = None if bound is None else bound - 1
            if child.result:
                break
            position = child.words
        return tuple(line)

    def _step(self, position: Words, value: int, bound: int | None) -> tuple[_Child, int] | None:
        """An action of the proof and the value after it; None where there is no action, or the
        limits do not suffice to find one."""
        children = self.children(position)
        for at_a_glance in (True, False):  # what the table knows, before anything is searched anew
            found: tuple[int, _Child, int] | None = None
            for child in children:
                again = turn_of(child.words) == turn_of(position)
                after = value if again else -value
                plies = self._plies_after(child, value, after, bound, at_a_glance)
                if plies is None:
                    continue
                if found is None or (plies < found[0] if value == WIN else plies > found[0]):
                    found = plies, child, after
            if found is not None:
                return found[1:]
        return None

    def _plies_after(
        self, child: _Child, value: int, after: int, bound: int | None, at_a_glance: bool
    ) -> int | None:
        """Plies to the end after an action, if it keeps the value and, with a bound, the bound.

        Args:
            child: the position after the action.
            value: WIN or LOSS, for the player who chooses it.
            after: the same for the player who is to move then.
            bound: plies left before the action.
            at_a_glance: whether to ask the table alone.
        """

        def proved(bound: int) -> bool:
            if at_a_glance:
                return self._prove(child.words, bound, after, _GLANCE) == after
            return self.prove(child.words, bound, after) == after

        if child.result:
            return 0 if child.result == value else None
        if bound is None:
            return self.plies if proved(UNBOUNDED) else None
        left = bound - 1
        if left == 0:
            return None if self.children(child.words) else 0  # 1.2: no legal move
        if not proved(left):
            return None
        if value == LOSS and left > 1 and self.prove(child.words, left - 1, after) == after:
            return left - 1  # the loser can do better elsewhere
        return left


def solve(
    board: Board | str,
    *,
    ruleset: str | Ruleset = "zanzibar",
    seconds: float | None = None,
    nodes: int | None = None,
    shortest: bool = False,
) -> Solution:
    """Who wins a position, proved, and how.

    >>> from agents import solve
    >>> from bao_env import Board
    >>> solution = solve(Board("kujifunza"))
    >>> solution.winner                                        # 0: South, who begins
    0

    Args:
        board: a board, or a position text.
        ruleset: of a position text; a board has its own.
        seconds: time for the answer, at most.
        nodes: positions to visit, at most; ten million if there is no limit of time either.
        shortest: also find the shortest win; that takes many times longer.

    Raises:
        ValueError: the text is no position, the rule set is unknown, or a limit is out of range.
    """
    if isinstance(board, str):
        board = Board.from_text(board, ruleset)
    outcome = board.outcome()
    if outcome is not None:
        return Solution(outcome.winner, 0, True, (), 0)
    solver = Solver(board.ruleset, nodes=nodes, seconds=seconds)
    return solver.solve(board.words, shortest=shortest)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m agents.search.solver``."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.search.solver",
        description="Prove who wins a position with perfect play, and show how.",
    )
    parser.add_argument(
        "position",
        nargs="?",
        help="a position text; without it the opening. RULES.md says what is in one",
    )
    parser.add_argument("--ruleset", type=ruleset_argument, default="kujifunza", help=RULESET_HELP)
    parser.add_argument("--moves", nargs="*", default=[], metavar="MOVE", help="played first")
    parser.add_argument("--seconds", type=float, help="time for the answer, at most")
    parser.add_argument("--nodes", type=int, help="positions to visit, at most")
    parser.add_argument("--shortest", action="store_true", help="find the shortest win (slower)")
    args = parser.parse_args(argv)
    try:
        board = Board(args.ruleset)
        if args.position is not None:
            board = Board.from_text(args.position, args.ruleset)
        for move in args.moves:
            board.push(move)
        found = solve(board, seconds=args.seconds, nodes=args.nodes, shortest=args.shortest)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(describe(board, found))
    return 0


def describe(board: Board, solution: Solution) -> str:
    """A solution in words: who wins, within how many plies, and a line in moves."""
    visited = f"{solution.nodes:,} positions visited"
    if solution.winner is None:
        return f"unknown ({visited})"
    who = SEAT_NAMES[solution.winner]
    how = "in" if solution.is_shortest else "within"
    lines = [f"{who} wins {how} {solution.plies} plies ({visited})"]
    if solution.line:
        copy = Board.from_text(board.text(), board.ruleset)
        moves = []
        for action in solution.line:
            moves.append(action_to_move(action))
            copy.push(action)
        lines.append(" ".join(moves))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
