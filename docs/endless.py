"""Print how a never-ending takasa repeats, and all rings of up to eleven seeds that allow one.

python docs/endless.py
"""

import itertools

import numba
import numpy as np


@numba.njit
def sow_on(ring: np.ndarray, pit: int, step: int) -> tuple[int, int, bool]:
    """Sow from a pit of a ring of sixteen, in place, until the move ends or repeats.

    Returns:
        the number of sowings, the number of seeds sown, and whether the move repeats.
    """
    start, at, sowings, seeds = ring.copy(), pit, 0, 0
    while True:
        hand, ring[at] = ring[at], 0
        for _ in range(hand):
            at = (at + step) % 16
            ring[at] += 1
        sowings, seeds = sowings + 1, seeds + hand
        if ring[at] == 1 or (at == pit and (ring == start).all()):
            return sowings, seeds, ring[at] > 1


# De Voogt's game, A1 to A8 and B8 to B1; the move is A3L.
print(sow_on(np.array([int(seeds) for seeds in "1641054010305012"]), 2, -1))
for count in range(2, 12):
    for pits in itertools.combinations_with_replacement(range(16), count):
        ring = np.bincount(pits, minlength=16)
        if ring[0] > 1 and sow_on(ring.copy(), 0, 1)[2]:
            print(ring)
