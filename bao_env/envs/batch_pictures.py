"""Draw the games of a vector environment."""

from __future__ import annotations

from typing import Any

from bao_env.engine.position import Actions, unpack
from bao_env.envs.game_batch import GameBatch, GameIndices
from bao_env.render.drawing import drawing
from bao_env.render.marks import Mark, MarkKind, action_marks
from bao_env.render.raster import rgb_array
from bao_env.render.text import ascii_board


class BatchPictures:
    """Draw games with a mark at the hole of the last action.

    Args:
        batch: the games. From now on, each of their actions updates the marks.
        render_mode: ``"ansi"`` or ``"rgb_array"``.
    """

    def __init__(self, batch: GameBatch, render_mode: str) -> None:
        self._batch, self._render_mode = batch, render_mode
        self._marks: list[list[Mark]] = [[] for _ in range(batch.size)]
        """The mark of each game's last action; none at the start."""
        batch.before_actions = self._mark

    def begin(self, games: GameIndices) -> None:
        """Forget the marks of n games, int64[n], that start again."""
        for game in games.tolist():
            self._marks[game] = []

    def _mark(self, games: GameIndices, actions: Actions) -> None:
        for game, action in zip(games.tolist(), actions.tolist(), strict=True):
            packed = self._batch.state.positions[game]
            self._marks[game] = action_marks(MarkKind.LAST, packed, self._batch.ruleset, [action])

    def draw(self, game: int) -> Any:
        """Return the picture of a game: a string, or an image uint8[H, W, 3].

        Raises:
            DependencyNotInstalled: pygame is missing, and the mode needs it.
        """
        position, outcome = unpack(self._batch.state.positions[game]), self._batch.outcome(game)
        status = str(outcome) if outcome else None
        if self._render_mode == "ansi":
            return ascii_board(position, status=status)
        marks, house = self._marks[game], self._batch.ruleset.house
        return rgb_array(drawing(position, marks=marks, status=status, house=house))
