"""Define the opinion that a player has of a move."""

from __future__ import annotations

from typing import NamedTuple


class Opinion(NamedTuple):
    """A player's opinion of a legal action."""

    action: int
    score: float
    """The value for the player to move, -1 (a loss) to 1 (a win)."""
    probability: float | None = None
    """The action's probability in a network's policy; None for other players."""
    line: tuple[int, ...] = ()
    """Best play for both sides after the action; empty if the player has no line."""


def by_probability(opinion: Opinion) -> tuple[float, float]:
    """Return the key that sorts opinions of a network by probability, then by score."""
    return opinion.probability or 0.0, opinion.score
