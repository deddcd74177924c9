"""Exact values from the command line.

python -m agents.search.solver                             # the opening of kujifunza
python -m agents.search.solver "POSITION" --ruleset zanzibar --shortest
"""

from __future__ import annotations

import argparse
import sys

from agents.search.solver.solver import Solution, solve
from bao_env.board import Board
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move
from bao_env.rule_files import RULESET_HELP, ruleset_argument


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
