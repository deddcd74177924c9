"""Share code among the examples of this folder: to train, measure and compare.

An example imports this file from its own folder, so copy both.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import flatdim
from tqdm import tqdm

import bao_env
from bao_agents.arena import play_match
from bao_env.observation import get_observer

OBSERVATION: str = "replies"
"""The observation that the networks of the examples read."""
INPUTS = flatdim(get_observer(OBSERVATION).space)
"""The number of inputs of this observation."""
PAIRS = 200
SEED = 1
"""Seed of the openings and of the random player; the examples also train with it by default."""


def best_player(
    scores: Callable[[Any], Any], ruleset: str | bao_env.Ruleset = "zanzibar"
) -> bao_env.PolicyAgent:
    """Return a player that takes the legal action with the highest score.

    Args:
        scores: returns a score of each action, [B, 64], given observations, float32[B, INPUTS].
        ruleset: the rules.
    """

    def choose(boards: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.where(masks, scores(boards), -np.inf).argmax(axis=1)

    return bao_env.PolicyAgent(choose, OBSERVATION, ruleset)


class Log:
    """Record in a folder how an example learns, for ``bao curve`` and ``bao rate``.

    ``metrics.csv`` has a row for each call. The player is saved as ``STEPS.player`` at the first
    call, and again whenever the steps have doubled.

    Args:
        folder: the folder, which is created; an empty string records nothing.

    Raises:
        ArgumentTypeError: the folder has the metrics of another run, which would be replaced.
    """

    def __init__(self, folder: str) -> None:
        if folder and Path(folder, "metrics.csv").exists():
            raise argparse.ArgumentTypeError(
                f"{folder} holds the metrics of another run: choose another folder"
            )
        self.folder, self.saved = folder, 0

    def __call__(self, steps: int, save: Callable[[Path], object], **numbers: float) -> None:
        """Add a row after a number of steps, and save the player if that is due."""
        if not self.folder:
            return
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "metrics.csv").open("a" if self.saved else "w") as file:
            if not self.saved:
                print("steps", *numbers, sep=",", file=file)
            print(steps, *numbers.values(), sep=",", file=file)
        if steps >= 2 * self.saved:
            save(folder / f"{steps}.player")
            self.saved = steps


def updates(steps: int, size: int) -> Iterator[int]:
    """Yield the total steps after each update of ``size`` steps; show the progress."""
    yield from tqdm(range(size, steps + size, size), unit="update")


def report(
    library: str,
    route: str,
    train: Callable[..., object],
    player: Callable[..., bao_env.Agent],
) -> None:
    """Train, measure the saved player and print its row; exit with status 1 unless it beats greedy.

    It beats greedy if the lower end of the 95% interval of its win rate is above a half. The
    command line's options are arguments of ``train``.

    Args:
        library: the name of the library's distribution.
        route: the algorithm and the interface, in a few words.
        train: trains and saves the player, given a :class:`Log`, and optionally ``steps`` and
            ``seed``; the row has its processor time.
        player: the function of the example that commands call as ``EXAMPLE:player``.
    """
    parser = argparse.ArgumentParser(
        description=f"Train by {route}, save the player, and measure it.",
        argument_default=argparse.SUPPRESS,  # the example has its own defaults
    )
    parser.add_argument("--steps", type=int, help="actions to learn from, rounded to whole updates")
    parser.add_argument("--seed", type=int, help=f"seed of the training (default: {SEED})")
    parser.add_argument(
        "--log", type=Log, default="", metavar="FOLDER", help="keep metrics.csv and players there"
    )
    options = vars(parser.parse_args())
    start = time.process_time()
    train(**options)
    seconds = time.process_time() - start
    trained = player(ruleset="zanzibar", seed=SEED)
    cells = [library, version(library), route, f"{seconds:.0f}"]
    for bot in (bao_env.RandomAgent(SEED), bao_env.GreedyAgent()):
        score = play_match(trained, bot, pairs=PAIRS, seed=SEED).score
        cells.append(f"{score.rate:.1%} ({score.low:.1%} to {score.high:.1%})")
    print(f"| {' | '.join(cells)} |", flush=True)
    if score.low <= 0.5:
        sys.exit(f"{library} did not clearly beat greedy in {score.games} games")
