"""PPO of TorchRL in self-play on the PettingZoo environment: one network for both seats.

python -m training.examples.torchrl_aec
"""

from __future__ import annotations

import time

import numpy as np
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from tqdm import tqdm

import bao_env
from training.examples.measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

FRAMES, TOTAL = 2048, 65_536
EPOCHS, MINIBATCH = 4, 512
LOSSES = ("loss_objective", "loss_critic", "loss_entropy")


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    env = PettingZooWrapper(env=bao_env.raw_env(observation=OBSERVATION), use_mask=True, seed=SEED)
    seats = list(env.group_map)  # a group each: the losses below are for one seat at a time
    shape = {"in_features": INPUTS, "num_cells": [128, 128], "activation_class": torch.nn.ReLU}
    logits, critic = MLP(out_features=64, **shape), MLP(out_features=1, **shape)
    actors, losses = {}, {}
    for seat in seats:
        board = [(seat, "observation", "observation")]
        actors[seat] = ProbabilisticActor(
            TensorDictModule(logits, in_keys=board, out_keys=[(seat, "logits")]),
            spec=env.full_action_spec_unbatched[seat, "action"],
            in_keys={"logits": (seat, "logits"), "mask": (seat, "action_mask")},
            out_keys=[(seat, "action")],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
            log_prob_key=(seat, "log_prob"),
        )
        value = ValueOperator(critic, in_keys=board, out_keys=[(seat, "value")])
        loss_of = ClipPPOLoss(actors[seat], value, entropy_coeff=0.01, reduction="none")
        keys = ("reward", "action", "done", "terminated", "value", "advantage", "value_target")
        loss_of.set_keys(**{key: (seat, key) for key in keys}, sample_log_prob=(seat, "log_prob"))
        loss_of.make_value_estimator(gamma=0.99, lmbda=0.95)
        losses[seat] = loss_of
    optimizer = torch.optim.Adam([*logits.parameters(), *critic.parameters()], 1e-3)
    players = TensorDictSequential(*actors.values())
    collector = Collector(env, players, frames_per_batch=FRAMES, total_frames=TOTAL)

    start = time.perf_counter()
    with tqdm(total=TOTAL, unit="ply", unit_scale=True) as bar:
        for batch in collector:
            for seat in seats:
                with torch.no_grad():
                    losses[seat].value_estimator(batch)
            for _ in range(EPOCHS):
                for index in torch.randperm(len(batch)).split(MINIBATCH):
                    plies = batch[index]
                    loss = torch.zeros(())
                    for seat in seats:
                        acted = plies[
                            seat, "mask"
                        ].flatten()  # the other seat's plies teach nothing
                        parts = losses[seat](plies)
                        rows = sum(parts[key].reshape(len(plies)) for key in LOSSES)
                        loss = loss + (rows * acted).sum() / len(plies)
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(logits.parameters(), 0.5)
                    optimizer.step()
            bar.update(len(batch))
    seconds = time.perf_counter() - start
    collector.shutdown()

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(logits(torch.from_numpy(observations)).numpy(), masks)

    report("torchrl", "PPO, self-play, `PettingZooWrapper(env=raw_env())`", seconds, choose)


if __name__ == "__main__":
    main()
