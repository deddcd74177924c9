"""Print exact values of positions: ``bao solve``."""

from __future__ import annotations

import argparse

from bao_agents.cli.options import Run, add_options, at_least
from bao_agents.search.solver.solver import Solution, solve
from bao_env.board import Board
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao solve``: prove who wins a position with perfect play, and show how."""
    parser.add_argument(
        "position",
        nargs="?",
        help="a position text (RULES.md), between quotes; default: the opening",
    )
    add_options(parser, ruleset="kujifunza")
    parser.add_argument(
        "--moves", nargs="*", default=[], metavar="MOVE", help="moves to play first"
    )
    parser.add_argument("--seconds", type=float, help="time limit")
    parser.add_argument("--nodes", type=at_least(1), help="limit of positions to visit")
    parser.add_argument("--shortest", action="store_true", help="find the shortest win (slower)")
    return _run


def _run(args: argparse.Namespace) -> None:
    board = Board(args.ruleset)
    if args.position is not None:
        board = Board.from_text(args.position, args.ruleset)
    for move in args.moves:
        board.push(move)
    found = solve(board, seconds=args.seconds, nodes=args.nodes, shortest=args.shortest)
    print(describe(found))


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
