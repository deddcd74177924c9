"""Detect interrupted steps and resets, after which an environment needs a reset."""

from __future__ import annotations

from threading import get_ident
from typing import Any

from gymnasium.error import ResetNeeded

from bao_env.engine.exclusive import refuse_others


class Guard:
    """Track whether an environment's games match what it has shown.

    An opponent that fails, an observer that raises, or Ctrl-C can end a step midway. The games then
    differ from what the environment has shown, and it could take the learner's next action for the
    opponent's. So all code that changes games runs in a ``with`` block of the guard, and sets
    :attr:`ready` as its very last statement before it returns. Until it does, :meth:`check` asks
    for a reset.

    What is left is an interrupt after the environment's own step has returned, for example in a
    wrapper: the step has happened, but its caller does not see the result.
    """

    def __init__(self) -> None:
        self._begun = False
        self.ready = False
        """Whether the last step or reset has returned what it shows."""
        self._user: int | None = None
        """The thread in the block."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._begun, self.ready)

    def check(self) -> None:
        """Check that the games can be played on.

        Raises:
            ResetNeeded: they have not begun, or the last step or reset was interrupted.
            RuntimeError: another thread is in the middle of a step or reset.
        """
        if not self.ready:
            refuse_others("environment", self._user)
            raise ResetNeeded(
                "the last step or reset was interrupted: call reset() to begin new games"
                if self._begun
                else "call reset() before step()"
            )

    def __enter__(self) -> None:
        """Begin to change games; raises RuntimeError if another thread does so now."""
        if not self.ready:  # otherwise nobody is in the block
            refuse_others("environment", self._user)
        self._user = get_ident()
        self.ready = False
        self._begun = True

    def __exit__(self, *error: object) -> None:
        """End the change; only :attr:`ready` says that it is complete."""
        self._user = None


def _restore(begun: bool, ready: bool) -> Guard:
    """Return a copy of a guard, in which no thread is."""
    guard = Guard()
    guard._begun, guard.ready = begun, ready
    return guard
