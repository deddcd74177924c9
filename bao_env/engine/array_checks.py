"""Checks of the arrays that callers own, before compiled code reads or fills them.

Compiled code checks no bounds: an array that is too short would be read, or written, beyond its
end. These checks take constant time; they look at what an array is, not at its content.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeGuard

import numpy as np
import numpy.typing as npt

from bao_env.engine.position import WORDS

UINT64: Final = np.dtype(np.uint64)
INT64: Final = np.dtype(np.int64)
FLOAT32: Final = np.dtype(np.float32)
INT8: Final = np.dtype(np.int8)
UINT8: Final = np.dtype(np.uint8)
BOOL: Final = np.dtype(np.bool_)

_READABLE: Final = ("C_CONTIGUOUS", "ALIGNED", "WRITEABLE")
"""Numba compiles anew, or not at all, for other arrays."""


def check_array(name: str, array: object, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that compiled code cannot read.

    Args:
        name: of the argument, for the message.
        array: it must be a C-contiguous array of this type and shape, in the machine's byte order.
        dtype, shape: those expected.

    Raises:
        TypeError: it is no array, or has another dtype.
        ValueError: it has another shape, or is not contiguous.
    """
    if not (
        _is_plain(array)
        and array.dtype == dtype
        and array.shape == shape
        and array.flags.c_contiguous
        and array.flags.aligned
    ):
        _refuse(name, array, dtype, shape)


def check_output(name: str, array: object, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """:func:`check_array`, for an array that compiled code fills.

    Raises:
        TypeError, ValueError: see :func:`check_array`; ValueError also if it is read-only.
    """
    if not (
        _is_plain(array)
        and array.dtype == dtype
        and array.shape == shape
        and array.flags.carray  # contiguous, aligned and writable
    ):
        _refuse(name, array, dtype, shape)


def _is_plain(array: object) -> TypeGuard[npt.NDArray[Any]]:
    """Whether it is an array that numba knows: masked arrays are not."""
    return type(array) is np.ndarray or (
        isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    )


def length_of(array: object) -> int:
    """The first dimension of an array, to compare others with; 0 for what is no array."""
    return len(array) if isinstance(array, np.ndarray) and array.ndim else 0


def batch_size(positions: object) -> int:
    """The number of games of ``positions``, uint64[B, 6].

    Raises:
        TypeError, ValueError: see :func:`check_array`.
    """
    size = length_of(positions)
    check_array("positions", positions, UINT64, (size, WORDS))
    return size


def as_batch(
    positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """What a player is handed, as compiled code can read it: copied only if it must be.

    Args:
        positions: uint64[B, 6].
        masks: uint64[B], their legal actions.

    Raises:
        TypeError, ValueError: see :func:`check_array`.
    """
    if isinstance(positions, np.ndarray):
        positions = np.require(positions, requirements=_READABLE)
    if isinstance(masks, np.ndarray):
        masks = np.require(masks, requirements=_READABLE)
    check_array("masks", masks, UINT64, (batch_size(positions),))
    return positions, masks


def as_actions(answer: object, size: int, who: str) -> npt.NDArray[np.int64]:
    """Return actions for ``size`` positions as int64[size], C-contiguous; copied only if needed.

    Args:
        answer: integers [size], an array of any integer dtype or a list.
        size: the number of positions.
        who: who chose them, for the message.

    Raises:
        TypeError: they are not integers.
        ValueError: there are more or fewer.
    """
    actions = np.asarray(answer)
    integers = actions.dtype.kind in "iu"
    if not integers or actions.shape != (size,):
        error = ValueError if integers else TypeError
        found = f"{actions.dtype}{list(actions.shape)}"
        raise error(f"{who}: expected {size} integers, not {found}")
    return np.ascontiguousarray(actions, np.int64)


def is_legal(
    actions: npt.NDArray[np.int64], legal: npt.NDArray[np.uint64]
) -> npt.NDArray[np.bool_]:
    """Return which actions are legal, bool[B]; any action is where a game is over.

    Args:
        actions: int64[B].
        legal: uint64[B], bit a = action a; 0 where the game is over.
    """
    inside = (actions >= 0) & (actions < 64)
    bits = legal >> np.where(inside, actions, 0).astype(np.uint64)
    return np.asarray((legal == 0) | (inside & (bits & np.uint64(1) != 0)))


def _refuse(name: str, array: object, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NoReturn:
    """Say what an array should have been."""
    expected = f"{name}: expected a C-contiguous {dtype}{list(shape)}"
    if not _is_plain(array):
        raise TypeError(f"{expected}, not {type(array).__name__}")
    found = f"{array.dtype}{list(array.shape)}"
    if array.dtype != dtype:
        raise TypeError(f"{expected}, not {found}")
    if array.shape != shape:
        raise ValueError(f"{expected}, not {found}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{expected}; its elements do not lie side by side: pass a copy")
    raise ValueError(f"{expected} that can be written; it is read-only")
