"""Hash positions, for the tables of searches.

The hash is part of the engine because it depends on the layout of a packed position.
"""

from __future__ import annotations

from bao_env.compiled.compile import jit_inline
from bao_env.engine.bits import U
from bao_env.engine.position import Rows

# Odd multipliers whose bits look random: 2^64 over the golden ratio (Knuth, "The Art of Computer
# Programming", volume 3, 6.4), and two primes of xxHash64 (https://xxhash.com).
_GOLDEN_RATIO = U(0x9E3779B97F4A7C15)
_XXHASH_PRIME_2 = U(0xC2B2AE3D27D4EB4F)
_XXHASH_PRIME_3 = U(0x165667B19E3779F9)
# The high bits of a product are well mixed; these shifts move them down.
_HASH_SHIFT_A = U(29)
_HASH_SHIFT_B = U(32)


@jit_inline
def position_hash(rows: Rows) -> U:
    """Return the hash of a position, a :class:`~bao_env.engine.position.Rows`, uint64."""
    h = (rows.front ^ (rows.front >> _HASH_SHIFT_A)) * _GOLDEN_RATIO
    h = ((h ^ (h >> _HASH_SHIFT_B)) + rows.back) * _XXHASH_PRIME_2
    h = ((h ^ (h >> _HASH_SHIFT_A)) + rows.other_front) * _XXHASH_PRIME_3
    h = ((h ^ (h >> _HASH_SHIFT_B)) + rows.other_back) * _GOLDEN_RATIO
    h = ((h ^ (h >> _HASH_SHIFT_A)) + rows.meta) * _XXHASH_PRIME_2
    return h ^ (h >> _HASH_SHIFT_B)
