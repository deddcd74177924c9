"""Compile players and training for ``bao warm-up`` (:mod:`bao_env.warm_up`)."""

from __future__ import annotations

from itertools import product

import numpy as np

from bao_agents.registry import load
from bao_env.engine.batch import Engine
from bao_training.train import load_config, make_trainer

PLAYERS = (
    "alphabeta:2",
    "alphabeta:100n",
    "mcts:4",
    "mcts:4:greedy",
    "zanzibar",
    "search:zanzibar:4",
    "guided:2",
    "guided:100n",
    "guided:zanzibar:100n",
    "solver:100n",
)
"""One player for each way to choose an action."""


def players() -> None:
    """Compile the players."""
    opening, mask = Engine().opening()
    for name in PLAYERS:
        load(name).act(opening[None], np.array([mask]))


def training() -> None:
    """Compile an update of each training method."""
    small = ["envs=64", "rollout=8", "minibatch=512", "hidden=[8]", "workers=1", "device='cpu'"]
    for method, kind in (
        ("td", "afterstate+replies"),
        *product(("ppo", "alphazero"), ("position", "afterstate")),
    ):
        settings = [*small, f"method={method}", f"network_kind={kind}", "alphazero.simulations=4"]
        make_trainer(*load_config(None, settings)).train_update()
