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
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

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
from bao_env.engine.ruleset import Ruleset, get_ruleset
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
    allows. Empty if the winner is not known, or the game is over."""
    nodes: int
    """Positions visited."""


class Child(NamedTuple):
    """A position after a legal action."""

    action: int
    words: Words
    result: int
    """1 if the action wins at once, -1 if it loses at once, else 0."""


class Solver:
    """Finds out who wins positions of one rule set.

    Its table is kept from one position to the next, so that related positions are solved faster.
    Who wins does not depend on it; numbers of nodes, proofs and their lines may. One solver is for
    one thread of Python.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        nodes: positions to visit for an answer, at most.
        seconds: time for an answer, at most.
        table_bits: each thread's table has 2^``table_bits`` slots of 96 bytes.
        threads: among which a batch is divided; all cores by default.

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
    ) -> None:
        if nodes is not None and nodes < 1:
            raise ValueError(f"solver: {nodes} nodes: expected at least 1")
        if seconds is not None:
            check_seconds("solver", seconds)
        self.ruleset = get_ruleset(ruleset)
        self._rules = self.ruleset.kernel_rules()
        self._seconds = seconds
        limit = MAX_NODES if nodes is None and seconds is None else nodes
        self._node_limit = np.iinfo(np.int64).max if limit is None else limit
        self._threads = check_threads(threads)
        self._exclusive = Exclusive("Solver")
        self._tables = [Table.empty(table_bits) for _ in range(self._threads)]
        self._memories = [np.zeros(1, MEMORY) for _ in range(self._threads)]
        self._rows = np.empty((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)
        self._prove(packed_opening(self.ruleset), nodes=1)  # compile before a clock runs

    def clear(self) -> None:
        """Forget what has been found out."""
        for table in self._tables:
            table.clear()

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

        def work(part: slice, thread: int) -> None:
            for i in np.flatnonzero(masks[part]) + part.start:
                values[i] = self._prove(positions[i], thread=thread)
                nodes[i] = self._memories[thread]["nodes"][0]

        with self._exclusive:
            share(len(masks), 1, self._threads, work)
        return values, nodes

    def solve(self, position: Words, *, shortest: bool = False) -> Solution:
        """Who wins a position, and how.

        Args:
            position: uint64[6]; its game is not over by a capture.
            shortest: also find the shortest win. That takes many times longer.
        """
        with self._exclusive:
            return self._solve(position, shortest)

    def within(self, position: Words, plies: int, value: int) -> int:
        """Whether a player can win within a number of plies.

        Args:
            position: uint64[6]; its game is not over by a capture.
            plies: how many, from 1 to :data:`MAX_BOUND`.
            value: WIN to ask about the player to move, LOSS about the opponent.

        Returns:
            ``value`` if they can, ``-value`` if not, UNKNOWN if the limits do not suffice.

        Raises:
            ValueError: ``plies`` or ``value`` is out of range.
        """
        if not 1 <= plies <= MAX_BOUND or value not in (WIN, LOSS):
            raise ValueError(
                f"solver: {plies} plies, value {value}: expected 1 to {MAX_BOUND} plies, 1 or -1"
            )
        with self._exclusive:
            return self._prove(position, plies, value)

    def children(self, position: Words) -> list[Child]:
        """The positions after the legal actions of a position, uint64[6], by action."""
        with self._exclusive:
            return self._children_of(position)

    # --- searches -----------------------------------------------------------------------------

    def _solve(self, position: Words, shortest: bool) -> Solution:
        """:meth:`solve`, in one thread."""
        value = self._prove(position)
        nodes, plies = int(self._memories[0]["nodes"][0]), int(self._memories[0]["plies"][0])
        if value == UNKNOWN:
            return Solution(None, None, False, (), nodes)
        mover = turn_of(position)
        winner = mover if value == WIN else 1 - mover
        if shortest:
            bound, more = self._shortest(position, value, plies)
            nodes += more
            if bound is not None:
                return Solution(winner, bound, True, self._line(position, value, bound), nodes)
        return Solution(winner, plies, False, self._line(position, value, None), nodes)

    def _prove(
        self,
        position: Words,
        bound: int = UNBOUNDED,
        attacker: int = 0,
        *,
        nodes: int | None = None,
        thread: int = 0,
    ) -> int:
        """:func:`prove` within the limits."""
        memory = self._memories[thread]
        memory["bound"], memory["attacker"] = bound, attacker
        memory["node_limit"] = self._node_limit if nodes is None else nodes
        with stop_after(memory["stop"], self._seconds):
            return int(prove(self._rules, self._tables[thread], memory[0], position))

    def _shortest(self, position: Words, value: int, plies: int) -> tuple[int | None, int]:
        """The fewest plies in which the winner can win, or None; and the positions visited."""
        nodes = 0
        for bound in range(1, min(plies, MAX_BOUND) + 1):
            found = self._prove(position, bound, value)
            nodes += int(self._memories[0]["nodes"][0])
            if found == value:
                return bound, nodes
            if found == UNKNOWN:
                break
        return None, nodes

    def _children_of(self, position: Words) -> list[Child]:
        """:meth:`children`, in one thread."""
        count = successors(self._rules, Packed.of(position), self._rows, 0)
        children = []
        for row in self._rows[:count]:
            words = np.zeros(6, np.uint64)
            words[:5] = row[:5]
            result = int(row[RESULT])
            children.append(Child(int(row[ACTION]), words, result if result < 2 else -1))
        return sorted(children, key=lambda child: child.action)

    def _line(self, position: Words, value: int, bound: int | None) -> tuple[int, ...]:
        """A line of the proof; with a bound, of the shortest win."""
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

    def _step(self, position: Words, value: int, bound: int | None) -> tuple[Child, int] | None:
        """An action of the proof and the value after it; None where there is no action, or the
        limits do not suffice to find one."""
        children = self._children_of(position)
        for nodes in (_GLANCE, None):  # what the table knows, before anything is searched anew
            found: tuple[int, Child, int] | None = None
            for child in children:
                again = turn_of(child.words) == turn_of(position)
                after = value if again else -value
                plies = self._plies_after(child, value, after, bound, nodes)
                if plies is None:
                    continue
                if found is None or (plies < found[0] if value == WIN else plies > found[0]):
                    found = plies, child, after
            if found is not None:
                return found[1:]
        return None

    def _plies_after(
        self, child: Child, value: int, after: int, bound: int | None, nodes: int | None
    ) -> int | None:
        """Plies to the end after an action, if it keeps the value and, with a bound, the bound.

        Args:
            child: the position after the action.
            value: WIN or LOSS, for the player who chooses it.
            after: the same for the player who is to move then.
            bound: plies left before the action.
            nodes: positions to visit, at most.
        """
        if child.result:
            return 0 if child.result == value else None
        if bound is None:
            proved = self._prove(child.words, nodes=nodes) == after
            return int(self._memories[0]["plies"][0]) if proved else None
        left = bound - 1
        if left == 0:
            return None if self._children_of(child.words) else 0  # 1.2: no legal move
        if self._prove(child.words, left, after, nodes=nodes) != after:
            return None
        if value == LOSS and left > 1 and self._prove(child.words, left - 1, after) == after:
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
