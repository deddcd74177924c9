"""The policy and value network: a small multi-layer perceptron on the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from bao_env.engine.action import NUM_ACTIONS
from bao_env.observation import OBSERVATION_SIZE

_PITS: Final = 32
_FLAGS_FROM: Final = 34
_STEPS: Final = (1, 2, 3)


@dataclass(frozen=True)
class NetworkConfig:
    """Shape of the network.

    Raises:
        ValueError: not one to 64 layers of 1 to 65,536 units each.
    """

    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if not 1 <= len(self.hidden) <= 64 or not all(
            isinstance(units, int) and 1 <= units <= 65536 for units in self.hidden
        ):
            raise ValueError(f"hidden={self.hidden}: expected 1 to 64 layers of 1 to 65536 units")


class PolicyNetwork(nn.Module):
    """Observations to action logits and an expected result.

    The input of the first layer is each count of seeds on two scales (one for usual
    counts, one that saturates late), for each pit whether it holds at least 1, 2 and 3
    seeds, since empty, single and playable pits differ in the rules, and the flags.

    Args:
        config: its shape.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = _FLAGS_FROM + _PITS + len(_STEPS) * _PITS + OBSERVATION_SIZE - _FLAGS_FROM
        layers: list[nn.Module] = []
        for units in config.hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(width, NUM_ACTIONS + 1)
        nn.init.orthogonal_(self.head.weight, 0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Logits float[B, 64] and expected results float[B] (-1..1, for the viewer).

        Args:
            observations: uint8[B, 52], see :mod:`bao_env.observation`. Illegal actions have
                logits too: mask them.
        """
        dtype = self.head.weight.dtype
        seeds = observations[:, :_FLAGS_FROM].to(dtype)
        pits = seeds[:, :_PITS]
        features = [seeds * 0.125, (pits * 0.25).tanh()]
        features += [(pits >= least).to(dtype) for least in _STEPS]
        features.append(observations[:, _FLAGS_FROM:].to(dtype))
        out = self.head(self.trunk(torch.cat(features, dim=1)))
        return out[:, :NUM_ACTIONS].float(), out[:, NUM_ACTIONS].float().tanh()
