"""Detect interrupted steps and resets, after which an environment needs a reset."""

from __future__ import annotations

from typing import Any

from gymnasium.error import ResetNeeded

from bao_env.compiled.exclusive import Exclusive


class Guard(Exclusive):
    """Track whether an environment's games match what it has returned.

    An opponent that fails, an observer that raises, or Ctrl-C can end a step midway. The games then
    differ from what the environment has returned, and the learner's next action could be played as
    the opponent's. Code that changes games therefore runs inside ``with guard:``. After an
    exception in such a block, :meth:`check` asks for a reset.

    One case remains: an interrupt after ``step()`` has returned, for example in a wrapper. The step
    has happened, but its caller does not see the result.
    """

    def __init__(self) -> None:
        super().__init__("environment")
        self._begun = False
        self.ready: bool = False
        """Whether the last step or reset ended without an exception."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._begun, self.ready)

    def check(self) -> None:
        """Check that the games can be played on.

        Raises:
            ResetNeeded: they have not begun, or the last step or reset was interrupted.
            RuntimeError: another thread is in the middle of a step or reset.
        """
        if not self.ready:
            self.refuse_others()
            raise ResetNeeded(
                "the last step or reset was interrupted: call reset() to begin new games"
                if self._begun
                else "call reset() before step()"
            )

    def check_begun(self) -> None:
        """Check that there are games to look at; an interrupted one is.

        Raises:
            ResetNeeded: none has begun.
        """
        if not self._begun:
            raise ResetNeeded("there is no game yet: call reset()")

    def __enter__(self) -> None:
        """Enter a block that changes games.

        Raises:
            RuntimeError: another thread is in the block.
        """
        Exclusive.__enter__(self)  # super() would take longer, in every step
        self.ready = False
        self._begun = True

    def __exit__(self, *error: object) -> None:
        """Leave the block; without an exception, the games can be played on."""
        self.ready = error[0] is None
        self._user.pop(None, None)


def _restore(has_begun: bool, ready: bool) -> Guard:
    """Return a copy of a guard; no thread is in the copy's block."""
    guard = Guard()
    guard._begun, guard.ready = has_begun, ready
    return guard
