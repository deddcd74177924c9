"""Run ``bao tournament``: play a round robin of any players.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

Name a player as for :func:`bao_agents.load`. ``NAME=PLAYER`` shows it under another name, for
example to distinguish two checkpoints with the same file name. All pairings play the same openings,
each from both seats. The same command continues a stopped tournament.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bao_agents.arena.openings import BALANCE
from bao_agents.arena.plan import RoundRobin, pairings
from bao_agents.arena.report import crosstable, in_words, match_row, standings, summary
from bao_agents.cli.event_report import Report
from bao_agents.cli.games import (
    Played,
    add_event,
    add_openings,
    described,
    make_event,
    play_plans,
    settings_of,
)
from bao_agents.cli.options import Run, add_options
from bao_agents.cli.player_arguments import NAMED, parse_players

COLUMNS = ("player", "elo", "games", "won", "drawn", "lost", "score", "ms_a_move")


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao tournament``: play a round robin in paired games; write tables and a plot."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help=NAMED)
    add_openings(parser, pairs=500, balance=BALANCE)
    parser.add_argument(
        "--anchor",
        metavar="NAME",
        help="the player with Elo 0 (default: the mean of all players has Elo 0)",
    )
    add_options(parser, "ruleset")
    add_event(parser, out=Path("runs/tournament"))
    return _run


def _run(args: argparse.Namespace) -> None:
    players = parse_players(args.players)
    if len(players) < 2:
        raise ValueError("a tournament needs two players or more")
    event = make_event(args, players, args.ruleset)
    if args.anchor is not None and args.anchor not in event.players:
        raise ValueError(
            f"--anchor {args.anchor}: there is no player of this name; expected one of "
            f"{', '.join(event.players)}"
        )

    def report(played: dict[str, Played]) -> Report | None:
        if played["tournament"].ended == "stopped":  # the folder keeps the games
            return None
        matches, total = pairings(played["tournament"].results), played["tournament"].total
        rows = standings(matches, args.anchor)
        pairing_rows = [match_row(*names, pairs) for names, pairs in matches.items()]
        is_swept = any(row["elo"] is None for row in rows)
        zero = args.anchor or ("the mean of the finite ratings" if is_swept else "the mean of all")
        return Report(
            f"{len(rows)} players",
            rows,
            COLUMNS,
            zero=zero,
            source={"openings": described(args)},
            facts={
                **settings_of(args),
                "anchor": args.anchor,
                **summary(total),
                "pairings": pairing_rows,
            },
            before=f"Rule set {args.ruleset.name}; {total.points.size:,} games in pairs, each "
            f"opening from both seats\n({described(args)}; seed {args.seed}); {in_words(total)}.\n"
            f"Elo 0 is {zero}; ranges are 95% intervals.",
            cross=crosstable(rows, pairing_rows),
        )

    play_plans(args, {"tournament": (event, RoundRobin([*event.players], args.pairs))}, report)
