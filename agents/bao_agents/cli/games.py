"""Share what commands that play games need: players with names, and options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bao_agents.arena.openings import BALANCE, OPENING_PLIES
from bao_agents.arena.tournament import file_name
from bao_agents.cli.options import at_least
from bao_agents.players import registry
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript

NAMED = "PLAYER or NAME=PLAYER"
"""The help for players."""


def add_openings(parser: argparse.ArgumentParser, *, always_balanced: bool) -> None:
    """Add the options ``--opening-plies`` and ``--balance`` to a parser.

    Args:
        parser: the parser.
        always_balanced: whether the default of ``--balance`` is a number; else it is None.
    """
    parser.add_argument(
        "--opening-plies",
        type=at_least(0, most=MAX_OPENING_PLIES),
        default=OPENING_PLIES,
        help="random plies per opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=BALANCE if always_balanced else None,
        help="largest value of an opening for either side, in logits (default: "
        f"{BALANCE}{'' if always_balanced else ' if a player searches, else any'})",
    )


def describe_openings(args: argparse.Namespace) -> str:
    """Return what the options of :func:`add_openings` ask for."""
    balance = "" if args.balance is None else f" --balance {args.balance:g}"
    return f"random, --opening-plies {args.opening_plies}{balance}"


def add_ray(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--ray`` to a parser."""
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="play on the cores of a Ray cluster: the one at ADDRESS (host:port; 'local' starts "
        "one here), or the one that Ray finds; all its machines must have this package and the "
        "players' files at the same paths (pip install ray)",
    )


def parse_player(word: str) -> tuple[str, str]:
    """Return the name and the specification of a player on the command line.

    Without a name of its own, a checkpoint is called by its run or file, and any other player by
    what was typed.

    Raises:
        ValueError: the player is unknown, or the name cannot be shown.
    """
    name, equals, spec = word.partition("=")
    if not equals or _is_player(word):
        name, spec = registry.parse(word).title, word
    if not name or not spec or not name.isprintable() or {*name} & {*",|"}:
        raise ValueError(
            f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name must not contain "
            "a comma, a bar or a control character"
        )
    return name, spec


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the specification of each player on the command line by its name.

    Raises:
        ValueError: two different players have the same name, or see :func:`parse_player`.
    """
    players: dict[str, str] = {}
    for name, spec in map(parse_player, words):
        akin = [other for other in players if file_name(other) == file_name(name)]
        if akin and players.get(name) != spec:
            raise ValueError(f"two players are called {name!r}: give one as NAME=PLAYER")
        players[name] = spec
    return players


def _is_player(word: str) -> bool:
    """Return whether a whole word is a player, although it has an equals sign."""
    try:
        registry.parse(word)
    except ValueError:
        return False
    return True


def check_names(*names: str) -> None:
    """Check that a transcript can hold the names of players; called before the games.

    Raises:
        ValueError: it cannot hold one, for example because of a line break.
    """
    for name in names:
        try:
            format_transcript(Transcript({"south": name}))
        except NotationError as error:
            raise ValueError(f"no transcript can name a player {name!r:.80}: {error}") from error
