"""Compile everything that is installed, and cache it on disk: ``bao warm-up``.

A second run takes a few seconds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from bao_agents.cli.options import Run
from bao_agents.players.registry import PLAYERS, load
from bao_agents.support.progress import Progress
from bao_env.board import Board
from bao_env.compiled.cache import not_kept
from bao_env.envs.aec import raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.observation.observer import OBSERVATIONS


def games(observation: str) -> None:
    """Compile every environment with an observation."""
    for dtype in (np.float32, np.uint8):
        options: dict[str, Any] = {"observation": observation, "dtype": dtype, "opening_plies": 2}
        vectors = [BaoVectorEnv(2, opponent=bot, **options) for bot in (None, "greedy")]
        environments: list[Any] = [raw_env(**options), BaoEnv("greedy", **options), *vectors]
        for env in environments:
            env.reset(seed=1)
            env.step(env.sample_legal_actions())
        vectors[0].afterstates()


def player(name: str) -> None:
    """Compile a player, and the code that describes its move in words."""
    board = Board()
    board.trace(load(name).choose(board))


def training() -> None:
    """Compile an update of each training method."""
    from bao_training.run_settings import load_config
    from bao_training.train import METHODS, make_trainer  # it needs torch

    small = "envs=64 rollout=8 minibatch=512 hidden=[8] workers=1 device=cpu search_guided.nodes=20"
    for method in METHODS:
        make_trainer(*load_config(None, [f"method={method}", *small.split()])).train_update()


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao warm-up``: compile everything that is installed and cache it on disk."""
    return _run


def _run(args: argparse.Namespace) -> None:
    os.environ["BAO_ENV_QUIET"] = "1"  # the bar replaces its notices
    names = [name for name in PLAYERS if not name.startswith(("runs/", "pipe:", "package."))]
    tasks: list[Callable[[], object]] = [Board]  # a quick first task, to notice a read-only cache
    tasks += [partial(games, observation) for observation in OBSERVATIONS]
    tasks += [partial(player, name) for name in names]
    tasks.append(training)
    for task in Progress(tasks, desc="compiling"):
        with suppress(ModuleNotFoundError):  # skip what is not installed
            task()
        if not_kept:
            raise OSError(
                "compiled code cannot be cached; set NUMBA_CACHE_DIR to a writable folder with "
                "free space"
            )
