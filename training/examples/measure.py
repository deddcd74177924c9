"""What every example ends with: 200 games against random, and a row of the README's table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from agents.arena.elo import Score
from agents.arena.match import play_match
from bao_env.bots import RandomAgent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import unpack_masks
from bao_env.observation.board import OBSERVATION_SIZE, observe

PAIRS: Final = 100
SEED: Final = 1
"""Seed of the openings and of the random player; the examples train with it, too."""

Choose = Callable[[npt.NDArray[np.float32], npt.NDArray[np.bool_]], npt.NDArray[Any]]
"""From observations float32[B, 52] and masks bool[B, 64] to actions, integers [B]."""


class ObservationAgent:
    """A function of what a player sees, as an :class:`~bao_env.bots.Agent`.

    Args:
        choose: asked for all positions at once.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        observations = np.empty((len(masks), OBSERVATION_SIZE), np.float32)
        observe(positions, observations)
        legal = np.empty((len(masks), NUM_ACTIONS), np.bool_)
        unpack_masks(masks, legal)
        return np.asarray(self._choose(observations, legal)).astype(np.int64)


def masked_argmax(scores: npt.NDArray[Any], legal: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The best-scored legal action of each row, int64[B], of ``scores`` and ``legal`` [B, 64]."""
    return np.where(legal, scores, -np.inf).argmax(axis=1)


def score_against_random(choose: Choose) -> Score:
    """The score of 200 games against random: 100 balanced openings, each from both seats."""
    return play_match(ObservationAgent(choose), RandomAgent(SEED), pairs=PAIRS, seed=SEED).score


def table_row(library: str, route: str, seconds: float, score: Score) -> str:
    """A row of the README's table; ``library`` is the name of an installed distribution."""
    rate = f"{score.rate:.1%} ({score.low:.1%} to {score.high:.1%})".replace("%", " %")
    return f"| {library} | {version(library)} | {route} | {seconds:.0f} | {rate} |"


def report(library: str, route: str, seconds: float, choose: Choose) -> None:
    """Measure a trained player and print its row; exit with status 1 unless it beats random.

    It does if the lower end of the 95 % interval of its win rate is above a half.

    Args:
        library: name of its distribution.
        route: how the library met the game, in a few words.
        seconds: that the training took.
        choose: the player.
    """
    score = score_against_random(choose)
    print(table_row(library, route, seconds, score), flush=True)
    if score.low <= 0.5:
        sys.exit(f"{library} did not clearly beat random: {score.rate:.1%} of {score.games} games")
