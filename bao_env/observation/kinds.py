"""The kinds of observation that environments offer, by name.

=================  =============================================================================
``observation=``   what a player sees
=================  =============================================================================
``board``          float32[52], the bare board (:mod:`bao_env.observation.board`)
``captures``       float32[180]: the same, and for each action its captures and whether it wins
                   (the first two groups of :mod:`bao_env.observation.actions`)
``replies``        float32[308]: the same, and for each action the opponent's best reply
``planes``         float32[16, 4, 8], the board for convolutions and attention
                   (:mod:`bao_env.observation.planes`)
``planes+replies`` a dict of both: ``planes`` as above, and ``actions``, float32[256], the last 256
                   numbers of ``replies``
=================  =============================================================================

All of them can also be had as uint8: counts of seeds in place of eighths.
"""

from __future__ import annotations

import threading
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from bao_env.engine.bits import U
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.observation.actions import (
    CAPTURE_COLUMNS,
    REPLY_COLUMNS,
    Workspace,
    write_actions,
)
from bao_env.observation.board import OBSERVATION_SIZE, SEED_UNIT, observe_compiled
from bao_env.observation.planes import COLUMNS, PLANES, ROWS, write_planes

ObservationName = Literal["board", "captures", "replies", "planes", "planes+replies"]
Arrays = dict[str, npt.NDArray[Any]]
"""The arrays of an observation, by the keys of :attr:`ObservationKind.shapes`."""


class ObservationKind(NamedTuple):
    """What one kind of observation holds."""

    shapes: dict[str, tuple[int, ...]]
    """The shape of each array: ``board``, ``actions`` or ``planes``. What is called ``board`` has
    the columns of the actions behind it."""
    action_columns: int
    """How many columns of :mod:`bao_env.observation.actions` it has."""
    version: int
    """Raised whenever a number changes its place or its meaning."""


def _vector(action_columns: int) -> ObservationKind:
    return ObservationKind({"board": (OBSERVATION_SIZE + action_columns,)}, action_columns, 1)


_PLANES: Final = (PLANES, ROWS, COLUMNS)

OBSERVATIONS: Final[dict[str, ObservationKind]] = {
    "board": _vector(0),
    "captures": _vector(CAPTURE_COLUMNS),
    "replies": _vector(REPLY_COLUMNS),
    "planes": ObservationKind({"planes": _PLANES}, 0, 1),
    "planes+replies": ObservationKind(
        {"planes": _PLANES, "actions": (REPLY_COLUMNS,)}, REPLY_COLUMNS, 1
    ),
}
"""Every kind, by the name that ``observation=`` takes."""


class Observer:
    """Writes observations of one kind.

    Several threads may use one observer at the same time.

    Args:
        name: of the kind.
        ruleset: a :class:`Ruleset` or the name of one: what can be captured depends on it.
        dtype: float32 or uint8.

    Raises:
        ValueError: an unknown kind, dtype or rule set.
    """

    def __init__(
        self,
        name: str = "board",
        ruleset: str | Ruleset = "zanzibar",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        if name not in OBSERVATIONS:
            known = ", ".join(map(repr, get_args(ObservationName)))
            raise ValueError(f"observation={name!r}: expected one of {known}")
        self.name = name
        self.kind = OBSERVATIONS[name]
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.uint8):
            raise ValueError(f"observation dtype {self.dtype}: expected float32 or uint8")
        self._ruleset = get_ruleset(ruleset)
        self._rules = self._ruleset.kernel_rules()
        self._scale = U(1) if self.dtype == np.uint8 else np.float32(1.0 / SEED_UNIT)
        self._scratch = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self._ruleset, self.dtype)

    def empty(self, size: int) -> Arrays:
        """Arrays for ``size`` observations, to be filled."""
        return {key: np.empty((size, *s), self.dtype) for key, s in self.kind.shapes.items()}

    def value(self, arrays: Arrays) -> Any:
        """What the environments return: the one array, or the dict of several."""
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays

    def fill(
        self,
        positions: npt.NDArray[np.uint64],
        masks: npt.NDArray[np.uint64],
        viewers: npt.NDArray[np.int8],
        arrays: Arrays,
    ) -> None:
        """Write the observations of some positions.

        Args:
            positions: uint64[B, 6], C-contiguous.
            masks: uint64[B], the legal actions of the viewers; 0 where they are not to move.
            viewers: int8[B], the seat whose view each is.
            arrays: as :meth:`empty` makes them, C-contiguous; filled.
        """
        scale = self._scale
        if "planes" in arrays:
            write_planes(positions, viewers, scale, arrays["planes"])
        if "board" in arrays:
            observe_compiled(positions, viewers, scale, arrays["board"])
        if self.kind.action_columns:
            vector = "board" in arrays
            write_actions(
                self._rules,
                positions,
                masks,
                self.kind.action_columns == REPLY_COLUMNS,
                scale,
                self._workspace(),
                arrays["board" if vector else "actions"],
                OBSERVATION_SIZE if vector else 0,
            )

    def _workspace(self) -> tuple[npt.NDArray[Any], ...]:
        """This thread's scratch memory."""
        if not hasattr(self._scratch, "work"):
            self._scratch.work = tuple(Workspace.empty())
        found: tuple[npt.NDArray[Any], ...] = self._scratch.work
        return found
