"""Count who wins the early positions of kujifunza, and solve each first move.

    bao lab census --plies 6

It lists the different positions after 0, 1, 2, ... plies and proves who wins each
(:mod:`bao_agents.search.solver.solver`). Two shortcuts save most of the work: a position and its
mirror image are won by the same player, and every position after a lost one is won.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from bao_agents.arena.solved_positions import mirrored
from bao_agents.array_types import Int8Array
from bao_agents.progress import Progress
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN, WIN
from bao_agents.search.solver.solver import Solver
from tabulate import tabulate

from bao_env.engine.action import unpack_masks
from bao_env.engine.batch import Engine
from bao_env.engine.position import Words
from bao_env.notation.positions import action_to_move
from bao_env.options import Run, add_options, at_least

RULESET = "kujifunza"
TABLE_BITS = 20
"""Size of the solver's table of positions, as a power of two."""
_PART = 64
"""Positions that are solved between two updates of the progress bar."""


class Level(NamedTuple):
    """The positions after a number of plies in which the game is not over."""

    positions: Words
    """uint64[N, 6], all different."""
    masks: Words
    """uint64[N], their legal actions."""
    values: Int8Array
    """int8[N]: WIN, LOSS or UNKNOWN, for the player to move."""


def census(plies: int, threads: int = 1) -> Iterator[Level]:
    """Yield the positions of kujifunza after 0, 1, ... ``plies`` plies, and who wins them.

    Args:
        plies: the last number of plies.
        threads: number of threads of the solver; the results do not depend on them.
    """
    engine, solver = Engine(RULESET), Solver(RULESET, table_bits=TABLE_BITS, threads=threads)
    opening, mask = engine.opening()
    level = _solved(solver, opening[None], np.array([mask]), np.zeros(1, np.int8))
    yield level
    for _ in range(plies):
        level = _solved(solver, *_following(engine, level))
        yield level


def _following(engine: Engine, level: Level) -> tuple[Words, Words, Int8Array]:
    """Return the positions and masks one ply later, and the values that follow from this level."""
    legal = np.empty((len(level.masks), 64), np.bool_)
    unpack_masks(level.masks, legal)
    before, actions = np.nonzero(legal)
    positions, masks = level.positions[before], level.masks[before]
    winners = np.full(len(before), -1, np.int8)
    engine.step(positions, actions, masks, winners)
    going = winners < 0
    positions, first, inverse = np.unique(
        positions[going], axis=0, return_index=True, return_inverse=True
    )
    values = np.full(len(positions), UNKNOWN, np.int8)
    after_loss = level.values[before[going]] == LOSS
    values[inverse.ravel()[after_loss]] = WIN
    return positions, masks[going][first], values


def _solved(solver: Solver, positions: Words, masks: Words, values: Int8Array) -> Level:
    """Solve the positions whose value is unknown; return the level."""
    swapped = mirrored(positions)
    pairs = zip(positions.tolist(), swapped.tolist(), strict=True)
    lower = np.array([one <= other for one, other in pairs])
    keys = np.where(lower[:, None], positions, swapped)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    known = np.full(len(first), UNKNOWN, np.int8)
    known[inverse.ravel()[values == WIN]] = WIN
    unsolved = np.flatnonzero(known == UNKNOWN)
    with Progress(total=len(unsolved), unit="position", leave=False) as bar:
        for low in range(0, len(unsolved), _PART):
            part = unsolved[low : low + _PART]
            known[part] = solver.values(positions[first[part]], masks[first[part]])[0]
            bar.update(len(part))
    return Level(positions, masks, known[inverse.ravel()])


def first_moves(solver: Solver) -> list[tuple[str, int, int]]:
    """Solve each first move: who wins after it, and in how many plies, including the move.

    Returns:
        moves by name; WIN or LOSS for the player who begins; plies.
    """
    found = []
    opening, _ = Engine(RULESET).opening()
    for child in solver.children(opening):
        solution = solver.solve(child.words, shortest=True)
        assert solution.plies is not None  # every first move leads to a position that is solved
        value = WIN if solution.winner == 0 else LOSS
        found.append((action_to_move(child.action), value, solution.plies + 1))
    return found


def table_of_first_moves() -> str:
    """Return :func:`first_moves` as Markdown."""
    rows = [
        (move, "wins" if value == WIN else "loses", plies)
        for move, value, plies in first_moves(Solver(RULESET))
    ]
    return tabulate(rows, ("first move", "whoever begins", "in plies"), tablefmt="github")


def counts(ply: int, level: Level) -> tuple[int, int, int]:
    """Return the numbers of positions won by the first player, by the second, and unknown."""
    begins = WIN if ply % 2 == 0 else LOSS
    wins, losses, unknown = (int((level.values == v).sum()) for v in (begins, -begins, UNKNOWN))
    return wins, losses, unknown


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao lab census``: count the positions early in kujifunza by who wins them."""
    parser.add_argument(
        "--plies",
        type=at_least(0),
        default=5,
        help="the last number of plies (default: 5, half a minute; 7, ten minutes)",
    )
    add_options(parser, "threads")
    return _run


def _run(args: argparse.Namespace) -> None:
    rows: list[tuple[int, ...]] = []
    print(table_of_first_moves(), end="\n\n", flush=True)
    try:
        for ply, level in enumerate(census(args.plies, args.threads)):
            rows.append((ply, len(level.values), *counts(ply, level)))
            print(f"{ply} plies: {len(level.values):,} positions", file=sys.stderr)
    finally:  # what was found before Ctrl-C is shown all the same
        head = ("plies", "positions", "whoever began wins", "the other player wins", "unknown")
        print(tabulate(rows, head, tablefmt="github", intfmt=","))
