"""Compile beforehand, and keep on disk, what the environments need: ``python -m bao_env.warm_up``.

With ``--agents``, also what the players and the training of a checkout need. A second time it finds
everything compiled and takes a few seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import product
from typing import Final, get_args

import numpy as np

from bao_env.board import Board
from bao_env.bots import BotName, get_agent
from bao_env.engine.batch import Engine, random_states
from bao_env.envs.aec import raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.observation.kinds import ObservationName

PLAYERS: Final = (
    "alphabeta:2",
    "alphabeta:100n",
    "mcts:4",
    "mcts:4:greedy",
    "zanzibar",
    "search:zanzibar:4",
    "guided:zanzibar:2",
    "guided:zanzibar:100n",
)
"""One for each way of the package ``agents`` to choose an action."""


def single_games() -> None:
    """PettingZoo's environment, Gymnasium's against each bot, and :class:`Board`."""
    for kind in get_args(ObservationName):
        game = raw_env(observation=kind, opening_plies=2)
        game.reset(seed=1)
        mask = game.observe(game.agent_selection)["action_mask"]
        game.step(int(mask.argmax()))
    for bot in get_args(BotName):
        env = BaoEnv(opponent=bot)
        _, info = env.reset(seed=1)
        env.step(int(info["action_mask"].argmax()))
    board = Board()
    board.trace(board.legal_moves[0])
    board.push(board.legal_moves[0])


def many_games() -> None:
    """The vector environment with each kind of observation, and the engine below it."""
    kinds, dtypes = get_args(ObservationName), (np.float32, np.uint8)
    for kind, dtype, bot in product(kinds, dtypes, (None, "greedy")):
        envs = BaoVectorEnv(
            2, opponent=bot, observation=kind, observation_dtype=dtype, opening_plies=2
        )
        envs.reset(seed=1)
        envs.afterstates()
        envs.step(envs.sample_legal_actions())
    engine = Engine()
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (2, 1)), np.full(2, mask)
    engine.play_random(positions, masks, np.full(2, -1, np.int8), random_states(2, 1), 2)


def players() -> None:
    """The players of the package ``agents``."""
    opening, mask = Engine().opening()
    for name in PLAYERS:
        get_agent(name, "zanzibar", 0).act(opening[None], np.array([mask]))


def training() -> None:
    """An update of each training method."""
    train = import_module("training.train")
    small = ["envs=64", "rollout=8", "minibatch=512", "hidden=[8]", "workers=1", "device='cpu'"]
    for method, kind in product(("ppo", "alphazero"), ("board", "moves")):
        settings = [*small, f"method={method}", f"network_kind={kind}", "alphazero.simulations=4"]
        train.make_trainer(*train.load_config(None, settings)).train_update()


ENVIRONMENTS: Final[Mapping[str, Callable[[], None]]] = {
    "single games": single_games,
    "many games": many_games,
}
AGENTS: Final[Mapping[str, Callable[[], None]]] = {"players": players, "training": training}


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m bao_env.warm_up``."""
    parser = argparse.ArgumentParser(
        prog="python -m bao_env.warm_up",
        description="Compile what the environments need, and keep it on disk.",
    )
    parser.add_argument(
        "--agents",
        action="store_true",
        help="also what players and training need (in a checkout, with the extra train)",
    )
    args = parser.parse_args(argv)
    os.environ["BAO_ENV_QUIET"] = "1"  # this says more
    for name, compile_all in {**ENVIRONMENTS, **(AGENTS if args.agents else {})}.items():
        print(f"{name}: ", end="", flush=True)
        begun = time.perf_counter()
        try:
            compile_all()
        except ImportError as error:
            print(f"\nerror: {error}: pip install -e '.[train]' in a checkout", file=sys.stderr)
            return 1
        print(f"{time.perf_counter() - begun:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
