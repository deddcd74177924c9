# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "torch>=2.6,<2.14", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train with TD(lambda) on afterstates in a page of plain torch, as in TD-Gammon: try this first.

    uv run training/examples/td.py
    bao rate td:player --path training/examples

The first command saves the model beside this file, the second plays with it.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import bao_env
from bao_env.envs.afterstates import Afterstates, list_afterstates
from bao_env.observation import get_observer
from measure import INPUTS, OBSERVATION, SEED, Log, report, updates

STEPS, ROLLOUT, GAMES, MINIBATCH = 983_040, 32, 512, 1024
LAMBDA, NOISE, EXPLORATION, LEARNING_RATE = 0.7, 0.05, 0.05, 1e-3
FILE = Path(__file__).with_suffix(".safetensors")


def make_network() -> nn.Module:
    """Return a small network that values boards [B, INPUTS] for the player who moves next."""
    return nn.Sequential(
        *(nn.Linear(INPUTS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
        *(nn.Linear(128, 1), nn.Tanh()),
    )


def action_values(network: nn.Module, after: Afterstates) -> npt.NDArray[np.float32]:
    """Return the value of each legal action, float32[K], for the player who chooses it."""
    with torch.inference_mode():
        values = network(torch.from_numpy(after.observations)).squeeze(-1).numpy()
    # The network values positions for the player who moves next.
    return np.where(after.results != 0, after.results, after.signs * values).astype(np.float32)


class ValuePlayer:
    """A player that takes the action with the highest value."""

    def __init__(self, network: nn.Module, ruleset: str | bao_env.Ruleset) -> None:
        self.network = network
        self.engine = bao_env.Engine(ruleset)
        self.observer = get_observer(OBSERVATION, ruleset)

    def act(
        self, positions: npt.NDArray[np.uint64], legal: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.Agent.act`."""
        actions, running = np.zeros(len(legal), np.int64), legal != 0
        after = list_afterstates(self.engine, self.observer, positions[running], legal[running])
        actions[running] = after.actions[best_of(action_values(self.network, after), after.indptr)]
        return actions


def best_of(
    values: npt.NDArray[np.float32], indptr: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the index of each game's highest value in ``values``."""
    return np.array([low + values[low:high].argmax() for low, high in pairwise(indptr)], np.int64)


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Learn by self-play, and save the network."""
    torch.set_num_threads(1)  # a network this small gains nothing from more
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    envs = bao_env.BaoVectorEnv(
        GAMES,
        opponent=None,
        observation=OBSERVATION,
        opening_plies=(0, 20),
        autoreset_mode="SameStep",
    )
    envs.reset(seed=seed)
    for reached in updates(steps, GAMES * ROLLOUT):
        boards = np.empty((ROLLOUT, GAMES, INPUTS), np.float32)
        rewards, signs, best_values = np.empty((3, ROLLOUT + 1, GAMES), np.float32)
        ends = np.empty((ROLLOUT, GAMES), np.bool_)
        for t in range(ROLLOUT + 1):
            after = envs.afterstates()
            values = action_values(network, after)
            best_values[t] = values[best_of(values, after.indptr)]
            if t == ROLLOUT:
                break
            noise = NOISE * rng.gumbel(size=len(values)).astype(np.float32)
            noise[rng.random(len(values)) < EXPLORATION] += 1.0  # sometimes explore
            choices = best_of(values + noise, after.indptr)
            boards[t], signs[t] = after.observations[choices], after.signs[choices]
            _, rewards[t], terminated, truncated, _ = envs.step(after.actions[choices])
            ends[t] = terminated | truncated
        returns = np.empty((ROLLOUT, GAMES), np.float32)  # for the player who acts
        next_return = best_values[ROLLOUT]
        for t in reversed(range(ROLLOUT)):
            returns[t] = np.where(ends[t], rewards[t], signs[t] * next_return)
            next_return = (1 - LAMBDA) * best_values[t] + LAMBDA * returns[t]
        inputs = torch.from_numpy(boards[~ends])
        targets = torch.from_numpy((signs[:-1] * returns)[~ends])  # for the player who moves next
        for index in torch.randperm(len(inputs)).split(MINIBATCH):
            loss = (network(inputs[index]).squeeze(-1) - targets[index]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        log(reached, partial(save_file, network.state_dict()), loss=loss.item())
    save_file(network.state_dict(), FILE)


def player(ruleset: str | bao_env.Ruleset, seed: int, file: str = "") -> ValuePlayer:
    """Return the saved network as a player."""
    network = make_network()
    network.load_state_dict(load_file(file or FILE))
    return ValuePlayer(network, ruleset)


if __name__ == "__main__":
    report("torch", "TD(lambda), `envs.afterstates()`", train, player)
