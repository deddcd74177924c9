"""Puzzles: positions in which few of the moves win, with the levels that solve each.

    python -m bao_agents.play.puzzles zanzibar won.npz

writes the puzzles of a rule set, ``rated/NAME.tsv``. It chooses them from the won positions that
are shipped and from further files of ``bao solve --sample``, and lets the levels of the board play
each. That takes a few seconds a puzzle. The same command continues a stopped one: it keeps the
ratings in the file. So remove the file first if a level or the solver has changed. The same files
give the same puzzles and ratings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bao_agents.exact.solved_positions import SolvedPositions, without_sides
from bao_agents.play.roster import LEVELS
from bao_agents.players import registry
from bao_agents.players.player import NamedPlayer
from bao_agents.search.solver.solver import Solution, Solver
from bao_agents.support.files import write_atomically
from bao_agents.support.progress import Progress
from bao_env.board import Board
from bao_env.engine.action import actions_of
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation.positions import action_to_move, format_position

PLIES = (3, 21)
"""The shortest and the longest win of a puzzle, in plies."""
PER_LENGTH = 6
"""Further files add puzzles of a length until there are so many."""
RATED_LEVELS = tuple(name for name in LEVELS if name != "master")
"""The levels that rate puzzles. The master's limit is a time, so what it solves depends on the
machine."""
SEEDS = 8
"""The tries of a level that chooses at random, each with another seed; the others try once."""
_NODES = 2_000_000
"""Limit of positions that the solver visits for one answer. Few answers need a tenth of it."""
_MAX_PLIES = 100
"""A level that has not won after so many plies has not solved the puzzle."""
_FOLDER = Path(__file__).with_name("rated")
_COLUMNS = ("position", "plies", "winning")


class Puzzle(NamedTuple):
    """A position in which few of the moves win."""

    position: str
    """The position as a text."""
    plies: int
    """Plies to the shortest win."""
    winning: tuple[str, ...]
    """The canonical names of all moves that win."""
    solved: tuple[float, ...] = ()
    """For each of RATED_LEVELS, the share of its tries in which it solves the puzzle; empty if none
    has tried."""

    @property
    def levels(self) -> int:
        """The number of RATED_LEVELS that solve it in at least half of their tries."""
        return sum(share >= 0.5 for share in self.solved)


def puzzles_file(rules: Ruleset) -> Path:
    """Return the path of the puzzles of a rule set; there may be no such file."""
    return _FOLDER / f"{rules.name}.tsv"


@cache
def puzzles(rules: Ruleset) -> tuple[Puzzle, ...]:
    """Return the puzzles of some rules, easiest first; none if no file is shipped for them.

    Puzzles with shorter wins come first; among wins of equal length, those that more levels solve.
    Those that are not rated come last.
    """
    if not rules.is_shipped or not puzzles_file(rules).is_file():
        return ()
    _, *lines = puzzles_file(rules).read_text(encoding="ascii").splitlines()
    rows = (line.split("\t") for line in lines)
    return tuple(
        Puzzle(position, int(plies), tuple(winning.split()), tuple(map(float, shares)))
        for position, plies, winning, *shares in rows
    )


def choose(shipped: SolvedPositions, further: Sequence[SolvedPositions] = ()) -> Iterator[Puzzle]:
    """Yield puzzles among won positions, without ratings.

    In a puzzle at most a third of the moves win, and no win is shorter than its length says. Mirror
    images count once.

    Args:
        shipped: won positions, of which all puzzles are taken.
        further: more of them, which add puzzles of each length until there are PER_LENGTH.
    """
    solver = Solver(shipped.ruleset, nodes=_NODES)
    counts: Counter[int] = Counter()
    chosen: set[bytes] = set()
    for solved in (shipped, *further):
        keys = without_sides(solved.positions)
        rows = zip(solved.positions, solved.legal, solved.winning, solved.plies, strict=True)
        for key, (packed, legal, winning, plies) in zip(keys, rows, strict=True):
            is_hard = 0 < 3 * int(winning).bit_count() <= int(legal).bit_count()
            is_full = solved is not shipped and counts[plies] >= PER_LENGTH
            if key in chosen or not is_hard or is_full or not PLIES[0] <= plies <= PLIES[1]:
                continue
            solution = solver.solve(packed, shortest=True)
            if solution.is_shortest and solution.plies == plies:
                chosen.add(key)
                counts[plies] += 1
                moves = tuple(map(action_to_move, actions_of(winning)))
                yield Puzzle(format_position(unpack(packed)), int(plies), moves)


def rate(puzzle: Puzzle, rules: Ruleset) -> tuple[float, ...]:
    """Return the share of its tries in which each of RATED_LEVELS solves a puzzle."""
    start = Board.from_text(puzzle.position, rules)
    solver = Solver(rules, nodes=_NODES)
    solve = cache(lambda text: solver.solve(Board.from_text(text, rules).packed, shortest=True))
    shares = []
    for level in RATED_LEVELS:
        tries = []
        for seed in range(SEEDS):
            player = registry.load(LEVELS[level], ruleset=rules, seed=seed, threads=1)
            tries.append(_solves(player, start, solve))
            if not player.seeded:
                break
        shares.append(sum(tries) / len(tries))
    return tuple(shares)


def _solves(player: NamedPlayer, start: Board, solve: Callable[[str], Solution]) -> bool:
    """Return whether a player wins a puzzle without ever leaving the proven win.

    The opponent holds out as long as possible.
    """
    board = start.copy()
    while board.outcome() is None and board.ply < start.ply + _MAX_PLIES:
        if board.turn == start.turn:
            board.push(player.choose(board))
        else:
            solution = solve(board.text())
            if solution.winner != start.turn:
                return False
            board.push(solution.line[0])
    outcome = board.outcome()
    return outcome is not None and outcome.winner == start.turn


def write(chosen: Sequence[Puzzle], rules: Ruleset) -> None:
    """Write the puzzles of a rule set in order, the easiest first."""
    lines = ["\t".join((*_COLUMNS, *(LEVELS[level] for level in RATED_LEVELS)))]
    for puzzle in sorted(chosen, key=lambda puzzle: (puzzle.plies, -puzzle.levels)):
        shares = (f"{share:g}" for share in puzzle.solved)
        columns = puzzle.position, f"{puzzle.plies}", " ".join(puzzle.winning), *shares
        lines.append("\t".join(columns))
    write_atomically(puzzles_file(rules), "\n".join(lines) + "\n")


def main(name: str, *files: str) -> None:
    """Choose and rate the puzzles of a rule set; see the top of this file."""
    rules = RULESETS[name]
    rated = {puzzle.position: puzzle for puzzle in puzzles(rules)}
    shipped, *further = (SolvedPositions.load(file, rules).won for file in (name, *files))
    chosen = [rated.get(puzzle.position, puzzle) for puzzle in choose(shipped, further)]
    write(chosen, rules)
    for i, puzzle in enumerate(Progress(chosen)):
        if not puzzle.solved:
            chosen[i] = puzzle._replace(solved=rate(puzzle, rules))
            write(chosen, rules)


if __name__ == "__main__":
    main(*sys.argv[1:])
