"""Detect interrupted steps and resets, after which an environment needs a reset."""

from __future__ import annotations

from gymnasium.error import ResetNeeded


class Guard:
    """Track whether an environment's games match what it has shown.

    An opponent that fails, an observer that raises, or Ctrl-C can end a step midway. The games then
    differ from what the environment has shown, and it could take the learner's next action for the
    opponent's. So all code that changes games runs in a ``with`` block of the guard. Until a block
    ends without an exception, :meth:`check` asks for a reset.
    """

    def __init__(self) -> None:
        self.ready = False
        """Whether the last block ended without an exception."""
        self._begun = False

    def check(self) -> None:
        """Check that the games can be played on.

        Raises:
            ResetNeeded: they have not begun, or the last step or reset was interrupted.
        """
        if not self.ready:
            raise ResetNeeded(
                "the last step or reset was interrupted: call reset() to begin new games"
                if self._begun
                else "call reset() before step()"
            )

    def __enter__(self) -> None:
        self.ready = False
        self._begun = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.ready = kind is None
