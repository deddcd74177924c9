"""Run a player of a checkout in a process of its own, for ``versus.py``.

``versus.py`` runs this text in the folder of the player's checkout, so it imports nothing that an
old one may lack. A request is the number of positions, int64, then the positions, uint64[N, 6],
and their masks, uint64[N]. The answer is the processor seconds taken, float64, and the actions,
int64[N].
"""

import sys
import time

import bao_agents
import numpy as np


def main() -> None:
    """Answer requests from stdin on stdout until stdin ends."""
    name, ruleset, seed = sys.argv[1:]
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        player = bao_agents.load(name, ruleset=ruleset, seed=int(seed), threads=1)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    while head := asked.read(8):
        count = int.from_bytes(head, sys.byteorder)
        positions = np.frombuffer(asked.read(48 * count), np.uint64).reshape(count, 6).copy()
        masks = np.frombuffer(asked.read(8 * count), np.uint64).copy()
        begun = time.process_time()
        actions = player.act(positions, masks)
        seconds = time.process_time() - begun
        answers.write(np.float64(seconds).tobytes() + actions.astype(np.int64).tobytes())
        answers.flush()


if __name__ == "__main__":
    main()
