"""Turn what a player sees into numbers; :mod:`~bao_env.observation.observer` lists the kinds."""

from bao_env.observation.board import (
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    SEED_UNIT,
    observe,
)
from bao_env.observation.observer import OBSERVATIONS, Observer, get_observer, make_observations

__all__ = [
    "OBSERVATIONS",
    "OBSERVATION_SIZE",
    "OBSERVATION_VERSION",
    "SEED_UNIT",
    "Observer",
    "get_observer",
    "make_observations",
    "observe",
]
