"""Compile everything in advance and cache it on disk, on all cores: ``bao warm-up``.

A second run takes a few seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import as_completed
from functools import partial
from importlib.util import find_spec
from itertools import product

import numpy as np

from bao_agents.arena.scheduler import LocalPool
from bao_agents.cli.options import Run
from bao_agents.players.registry import PLAYERS, load, parse
from bao_agents.support.cores import cores
from bao_env.board import Board
from bao_env.compiled.cache import not_kept
from bao_env.engine.batch import Engine
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


def players(*names: str) -> None:
    """Compile players, by their names."""
    opening, legal = Engine().opening()
    for name in names:
        load(name).act(opening[None], np.array([legal]))


def training(method: str) -> None:
    """Compile an update of a training method."""
    from bao_training.train import load_config, make_trainer  # it needs torch

    small = ["envs=64", "rollout=8", "minibatch=512", "hidden=[8]", "workers=1", "device='cpu'"]
    settings = [*small, f"method={method}", "search_guided.nodes=20"]
    make_trainer(*load_config(None, settings)).train_update()


def all_parts() -> dict[str, Callable[[], None]]:
    """Return what compiles everything that is installed, by what it prepares.

    They may run at the same time. The first compiles what all the others need.
    """
    parts = {"single games": single_games, "many games": many_games}
    torch = find_spec("torch") is not None
    kinds = defaultdict(list)
    for name in PLAYERS:
        if name.startswith(("runs/", "pipe:", "package.")):
            continue  # somebody else's
        if torch or not parse(name).kind.needs_torch:
            kinds[name.partition(":")[0]].append(name)
    parts |= {kind: partial(players, *names) for kind, names in kinds.items()}
    if torch:
        from bao_training.train import METHODS

        parts |= {f"training by {method}": partial(training, method) for method in METHODS}
    return parts


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao warm-up``: compile everything that is installed and cache it on disk."""
    return _run


def _compile(part: Callable[[], None]) -> tuple[float, bool]:
    """Run a part; return its seconds, and whether all that it compiled was kept."""
    begun = time.perf_counter()
    part()
    return time.perf_counter() - begun, not not_kept


def _run(args: argparse.Namespace) -> None:
    os.environ["BAO_ENV_QUIET"] = "1"  # the lines below replace its notices
    if not_kept:
        raise OSError(f"{_NOT_KEPT}: no cache folder is writable")
    first, *others = all_parts().items()
    with LocalPool(cores()) as pool:
        for parts in [first], others:
            names = {pool.submit(_compile, part): name for name, part in parts}
            for done in as_completed(names):
                seconds, kept = done.result()
                if not kept:
                    raise OSError(f"{_NOT_KEPT}: a file could not be written")
                print(f"{names[done]}: {seconds:.1f} s", flush=True)
