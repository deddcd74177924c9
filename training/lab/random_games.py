"""Measure random play under a rule set: lengths, choices, winners, rare events.

python -m training.lab.random_games --ruleset kibao --games 1000000
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass

import numpy as np

from bao_env.engine.action import action_of
from bao_env.engine.batch import Engine
from bao_env.engine.bits import ONE, ZERO, U, popcount, trailing_zeros
from bao_env.engine.compile import jit
from bao_env.engine.kernel import candidates
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, NO_PIT, NO_WINNER, PLY, barred_of, read_at
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import random_actions, random_states
from bao_env.rule_files import RULESET_HELP, ruleset_argument

_HOUSE_PLAYED = U(0xAAAAAAAAAAAAAAAA)  # actions with house = 1
_BATCH = 8192
_MAX_PLIES = 10_000


@dataclass(frozen=True)
class Statistics:
    """Sums over uniformly random games from the opening."""

    ruleset: str
    games: int
    seed: int
    mean_plies: float
    """Actions a game."""
    longest: int
    """Actions of the longest game."""
    legal_actions: float
    """Legal actions a position."""
    south_wins: float
    """Share of games that South won."""
    namua_ends: float
    """Share of games that ended before the mover's store was empty."""
    house_choices: float
    """Share of positions in which the house may be played."""
    takasia: float
    """Share of positions with a hole that takasia bars (if the position records it)."""
    infinite: float
    """Share of positions in which a start is illegal because it never ends."""


@jit
def _count(rules, positions, masks, sums):
    """Add to ``sums``, int64[5]: positions, actions, house choices, takasia, infinite moves.

    ``positions`` is uint64[B, 6], ``masks`` uint64[B]; games that are over (mask 0) do not count.
    """
    for i in range(positions.shape[0]):
        mask = masks[i]
        if mask == ZERO:
            continue
        packed = read_at(positions, i)
        sums[0] += 1
        sums[1] += np.int64(popcount(mask))
        if mask & _HOUSE_PLAYED:
            sums[2] += 1
        if barred_of(packed.meta) != NO_PIT:
            sums[3] += 1
        capture_turn, starts = candidates(rules, packed)
        while starts != ZERO:
            start = trailing_zeros(starts)
            starts &= starts - ONE
            if (mask >> action_of(packed.meta, capture_turn, start)) & ONE == ZERO:
                sums[4] += 1
                break


def random_play(ruleset: str | Ruleset, games: int, seed: int = 0, threads: int = 1) -> Statistics:
    """Play ``games`` random games to their ends and sum them up.

    Raises:
        ValueError: ``games`` is below 1.
    """
    if games < 1:
        raise ValueError(f"games={games}: expected at least 1")
    engine = Engine(ruleset, threads)
    firsts = (SOUTH, NORTH) if engine.ruleset.first_player == "lot" else (SOUTH,)
    openings = [engine.opening(first) for first in firsts]
    sums = np.zeros(5, np.int64)
    longest = south = namua = 0
    sequence = np.random.SeedSequence(seed)
    for low in range(0, games, _BATCH):
        size = min(_BATCH, games - low)
        positions = np.array([openings[i % len(openings)][0] for i in range(size)])
        masks = np.array([openings[i % len(openings)][1] for i in range(size)])
        winners = np.full(size, NO_WINNER, np.int8)
        rng = random_states(size, sequence.spawn(1)[0])
        actions = np.empty(size, np.int64)
        for _ in range(_MAX_PLIES):
            _count(engine.rules, positions, masks, sums)
            random_actions(masks, rng, actions)
            engine.step(positions, actions, masks, winners)
            if not masks.any():
                break
        longest = max(longest, int(positions[:, PLY].max()))
        south += int((winners == SOUTH).sum())
        # The store of the player who would be next, or was stuck, in the last position.
        namua += int(((positions[:, META] & np.uint64(0xFFFF)) != 0).sum())
    return Statistics(
        ruleset=engine.ruleset.name,
        games=games,
        seed=seed,
        mean_plies=float(sums[0] / games),
        longest=longest,
        legal_actions=float(sums[1] / sums[0]),
        south_wins=south / games,
        namua_ends=namua / games,
        house_choices=float(sums[2] / sums[0]),
        takasia=float(sums[3] / sums[0]),
        infinite=float(sums[4] / sums[0]),
    )


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.random_games``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.random_games",
        description="Statistics of uniformly random games.",
    )
    parser.add_argument(
        "--ruleset", type=ruleset_argument, default="zanzibar", metavar="RULES", help=RULESET_HELP
    )
    parser.add_argument("--games", type=int, default=100_000, help="default 100000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    if args.games < 1 or args.seed < 0 or args.threads < 1:
        parser.error("--games and --threads must be positive, --seed not negative")
    print(
        json.dumps(asdict(random_play(args.ruleset, args.games, args.seed, args.threads)), indent=2)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
