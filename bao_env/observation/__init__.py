"""What a player sees, as numbers: :mod:`~bao_env.observation.board` is the board itself,
:mod:`~bao_env.observation.captures` what the player to move could capture on it.
"""

from bao_env.observation.board import (
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    SEED_UNIT,
    observe,
)

__all__ = ["OBSERVATION_SIZE", "OBSERVATION_VERSION", "SEED_UNIT", "observe"]
