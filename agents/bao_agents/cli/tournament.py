"""Run ``bao tournament``: play a round robin of any players.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

Give a player as for :func:`bao_agents.load`, or as ``NAME=PLAYER`` to show it under another name,
for example to tell apart two checkpoints with the same file name. All pairings play the same
openings, each from both seats. The same command continues a stopped tournament.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bao_agents.arena.openings import BALANCE
from bao_agents.arena.plan import RoundRobin, pairings
from bao_agents.arena.report import crosstable, match_row, standings
from bao_agents.cli.games import (
    NAMED,
    Played,
    add_event,
    add_openings,
    described,
    make_event,
    parse_players,
    play_plans,
    settings_of,
    show,
)
from bao_agents.cli.options import Run, add_options

COLUMNS = ("player", "elo", "games", "won", "drawn", "lost", "score", "ms_a_move")


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao tournament``: play a round robin in paired games; write table, crosstable and plot."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help=NAMED)
    add_openings(parser, pairs=500, balance=BALANCE)
    parser.add_argument("--anchor", metavar="NAME", help="player with Elo 0; default: the mean")
    add_options(parser, "ruleset")
    add_event(parser, out=Path("runs/tournament"))
    return _run


def _run(args: argparse.Namespace) -> None:
    players = parse_players(args.players)
    if len(players) < 2:
        raise ValueError("a tournament needs two players or more")
    if args.anchor is not None and args.anchor not in players:
        raise ValueError(
            f"--anchor {args.anchor}: no player is called that; expected one of "
            f"{', '.join(players)}"
        )
    event = make_event(args, players, args.ruleset)

    def report(played: dict[str, Played]) -> None:
        if played["tournament"].ended == "stopped":  # the folder keeps the games
            return
        matches, total = pairings(played["tournament"].results), played["tournament"].total
        rows = standings(matches, args.anchor)
        found = [match_row(*names, pairs) for names, pairs in matches.items()]
        swept = any(row["elo"] is None for row in rows)
        zero = args.anchor or ("the mean of the finite ones" if swept else "the mean of all")
        show(
            args,
            event,
            played,
            rows,
            COLUMNS,
            before=f"Rule set {args.ruleset.name}; {total.points.size:,} games in pairs, each "
            f"opening from both seats\n({described(args)}; seed {args.seed}); "
            f"{total.plies.mean():.1f} plies a game. Elo 0 is {zero}; ranges are 95% intervals.",
            after=f"Score of the row against the column, in percent:\n\n{crosstable(rows, found)}",
            zero=zero,
            source={"openings": described(args)},
            **settings_of(args),
            anchor=args.anchor,
            mean_plies=float(total.plies.mean()),
            pairings=found,
        )

    play_plans(args, {"tournament": (event, RoundRobin(list(players), args.pairs))}, report)
