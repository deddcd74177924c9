"""Define observers, which turn what a player sees of a position into numbers.

Every environment, adapter and :class:`~bao_env.self_play.PolicyAgent` takes ``observation=``: a
name from this table, or your :class:`Observer`.

==================  ============================================================================
``observation=``    what a player sees
==================  ============================================================================
``board``           float32[52], the bare board (:mod:`bao_env.observation.board`)
``replies``         float32[308]: the board, and for each action its captures, whether it wins, and
                    the opponent's best reply (:mod:`bao_env.observation.actions`)
``planes``          float32[16, 4, 8], the board for convolutions and attention
                    (:mod:`bao_env.observation.planes`)
==================  ============================================================================

Each is also available as uint8, with seed counts instead of multiples of 1/8.

To add a kind, write a class with ``space`` and ``fill`` in a new file, and add a row to
:data:`OBSERVATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.kernel import legal_of
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import Legal, PackedPositions, Seats, packed_opening
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.observation.actions import Replies
from bao_env.observation.arrays import Arrays, empty_arrays, one_line, take_rows
from bao_env.observation.board import BareBoard, SeedObserver
from bao_env.observation.planes import Planes


class Observer(Protocol):
    """Anything that writes observations. Several threads may call :meth:`fill` at the same time."""

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of one observation: a ``Box``, or a ``Dict`` of boxes."""
        ...

    def fill(
        self,
        positions: PackedPositions,
        legal: Legal,
        viewers: Seats,
        arrays: Arrays,
    ) -> None:
        """Write the observations of n positions.

        Args:
            positions: uint64[n, 6], packed positions, C-contiguous. This array and the next two
                are read-only.
            legal: uint64[n], the legal actions of the viewers, bit a = action a; 0 where they are
                not to move.
            viewers: int8[n], the seat that sees each position.
            arrays: an array [n, ...], or a dict of arrays, as :attr:`space` says, C-contiguous.
                Write every number in it.
        """
        ...


class UserObserver:
    """Wrap a caller's observer: give it read-only views, and try it out.

    Args:
        observer: the observer.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        """The observer itself."""

    @property
    def space(self) -> spaces.Space[Any]:
        """See :class:`Observer`."""
        return self.observer.space

    def fill(
        self, positions: PackedPositions, legal: Legal, viewers: Seats, arrays: Arrays
    ) -> None:
        """See :meth:`Observer.fill`."""
        views = positions.view(), legal.view(), viewers.view()
        for view in views:
            view.flags.writeable = False
        self.observer.fill(*views, arrays)

    def try_out(self, positions: PackedPositions, legal: Legal, viewers: Seats) -> Arrays:
        """Return observations of n positions; :meth:`Observer.fill` has the arguments.

        Raises:
            ValueError: ``fill`` changes its arguments, or numbers are missing or outside the space.
        """
        arrays = empty_arrays(self.space, len(legal))
        for part in arrays.values() if isinstance(arrays, dict) else [arrays]:
            part.view(np.uint8).fill(0xFF)  # NaN as a float: outside the space
        inputs: list[Any] = [positions, legal, viewers]
        copies = [array.copy() for array in inputs]
        self.observer.fill(positions, legal, viewers, arrays)
        if not all(map(np.array_equal, inputs, copies)):
            raise ValueError(
                f"observation={self.observer!r}: fill must not change positions, legal or viewers"
            )
        for observation in (take_rows(arrays, i) for i in range(len(legal))):
            if not self.space.contains(observation):
                raise ValueError(
                    f"observation={self.observer!r}: fill must write every number, each within "
                    f"{self.space}; it wrote {one_line(observation)}"
                )
        return arrays


OBSERVATIONS: dict[str, Callable[[Ruleset, np.dtype[Any]], Observer]] = {
    "board": BareBoard,
    "replies": Replies,
    "planes": Planes,
}
"""The observers that ``observation=`` knows by name, made from rules and a dtype."""


def get_observer(
    observation: str | Observer,
    ruleset: str | Ruleset = "zanzibar",
    dtype: npt.DTypeLike = np.float32,
) -> Observer:
    """Return the observer for an ``observation=`` argument.

    Args:
        observation: a name from :data:`OBSERVATIONS`, or an :class:`Observer`.
        ruleset: a :class:`Ruleset` or its name; what can be captured depends on it.
        dtype: float32 or uint8, for an observer given by name.

    Raises:
        ValueError: the name, the dtype or the rule set is unknown; or the object is not an
            observer, or its first observations are incomplete or outside its space.
    """
    if isinstance(observation, (SeedObserver, UserObserver)):  # this function made it
        return observation
    if not isinstance(observation, str):
        is_observer = callable(getattr(observation, "fill", None))
        if is_observer and isinstance(observation.space, (spaces.Box, spaces.Dict)):
            wrapped, rules = UserObserver(observation), get_ruleset(ruleset)
            opening = packed_opening(rules, SOUTH)  # as both sides see it
            legal = np.array([legal_of(rules.kernel, opening), 0], np.uint64)
            wrapped.try_out(np.array([opening] * 2), legal, np.array([SOUTH, NORTH], np.int8))
            return wrapped
    elif observation in OBSERVATIONS:
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.uint8):
            raise ValueError(f"dtype={kind}: expected float32 or uint8")
        return OBSERVATIONS[observation](get_ruleset(ruleset), kind)
    names = ", ".join(map(repr, OBSERVATIONS))
    raise ValueError(
        f"observation={observation!r}: expected one of {names}, or an object with a space (Box or "
        "Dict) and fill(positions, legal, viewers, arrays)"
    )


def masked_space(space: spaces.Space[Any]) -> spaces.Dict:
    """Return the space of dicts with an observation and a mask of legal actions, int8[64]."""
    mask = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
    return spaces.Dict({"observation": space, "action_mask": mask})


def make_observations(
    observer: Observer,
    positions: PackedPositions,
    legal: Legal,
    viewers: Seats,
) -> Arrays:
    """Return fresh observations of n positions; :meth:`Observer.fill` has the arguments."""
    arrays = empty_arrays(observer.space, len(legal))
    observer.fill(positions, legal, viewers, arrays)
    return arrays
