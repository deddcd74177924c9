"""Train, measure and compare: what the pages of this folder share.

A page finds this file in its own folder, so copy both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import flatdim

import bao_env
from bao_agents.arena import play_match
from bao_agents.arena.elo import Score
from bao_env.observation import get_observer

OBSERVATION: str = "replies"
"""The observation that the networks of the examples read."""
INPUTS = flatdim(get_observer(OBSERVATION).space)
"""The number of its inputs."""
PAIRS = 200
SEED = 1
"""Seed of the openings and of the random player; the examples also train with it."""

Scores = Callable[[npt.NDArray[np.float32]], npt.NDArray[Any]]
"""A function of observations, float32[B, INPUTS], that returns a score of each action, [B, 64]."""


def best_player(scores: Scores, ruleset: str | bao_env.Ruleset = "zanzibar") -> bao_env.PolicyAgent:
    """Return a player that takes the legal action with the highest score."""

    def choose(boards: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.where(masks, scores(boards), -np.inf).argmax(axis=1)

    return bao_env.PolicyAgent(choose, OBSERVATION, ruleset)


def score_against(bot: bao_env.Agent, player: bao_env.Agent) -> Score:
    """Play 400 games against a bot, 200 balanced openings from both seats; return the score."""
    return play_match(player, bot, pairs=PAIRS, seed=SEED).score


def table_row(library: str, route: str, seconds: float, random: Score, greedy: Score) -> str:
    """Return a row of the README's table; ``library`` is the name of an installed distribution."""
    rates = [f"{s.rate:.1%} ({s.low:.1%} to {s.high:.1%})" for s in (random, greedy)]
    cells = [library, version(library), route, f"{seconds:.0f}"]
    return " | ".join(["", *cells, *(rate.replace("%", " %") for rate in rates), ""]).strip()


def report(
    library: str,
    route: str,
    train: Callable[[], object],
    player: Callable[..., bao_env.Agent],
) -> None:
    """Train, measure the saved player and print its row; exit with status 1 unless it beats greedy.

    It beats greedy if the lower end of the 95 % interval of its win rate is above a half.

    Args:
        library: the name of the library's distribution.
        route: the algorithm and the interface, in a few words.
        train: trains and saves; the row has its processor time.
        player: the page's function that commands call as ``PAGE:player``.
    """
    start = time.process_time()
    train()
    seconds = time.process_time() - start
    trained = player(ruleset="zanzibar", seed=SEED)
    random = score_against(bao_env.RandomAgent(SEED), trained)
    greedy = score_against(bao_env.GreedyAgent(), trained)
    print(table_row(library, route, seconds, random, greedy), flush=True)
    if greedy.low <= 0.5:
        sys.exit(
            f"{library} did not clearly beat greedy: {greedy.rate:.1%} of {greedy.games} games"
        )
