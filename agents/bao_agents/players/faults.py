"""Define the error of a player that loses one game but does not stop the match."""

from __future__ import annotations

from collections.abc import Sequence

from bao_agents.support.files import printable


class PlayerFault(ValueError):
    """Raised if a player chose no legal action in time: it loses the game, but the match goes on.

    Any player may raise this error in ``act``.

    Args:
        player: the player's name.
        cause: what the player did instead. Line breaks become spaces.
        actions: its actions in the positions of the same call that come before the failed one.
    """

    def __init__(self, player: str, cause: object, actions: Sequence[int] = ()) -> None:
        line = printable(" ".join(str(cause).split()))
        super().__init__(player, line, actions)
        self.player = player
        self.cause = line
        self.actions = actions

    def __str__(self) -> str:
        return f"player {self.player} {self.cause}"
