"""Run ``bao match``: measure a player against others in paired games.

    bao match runs/quick random greedy
    bao match mine:new mine:old --pairs 5000 --sprt 0 5
    bao match new=runs/b old=runs/a

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
from bao_agents.arena.match import play_named
from bao_agents.arena.openings import BALANCE, draw_openings, read_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.report import markdown_table, notes, result_table
from bao_agents.arena.scheduler import Event, Workers
from bao_agents.cli.games import (
    NAMED,
    add_openings,
    add_ray,
    check_names,
    describe_openings,
    parse_player,
    parse_players,
)
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
    warn,
    write_json,
)
from bao_agents.players import registry
from bao_agents.support.files import write_atomically
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
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


def table(matches: dict[str, Pairs]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the results: a row of two lines for each opponent."""
    head = ["opponent", "won", "drawn", "lost", "score, %", "Elo", "LOS, %", "ms a move"]
    rows = []
    for name, match in matches.items():
        score = match.score
        elo, low, high = (f"{value:.0f}" for value in score.elo)
        own_time, other_time = (f"{ms:.{3 if ms < 1 else 1}f}" for ms in match.ms_a_move)
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


def result(opponent: str, match: Pairs, sprt: Sprt | None) -> dict[str, Any]:
    """Return one opponent's row for JSON."""
    elo, low, high = map(finite, match.score.elo)
    own_time, other_time = match.ms_a_move.tolist()
    return {
        "opponent": opponent,
        **match.score.to_dict(),
        "elo": elo,
        "elo_low": low,
        "elo_high": high,
        "sprt": sprt and sprt.verdict(match.score.pair_counts),
        "mean_plies": float(match.plies.mean()),
        "ms_a_move": own_time,
        "opponent_ms_a_move": other_time,
        "faults": match.faults[0],
        "opponent_faults": match.faults[1],
    }


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao match``: play a player against opponents in paired games."""
    parser.add_argument("player", metavar="PLAYER", help=NAMED)
    parser.add_argument(
        "opponents",
        nargs="*",
        default=["random", "greedy"],
        metavar="OPPONENT",
        help="one or more opponents, likewise (default: random greedy)",
    )
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=1000,
        help="openings, each played from both seats (default: 1000)",
    )
    add_openings(parser, always_balanced=False)
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
        help="stop once a sequential probability ratio test (SPRT, alpha = beta = 0.05) accepts "
        "H0, that the player is stronger by ELO0, or H1, by ELO1",
    )
    add_ray(parser)
    add_options(parser, "seed", "threads", "json", "format", ruleset=None)
    parser.add_argument(
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    words = [args.player, *args.opponents]
    players = parse_players(words)
    player, *opponents = (parse_player(word)[0] for word in words)
    if args.games:
        check_names(*players)
    sprt = Sprt(*args.sprt) if args.sprt else None
    ruleset = args.ruleset or ruleset_of(players[player]) or get_ruleset("zanzibar")
    for spec in players.values():  # refuses a wrong one before the games
        registry.load(spec, ruleset=ruleset, seed=args.seed, threads=args.threads)
    if args.balance is None and any(registry.parse(one).kind.searches for one in players.values()):
        args.balance = BALANCE
    if args.openings:
        refuse_unused(args, "with --openings", "opening_plies", "balance")
        openings = read_openings(args.openings, ruleset, args.pairs, args.seed)
    else:
        openings = draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)
    event = Event(players, ruleset, openings, args.seed, keep_games=bool(args.games))
    matches: dict[str, Pairs] = {}
    try:
        with Workers(args.threads, args.ray) as workers:
            for name in opponents:
                with Progress(total=2 * args.pairs, unit="game", desc=f"vs {name}") as bar:
                    matches[name] = play_named(event, player, name, workers, bar, sprt)
    finally:  # results from before an error or Ctrl-C are shown anyway
        if matches:
            _report(args, event, player, sprt, matches)


def _report(
    args: argparse.Namespace,
    event: Event,
    player: str,
    sprt: Sprt | None,
    matches: dict[str, Pairs],
) -> None:
    """Write the files that the options name, and print the results."""
    made_with = provenance(event.ruleset)
    source = {
        "player": player,
        "ruleset": event.ruleset.name,
        "openings": args.openings or describe_openings(args),
        "seed": args.seed,
        "commit": made_with["commit"],
    }
    results = [result(name, match, sprt) for name, match in matches.items()]
    said = [
        f"against {name}, {note}"
        for name, match in matches.items()
        for who, pairs in ((player, match), (name, match.swapped()))
        for note in notes(who, event.players[who], pairs.ms_a_move[0], pairs.faults[0])
    ]
    said += [
        f"against {name}: {match.score.caveat}"
        for name, match in matches.items()
        if match.score.caveat
    ]
    if sprt is not None:
        decided = {"H0": f"{sprt.elo0:+g} or less", "H1": f"{sprt.elo1:+g} or more"}
        said += [
            f"{row['opponent']}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: "
            f"{decided.get(str(row['sprt']), 'not decided within these games')}"
            for row in results
        ]
    report = {
        "made_with": made_with,
        "player": player,
        "players": event.players,
        "ruleset": event.ruleset.to_dict(),
        "opening_plies": None if args.openings else args.opening_plies,
        "balance": None if args.openings else args.balance,
        "openings": args.openings,
        "seed": args.seed,
        "results": results,
    }
    with ExitStack() as last:  # in the opposite order, and each even if another one fails
        last.callback(_print, args, table(matches), results, source, said)
        last.callback(write_json, args.json, report)
        if args.games:
            texts = [text for match in matches.values() for text in match.games]
            write_atomically(args.games, "\n".join(texts))


def _print(
    args: argparse.Namespace,
    found: tuple[list[str], list[list[str]]],
    results: list[dict[str, Any]],
    source: dict[str, Any],
    said: list[str],
) -> None:
    """Print the table, and what else a reader must know."""
    if args.format:
        print(result_table(args.format, *found, results, source))
        warn(said)
    elif args.json != "-":
        print(
            f"{source['player']}, rule set {source['ruleset']}: up to {args.pairs} openings, each "
            f"from both seats\n({source['openings']}; seed {args.seed}).\nSecond lines: 95 % "
            "intervals, and the opponent's processor time.\n"
        )
        print(markdown_table(*found, style="simple"), *said, sep="\n")
