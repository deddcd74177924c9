"""Run ``bao match``: measure a player against others in paired games.

    bao match runs/quick random greedy
    bao match mine:new mine:old --pairs 5000 --sprt 0 5
    bao match new=runs/b old=runs/a

The table gives points per game (a draw counts as a half) and the Elo difference, each with its 95 %
interval over pairs, and the likelihood that the player is the stronger one
(:mod:`bao_agents.arena.elo`). ``--sprt`` stops a match as soon as a sequential test has its
verdict: which of two values is the likelier one. The Elo of such a match leans to the verdict.
"""

from __future__ import annotations

import argparse
from typing import Any

from bao_agents.arena.elo import Sprt
from bao_agents.arena.openings import BALANCE
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.plan import Gauntlet, Part, pairings
from bao_agents.arena.report import Report, commit_notes, match_row, notes
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
from bao_agents.players import registry
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_env.engine.ruleset import Ruleset, get_ruleset

COLUMNS = (
    *("opponent", "won", "drawn", "lost", "score", "elo", "los"),
    *("ms_a_move", "opponent_ms_a_move"),
)


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


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao match``: play a player against opponents in paired games."""
    parser.add_argument("player", metavar="PLAYER", help=NAMED)
    parser.add_argument(
        "opponents",
        nargs="*",
        metavar="OPPONENT",
        help="one or more opponents, likewise (default: random greedy)",
    )
    add_openings(parser, pairs=1000, balance=None)
    parser.add_argument(
        "--sprt",
        type=float,
        nargs=2,
        metavar=("ELO0", "ELO1"),
        help="stop once a sequential probability ratio test (SPRT, alpha = beta = 0.05) accepts "
        "H0, that the player is stronger by ELO0, or H1, by ELO1",
    )
    add_options(parser, ruleset=None)
    add_event(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    by_default = [name for name in ("random", "greedy") if name != args.player]
    players = parse_players([args.player, *(args.opponents or by_default)])
    player, *opponents = players
    check_event(args, players)
    sprt = Sprt(*args.sprt) if args.sprt else None
    ruleset = args.ruleset or ruleset_of(players[player]) or get_ruleset("zanzibar")
    searches = any(registry.parse(spec).kind.searches for spec in players.values())
    if args.balance is None and searches:
        args.balance = BALANCE
    openings, described = openings_of(args, ruleset)
    event = make_event(args, players, ruleset, openings)
    results: dict[Part, Pairs] = {}
    try:
        with playing(args) as workers, Progress(unit="game") as bar:
            play(event, Gauntlet(player, opponents, args.pairs, sprt), workers, bar, results)
    finally:  # results from before an error or Ctrl-C are shown anyway
        if results:
            _report(args, players, ruleset, described, sprt, results)


def _report(
    args: argparse.Namespace,
    players: dict[str, str],
    ruleset: Ruleset,
    openings: str,
    sprt: Sprt | None,
    results: dict[Part, Pairs],
) -> None:
    """Write the files that the options name, and print the results."""
    matches, total = pairings(results), sum(results.values(), Pairs())
    made_with, player = provenance(ruleset), next(iter(players))
    rows: list[dict[str, Any]] = []
    said: list[str] = []
    tested: list[str] = []
    for (_, name), pairs in matches.items():
        verdict = sprt.verdict(pairs.score.pair_counts) if sprt else None
        row = match_row(player, name, pairs)
        rows.append(row | {"sprt": verdict, "stopped_early": verdict is not None})
        for who, own in ((player, pairs), (name, pairs.swapped())):
            found = notes(who, players[who], own.ms_a_move[0], own.faults[0])
            said += [f"against {name}, {note}" for note in found]
        if pairs.score.caveat:
            said.append(f"against {name}: {pairs.score.caveat}")
        if sprt is not None:
            tested.append(f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: ")
            tested[-1] += decision(sprt, verdict)
    report = Report(
        rows,
        COLUMNS,
        {
            "ruleset": ruleset.name,
            "openings": openings,
            "seed": args.seed,
            "commit": made_with["commit"],
        },
        {
            "made_with": made_with,
            "player": player,
            "players": players,
            "ruleset": ruleset.to_dict(),
            **settings_of(args),
            "commits": sorted(total.commits),
        },
    )

    def text(style: str) -> str:
        lines = "Second lines: 95 % intervals.\n" if style == "simple" else ""
        return (
            f"{player}, rule set {ruleset.name}: up to {args.pairs} openings, each from both "
            f"seats\n({openings}; seed {args.seed}).\n{lines}\n{report.table(style)}"
        )

    show(args, report, text, said + tested + commit_notes(total), total.games, "the opponent")


def decision(sprt: Sprt, verdict: str | None) -> str:
    """Return what a sequential test has decided, in words."""
    if verdict is None:
        return "not decided within these games"
    ends = (sprt.elo0, sprt.elo1) if verdict == "H0" else (sprt.elo1, sprt.elo0)
    return (
        f"{verdict} accepted: nearer to {ends[0]:+g} than to {ends[1]:+g}.\nThe test stopped the "
        "match, so its Elo leans to the verdict, and its interval is too narrow:\nit covers the "
        "truth in about 89 % of such matches."
    )
