"""Measure the player of an example: games against random and greedy, and a row of the table."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import flatdim

import bao_env
from bao_agents.arena import play_match
from bao_agents.arena.elo import Score
from bao_env.observation import get_observer
from bao_env.self_play import Choose

OBSERVATION: str = "replies"
"""The observation that the networks of the examples read."""
INPUTS = flatdim(get_observer(OBSERVATION).space)
"""The number of its inputs."""
PAIRS = 200
SEED = 1
"""Seed of the openings and of the random player; the examples also train with it."""


def masked_argmax(scores: npt.NDArray[Any], legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the legal action with the highest score in each row of ``scores`` and ``legal``, both
    [B, 64], as int64[B]."""
    return np.where(legal, scores, -np.inf).argmax(axis=1)


def score_against(bot: bao_env.Agent, player: bao_env.Agent) -> Score:
    """Play 400 games against a bot, 200 balanced openings from both seats; return the score."""
    return play_match(player, bot, pairs=PAIRS, seed=SEED).score


def table_row(library: str, route: str, seconds: float, random: Score, greedy: Score) -> str:
    """Return a row of the README's table; ``library`` is the name of an installed distribution."""
    rates = [f"{s.rate:.1%} ({s.low:.1%} to {s.high:.1%})" for s in (random, greedy)]
    cells = [library, version(library), route, f"{seconds:.0f}"]
    return " | ".join(["", *cells, *(rate.replace("%", " %") for rate in rates), ""]).strip()


def report(library: str, route: str, seconds: float, player: bao_env.Agent | Choose) -> None:
    """Measure a trained player and print its row; exit with status 1 unless it beats greedy.

    It beats greedy if the lower end of the 95 % interval of its win rate is above a half.

    Args:
        library: the name of the library's distribution.
        route: the algorithm and the interface, in a few words.
        seconds: processor time of the training.
        player: an agent, or a function of the observations :data:`OBSERVATION` and their masks.
    """
    agent = bao_env.PolicyAgent(player, OBSERVATION) if callable(player) else player
    random = score_against(bao_env.RandomAgent(SEED), agent)
    greedy = score_against(bao_env.GreedyAgent(), agent)
    print(table_row(library, route, seconds, random, greedy), flush=True)
    if greedy.low <= 0.5:
        sys.exit(
            f"{library} did not clearly beat greedy: {greedy.rate:.1%} of {greedy.games} games"
        )
