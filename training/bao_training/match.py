"""Measure a player against others in paired games.

    bao match runs/quick/final.safetensors random greedy

Every opening, a random legal prefix that a search finds balanced, is played twice, once from each
seat. The table gives points a game (a draw counts a half) and the Elo difference, each with its
95 % interval over pairs, and the likelihood that the player is the stronger one
(:mod:`bao_agents.arena.elo`). ``--sprt`` stops a match as soon as a sequential test has its
verdict. The interval of such a match is biased; the verdict is not.
"""

from __future__ import annotations

import argparse
from typing import Any

from bao_agents import registry
from bao_agents.arena import match as arena
from bao_agents.arena.elo import Sprt, finite
from bao_agents.arena.openings import BALANCE, OPENING_PLIES, draw_openings
from bao_agents.arena.report import markdown_table
from bao_agents.progress import Progress
from bao_agents.provenance import provenance

from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.files import write_atomically
from bao_env.options import Run, add_options, add_player_options, at_least, new_file, write_json


def ruleset_of(player: str) -> Ruleset | None:
    """Return the rule set that a checkpoint was trained under; None for a bot.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.checkpoint_of(player)
    if path is None:
        return None
    from bao_agents.nets import checkpoint

    return checkpoint.load(path).ruleset


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
        elo, low, high = (f"{value:+.0f}" for value in score.elo)
        rows.append(
            [
                *(name, score.games, score.wins, score.draws, score.losses),
                *(f"{score.rate:.2%}", f"{score.low:.2%} to {score.high:.2%}"),
                *(elo, f"{low} to {high}", f"{score.los:.1%}"),
                "{:.3f} : {:.3f}".format(*milliseconds(match)),
            ]
        )
    return markdown_table(head, rows, style="simple")


def result(opponent: str, match: arena.Match) -> dict[str, Any]:
    """Return one opponent's row for JSON."""
    elo, low, high = map(finite, match.score.elo)
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


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao match``: play a player against opponents in paired games."""
    parser.add_argument("player", metavar="PLAYER", help="a checkpoint's path or name, or a bot")
    parser.add_argument(
        "opponents",
        nargs="*",
        default=["random", "greedy"],
        metavar="OPPONENT",
        help="another player; may be several (default: random greedy)",
    )
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=1000,
        help="openings, each played from both seats (default: 1000)",
    )
    add_openings(parser)
    parser.add_argument(
        "--sprt",
        type=float,
        nargs=2,
        metavar=("ELO0", "ELO1"),
        help="stop when a test (5 %% errors) has decided between these Elo differences",
    )
    add_options(parser, "seed", "json", ruleset=None)
    parser.add_argument(
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_player_options(parser)
    return _run


def add_openings(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--opening-plies`` and ``--balance`` to a parser."""
    parser.add_argument(
        "--opening-plies",
        type=at_least(0),
        default=OPENING_PLIES,
        help="random plies of an opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=BALANCE,
        help="largest value of an opening for either side, in logits (default: %(default)s)",
    )


def _run(args: argparse.Namespace) -> None:
    sprt = Sprt(*args.sprt) if args.sprt else None
    ruleset = args.ruleset or ruleset_of(args.player) or get_ruleset("zanzibar")
    player = registry.load(args.player, ruleset=ruleset, seed=args.seed)
    opponents = [
        registry.load(name, ruleset=ruleset, seed=args.seed + 1 + i)
        for i, name in enumerate(args.opponents)
    ]
    openings = draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)
    engine = Engine(ruleset)
    rows: list[tuple[str, arena.Match]] = []
    try:
        for opponent in opponents:
            with Progress(total=2 * args.pairs, unit="game", desc=f"vs {opponent.name}") as bar:
                match = arena.play_openings(
                    player, opponent, openings, engine, sprt=sprt, progress=bar.update
                )
            rows.append((opponent.name, match))
    finally:  # results from before an error or Ctrl-C are shown all the same
        if rows:
            _report(args, player.name, ruleset, sprt, rows)


def _report(
    args: argparse.Namespace,
    player: str,
    ruleset: Ruleset,
    sprt: Sprt | None,
    rows: list[tuple[str, arena.Match]],
) -> None:
    """Print the results, and write the files that the options name."""
    if args.json != "-":
        print(
            f"{player}, rule set {ruleset.name}: up to {args.pairs} balanced openings of "
            f"{args.opening_plies} random plies, each from both seats, seed {args.seed}"
        )
        print(table(rows))
        for name, match in rows:
            if sprt is not None:
                decided = {"H0": f"{sprt.elo0:+g} or less", "H1": f"{sprt.elo1:+g} or more"}
                verdict = decided.get(str(match.verdict), "not decided within these games")
                print(f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: {verdict}")
    if args.games:
        texts = [text for name, m in rows for text in m.transcripts((player, name))]
        write_atomically(args.games, "\n".join(texts))
    write_json(
        args.json,
        {
            "made_with": provenance(ruleset),
            "player": args.player,
            "ruleset": ruleset.to_dict(),
            "opening_plies": args.opening_plies,
            "balance": args.balance,
            "seed": args.seed,
            "results": [result(name, match) for name, match in rows],
        },
    )
