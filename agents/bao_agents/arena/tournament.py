"""Play a round robin of any players: Elo table, crosstable and plot.

    bao tournament random greedy alphabeta:4 mcts:1000 --out runs/ladder

All pairings play the same openings, each from both seats, on all cores
(:mod:`bao_agents.arena.round_robin`). The result does not depend on the number of processes. To
continue a tournament that was stopped, run the same command again. With ``--ray`` the work spreads
over a Ray cluster.

Give a player as for :func:`bao_agents.load`, or as ``NAME=PLAYER`` to show it under another name,
for example to tell apart two checkpoints with the same file name.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from bao_agents import registry
from bao_agents.arena.match import add_openings
from bao_agents.arena.report import to_dict, write_report
from bao_agents.arena.round_robin import TournamentError, TournamentSettings, file_name, run
from bao_env.options import Run, add_options, add_player_options, at_least


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the name and specification of each player on the command line.

    Raises:
        TournamentError: there are fewer than two, or two have the same name.
    """
    players: dict[str, str] = {}
    for word in words:
        name, equals, spec = word.partition("=")
        if not equals or _is_player(word):
            name, spec = registry.display_name(word), word
        if not name or not spec or not name.isprintable() or {*name} & {*",|"}:
            raise TournamentError(
                f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name has no comma, bar "
                "or control character"
            )
        if file_name(name) in map(file_name, players):
            raise TournamentError(f"two players are called {name!r}: give one as NAME=PLAYER")
        players[name] = spec
    if len(players) < 2:
        raise TournamentError(f"a tournament needs two players or more, not {len(players)}")
    return players


def _is_player(word: str) -> bool:
    """Return whether a word is a player as a whole, although it has an equals sign."""
    try:
        registry.parse(word)
    except ValueError:
        return False
    return True


def parse_pairs_of(words: Sequence[str], players: dict[str, str]) -> dict[str, int]:
    """Parse the options ``--pairs-of NAME=N``.

    Raises:
        TournamentError: no player has that name, or N is not a number of at least 1.
    """
    found = {}
    for word in words:
        name, _, count = word.rpartition("=")
        if not name or not re.fullmatch("0*[1-9][0-9]{0,8}", count):
            raise TournamentError(f"--pairs-of {word[:80]!r}: expected NAME=N, N at least 1")
        if name not in players:
            raise TournamentError(f"--pairs-of {word[:80]!r}: no player is called {name!r}")
        found[name] = int(count)
    return found


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao tournament``: play a round robin in paired games; write table, crosstable and plot."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="PLAYER or NAME=PLAYER")
    parser.add_argument(
        "--pairs", type=at_least(1), default=500, help="openings a pairing (default: 500)"
    )
    parser.add_argument(
        "--pairs-of",
        action="append",
        default=[],
        metavar="NAME=N",
        help="fewer openings for the pairings of a slow player; may be given several times",
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
    add_options(parser, "ruleset", "seed", "threads", out=Path("runs/tournament"))
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    players = parse_players(args.players)
    settings = TournamentSettings(
        players=players,
        ruleset=args.ruleset,
        pairs=args.pairs,
        pairs_of=parse_pairs_of(args.pairs_of, players),
        opening_plies=args.opening_plies,
        balance=args.balance,
        seed=args.seed,
        allow=tuple(args.allow),
    )
    if args.anchor is not None and args.anchor not in players:
        raise TournamentError(
            f"--anchor {args.anchor}: no player is called that; expected one of "
            f"{', '.join(players)}"
        )
    try:
        result = run(settings, args.out, args.threads, args.games, args.ray)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command continues from {args.out}") from None
    print(write_report(to_dict(result, settings.description, args.anchor), args.out))
