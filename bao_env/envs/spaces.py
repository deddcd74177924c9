"""The spaces of the environments' observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import NUM_SEEDS
from bao_env.observation.board import SEED_UNIT
from bao_env.observation.kinds import Observer


def board_space(observer: Observer) -> spaces.Space[Any]:
    """The space of the observations that ``observer`` writes, without a mask."""
    high = NUM_SEEDS if observer.dtype == np.uint8 else NUM_SEEDS / SEED_UNIT
    boxes: dict[str, spaces.Space[Any]] = {
        key: spaces.Box(0, high, shape, observer.dtype.type)
        for key, shape in observer.kind.shapes.items()
    }
    return next(iter(boxes.values())) if len(boxes) == 1 else spaces.Dict(boxes)


def masked_space(observer: Observer) -> spaces.Dict:
    """The same with a mask of legal actions, int8[64]."""
    return spaces.Dict(
        {
            "observation": board_space(observer),
            "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )
