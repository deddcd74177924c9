"""Run ``bao match``: measure a player against others in paired games.

    bao match runs/quick random greedy

The table gives points per game (a draw counts as a half) and the Elo difference, each with its 95 %
interval over pairs, and the likelihood that the player is the stronger one
(:mod:`bao_agents.arena.elo`). ``--sprt`` stops a match as soon as a sequential test has its
verdict. The interval of such a match is biased; the verdict is not.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from bao_agents.arena.elo import Sprt, finite
from bao_agents.arena.games import faults_text
from bao_agents.arena.match import Match, play_openings
from bao_agents.arena.openings import draw_openings, read_openings
from bao_agents.arena.report import markdown_table, result_table
from bao_agents.cli.games import add_openings, check_names
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    new_file,
    write_json,
)
from bao_agents.players import registry
from bao_agents.support.files import write_atomically
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset, get_ruleset


def ruleset_of(player: str) -> Ruleset | None:
    """Return the rule set that a checkpoint was trained under; None for a bot.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.parse(player).path
    if path is None:
        return None
    from bao_agents.nets import checkpoint

    return checkpoint.load(path).ruleset


def milliseconds(match: Match) -> tuple[float, float]:
    """Return both players' processor milliseconds per move."""
    times = [1000 * match.seconds[i] / max(1, match.moves[i]) for i in range(2)]
    return times[0], times[1]


def table(matches: list[tuple[str, Match]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the results: a row of two lines for each opponent."""
    head = ["opponent", "won", "drawn", "lost", "score", "Elo", "LOS", "ms"]
    rows = []
    for name, match in matches:
        score = match.score
        elo, low, high = (f"{value:.0f}" for value in score.elo)
        own_time, other_time = (f"{ms:.{3 if ms < 1 else 1}f}" for ms in milliseconds(match))
        rows.append(
            [
                *(name, str(score.wins), str(score.draws), str(score.losses)),
                f"{100 * score.rate:.1f}\n{100 * score.low:.1f} to {100 * score.high:.1f}",
                f"{elo}\n{low} to {high}",
                f"{100 * score.los:.1f}",
                f"{own_time}\n{other_time}",
            ]
        )
    return head, rows


def result(opponent: str, match: Match) -> dict[str, Any]:
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
        "faults": match.faults[0],
        "opponent_faults": match.faults[1],
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
        "--openings",
        metavar="FILE",
        help="draw the openings from this file instead; balanced names the shipped one",
    )
    parser.add_argument(
        "--sprt",
        type=float,
        nargs=2,
        metavar=("ELO0", "ELO1"),
        help="stop when a test (5 %% errors) has decided between these Elo differences",
    )
    add_options(parser, "seed", "threads", "json", "format", ruleset=None)
    parser.add_argument(
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:

    sprt = Sprt(*args.sprt) if args.sprt else None
    ruleset = args.ruleset or ruleset_of(args.player) or get_ruleset("zanzibar")
    player, *opponents = (
        registry.load(name, ruleset=ruleset, seed=args.seed + i, threads=args.threads)
        for i, name in enumerate((args.player, *args.opponents))
    )
    if args.games:
        check_names(player.name, *(opponent.name for opponent in opponents))
    if args.openings:
        openings = read_openings(args.openings, ruleset, args.pairs, args.seed)
    else:
        openings = draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)
    for name in (args.player, *args.opponents):
        registry.warm_up(name, ruleset)
    engine = Engine(ruleset)
    rows: list[tuple[str, Match]] = []
    try:
        for opponent in opponents:
            with Progress(total=2 * args.pairs, unit="game", desc=f"vs {opponent.name}") as bar:
                match = play_openings(
                    player, opponent, openings, engine, sprt=sprt, progress=bar.update
                )
            rows.append((opponent.name, match))
    finally:  # results from before an error or Ctrl-C are shown anyway
        if rows:
            _report(args, player.name, ruleset, sprt, rows)


def _report(
    args: argparse.Namespace,
    player: str,
    ruleset: Ruleset,
    sprt: Sprt | None,
    rows: list[tuple[str, Match]],
) -> None:
    """Write the files that the options name, and print the results."""
    results = [result(name, match) for name, match in rows]
    with ExitStack() as parts:  # each is done even if another fails
        parts.callback(_print, args, player, ruleset, sprt, rows, results)
        parts.callback(
            write_json,
            args.json,
            {
                "made_with": provenance(ruleset),
                "player": args.player,
                "ruleset": ruleset.to_dict(),
                "opening_plies": None if args.openings else args.opening_plies,
                "balance": None if args.openings else args.balance,
                "openings": args.openings,
                "seed": args.seed,
                "results": results,
            },
        )
        if args.games:
            texts = [text for name, m in rows for text in m.transcripts((player, name))]
            write_atomically(args.games, "\n".join(texts))


def _print(
    args: argparse.Namespace,
    player: str,
    ruleset: Ruleset,
    sprt: Sprt | None,
    rows: list[tuple[str, Match]],
    results: list[dict[str, Any]],
) -> None:
    """Print the results."""
    if args.format:
        named = [{"player": player} | row for row in results]
        print(result_table(args.format, *table(rows), named))
    elif args.json != "-":
        source = f"balanced openings of {args.opening_plies} random\nplies"
        if args.openings:
            source = f"openings\nfrom {args.openings}"
        print(
            f"{player}, rule set {ruleset.name}: up to {args.pairs} {source}, each from both "
            f"seats, seed {args.seed}. Score "
            "and LOS in percent, processor ms a move;\nsecond lines: 95 % intervals, the "
            "opponent's time.\n"
        )
        print(markdown_table(*table(rows), style="simple"))
        for name, match in rows:
            for who, causes in zip((player, name), match.faults, strict=True):
                if causes:
                    print(f"against {name}, {who} {faults_text(causes)}")
        for name, match in rows:
            if sprt is not None:
                decided = {"H0": f"{sprt.elo0:+g} or less", "H1": f"{sprt.elo1:+g} or more"}
                verdict = decided.get(str(match.verdict), "not decided within these games")
                print(f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: {verdict}")
