"""Run ``bao tournament``: play a round robin of any players.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

Give a player as for :func:`bao_agents.load`, or as ``NAME=PLAYER`` to show it under another name,
for example to tell apart two checkpoints with the same file name. All pairings play the same
openings, each from both seats. The same command continues a stopped tournament.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bao_agents.arena.elo import FEW_PAIRS
from bao_agents.arena.openings import BALANCE
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Part, RoundRobin, pairings
from bao_agents.arena.report import (
    Report,
    commit_notes,
    crosstable,
    match_row,
    notes,
    standings,
)
from bao_agents.arena.scheduler import play
from bao_agents.cli.games import (
    NAMED,
    add_event,
    add_openings,
    check_event,
    make_event,
    openings_of,
    parse_players,
    playing,
    settings_of,
    show,
)
from bao_agents.cli.options import Run, add_options
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance

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
    check_event(args, players)
    if args.anchor is not None and args.anchor not in players:
        raise ValueError(
            f"--anchor {args.anchor}: no player is called that; expected one of "
            f"{', '.join(players)}"
        )
    openings, described = openings_of(args, args.ruleset)
    event = make_event(args, players, args.ruleset, openings)
    results: dict[Part, Pairs] = {}
    with playing(args) as workers, Progress(unit="game") as bar:
        play(event, RoundRobin(list(players), args.pairs), workers, bar, results)
    matches, total = pairings(results), sum(results.values(), Pairs())
    rows = standings(matches, args.anchor)
    found = [match_row(*names, pairs) for names, pairs in matches.items()]
    report = Report(
        rows,
        COLUMNS,
        {
            "ruleset": args.ruleset.name,
            "openings": described,
            "seed": args.seed,
            "commit": ", ".join(sorted(total.commits)),
        },
        {
            "made_with": provenance(args.ruleset),
            "players": players,
            "ruleset": args.ruleset.to_dict(),
            **settings_of(args),
            "anchor": args.anchor,
            "mean_plies": float(total.plies.mean()),
            "commits": sorted(total.commits),
            "pairings": found,
        },
    )
    swept = any(row["elo"] is None for row in rows)
    zero = args.anchor or ("the mean of the finite ones" if swept else "the mean of all")

    def text(style: str) -> str:
        return "\n\n".join(
            [
                f"Rule set {args.ruleset.name}; {total.points.size:,} games in pairs, each opening "
                f"from both seats\n({described}; seed {args.seed}); {total.plies.mean():.1f} "
                f"plies a game. Elo 0 is {zero}.",
                report.table(style),
                "Score of the row against the column, in percent:",
                crosstable(rows, found),
            ]
        )

    said = ["A player who won or lost all games has no rating, only a bound."] if swept else []
    if len(total) < FEW_PAIRS:
        said.append("These games are too few for 95 % intervals: take them as a rough guide.")
    for row in rows:
        said += notes(row["player"], players[row["player"]], row["ms_a_move"], row["faults"])
    show(args, report, text, said + commit_notes(total), total.games, zero)
