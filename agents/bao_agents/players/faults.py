"""Say that a player has failed in one game, for which a match need not stop."""

from __future__ import annotations

from collections.abc import Sequence


class PlayerFault(ValueError):
    """A player chose no legal action in time. In a match it loses that game, and plays on.

    Any player may raise it from ``act``.

    Args:
        player: the player's name.
        cause: what it did instead, in one line.
        actions: its actions in the first positions of the call, up to the one where it failed.
    """

    def __init__(self, player: str, cause: str, actions: Sequence[int] = ()) -> None:
        super().__init__(player, cause, actions)
        self.player = player
        self.cause = cause
        self.actions = actions

    def __str__(self) -> str:
        return f"player {self.player} {self.cause}"
