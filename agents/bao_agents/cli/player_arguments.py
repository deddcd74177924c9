"""Parse the players on the command line, for all commands that play events."""

from __future__ import annotations

from collections.abc import Sequence

from bao_agents.arena.event import file_name
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.players import registry
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript

NAMED = "PLAYER or NAME=PLAYER"
"""How help texts describe a player on the command line."""


def parse_player(word: str) -> tuple[str, str]:
    """Return the name and the specification of a player on the command line.

    A player given without ``NAME=`` is named as it was typed; a checkpoint is named after its run
    or file. A player of another package, which may have any name, needs ``NAME=`` if its own name
    has an equals sign.

    Raises:
        ValueError: the player is unknown, or a table cannot show the name.
    """
    try:
        name, spec = registry.parse(word, ask_packages="=" not in word).title, word
    except ValueError:
        name, equals, spec = word.partition("=")
        if not equals:
            raise
    if not spec or not is_name(name):
        raise ValueError(
            f"player {word[:80]!r}: expected PLAYER or NAME=PLAYER; a name must not contain "
            "a comma, a vertical bar, a control character or spaces around it"
        )
    return name, spec


def is_name(text: str) -> bool:
    """Return whether tables can show a text as a player's name."""
    return text.strip() == text != "" and text.isprintable() and not {*text} & {*",|"}


def parse_players(words: Sequence[str]) -> dict[str, str]:
    """Return the specification of each player on the command line, by name.

    Raises:
        ValueError: two players have the same name, or as in :func:`parse_player`.
    """
    players: dict[str, str] = {}
    for name, spec in map(parse_player, words):
        add_player(players, name, spec)
    return players


def add_player(players: dict[str, str], name: str, spec: str) -> None:
    """Add a player to ``players``.

    Raises:
        ValueError: another player there has the same name.
    """
    if file_name(name) in map(file_name, players):
        raise ValueError(f"two players are called {name!r}: rename one of them, as NAME=PLAYER")
    players[name] = spec


def checkpoint_of(spec: str) -> Checkpoint | None:
    """Return the checkpoint that a player's name contains; None if it contains none.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.parse(spec).path
    return None if path is None else checkpoint.load(path)


def check_name(name: str) -> None:
    """Check, before the games, that a transcript can hold the name of a player.

    Raises:
        ValueError: it cannot hold the name, for example because of a line break.
    """
    try:
        format_transcript(Transcript({"south": name}))
    except NotationError as error:
        raise ValueError(
            f"a transcript cannot hold the player's name {name!r:.80}: {error}"
        ) from error
