"""Handle observations of many positions: an array, or a dict of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array

Arrays = Any
"""Observations of n positions: an array with n rows or, for a ``Dict`` space, a dict of them."""


def empty_arrays(space: spaces.Space[Any], size: int) -> Arrays:
    """Return uninitialised arrays for ``size`` observations of a space."""
    return create_empty_array(space, size, np.empty)


def take_rows(arrays: Arrays, rows: Any) -> Arrays:
    """Return some rows: views for a slice or an index, copies for an index array."""
    if isinstance(arrays, dict):
        return {key: array[rows] for key, array in arrays.items()}
    return arrays[rows]


def put_rows(arrays: Arrays, rows: Any, values: Arrays) -> None:
    """Write ``values`` into some rows of ``arrays``."""
    if isinstance(arrays, dict):
        for key, array in arrays.items():
            array[rows] = values[key]
    else:
        arrays[rows] = values


def one_line(arrays: Arrays) -> str:
    """Return observations as a string without line breaks, for an error."""
    return " ".join(str(arrays).split())
