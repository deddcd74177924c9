# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "torch>=2.6,<2.14", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train with masked PPO in one file, in CleanRL's style, in self-play on the vector environment.

    uv run training/examples/cleanrl_vector.py
    bao rate cleanrl_vector:player --path training/examples

The first command saves the model beside this file, the second plays with it.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributions import Categorical

from bao_env import NUM_ACTIONS, OpponentPool, PolicyAgent, Ruleset
from measure import INPUTS, OBSERVATION, SEED, Log, best_player, report, updates

STEPS, GAMES, ROLLOUT = 819_200, 128, 64
"""Total steps, games at once, and steps in each game between two updates."""
EPOCHS, MINIBATCH = 4, 1024
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
COPY_EVERY = 40_960
"""Steps after which a copy of the network joins the pool of opponents."""
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT = 1e-3, 0.01, 0.5
FILE = Path(__file__).with_suffix(".safetensors")


class ActorCritic(nn.Module):
    """Two small networks, one for logits and one for a value."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = self._layers(NUM_ACTIONS)
        self.critic = self._layers(1)

    @staticmethod
    def _layers(outputs: int) -> nn.Sequential:
        return nn.Sequential(
            *(nn.Linear(INPUTS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
            nn.Linear(128, outputs),
        )

    def policy(self, boards: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """Return the distribution over legal actions, for boards [B, INPUTS] and bool[B, 64]."""
        logits = self.actor(boards).masked_fill(~masks, torch.finfo(torch.float32).min)
        return Categorical(logits=logits, validate_args=False)

    def value(self, boards: torch.Tensor) -> torch.Tensor:
        """Return the expected return, [B], of boards [B, INPUTS]."""
        return self.critic(boards).squeeze(-1)


def past_self(network: ActorCritic) -> PolicyAgent:
    """Return an opponent that draws its actions from a copy of the network."""
    frozen = copy.deepcopy(network)

    def draw(boards: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return frozen.policy(*map(torch.from_numpy, (boards, masks))).sample().numpy()

    return PolicyAgent(draw, OBSERVATION)


def learn(
    network: ActorCritic, optimizer: torch.optim.Optimizer, steps: list[torch.Tensor]
) -> float:
    """Update a network from some steps, and return the last loss.

    Args:
        network: the network.
        optimizer: its optimizer.
        steps: six tensors [N, ...]: boards, masks, actions, their log probabilities, advantages and
            returns.
    """
    for _ in range(EPOCHS):
        for index in torch.randperm(len(steps[0])).split(MINIBATCH):
            board, mask, action, old_log_prob, gain, returns = (x[index] for x in steps)
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy = network.policy(board, mask)
            ratio = (policy.log_prob(action) - old_log_prob).exp()
            limited = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
            policy_loss = -torch.min(ratio * gain, limited * gain).mean()
            value_loss = (network.value(board) - returns).square().mean()
            entropy = policy.entropy().mean()
            loss = policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()
    return loss.item()


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Train a network against a pool of its past selves, and save it.

    Args:
        steps: the total number of actions to play, rounded up to whole updates.
        seed: the seed of everything.
        log: gets the loss after each update.
    """
    torch.set_num_threads(1)  # networks this small gain nothing from more
    torch.manual_seed(seed)
    network = ActorCritic()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    pool, copied = OpponentPool("greedy", seed=seed), 0
    envs = gymnasium.make_vec(
        "bao_env:bao/Bao-v0",
        num_envs=GAMES,
        opponent=pool,
        observation=OBSERVATION,
        flat=True,  # the mask is in the infos
        opening_plies=(0, 8),
        autoreset_mode="SameStep",
    )
    boards = torch.zeros(ROLLOUT, GAMES, INPUTS)
    masks = torch.zeros(ROLLOUT, GAMES, NUM_ACTIONS, dtype=torch.bool)
    actions = torch.zeros(ROLLOUT, GAMES, dtype=torch.long)
    log_probs, rewards, ends, values, advantages = torch.zeros(5, ROLLOUT, GAMES).unbind()

    observations, infos = envs.reset(seed=seed)
    for reached in updates(steps, GAMES * ROLLOUT):
        pool.draw()
        with torch.no_grad():
            for t in range(ROLLOUT):
                boards[t] = torch.from_numpy(observations)
                masks[t] = torch.from_numpy(infos["action_mask"])
                policy = network.policy(boards[t], masks[t])
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t])
                values[t] = network.value(boards[t])
                observations, reward, terminated, truncated, infos = envs.step(actions[t].numpy())
                rewards[t] = torch.from_numpy(reward)
                ends[t] = torch.from_numpy(terminated | truncated)
            next_value = network.value(torch.from_numpy(observations))
            advantage = torch.zeros(GAMES)
            for t in reversed(range(ROLLOUT)):
                running = 1.0 - ends[t]
                td_error = rewards[t] + GAMMA * running * next_value - values[t]
                advantage = td_error + GAMMA * LAMBDA * running * advantage
                advantages[t], next_value = advantage, values[t]

        columns = (boards, masks, actions, log_probs, advantages, advantages + values)
        loss = learn(network, optimizer, [part.flatten(0, 1) for part in columns])
        log(reached, partial(save_file, network.state_dict()), loss=loss)
        if reached >= copied + COPY_EVERY:
            pool.add(past_self(network))
            copied = reached
    save_file(network.state_dict(), FILE)


def player(ruleset: str | Ruleset, seed: int, file: str = "") -> PolicyAgent:
    """Return the saved network as a player, which takes the most probable action."""
    network = ActorCritic()
    network.load_state_dict(load_file(file or FILE))

    def scores(boards: np.ndarray) -> np.ndarray:
        return network.actor(torch.from_numpy(boards)).detach().numpy()

    return best_player(scores, ruleset)


if __name__ == "__main__":
    report("torch", "CleanRL's pattern: PPO, self-play, `gymnasium.make_vec`", train, player)
