"""Run ``bao match``: measure a player against others in paired games.

    bao match runs/quick random greedy
    bao match mine:new mine:old --pairs 5000 --sprt 0 5
    bao match new=runs/b old=runs/a

The table gives points per game (a draw counts as a half) and the Elo difference, each with its 95%
interval over pairs, and the likelihood that the player is stronger (:mod:`bao_agents.arena.elo`).
``--sprt`` stops a match as soon as a sequential test decides which of two Elo differences is the
likelier one. The Elo of a match that was stopped is biased towards this verdict.
"""

from __future__ import annotations

import argparse

from bao_agents.arena.elo import Sprt
from bao_agents.arena.openings import BALANCE
from bao_agents.arena.plan import Gauntlet, pairings
from bao_agents.arena.report import in_words, match_row, summary
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
from bao_agents.cli.player_arguments import NAMED, checkpoint_of, parse_players
from bao_agents.players import registry
from bao_env.engine.ruleset import get_ruleset

COLUMNS = (
    *("opponent", "won", "drawn", "lost", "score", "elo", "los"),
    *("ms_a_move", "opponent_ms_a_move"),
)


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao match``: play a player against opponents in paired games."""
    parser.add_argument("player", metavar="PLAYER", help=NAMED)
    parser.add_argument(
        "opponents",
        nargs="*",
        metavar="OPPONENT",
        help=f"opponents, each {NAMED} (default: random greedy)",
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
    sprt = Sprt(*args.sprt) if args.sprt else None
    trained = checkpoint_of(next(iter(players.values())))
    ruleset = args.ruleset or (trained.ruleset if trained else get_ruleset("zanzibar"))
    if args.balance is None and any(
        registry.parse(spec).kind.searches for spec in players.values()
    ):
        args.balance = BALANCE
    event = make_event(args, players, ruleset)
    player, *opponents = event.players
    plan = Gauntlet(player, opponents, args.pairs, sprt)

    def report(played: dict[str, Played]) -> Report:
        rows, decisions = [], []
        for (_, name), pairs in pairings(played["match"].results).items():
            row = match_row(player, name, pairs) | {"sprt": None, "stopped_early": False}
            if sprt:
                verdict = sprt.verdict(pairs.score.pair_counts)
                is_stopped = plan.is_stopped(name, played["match"].results)
                row |= {"sprt": verdict, "stopped_early": is_stopped}
                decisions.append(decision(name, sprt, verdict, is_stopped))
            rows.append(row)
        total = played["match"].total
        return Report(
            player,
            rows,
            COLUMNS,
            zero="the opponent",
            source={"player": player, "openings": described(args)},
            facts={"player": player, **settings_of(args), **summary(total)},
            before=f"{player}, rule set {ruleset.name}: up to {args.pairs} openings, each from "
            f"both seats\n({described(args)}; seed {args.seed}); {in_words(total)}.\n"
            "Elo is the player's Elo minus the opponent's; ranges are 95% intervals.",
            remarks=decisions,
        )

    play_plans(args, {"match": (event, plan)}, report)


def decision(name: str, sprt: Sprt, verdict: str | None, is_stopped: bool) -> str:
    """Describe the result of a sequential test against an opponent.

    Args:
        name: the opponent.
        sprt: the test.
        verdict: the hypothesis that the test accepts after the last game; None if it accepts none.
        is_stopped: whether the test stopped the match.
    """
    tested = f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: "
    if verdict is None:
        return tested + "not decided within these games"
    ends = (sprt.elo0, sprt.elo1) if verdict == "H0" else (sprt.elo1, sprt.elo0)
    decided = f"{tested}{verdict} accepted: nearer to {ends[0]:+g} than to {ends[1]:+g}."
    if not is_stopped:
        return decided
    return (
        f"{decided}\nBecause the test stopped the match, the Elo leans towards the verdict, and "
        "the interval\nis too narrow: it holds the true Elo in about 89% of such matches."
    )
