"""Measure a player against others in paired games.

    python -m training.evaluate runs/quick/final.safetensors --opponents random greedy

Every opening, a random legal prefix that a search finds balanced, is played twice, once from each
seat. The table gives points a game (a draw counts a half) and the Elo difference, each with its
95 % interval over pairs, and the likelihood that the player is the stronger one
(:mod:`agents.arena.elo`). ``--sprt`` stops a match as soon as a sequential test has its verdict.
The interval of such a match is biased; the verdict is not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from tabulate import tabulate
from tqdm import tqdm

from agents import registry
from agents.arena import match as arena
from agents.arena.elo import Sprt
from agents.arena.openings import BALANCE, OPENING_PLIES
from agents.provenance import provenance
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.rule_files import RULESET_HELP, ruleset_argument


def ruleset_of(player: str) -> Ruleset | None:
    """Return the rule set that a checkpoint was trained under; None for a bot.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.checkpoint_of(player)
    if path is None:
        return None
    from agents.nets import checkpoint

    return checkpoint.load(path).ruleset


def elo_text(value: float) -> str:
    """Format an Elo difference for a table."""
    return f"{value:+.0f}" if math.isfinite(value) else ("+inf" if value > 0 else "-inf")


def milliseconds(match: arena.Match) -> tuple[float, float]:
    """Return wall-clock milliseconds a move of both players; a search uses all cores."""
    times = [1000 * match.seconds[i] / max(1, match.moves[i]) for i in range(2)]
    return times[0], times[1]


def table(matches: list[tuple[str, arena.Match]]) -> str:
    """Format the results against each opponent."""
    head = ["opponent", "games", "won", "drawn", "lost", "score", "95 % interval"]
    head += ["Elo", "95 % interval", "LOS", "ms a move"]
    rows = []
    for name, match in matches:
        score = match.score
        elo, low, high = (elo_text(value) for value in score.elo)
        rows.append(
            [
                *(name, score.games, score.wins, score.draws, score.losses),
                *(f"{score.rate:.2%}", f"{score.low:.2%} to {score.high:.2%}"),
                *(elo, f"{low} to {high}", f"{score.los:.1%}"),
                "{:.3f} : {:.3f}".format(*milliseconds(match)),
            ]
        )
    align = ["left", *["right"] * (len(head) - 1)]
    return tabulate(rows, head, colalign=align, disable_numparse=True)


def result(opponent: str, match: arena.Match) -> dict[str, Any]:
    """Return one opponent's row for JSON."""
    elo, low, high = (value if math.isfinite(value) else None for value in match.score.elo)
    own_time, other_time = milliseconds(match)
    return {
        "opponent": opponent,
        **match.score.to_dict(),
        "elo": elo,
        "elo_low": low,
        "elo_high": high,
        "sprt": match.verdict,
        "mean_plies": float(match.plies.mean()),
        "ms_a_move": own_time,
        "opponent_ms_a_move": other_time,
    }


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.evaluate",
        description="Play a checkpoint (or a bot) against opponents in paired games.",
        epilog="players: " + registry.KNOWN,
    )
    parser.add_argument("player", metavar="PLAYER", help="a checkpoint's path or name, or a bot")
    parser.add_argument("--opponents", nargs="+", default=["random", "greedy"], metavar="PLAYER")
    parser.add_argument(
        "--pairs", type=int, default=1000, help="openings, each played from both seats (1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of openings and bots (default 1)")
    parser.add_argument(
        "--opening-plies", type=int, default=OPENING_PLIES, help="random plies (default 8)"
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=BALANCE,
        help="largest value of an opening for either side, in logits (default 1)",
    )
    parser.add_argument(
        "--sprt",
        type=float,
        nargs=2,
        metavar=("ELO0", "ELO1"),
        help="stop when a test (5 %% errors) has decided between these Elo differences",
    )
    parser.add_argument(
        "--ruleset",
        type=ruleset_argument,
        metavar="RULES",
        help=f"{RULESET_HELP}; default: the checkpoint's, or zanzibar for a bot",
    )
    registry.add_allow(parser)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--games", metavar="FILE", help="also write every game as a transcript")
    args = parser.parse_args(argv)
    if args.pairs < 1 or args.opening_plies < 0 or args.seed < 0:
        parser.error("--pairs must be positive, --opening-plies and --seed not negative")
    return args


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.evaluate``."""
    args = arguments(argv)
    rows: list[tuple[str, arena.Match]] = []
    failed = False  # results from before an error are shown all the same
    try:
        for name in args.allow:
            registry.allow_architecture(name)
        sprt = Sprt(*args.sprt) if args.sprt else None
        ruleset = args.ruleset or ruleset_of(args.player) or get_ruleset("zanzibar")
        player = registry.load(args.player, ruleset=ruleset, seed=args.seed)
        opponents = [
            registry.load(name, ruleset=ruleset, seed=args.seed + 1 + i)
            for i, name in enumerate(args.opponents)
        ]
        for opponent in opponents:
            with tqdm(total=2 * args.pairs, unit="game", desc=f"vs {opponent.name}") as bar:
                match = arena.play_match(
                    player,
                    opponent,
                    ruleset=ruleset,
                    pairs=args.pairs,
                    opening_plies=args.opening_plies,
                    balance=args.balance,
                    seed=args.seed,
                    sprt=sprt,
                    progress=bar.update,
                )
            rows.append((opponent.name, match))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        if not rows:
            return 2
        failed = True

    print(
        f"{player.name}, rule set {ruleset.name}: up to {args.pairs} balanced openings of "
        f"{args.opening_plies} random plies, each from both seats, seed {args.seed}"
    )
    print(table(rows))
    for name, match in rows:
        if sprt is not None:
            decided = {"H0": f"{sprt.elo0:+g} or less", "H1": f"{sprt.elo1:+g} or more"}
            verdict = decided.get(str(match.verdict), "not decided within these games")
            print(f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: {verdict}")
    try:
        if args.games:
            texts = [text for name, m in rows for text in m.transcripts((player.name, name))]
            Path(args.games).write_text("\n".join(texts), encoding="utf-8")
        if args.json:
            report = {
                "made_with": provenance(ruleset),
                "player": args.player,
                "ruleset": ruleset.to_dict(),
                "opening_plies": args.opening_plies,
                "balance": args.balance,
                "seed": args.seed,
                "results": [result(name, match) for name, match in rows],
            }
            Path(args.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        failed = True
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
