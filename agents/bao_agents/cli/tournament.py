"""Run ``bao tournament``: play a round robin of any players.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

Give a player as for :func:`bao_agents.load`, or as ``NAME=PLAYER`` to show it under another name,
for example to tell apart two checkpoints with the same file name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bao_agents.arena.report import result_table, standings, to_dict, write_report
from bao_agents.arena.tournament import TournamentSettings, file_name, run
from bao_agents.cli.games import add_openings, check_names
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
)
from bao_agents.players import registry


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the name and specification of each player on the command line.

    Raises:
        ValueError: there are fewer than two, two have the same name, or one is unknown.
    """
    players: dict[str, str] = {}
    for word in words:
        name, equals, spec = word.partition("=")
        if not equals or _is_player(word):
            name, spec = registry.parse(word).title, word
        if not name or not spec or not name.isprintable() or {*name} & {*",|"}:
            raise ValueError(
                f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name must not contain "
                "a comma, a bar or a control character"
            )
        if file_name(name) in map(file_name, players):
            raise ValueError(f"two players are called {name!r}: give one as NAME=PLAYER")
        players[name] = spec
    if len(players) < 2:
        raise ValueError(f"a tournament needs two players or more, not {len(players)}")
    return players


def _is_player(word: str) -> bool:
    """Return whether a whole word is a player, although it has an equals sign."""
    try:
        registry.parse(word)
    except ValueError:
        return False
    return True


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao tournament``: play a round robin in paired games; write table, crosstable and plot."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="PLAYER or NAME=PLAYER")
    parser.add_argument(
        "--pairs", type=at_least(1), default=500, help="openings per pairing (default: 500)"
    )
    add_openings(parser)
    parser.add_argument("--anchor", metavar="NAME", help="player with Elo 0; default: the mean")
    parser.add_argument("--games", action="store_true", help="keep every game as a transcript")
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="play on the cores of a Ray cluster: the one at ADDRESS (host:port; 'local' starts "
        "one here), or the one that Ray finds; all its machines must have this package and the "
        "players' files at the same paths (pip install ray)",
    )
    add_options(parser, "ruleset", "seed", "threads", "format", out=Path("runs/tournament"))
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    players = parse_players(args.players)
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
        text = result_table(args.format, *standings(report), report["players"])
    print(text)
