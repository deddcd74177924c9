"""PPO of TorchRL in self-play on the PettingZoo environment: one network for both seats.

python training/examples/torchrl_aec.py
"""

from __future__ import annotations

import time

import numpy as np
import torch
from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import MarlGroupMapType, PettingZooWrapper
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from tqdm import tqdm

import bao_env

FRAMES, TOTAL = 2048, 131_072
EPOCHS, MINIBATCH = 6, 512


def main() -> None:
    """Train for some ten minutes, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    env = PettingZooWrapper(
        env=bao_env.raw_env(observation=OBSERVATION, opening_plies=(0, 8)),
        group_map=MarlGroupMapType.ALL_IN_ONE_GROUP,  # "agents": both seats in one tensor
        use_mask=True,
        seed=SEED,
    )
    shape = {"in_features": INPUTS, "num_cells": [256, 256], "activation_class": torch.nn.ReLU}
    logits, critic = MLP(out_features=64, **shape), MLP(out_features=1, **shape)
    seen = ("agents", "observation", "observation")
    actor = ProbabilisticActor(
        TensorDictModule(logits, in_keys=[seen], out_keys=[("agents", "logits")]),
        spec=env.full_action_spec_unbatched,
        in_keys={"logits": ("agents", "logits"), "mask": ("agents", "action_mask")},
        out_keys=[("agents", "action")],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_key=("agents", "log_prob"),
    )
    value = ValueOperator(critic, in_keys=[seen], out_keys=[("agents", "value")])
    loss_of = ClipPPOLoss(
        actor, value, entropy_coeff=0.01, normalize_advantage=True, reduction="none"
    )
    keys = ("reward", "action", "done", "terminated", "value", "advantage", "value_target")
    loss_of.set_keys(**{k: ("agents", k) for k in keys}, sample_log_prob=("agents", "log_prob"))
    loss_of.make_value_estimator(gamma=0.99, lmbda=0.95)
    optimizer = torch.optim.Adam(loss_of.parameters(), 1e-3)
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, TOTAL // FRAMES)
    collector = Collector(env, actor, frames_per_batch=FRAMES, total_frames=TOTAL)

    start = time.process_time()
    with tqdm(total=TOTAL, unit="ply", unit_scale=True) as bar:
        for batch in collector:
            with torch.no_grad():
                loss_of.value_estimator(batch)
            for _ in range(EPOCHS):
                for index in torch.randperm(len(batch)).split(MINIBATCH):
                    plies = batch[index]
                    losses = loss_of(plies)
                    acted = plies["agents", "mask"]  # the other seat's actions teach nothing
                    policy = losses["loss_objective"] + losses["loss_entropy"]
                    loss = policy.reshape(acted.shape)[acted].mean() + losses["loss_critic"].mean()
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                    optimizer.step()
            rate.step()
            bar.update(len(batch))
    seconds = time.process_time() - start
    collector.shutdown()

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(logits(torch.from_numpy(observations)).numpy(), masks)

    report("torchrl", "PPO, self-play, `PettingZooWrapper(env=raw_env())`", seconds, choose)


if __name__ == "__main__":
    main()
