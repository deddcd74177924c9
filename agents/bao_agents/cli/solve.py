"""Run ``bao solve``: prove who wins a position, or make a file of exact values."""

from __future__ import annotations

import argparse
from pathlib import Path

from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
)
from bao_agents.exact import exact_values
from bao_agents.exact.exact_values import DatasetSettings, generate
from bao_agents.search.solver.solver import Solution, solve
from bao_env.board import Board
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move

_SECONDS = 60.0
_SAMPLE_NODES = 300_000


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao solve``: prove who wins with perfect play, in one position or in many."""
    parser.add_argument(
        "position",
        nargs="?",
        help="a position text (RULES.md), between quotes; default: start, the opening",
    )
    parser.add_argument(
        "--moves", nargs="*", default=[], metavar="MOVE", help="moves to play first"
    )
    parser.add_argument("--seconds", type=float, help="time limit (default: 60, without --nodes)")
    parser.add_argument(
        "--nodes",
        type=at_least(1),
        help=f"limit of positions to visit (default with --sample: {_SAMPLE_NODES})",
    )
    parser.add_argument("--shortest", action="store_true", help="find the shortest win (slower)")
    add_options(parser, "ruleset")
    many = parser.add_argument_group(
        "a file of exact values",
        "Half of the positions are from random games, half from games between two\n"
        "searches. The same command continues a stopped one, and a larger N adds to it\n"
        "(from FILE.parts).",
    )
    many.add_argument(
        "--sample", type=at_least(1), metavar="N", help="solve N sampled positions, not one"
    )
    many.add_argument(
        "--out", type=new_file, metavar="FILE", help="the file: .npz (all data) or .csv (to read)"
    )
    many.add_argument(
        "--plies",
        type=at_least(0),
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of plies (default: from ten before the stores are spent)",
    )
    many.add_argument(
        "--players",
        nargs=2,
        default=exact_values.PLAYERS,
        metavar="PLAYER",
        help=f"players of the searched games (default: {' '.join(exact_values.PLAYERS)})",
    )
    add_options(many, "threads", "seed")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    if (args.sample is None) != (args.out is None):
        raise ValueError("--sample N needs --out FILE, and --out FILE needs --sample N")
    if args.sample is not None:
        if args.position is not None:
            raise ValueError("POSITION changes nothing with --sample: leave it out")
        refuse_unused(args, "with --sample", "moves", "seconds", "shortest")
        _sample(args)
        return
    refuse_unused(args, "without --sample", "plies", "players", "threads", "seed")
    board = Board.from_text(args.position or "start", args.ruleset)
    for move in args.moves:
        board.push(move)
    seconds = _SECONDS if args.seconds is None and args.nodes is None else args.seconds
    found = solve(board, seconds=seconds, nodes=args.nodes, shortest=args.shortest)
    print(describe(found))


def _sample(args: argparse.Namespace) -> None:
    """Write a file of exact values."""
    lowest = max(0, 2 * args.ruleset.opening_store - exact_values.NAMUA_PLIES)
    plies = tuple(args.plies or (lowest, 999))
    nodes = args.nodes or _SAMPLE_NODES
    settings = DatasetSettings(args.ruleset, args.seed, nodes, plies, tuple(args.players))
    path = Path(args.out)
    try:
        data = generate(settings, args.sample, path, args.threads)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command to continue") from None
    print(exact_values.describe(path, data))


def describe(solution: Solution) -> str:
    """Return a solution in words: the winner, the number of plies, and a line in moves."""
    visited = f"{solution.nodes:,} positions visited"
    if solution.winner is None:
        return f"unknown ({visited})"
    who = SEAT_NAMES[solution.winner]
    how = "in" if solution.is_shortest else "within"
    lines = [f"{who} wins {how} {solution.plies} plies ({visited})"]
    if solution.line:
        lines.append(" ".join(map(action_to_move, solution.line)))
    return "\n".join(lines)
