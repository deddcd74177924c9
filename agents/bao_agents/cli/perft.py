"""Count the action sequences of a given length, as a test of the move generator.

``perft(depth)`` is the number of ways to play exactly ``depth`` actions from a position. As in
chess programming, a game that ends earlier does not count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from bao_agents.cli.options import Run, add_options, at_least
from bao_agents.support.output import say
from bao_env.compiled.compile import jit
from bao_env.engine.action import actions_of
from bao_env.engine.bits import ONE, ZERO, popcount, trailing_zeros
from bao_env.engine.kernel import advance, legal_of, play
from bao_env.engine.position import WORDS, Legal, PackedPositions, pack, packed_opening
from bao_env.engine.ruleset import KernelRules
from bao_env.notation.positions import action_to_move, parse_position

_COMPILED_DEPTH = 7
"""The depth that compiled code searches between two checks for Ctrl-C; it takes milliseconds."""


@jit
def _perft(rules: KernelRules, stack: PackedPositions, legal: Legal, depth: int) -> np.uint64:
    """Count the leaves below ``stack[0]``.

    The other rows of ``stack``, uint64[depth, 6], and ``legal``, uint64[depth], are scratch memory.
    """
    leaves = ZERO  # uint64, like popcount()
    level = 0
    legal[0] = legal_of(rules, stack[0])
    while level >= 0:
        if level == depth - 1:
            leaves += popcount(legal[level])
            level -= 1
            continue
        if legal[level] == ZERO:
            level -= 1
            continue
        action = trailing_zeros(legal[level])
        legal[level] &= legal[level] - ONE
        for word in range(WORDS):
            stack[level + 1, word] = stack[level, word]
        following, winner, stuck = advance(rules, stack[level + 1], action)
        if winner < 0:
            level += 1
            legal[level] = following
    return leaves


def perft(rules: KernelRules, position: PackedPositions, depth: int) -> int:
    """Return the number of action sequences of length ``depth`` from a position, uint64[6].

    Raises:
        ValueError: ``depth`` is negative.
    """
    if depth < 0:
        raise ValueError(f"depth {depth}: expected 0 or more")
    if depth == 0:
        return 1
    if depth > _COMPILED_DEPTH:
        return sum(divide(rules, position, depth).values())
    stack = np.zeros((depth, WORDS), np.uint64)
    stack[0] = position
    return int(_perft(rules, stack, np.zeros(depth, np.uint64), depth))


def divide(rules: KernelRules, position: PackedPositions, depth: int) -> dict[int, int]:
    """Return the result of :func:`perft` for each first action."""
    split = {}
    for action in actions_of(legal_of(rules, position)):
        after = position.copy()
        over = play(rules, after, np.uint64(action)) != 0
        split[action] = int(depth == 1) if over else perft(rules, after, depth - 1)
    return split


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao bench perft``: count the action sequences of a given length from a position."""
    parser.add_argument(
        "depth", type=at_least(1), help="length of the sequences in plies (8 takes well under 1 s)"
    )
    parser.add_argument(
        "--position", metavar="TEXT", help="text of the first position (default: the opening)"
    )
    parser.add_argument("--divide", action="store_true", help="print the count of each first move")
    add_options(parser, "ruleset")
    return _run


def _run(args: argparse.Namespace) -> None:
    position = packed_opening(args.ruleset)
    if args.position is not None:
        pack(parse_position(args.position, args.ruleset), position)
    rules = args.ruleset.kernel
    if args.divide:
        for action, leaves in divide(rules, position, args.depth).items():
            print(f"{action_to_move(action)}: {leaves}")
    start = time.perf_counter()
    for depth in range(1, args.depth + 1):
        leaves = perft(rules, position, depth)
        print(f"perft({depth}) = {leaves}", flush=True)
    say(f"{time.perf_counter() - start:.2f} s")
