"""Train SB3-contrib's MaskablePPO in self-play on batches of games, with ``bao_env.adapters.sb3``.

python training/examples/sb3_vector.py
"""

from __future__ import annotations

import time

import torch
from sb3_contrib import MaskablePPO

from bao_env import OpponentPool
from bao_env.adapters.sb3 import SB3VecEnv, SelfPlayCallback, player
from measure import OBSERVATION, SEED, report

STEPS = 1_000_000


def main() -> None:
    """Train for a minute or two, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    envs = SB3VecEnv(128, opponent=OpponentPool("greedy", seed=SEED), observation=OBSERVATION)
    model = MaskablePPO(
        "MultiInputPolicy",
        envs,
        learning_rate=1e-3,
        n_steps=64,
        batch_size=1024,
        n_epochs=4,
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=SEED,
        device="cpu",
    )
    start = time.process_time()
    model.learn(STEPS, callback=SelfPlayCallback(every=50_000), progress_bar=True)
    seconds = time.process_time() - start
    model.save("bao.zip")
    report(
        "sb3-contrib", "MaskablePPO, self-play, `bao_env.adapters.sb3`", seconds, player("bao.zip")
    )


if __name__ == "__main__":
    main()
