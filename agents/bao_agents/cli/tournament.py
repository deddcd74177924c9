"""Run ``bao tournament``: play a round robin of any players.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

Give a player as for :func:`bao_agents.load`, or as ``NAME=PLAYER`` to show it under another name,
for example to tell apart two checkpoints with the same file name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bao_agents.arena.report import all_notes, result_table, standings, to_dict, write_report
from bao_agents.arena.tournament import TournamentSettings, run
from bao_agents.cli.games import (
    NAMED,
    add_openings,
    add_ray,
    check_names,
    describe_openings,
    parse_players,
)
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    warn,
)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao tournament``: play a round robin in paired games; write table, crosstable and plot."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help=NAMED)
    parser.add_argument(
        "--pairs", type=at_least(1), default=500, help="openings per pairing (default: 500)"
    )
    add_openings(parser, always_balanced=True)
    parser.add_argument("--anchor", metavar="NAME", help="player with Elo 0; default: the mean")
    parser.add_argument("--games", action="store_true", help="keep every game as a transcript")
    add_ray(parser)
    add_options(parser, "ruleset", "seed", "threads", "format", out=Path("runs/tournament"))
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    players = parse_players(args.players)
    if len(players) < max(2, len(args.players)):
        raise ValueError("a tournament needs two players or more, each of them once")
    if args.games:
        check_names(*players)
    settings = TournamentSettings(
        players=players,
        ruleset=args.ruleset,
        pairs=args.pairs,
        opening_plies=args.opening_plies,
        balance=args.balance,
        seed=args.seed,
    )
    if args.anchor is not None and args.anchor not in players:
        raise ValueError(
            f"--anchor {args.anchor}: no player is called that; expected one of "
            f"{', '.join(players)}"
        )
    try:
        result = run(settings, args.out, args.threads, args.games, args.ray)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"run the same command to continue from {args.out}") from None
    report = to_dict(result, settings.description, args.anchor)
    text = write_report(report, args.out)
    if args.format:
        source = {
            "ruleset": settings.ruleset.name,
            "openings": describe_openings(args),
            "seed": args.seed,
            "commit": ", ".join(report["commits"]),
        }
        text = result_table(args.format, *standings(report), report["players"], source)
        warn(all_notes(report))
    print(text)
