"""Write the proof that kujifunza is won, small enough to ship and check.

    bao lab certificate

It writes the winner's strategy: every position in which the winner is to move if they follow it
from the opening, their move there, and the plies within which the game then ends. Every
listed move leads to the shortest win, and no strategy that does so has fewer positions: an integer
program chooses among the moves that win equally fast (SciPy's ``milp``).

``python -m tests.check_certificate FILE`` checks such a file, and knows only the literal rules.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bao_agents.progress import Progress
from bao_agents.search import solver as solver_module
from bao_agents.search.solver.proof_number import LOSS, WIN
from bao_agents.search.solver.solver import Solver
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from bao_env.engine.position import Words, packed_opening, unpack
from bao_env.files import write_atomically
from bao_env.notation.positions import action_to_move, format_position
from bao_env.options import Run

RULESET = "kujifunza"
SHIPPED = Path(solver_module.__file__).parent / "proofs" / f"{RULESET}.tsv"
COLUMNS = ("position", "move", "plies")


class Win(NamedTuple):
    """A position that the player to move wins."""

    plies: int
    """The fewest plies in which the win can be forced."""
    moves: dict[int, list[bytes]]
    """The actions that force it, each with the positions after the opponent's replies."""


Wins = dict[bytes, Win]
"""Wins by packed position."""


def shortest_wins(solver: Solver, opening: Words) -> Wins:
    """Return every position in which the winner is to move if they follow shortest wins.

    Args:
        solver: solver of the rules, with sufficient limits.
        opening: uint64[6], won for the player to move. Turns alternate.

    Raises:
        ValueError: the solver's limits do not suffice.
    """
    plies = solver.solve(opening, shortest=True).plies
    if plies is None:
        raise ValueError("nothing is proved of the opening: raise the solver's limits")
    fewest = {opening.tobytes(): plies}
    wins: Wins = {}
    todo = [opening]
    with Progress(unit=" positions") as bar:
        while todo:
            position = todo.pop()
            left = fewest[position.tobytes()]
            win = Win(left, {})
            wins[position.tobytes()] = win
            bar.update()
            for child in solver.children(position):
                replies = _replies(solver, child.words, left) if not child.result else []
                if child.result < 0 or replies is None:
                    continue
                win.moves[child.action] = [reply.tobytes() for reply in replies]
                for reply in replies:
                    if reply.tobytes() not in fewest:
                        fewest[reply.tobytes()] = _fewest_plies(solver, reply, left - 2)
                        todo.append(reply)
    return wins


def _replies(solver: Solver, position: Words, plies: int) -> list[Words] | None:
    """Return the positions after the replies of a player who loses in ``plies - 1``; None if they
    do not."""
    replies = solver.children(position)
    if not replies:
        return []  # 1.2: no legal move
    if plies == 1 or solver.within(position, plies - 1, LOSS) != LOSS:
        return None
    return [reply.words for reply in replies if not reply.result]


def _fewest_plies(solver: Solver, position: Words, most: int) -> int:
    """Return the fewest plies in which the mover wins a position that is won within ``most``."""
    return next(n for n in range(1, most + 1) if solver.within(position, n, WIN) == WIN)


def smallest_strategy(wins: Wins, opening: Words) -> dict[bytes, int]:
    """Choose a move for every position that can arise, so that as few as possible can arise.

    The program has a variable for each position, 1 if it is listed, and for each of its moves, 1 if
    it is chosen. A listed position needs a move, and a chosen move needs the positions after its
    replies.

    Args:
        wins: the result of :func:`shortest_wins`.
        opening: uint64[6].

    Returns:
        actions by packed position.

    Raises:
        ValueError: the program was not solved.
    """
    place = {position: i for i, position in enumerate(sorted(wins))}
    moves = [(position, action) for position in place for action in sorted(wins[position].moves)]
    entries: list[tuple[int, int, int]] = []  # row, variable, coefficient: each sum is >= 0
    entries += [(i, i, -1) for i in place.values()]
    rows = len(place)
    for variable, (position, action) in enumerate(moves, start=len(place)):
        entries.append((place[position], variable, 1))
        for reply in set(wins[position].moves[action]):
            entries += [(rows, place[reply], 1), (rows, variable, -1)]
            rows += 1
    variables = len(place) + len(moves)
    row, column, coefficient = np.array(entries).T
    matrix = coo_array((coefficient.astype(float), (row, column)), shape=(rows, variables))
    lower = np.zeros(variables)
    lower[place[opening.tobytes()]] = 1
    solution = milp(
        np.arange(variables) < len(place),
        integrality=np.ones(variables),
        bounds=Bounds(lower, np.ones(variables)),
        constraints=LinearConstraint(matrix.tocsr(), lb=0),
        options={"mip_rel_gap": 0},
    )
    if not solution.success:
        raise ValueError(f"no smallest strategy was found: {solution.message}")
    chosen = {moves[i] for i in np.flatnonzero(solution.x[len(place) :] > 0.5)}
    strategy: dict[bytes, int] = {}
    todo = [opening.tobytes()]
    while todo:
        position = todo.pop()
        if position not in strategy:
            best = (a for a in sorted(wins[position].moves) if (position, a) in chosen)
            strategy[position] = next(best)
            todo += wins[position].moves[strategy[position]]
    return strategy


def certificate() -> str:
    """Return the certificate of kujifunza as a table with tabs, the opening first."""
    solver = Solver(RULESET)
    opening = packed_opening(solver.ruleset)
    wins = shortest_wins(solver, opening)
    rows = []
    for position, action in smallest_strategy(wins, opening).items():
        text = format_position(unpack(np.frombuffer(position, np.uint64)))
        rows.append((text, action_to_move(action), wins[position].plies))
    rows.sort(key=lambda row: (-row[2], row[0]))
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    return out.getvalue()


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao lab certificate``: write the proof that the first player wins kujifunza (seconds)."""
    parser.add_argument(
        "file", type=Path, nargs="?", default=SHIPPED, help="instead of the shipped file"
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    text = certificate()
    write_atomically(args.file, text)
    print(f"{text.count(chr(10)) - 1} positions in {args.file}")
