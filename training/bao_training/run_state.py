"""Save and load the state of a run: a dictionary of arrays, checked before any of it is used.

The parts of a run (games, buffer, network, optimiser) name the arrays that they need, and a resumed
run fills them again. :func:`check_arrays` compares names, types and shapes with those that this run
would write, and :func:`digest` detects damage. The values in the arrays are trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from bao_agents.nets.checkpoint import Arrays


def digest(info: Mapping[str, Any], arrays: Arrays) -> str:
    """Return a SHA-256 of a run's plain values and arrays.

    Args:
        info: plain values for JSON; an entry ``digest`` is left out.
        arrays: every array of the run.
    """
    values = {key: value for key, value in info.items() if key != "digest"}
    total = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(name.encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def check_arrays(arrays: Arrays, expected: Arrays) -> None:
    """Check that saved arrays have the names, types and shapes of the expected ones.

    Raises:
        ValueError: an array is missing, unknown, or of another type or shape.
    """
    if missing := sorted(expected.keys() - arrays.keys()):
        raise ValueError(f"it has no array {missing[0]!r}")
    if unknown := sorted(arrays.keys() - expected.keys()):
        raise ValueError(f"it has an array {unknown[0]!r:.200}, which this run does not know")
    for name, ours in expected.items():
        theirs = arrays[name]
        if (theirs.dtype, theirs.shape) != (ours.dtype, ours.shape):
            raise ValueError(
                f"{name}: {theirs.dtype}{list(theirs.shape)}"[:200]
                + f", expected {ours.dtype}{list(ours.shape)}"
            )


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with ``prefix.`` before each name."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}
