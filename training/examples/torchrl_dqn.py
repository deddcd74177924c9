"""DQN of TorchRL against past selves, on batches of games, through ``bao_env.adapters.torchrl``.

python training/examples/torchrl_dqn.py
"""

from __future__ import annotations

import copy
import math
import time

import numpy as np
import torch
from measure import (
    OBSERVATION,
    SEED,
    AfterUpdate,
    inputs,
    masked_argmax,
    progress_bar,
    report,
)
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, HardUpdate

from bao_env.adapters.torchrl import BaoTorchEnv
from bao_env.self_play import Choose, OpponentPool, PolicyAgent

STEPS = 500_000
GAMES = 64
"""Games played at once."""
COLLECT = 512
"""Steps between updates."""
BATCH = 512
"""Steps in the batch of a gradient."""
STEPS_A_GRADIENT = 32
"""Steps played for each gradient."""
TARGET_EVERY = 500
"""Gradients after which the target network is renewed."""
COPY_EVERY = 10_000
"""Steps after which a copy of the network joins the pool of opponents."""
_GAMMA = 0.99


def player(network: torch.nn.Module) -> Choose:
    """Return a player that takes a network's most valuable action."""

    def choose(seen: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network(torch.from_numpy(seen)).numpy(), masks)

    return choose


def train(
    observation: str,
    seed: int,
    steps: int,
    after_update: AfterUpdate,
    *,
    hidden: int = 256,
    falling_rate: bool = False,
) -> Choose:
    """Train a network; see ``cleanrl_vector.train``.

    With ``falling_rate`` the learning rate falls to a hundredth, because rewards are noisy: this
    brought ten points against greedy, in a run each. The benchmark keeps the rate constant.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    pool = OpponentPool("greedy", seed=seed)
    env = BaoTorchEnv(GAMES, opponent=pool, observation=observation, seed=seed)
    network = torch.nn.Sequential(
        torch.nn.Flatten(),
        MLP(inputs(observation), 64, num_cells=[hidden] * 2, activation_class=torch.nn.ReLU),
    )
    greedy = TensorDictSequential(
        TensorDictModule(network, in_keys=["observation"], out_keys=["action_value"]),
        QValueModule("categorical", action_mask_key="action_mask"),
    )
    explore = EGreedyModule(env.action_spec, 0.1, 0.1, action_mask_key="action_mask")
    loss_of = DQNLoss(greedy, action_space="categorical", delay_value=True)
    loss_of.make_value_estimator(gamma=_GAMMA)
    target = HardUpdate(loss_of, value_network_update_interval=TARGET_EVERY)
    optimizer = torch.optim.Adam(loss_of.parameters(), 1e-3)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(100_000, ndim=2),
        batch_size=BATCH,
    )
    gradients = steps // STEPS_A_GRADIENT
    last = 0.01 if falling_rate else 1.0
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, last, gradients)
    whole = math.ceil(steps / COLLECT) * COLLECT
    collector = Collector(
        env,
        TensorDictSequential(greedy, explore),
        frames_per_batch=COLLECT,
        total_frames=whole,
    )
    done = copied = 0
    for played in collector:
        done += played.numel()
        buffer.extend(played)
        for _ in range(COLLECT // STEPS_A_GRADIENT):
            loss = loss_of(buffer.sample())["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            target.step()
            rate.step()
        if done >= copied + COPY_EVERY:
            pool.add(PolicyAgent(player(copy.deepcopy(network)), observation))
            copied = done
        pool.draw()
        after_update(done, player(network))
    collector.shutdown()
    return player(network)


def main() -> None:
    """Train for some minutes, then play."""
    start = time.process_time()
    choose = train(OBSERVATION, SEED, STEPS, progress_bar(STEPS), falling_rate=True)
    seconds = time.process_time() - start
    report("torchrl", "DQN, self-play, batches through `bao_env.adapters.torchrl`", seconds, choose)


if __name__ == "__main__":
    main()
