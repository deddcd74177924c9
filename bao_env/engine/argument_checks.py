"""Validate arguments: integers, and the arrays that compiled code reads or fills.

Compiled code checks no bounds: it would read or write beyond the end of an array that is too short.
The checks of arrays take constant time: they look at type and layout, not at the content.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt

from bao_env.engine.position import WORDS, Actions, Legal, PackedPositions

MAX_COUNT: Final = 2**31 - 1
"""The highest number of games, plies or steps that a caller can ask for."""
_READABLE: Final = ("C_CONTIGUOUS", "ALIGNED", "WRITEABLE")
"""Array flags that compiled code needs. Without them, numba compiles again or fails."""


def check_array(
    name: str, array: object, dtype: type[np.generic], shape: tuple[int, ...], *, fill: bool = False
) -> None:
    """Validate an array that compiled code reads or fills.

    Args:
        name: the argument's name, for the message.
        array: expected to be a C-contiguous array in the machine's byte order.
        dtype, shape: the expected dtype and shape.
        fill: whether the array must also be writable.

    Raises:
        TypeError: ``array`` is not an array, or has another dtype.
        ValueError: ``array`` has another shape, is not contiguous, or must be writable and is not.
    """
    if not (
        _is_plain(array)
        and array.dtype == dtype
        and array.shape == shape
        and (array.flags.carray if fill else array.flags.c_contiguous and array.flags.aligned)
    ):
        layout = f"{' and writable' if fill else ''} {np.dtype(dtype)}{list(shape)}"
        expected = f"{name}: expected a C-contiguous{layout}"
        if not _is_plain(array):
            raise TypeError(f"{expected}, not {type(array).__name__}")
        actual = f"{array.dtype}{list(array.shape)}"
        if array.dtype != dtype or array.shape != shape:
            error = ValueError if array.dtype == dtype else TypeError
            raise error(f"{expected}, not {actual}")
        adjacent = array.flags.c_contiguous and array.flags.aligned
        state = "read-only" if adjacent else "not adjacent in memory"
        raise ValueError(f"{expected}; its elements are {state}: pass a copy")


def check_output(name: str, array: object, dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    """Validate an array that compiled code fills; see :func:`check_array`."""
    check_array(name, array, dtype, shape, fill=True)


def _is_plain(array: object) -> TypeGuard[npt.NDArray[Any]]:
    """Return whether numba accepts this kind of array: it does not accept masked arrays."""
    return type(array) is np.ndarray or (  # the usual case, tested first because it is faster
        isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    )


def length_of(array: object) -> int:
    """Return the first dimension of an array; 0 if it is not an array."""
    return len(array) if isinstance(array, np.ndarray) and array.ndim else 0


def batch_size(positions: object) -> int:
    """Return the number of games of ``positions``, uint64[B, 6].

    Raises:
        TypeError, ValueError: see :func:`check_array`.
    """
    size = length_of(positions)
    check_array("positions", positions, np.uint64, (size, WORDS))
    return size


def as_batch(positions: PackedPositions, legal: Legal) -> tuple[PackedPositions, Legal]:
    """Return a player's arguments as arrays that compiled code can read.

    An array is copied only if necessary.

    Args:
        positions: uint64[B, 6].
        legal: uint64[B], the legal actions of each position.

    Raises:
        TypeError, ValueError: see :func:`check_array`.
    """
    if _is_plain(positions) and not positions.flags.carray:
        positions = np.require(positions, requirements=_READABLE)
    if _is_plain(legal) and not legal.flags.carray:
        legal = np.require(legal, requirements=_READABLE)
    check_array("legal", legal, np.uint64, (batch_size(positions),))
    return positions, legal


def as_actions(answer: object, size: int, player: str) -> Actions:
    """Return actions for ``size`` positions as int64[size], C-contiguous; copied only if needed.

    Args:
        answer: integers [size], an array of any integer dtype or a list.
        size: the number of positions.
        player: the player who chose the actions, for the message.

    Raises:
        TypeError: the actions are not integers.
        ValueError: there are more or fewer actions than positions.
    """
    try:
        actions = np.asarray(answer)
    except ValueError:  # parts of different lengths, such as a tuple of actions and states
        actions = np.asarray(None)
    integers = actions.dtype.kind in "iu"
    if not integers or actions.shape != (size,):
        error = ValueError if integers else TypeError
        actual = f"{actions.dtype}{list(actions.shape)}"
        if actions.dtype == object:
            actual = f"{' '.join(repr(answer).split()):.80}"
        raise error(f"{player}: expected {size} integer{'s' * (size != 1)}, not {actual}")
    return np.ascontiguousarray(actions, np.int64)


def as_integer(value: object, name: str, low: int, high: int) -> int:
    """Return an argument as an int.

    Args:
        value: an integer of any type, numpy's included; a bool is not one.
        name: the argument's name, for the message.
        low, high: the lowest and the highest allowed integer.

    Raises:
        ValueError: ``value`` is not an integer in this range.
    """
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or not low <= int(value) <= high:  # type: ignore[call-overload]
        raise ValueError(f"{name}={value!r}: expected an integer from {low} to {high}")
    return int(value)  # type: ignore[call-overload]
