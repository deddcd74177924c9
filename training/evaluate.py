"""Measure a player against others in paired games.

    python -m training.evaluate runs/quick/final.safetensors --opponents random greedy

Every opening, a random legal prefix, is played twice, once from either seat. The table
gives points a game (a draw counts a half) and the Elo difference, each with its 95 %
interval over pairs (:mod:`agents.elo`).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from agents import arena, registry
from agents.elo import Score
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.rule_files import RULESET_HELP, ruleset_argument


def ruleset_of(player: str) -> Ruleset | None:
    """The rule set that a checkpoint was trained under; None for a bot.

    Raises:
        CheckpointError: the file is no usable checkpoint.
    """
    if not Path(player).exists():
        return None
    from agents import checkpoint

    return checkpoint.load(player).ruleset


def elo_text(value: float) -> str:
    """An Elo difference for a table."""
    return f"{value:+.0f}" if math.isfinite(value) else ("+inf" if value > 0 else "-inf")


def result(opponent: str, score: Score, plies: float, seconds: float) -> dict[str, Any]:
    """One opponent's row, for JSON."""
    elo, low, high = (value if math.isfinite(value) else None for value in score.elo)
    return {
        "opponent": opponent,
        "games": score.games,
        "wins": score.wins,
        "draws": score.draws,
        "losses": score.losses,
        "pairs_by_points": score.pair_counts,
        "score": score.rate,
        "score_low": score.low,
        "score_high": score.high,
        "elo": elo,
        "elo_low": low,
        "elo_high": high,
        "mean_plies": plies,
        "seconds": seconds,
    }


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.evaluate``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.evaluate",
        description="Play a checkpoint (or a bot) against opponents in paired games.",
        epilog=f"players: {registry.KNOWN}",
    )
    parser.add_argument("player", metavar="CHECKPOINT", help="path of a checkpoint, or a bot")
    parser.add_argument("--opponents", nargs="+", default=["random", "greedy"], metavar="PLAYER")
    parser.add_argument(
        "--pairs", type=int, default=1000, help="openings, each played from both seats (1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of openings and bots (default 1)")
    parser.add_argument(
        "--opening-plies", type=int, default=arena.OPENING_PLIES, help="random plies (default 6)"
    )
    parser.add_argument(
        "--ruleset",
        type=ruleset_argument,
        metavar="RULES",
        help=f"{RULESET_HELP}; default: the checkpoint's, or zanzibar for a bot",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    if args.pairs < 1 or args.opening_plies < 0 or args.seed < 0:
        parser.error("--pairs must be positive, --opening-plies and --seed not negative")
    try:
        ruleset = args.ruleset or ruleset_of(args.player) or get_ruleset("zanzibar")
        player = registry.load(args.player, ruleset=ruleset, seed=args.seed)
        opponents = [
            registry.load(name, ruleset=ruleset, seed=args.seed + 1 + i)
            for i, name in enumerate(args.opponents)
        ]
        rows = []
        for opponent in opponents:
            start = time.perf_counter()
            with tqdm(total=2 * args.pairs, unit="game", desc=f"vs {opponent.name}") as bar:
                match = arena.play_match(
                    player,
                    opponent,
                    ruleset=ruleset,
                    pairs=args.pairs,
                    opening_plies=args.opening_plies,
                    seed=args.seed,
                    progress=bar.update,
                )
            seconds = time.perf_counter() - start
            rows.append((opponent.name, match.score, float(match.plies.mean()), seconds))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    print(
        f"{player.name}, rule set {ruleset.name}: {args.pairs} openings of {args.opening_plies} "
        f"random plies, each from both seats, seed {args.seed}"
    )
    print(f"{'opponent':16}{'games':>7}{'won':>7}{'drawn':>7}{'lost':>7}", end="")
    print(f"{'score':>9}{'95 % interval':>18}{'Elo':>7}{'95 % interval':>16}")
    for name, score, _, _ in rows:
        elo, low, high = (elo_text(value) for value in score.elo)
        print(f"{name:16}{score.games:>7}{score.wins:>7}{score.draws:>7}{score.losses:>7}", end="")
        interval = f"{score.low:.2%} to {score.high:.2%}"
        print(f"{score.rate:>9.2%}{interval:>18}{elo:>7}{f'{low} to {high}':>16}")
    if args.json:
        report = {
            "player": args.player,
            "ruleset": ruleset.to_dict(),
            "opening_plies": args.opening_plies,
            "seed": args.seed,
            "results": [result(*row) for row in rows],
        }
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
