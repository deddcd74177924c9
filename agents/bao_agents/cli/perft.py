"""Run ``bao bench perft``: count the action sequences of a given length."""

from __future__ import annotations

import argparse
import sys
import time

from bao_agents.cli.options import Run, add_options, at_least
from bao_env.engine.perft import divide, perft
from bao_env.engine.position import pack, packed_opening
from bao_env.notation.positions import action_to_move, parse_position


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench perft``: count the action sequences of a given length from a position."""
    parser.add_argument(
        "depth", type=at_least(1), help="length of the sequences (8 takes well under 1 s)"
    )
    parser.add_argument("--position", metavar="TEXT", help="position text; default: the opening")
    parser.add_argument("--divide", action="store_true", help="print the count of each first move")
    add_options(parser, "ruleset")
    return _run


def _run(args: argparse.Namespace) -> None:
    words = packed_opening(args.ruleset)
    if args.position is not None:
        pack(parse_position(args.position, args.ruleset), words)
    rules = args.ruleset.kernel
    if args.divide:
        for action, leaves in divide(rules, words, args.depth).items():
            print(f"{action_to_move(action)}: {leaves}")
    start = time.perf_counter()
    for depth in range(1, args.depth + 1):
        leaves = perft(rules, words, depth)
        print(f"perft({depth}) = {leaves}", flush=True)
    print(f"{time.perf_counter() - start:.2f} s", file=sys.stderr)
