"""The spaces of the environments' observations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import NUM_SEEDS
from bao_env.observation.board import OBSERVATION_SIZE, SEED_UNIT


def board_space(dtype: npt.DTypeLike = np.float32) -> spaces.Box:
    """The space of an observation, see :mod:`bao_env.observation`: float32 or uint8 [52].

    Raises:
        ValueError: another dtype.
    """
    kind = np.dtype(dtype)
    if kind == np.uint8:
        return spaces.Box(0, NUM_SEEDS, (OBSERVATION_SIZE,), np.uint8)
    if kind == np.float32:
        return spaces.Box(0.0, NUM_SEEDS / SEED_UNIT, (OBSERVATION_SIZE,), np.float32)
    raise ValueError(f"observation dtype {kind}: expected float32 or uint8")


def masked_space(dtype: npt.DTypeLike = np.float32) -> spaces.Dict:
    """The space of an observation with its mask of legal actions, int8[64].

    Raises:
        ValueError: a dtype that :func:`board_space` refuses.
    """
    return spaces.Dict(
        {
            "observation": board_space(dtype),
            "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )
