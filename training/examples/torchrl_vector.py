"""Train TorchRL's PPO in self-play on batches of games, through ``bao_env.adapters.torchrl``.

python training/examples/torchrl_vector.py
"""

from __future__ import annotations

import copy
import time

import numpy as np
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from tqdm import tqdm

from bao_env import OpponentPool, PolicyAgent
from bao_env.adapters.torchrl import BaoTorchEnv
from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

GAMES, FRAMES, TOTAL = 128, 8192, 1_000_000
EPOCHS, MINIBATCH = 4, 1024
COPY_EVERY = 5
"""Batches after which a copy of the network joins the pool of opponents."""


def player(logits: torch.nn.Module) -> PolicyAgent:
    """Return a copy of the network as an opponent."""
    frozen = copy.deepcopy(logits)

    def choose(boards: np.ndarray, legal: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            scores = frozen(torch.from_numpy(boards))
            return MaskedCategorical(scores, mask=torch.from_numpy(legal)).sample().numpy()

    return PolicyAgent(choose, OBSERVATION)


def main() -> None:
    """Train for a minute or two, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    pool = OpponentPool("greedy", seed=SEED)
    env = BaoTorchEnv(GAMES, opponent=pool, observation=OBSERVATION, seed=SEED)
    shape = {"in_features": INPUTS, "num_cells": [128, 128], "activation_class": torch.nn.ReLU}
    logits, critic = MLP(out_features=64, **shape), MLP(out_features=1, **shape)
    actor = ProbabilisticActor(
        TensorDictModule(logits, in_keys=["observation"], out_keys=["logits"]),
        spec=env.action_spec,
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    value = ValueOperator(critic, in_keys=["observation"])
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=value)
    loss_of = ClipPPOLoss(actor, value, entropy_coeff=0.01, normalize_advantage=True)
    optimizer = torch.optim.Adam(loss_of.parameters(), 1e-3)
    collector = Collector(env, actor, frames_per_batch=FRAMES, total_frames=TOTAL)

    start = time.process_time()
    with tqdm(total=TOTAL, unit="step", unit_scale=True) as bar:
        for number, batch in enumerate(collector, 1):
            with torch.no_grad():
                advantages(batch)
            steps = batch.reshape(-1)
            for _ in range(EPOCHS):
                for index in torch.randperm(len(steps)).split(MINIBATCH):
                    losses = loss_of(steps[index])
                    loss = sum(losses[k] for k in ("loss_objective", "loss_critic", "loss_entropy"))
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                    optimizer.step()
            if number % COPY_EVERY == 0:
                pool.add(player(logits))
            pool.draw()
            bar.update(batch.numel())
    seconds = time.process_time() - start
    collector.shutdown()

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(logits(torch.from_numpy(observations)).numpy(), masks)

    report("torchrl", "PPO, self-play, batches through `bao_env.adapters.torchrl`", seconds, choose)


if __name__ == "__main__":
    main()
