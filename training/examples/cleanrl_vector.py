# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "torch>=2.6,<2.14", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train with masked PPO in one file, in CleanRL's style, in self-play on the vector environment.

    uv run training/examples/cleanrl_vector.py
    bao rate cleanrl_vector:player --path training/examples

It saves its state now and then. If you stop it, the same command continues, with new games. To
train for longer, increase ``STEPS``; to begin again, delete the file.
"""

from __future__ import annotations

import copy
from pathlib import Path

import gymnasium
import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.distributions import Categorical
from tqdm import tqdm

from bao_agents.support.files import write_atomically
from bao_env import NUM_ACTIONS, OpponentPool, PolicyAgent, Ruleset
from measure import INPUTS, OBSERVATION, SEED, best_player, report

STEPS, GAMES, ROLLOUT = 819_200, 128, 64
"""Total steps, games at once, and steps in each game between two updates."""
EPOCHS, MINIBATCH = 4, 1024
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
COPY_EVERY = 40_960
"""Steps after which a copy of the network joins the pool of opponents, and all is saved."""
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT = 1e-3, 0.01, 0.5
FILE = Path(__file__).with_suffix(".safetensors")


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

    def policy(self, boards: torch.Tensor, masks: torch.Tensor) -> Categorical:
        """Return the distribution over legal actions, for boards [B, INPUTS] and bool[B, 64]."""
        logits = self.actor(boards).masked_fill(~masks, torch.finfo(torch.float32).min)
        return Categorical(logits=logits, validate_args=False)

    def value(self, boards: torch.Tensor) -> torch.Tensor:
        """Return the expected return, [B], of boards [B, INPUTS]."""
        return self.critic(boards).squeeze(-1)


class PastSelf(PolicyAgent):
    """An opponent that draws its actions from a copy of a network."""

    def __init__(self, network: ActorCritic) -> None:
        super().__init__(self._draw, OBSERVATION)
        self.network = copy.deepcopy(network)

    def _draw(self, boards: np.ndarray, masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            policy = self.network.policy(torch.from_numpy(boards), torch.from_numpy(masks))
            return policy.sample().numpy()


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


def save(
    network: ActorCritic, optimizer: torch.optim.Optimizer, pool: OpponentPool, steps: int
) -> None:
    """Replace ``FILE``; an interrupt leaves the old one or the new one."""
    tensors = {"steps": torch.tensor(steps), "generator": torch.get_rng_state()}
    parts = {"network": network.state_dict()}
    for number, state in optimizer.state_dict()["state"].items():
        parts[f"optimizer.{number}"] = state
    for number, past in enumerate(pool.members[1:]):
        assert isinstance(past, PastSelf)
        parts[f"pool.{number}"] = past.network.state_dict()
    for name, part in parts.items():
        tensors |= {f"{name}.{key}": tensor for key, tensor in part.items()}
    write_atomically(FILE, safetensors.torch.save(tensors))


def part_of(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with ``name.``, without it."""
    start = name + "."
    return {key.removeprefix(start): t for key, t in tensors.items() if key.startswith(start)}


def load(network: ActorCritic, optimizer: torch.optim.Optimizer, pool: OpponentPool) -> int:
    """Read what :func:`save` wrote, and return the number of steps."""
    tensors = safetensors.torch.load_file(FILE)
    network.load_state_dict(part_of(tensors, "network"))
    numbers = range(len(list(network.parameters())))
    state = {number: part_of(tensors, f"optimizer.{number}") for number in numbers}
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
    while past := part_of(tensors, f"pool.{len(pool.members) - 1}"):
        copied = ActorCritic()
        copied.load_state_dict(past)
        pool.add(PastSelf(copied))
    torch.set_rng_state(tensors["generator"])
    return int(tensors["steps"])


def train(steps: int = STEPS, games: int = GAMES, rollout: int = ROLLOUT) -> None:
    """Train a network against a pool of its past selves, and save it.

    Args:
        steps: the actions that it plays in all, rounded up to whole updates.
        games: games at once.
        rollout: actions in each game between two updates.
    """
    torch.set_num_threads(1)  # so small networks gain nothing from more
    torch.manual_seed(SEED)
    network = ActorCritic()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE, eps=1e-5)
    pool = OpponentPool("greedy", seed=SEED)
    start = copied = load(network, optimizer, pool) if FILE.exists() else 0
    envs = gymnasium.make_vec(
        "bao_env:bao/Bao-v0",
        num_envs=games,
        opponent=pool,
        observation=OBSERVATION,
        flat=True,  # the mask is in the infos
        opening_plies=(0, 8),
        autoreset_mode="SameStep",
    )
    boards = torch.zeros(rollout, games, INPUTS)
    masks = torch.zeros(rollout, games, NUM_ACTIONS, dtype=torch.bool)
    taken = torch.zeros(rollout, games, dtype=torch.long)
    log_probs, rewards, ends, values, advantages = torch.zeros(5, rollout, games).unbind()

    seen, infos = envs.reset(seed=SEED + start)  # a continued run plays other games
    played = games * rollout
    for done in tqdm(range(start + played, steps + played, played), unit="update"):
        pool.draw()
        with torch.no_grad():
            for t in range(rollout):
                boards[t] = torch.from_numpy(seen)
                masks[t] = torch.from_numpy(infos["action_mask"])
                policy = network.policy(boards[t], masks[t])
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

        parts = (boards, masks, taken, log_probs, advantages, advantages + values)
        learn(network, optimizer, [part.flatten(0, 1) for part in parts])
        copying = done >= copied + COPY_EVERY
        if copying:
            pool.add(PastSelf(network))
            copied = done
        if copying or done >= steps:
            save(network, optimizer, pool, done)


def player(ruleset: str | Ruleset, seed: int) -> PolicyAgent:
    """Return the saved network as a player, which takes the most probable action."""
    network = ActorCritic()
    network.load_state_dict(part_of(safetensors.torch.load_file(FILE), "network"))

    def scores(boards: np.ndarray) -> np.ndarray:
        return network.actor(torch.from_numpy(boards)).detach().numpy()

    return best_player(scores, ruleset)


if __name__ == "__main__":
    report("torch", "CleanRL's pattern: PPO, self-play, `gymnasium.make_vec`", train, player)
