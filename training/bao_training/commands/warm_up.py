"""Compile everything in advance and cache it on disk: ``bao warm-up``.

A second run takes a few seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from importlib.util import find_spec
from itertools import product

import numpy as np

from bao_agents.cli.options import Run
from bao_agents.players.registry import PLAYERS, load
from bao_env.board import Board
from bao_env.engine.batch import Engine
from bao_env.engine.cache import not_kept
from bao_env.engine.sampling import random_states
from bao_env.envs.aec import raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.observation.observer import OBSERVATIONS

_NOT_KEPT = "compiled code cannot be cached; set NUMBA_CACHE_DIR to a writable folder with space"


def single_games() -> None:
    """Compile PettingZoo's environment, Gymnasium's with each bot, and :class:`Board`."""
    for observation in OBSERVATIONS:
        game = raw_env(observation=observation, opening_plies=2)
        game.reset(seed=1)
        game.step(int(game.observe(game.agent_selection)["action_mask"].argmax()))
    for bot in ("random", "greedy"):
        env = BaoEnv(bot)
        _, info = env.reset(seed=1)
        env.step(int(info["action_mask"].argmax()))
    board = Board()
    board.trace(board.legal_moves[0])
    board.move_text(board.legal_moves[0])
    board.push(board.legal_moves[0])


def many_games() -> None:
    """Compile the vector environment with each observation, and the engine beneath it."""
    for observation, dtype, bot in product(OBSERVATIONS, (np.float32, np.uint8), (None, "greedy")):
        envs = BaoVectorEnv(2, opponent=bot, observation=observation, dtype=dtype, opening_plies=2)
        envs.reset(seed=1)
        envs.afterstates()
        envs.step(envs.sample_legal_actions())
    engine = Engine()
    engine.play_random(*engine.new_games(2), random_states(2, 1), 2)


def players() -> None:
    """Compile the players, by their examples."""
    opening, legal = Engine().opening()
    for name in PLAYERS:
        if not name.startswith(("runs/", "pipe:", "package.")):
            load(name).act(opening[None], np.array([legal]))


def training() -> None:
    """Compile an update of each training method."""
    from bao_training.train import METHODS, load_config, make_trainer  # they need torch

    small = ["envs=64", "rollout=8", "minibatch=512", "hidden=[8]", "workers=1", "device='cpu'"]
    for method in METHODS:
        settings = [*small, f"method={method}", "alphazero.simulations=4"]
        make_trainer(*load_config(None, settings)).train_update()


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao warm-up``: compile everything that is installed and cache it on disk."""
    return _run


def _run(args: argparse.Namespace) -> None:
    parts = [single_games, many_games]
    if find_spec("torch"):
        parts += [players, training]
    os.environ["BAO_ENV_QUIET"] = "1"  # the lines below replace its notices
    if not_kept:
        raise OSError(f"{_NOT_KEPT}: no cache folder is writable")
    for compile_part in parts:
        print(f"{compile_part.__name__.replace('_', ' ')}: ", end="", flush=True)
        begun = time.perf_counter()
        compile_part()
        print(f"{time.perf_counter() - begun:.1f} s", flush=True)
    if not_kept:
        raise OSError(f"{_NOT_KEPT}: a file could not be written")
