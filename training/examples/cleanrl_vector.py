"""Masked PPO in one file, as CleanRL writes it, in self-play on the vector environment.

python -m training.examples.cleanrl_vector
"""

from __future__ import annotations

import copy
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from tqdm import trange

from bao_env.engine.action import NUM_ACTIONS
from bao_env.self_play import OpponentPool, PolicyAgent
from training.examples.measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

ENVS, ROLLOUT, UPDATES = 128, 64, 100
EPOCHS, MINIBATCH = 4, 1024
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
COPY_EVERY = 5
"""Updates after which a copy of the network joins the pool of opponents."""
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT = 1e-3, 0.01, 0.5


class ActorCritic(nn.Module):
    """Two small networks: logits and a value."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.actor = self._layers(inputs, actions)
        self.critic = self._layers(inputs, 1)

    @staticmethod
    def _layers(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            *(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
            nn.Linear(128, outputs),
        )

    def policy(self, boards: torch.Tensor, legal: torch.Tensor) -> Categorical:
        """The distribution over legal actions, of boards [B, inputs] and masks bool[B, 64]."""
        logits = self.actor(boards).masked_fill(~legal, torch.finfo(torch.float32).min)
        return Categorical(logits=logits, validate_args=False)

    def value(self, boards: torch.Tensor) -> torch.Tensor:
        """The expected return, [B], of boards [B, inputs]."""
        return self.critic(boards).squeeze(-1)


def player(network: ActorCritic) -> PolicyAgent:
    """A copy of the network as an opponent."""
    frozen = copy.deepcopy(network)

    def choose(boards: np.ndarray, legal: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            policy = frozen.policy(torch.from_numpy(boards), torch.from_numpy(legal))
            return policy.sample().numpy()

    return PolicyAgent(choose, OBSERVATION)


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    pool = OpponentPool("greedy", seed=SEED)
    envs = gymnasium.make_vec(
        "bao_env:bao/Bao-v0", num_envs=ENVS, opponent=pool, observation=OBSERVATION
    )
    inputs, actions = INPUTS, NUM_ACTIONS
    network = ActorCritic(inputs, actions)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)

    boards = torch.zeros(ROLLOUT, ENVS, inputs)
    legal = torch.zeros(ROLLOUT, ENVS, actions, dtype=torch.bool)
    taken = torch.zeros(ROLLOUT, ENVS, dtype=torch.long)
    log_probs, rewards, ends, values, advantages = torch.zeros(5, ROLLOUT, ENVS).unbind()

    start = time.perf_counter()
    observation, _ = envs.reset(seed=SEED)
    for update in trange(1, UPDATES + 1, unit="update"):
        pool.draw()
        with torch.no_grad():
            for t in range(ROLLOUT):
                boards[t] = torch.from_numpy(observation["observation"])
                legal[t] = torch.from_numpy(observation["action_mask"])
                policy = network.policy(boards[t], legal[t])
                taken[t] = policy.sample()
                log_probs[t] = policy.log_prob(taken[t])
                values[t] = network.value(boards[t])
                observation, reward, over, cut, _ = envs.step(taken[t].numpy())
                rewards[t] = torch.from_numpy(reward)
                ends[t] = torch.from_numpy(over | cut)
            following = network.value(torch.from_numpy(observation["observation"]))
            advantage = torch.zeros(ENVS)
            for t in reversed(range(ROLLOUT)):
                goes_on = 1.0 - ends[t]
                error = rewards[t] + GAMMA * goes_on * following - values[t]
                advantage = error + GAMMA * LAMBDA * goes_on * advantage
                advantages[t], following = advantage, values[t]

        flat = [x.flatten(0, 1) for x in (boards, legal, taken, log_probs, advantages)]
        returns = (advantages + values).flatten()
        for _ in range(EPOCHS):
            for index in torch.randperm(ROLLOUT * ENVS).split(MINIBATCH):
                board, mask, action, old_log_prob, gain = (x[index] for x in flat)
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy = network.policy(board, mask)
                ratio = (policy.log_prob(action) - old_log_prob).exp()
                limited = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
                policy_loss = -torch.min(ratio * gain, limited * gain).mean()
                value_loss = (network.value(board) - returns[index]).square().mean()
                entropy = policy.entropy().mean()
                loss = policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * entropy
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()
        if update % COPY_EVERY == 0:
            pool.add(player(network))
    seconds = time.perf_counter() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network.actor(torch.from_numpy(observations)).numpy(), masks)

    report("torch", "CleanRL's pattern: PPO, self-play, `gymnasium.make_vec`", seconds, choose)


if __name__ == "__main__":
    main()
