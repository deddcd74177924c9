"""What a player sees, as numbers. :mod:`~bao_env.observation.kinds` lists what there is."""

from bao_env.observation.board import (
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    SEED_UNIT,
    observe,
)
from bao_env.observation.kinds import OBSERVATIONS, ObservationName, Observer

__all__ = [
    "OBSERVATIONS",
    "OBSERVATION_SIZE",
    "OBSERVATION_VERSION",
    "SEED_UNIT",
    "ObservationName",
    "Observer",
    "observe",
]
