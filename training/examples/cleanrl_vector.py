"""Train with masked PPO in one file, in CleanRL's style, in self-play on the vector environment.

python training/examples/cleanrl_vector.py
"""

from __future__ import annotations

import copy
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from tqdm import tqdm

from bao_env import NUM_ACTIONS, OpponentPool, PolicyAgent
from bao_env.self_play import Choose
from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

STEPS, GAMES, ROLLOUT = 819_200, 128, 64
"""Total steps, games at once, and steps in each game between two updates."""
EPOCHS, MINIBATCH = 4, 1024
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
COPY_EVERY = 40_960
"""Steps after which a copy of the network joins the pool of opponents."""
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT = 1e-3, 0.01, 0.5


class ActorCritic(nn.Module):
    """Two small networks: logits and a value."""

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

    def policy(self, boards: torch.Tensor, legal: torch.Tensor) -> Categorical:
        """Return the distribution over legal actions, for boards [B, INPUTS] and bool[B, 64]."""
        logits = self.actor(boards).masked_fill(~legal, torch.finfo(torch.float32).min)
        return Categorical(logits=logits, validate_args=False)

    def value(self, boards: torch.Tensor) -> torch.Tensor:
        """Return the expected return, [B], of boards [B, INPUTS]."""
        return self.critic(boards).squeeze(-1)


def player(network: ActorCritic) -> PolicyAgent:
    """Return a copy of the network as an opponent."""
    frozen = copy.deepcopy(network)

    def choose(boards: np.ndarray, legal: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            policy = frozen.policy(torch.from_numpy(boards), torch.from_numpy(legal))
            return policy.sample().numpy()

    return PolicyAgent(choose, OBSERVATION)


def learn(
    network: ActorCritic, optimizer: torch.optim.Optimizer, steps: list[torch.Tensor]
) -> None:
    """Update a network from N steps: boards, masks, actions and their log probabilities, advantages
    and returns."""
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


def train(steps: int = STEPS, games: int = GAMES, rollout: int = ROLLOUT) -> Choose:
    """Train a network against a pool of its past selves.

    Args:
        steps: the actions that it plays, rounded up to whole updates.
        games: games at once.
        rollout: actions in each game between two updates.

    Returns:
        the player, which takes the network's most probable action.
    """
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    pool = OpponentPool("greedy", seed=SEED)
    envs = gymnasium.make_vec(
        "bao_env:bao/Bao-v0",
        num_envs=games,
        opponent=pool,
        observation=OBSERVATION,
        flat=True,  # the mask is in the infos
        opening_plies=(0, 8),
        autoreset_mode="SameStep",
    )
    network = ActorCritic()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)

    def choose(boards: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return masked_argmax(network.actor(torch.from_numpy(boards)).numpy(), masks)

    boards = torch.zeros(rollout, games, INPUTS)
    legal = torch.zeros(rollout, games, NUM_ACTIONS, dtype=torch.bool)
    taken = torch.zeros(rollout, games, dtype=torch.long)
    log_probs, rewards, ends, values, advantages = torch.zeros(5, rollout, games).unbind()

    seen, infos = envs.reset(seed=SEED)
    copied = 0
    played = games * rollout
    for done in tqdm(range(played, steps + played, played), unit="update"):
        pool.draw()
        with torch.no_grad():
            for t in range(rollout):
                boards[t] = torch.from_numpy(seen)
                legal[t] = torch.from_numpy(infos["action_mask"])
                policy = network.policy(boards[t], legal[t])
                taken[t] = policy.sample()
                log_probs[t] = policy.log_prob(taken[t])
                values[t] = network.value(boards[t])
                seen, reward, over, cut, infos = envs.step(taken[t].numpy())
                rewards[t] = torch.from_numpy(reward)
                ends[t] = torch.from_numpy(over | cut)
            following = network.value(torch.from_numpy(seen))
            advantage = torch.zeros(games)
            for t in reversed(range(rollout)):
                goes_on = 1.0 - ends[t]
                error = rewards[t] + GAMMA * goes_on * following - values[t]
                advantage = error + GAMMA * LAMBDA * goes_on * advantage
                advantages[t], following = advantage, values[t]

        parts = (boards, legal, taken, log_probs, advantages, advantages + values)
        learn(network, optimizer, [part.flatten(0, 1) for part in parts])
        if done >= copied + COPY_EVERY:
            pool.add(player(network))
            copied = done
    return choose


def main() -> None:
    """Train for about a minute, then play."""
    start = time.process_time()
    choose = train()
    seconds = time.process_time() - start
    report("torch", "CleanRL's pattern: PPO, self-play, `gymnasium.make_vec`", seconds, choose)


if __name__ == "__main__":
    main()
