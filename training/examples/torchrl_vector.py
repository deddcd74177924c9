# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "torchrl==0.14.1", "torch>=2.6,<2.14", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train TorchRL's PPO in self-play on batches of games, through ``GymWrapper``.

    uv run training/examples/torchrl_vector.py
    bao rate torchrl_vector:player --path training/examples

The first command saves the model beside this file, the second plays with it.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import DTypeCastTransform, GymWrapper, TransformedEnv
from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from tqdm import tqdm

from bao_env import NUM_ACTIONS, BaoVectorEnv, OpponentPool, PolicyAgent, Ruleset
from measure import INPUTS, OBSERVATION, SEED, Log, best_player, report

GAMES, FRAMES, STEPS = 128, 8192, 1_000_000
EPOCHS, MINIBATCH = 4, 1024
COPY_EVERY = 5
"""Batches after which a copy of the network joins the pool of opponents."""
FILE = Path(__file__).with_suffix(".safetensors")


def network(outputs: int) -> MLP:
    """Return a small network that reads boards [B, INPUTS]."""
    return MLP(INPUTS, outputs, num_cells=[128, 128], activation_class=torch.nn.ReLU)


def past_self(logits: torch.nn.Module) -> PolicyAgent:
    """Return a copy of the network as an opponent."""
    frozen = copy.deepcopy(logits)

    def choose(boards: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            scores = frozen(torch.from_numpy(boards))
            return MaskedCategorical(scores, mask=torch.from_numpy(masks)).sample().numpy()

    return PolicyAgent(choose, OBSERVATION)


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Train for a minute or two, and save the network."""
    torch.set_num_threads(1)  # networks this small gain nothing from more
    torch.manual_seed(seed)
    pool = OpponentPool("greedy", seed=seed)
    envs = BaoVectorEnv(GAMES, opponent=pool, observation=OBSERVATION, autoreset_mode="Disabled")
    env = TransformedEnv(
        GymWrapper(envs, categorical_action_encoding=True),
        # For MaskedCategorical; a policy that samples from the specs needs ActionMask() instead.
        DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]),
    )
    env.set_seed(seed)
    logits = network(NUM_ACTIONS)
    actor = ProbabilisticActor(
        TensorDictModule(logits, in_keys=["observation"], out_keys=["logits"]),
        spec=env.action_spec,
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    value = ValueOperator(network(1), in_keys=["observation"])
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=value)
    loss_of = ClipPPOLoss(actor, value, entropy_coeff=0.01, normalize_advantage=True)
    optimizer = torch.optim.Adam(loss_of.parameters(), 1e-3)
    collector = Collector(
        env,
        actor,
        frames_per_batch=FRAMES,
        total_frames=steps,
        auto_register_policy_transforms=False,  # those are for policies with a memory
    )

    with tqdm(total=steps, unit="step", unit_scale=True) as bar:
        for number, batch in enumerate(collector, 1):
            with torch.no_grad():
                advantages(batch)
            played = batch.reshape(-1)
            for _ in range(EPOCHS):
                for index in torch.randperm(len(played)).split(MINIBATCH):
                    losses = loss_of(played[index])
                    loss = sum(losses[k] for k in ("loss_objective", "loss_critic", "loss_entropy"))
                    optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                    optimizer.step()
            if number % COPY_EVERY == 0:
                pool.add(past_self(logits))
            pool.draw()
            bar.update(batch.numel())
            log(number * FRAMES, partial(save_file, logits.state_dict()), loss=loss.item())
    collector.shutdown()
    save_file(logits.state_dict(), FILE)


def player(ruleset: str | Ruleset, seed: int, file: str = "") -> PolicyAgent:
    """Return the saved network as a player."""
    logits = network(NUM_ACTIONS)
    logits.load_state_dict(load_file(file or FILE))
    return best_player(lambda boards: logits(torch.from_numpy(boards)).detach().numpy(), ruleset)


if __name__ == "__main__":
    report("torchrl", "PPO, self-play, `GymWrapper`", train, player)
