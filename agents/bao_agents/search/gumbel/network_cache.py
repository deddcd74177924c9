"""Cache a network's outputs for leaves of earlier trees.

A Gumbel search grows a new tree for each move, and about half of that tree was in the last one. The
cache keeps the head's outputs for expanded leaves, each in the slot of its position's hash. A newer
leaf replaces an older one. A cache belongs to one network and one rule set, and must be cleared
when the weights change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.nets.head import OUTPUTS
from bao_agents.support.array_types import Float32Array, Uint64Array
from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import ONE, U
from bao_env.engine.position import read
from bao_env.engine.position_hash import position_hash

_MAX_SLOTS = 1 << 16
"""The most slots: 9 MB, which stays in the processor's cache."""
_ENCODINGS = 16
"""A leaf with more encodings is not kept."""


class NetworkCache(NamedTuple):
    """S slots, a power of two."""

    keys: Uint64Array
    """uint64[S], hashes of the positions; 0 in an empty slot."""
    outputs: Float32Array
    """float32[S, E, 2], outputs of the head for up to E encodings of a leaf."""


def make_cache(leaves: int) -> NetworkCache:
    """Return an empty cache for about ``leaves`` leaves, but at most 65,536."""
    slots = min(1 << max(leaves, 1).bit_length(), _MAX_SLOTS)
    return NetworkCache(
        np.zeros(slots, np.uint64), np.zeros((slots, _ENCODINGS, OUTPUTS), np.float32)
    )


@jit_inline
def _find(cache, position):
    """Return the key of a position, uint64 and never zero, and its slot, int64."""
    key = position_hash(read(position)) | ONE
    return key, np.int64((key >> ONE) & U(cache.keys.shape[0] - 1))


@jit_inline
def recall(cache, position, outputs):
    """Look a leaf up.

    Args:
        cache: the :class:`NetworkCache`.
        position: uint64[5 or more], the leaf's position.
        outputs: float32[E or more, 2], filled with the head's outputs if they are known.

    Returns:
        whether they are known.
    """
    key, slot = _find(cache, position)
    if cache.keys[slot] != key:
        return False
    for k in range(cache.outputs.shape[1]):
        for j in range(cache.outputs.shape[2]):
            outputs[k, j] = cache.outputs[slot, k, j]
    return True


@jit_inline
def remember(cache, position, outputs, count):
    """Keep the network's outputs for a leaf, unless it has too many encodings.

    Args:
        cache: the :class:`NetworkCache`.
        position: uint64[5 or more], the leaf's position.
        outputs: float32[count or more, 2], outputs of the head.
        count: the number of the leaf's encodings.
    """
    if count > cache.outputs.shape[1]:
        return
    key, slot = _find(cache, position)
    cache.keys[slot] = key
    for k in range(count):
        for j in range(cache.outputs.shape[2]):
            cache.outputs[slot, k, j] = outputs[k, j]
