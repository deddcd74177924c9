"""Define the policy and value network: hidden layers with a ReLU after each, and a linear head.

It reads the board after each legal action of a position (:mod:`bao_agents.nets.encoding`), and
returns a logit and a value for each (:mod:`bao_agents.nets.head`). It does not look further ahead;
a search does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from bao_agents.nets.features import FEATURES, expand
from bao_agents.nets.head import OUTPUTS, logits_and_values
from bao_agents.nets.layers import shapes_of_layers
from bao_agents.support.array_types import Float32Array


class PolicyNetwork(nn.Module):
    """A network that maps encodings to logits and values.

    Args:
        hidden: the units of each hidden layer.

    Raises:
        ValueError: there are not one to 64 layers of 1 to 65,536 units each.
    """

    def __init__(self, hidden: Sequence[int]) -> None:
        shapes_of_layers(hidden)
        super().__init__()
        self.hidden: tuple[int, ...] = tuple(hidden)
        layers: list[nn.Module] = []
        for inputs, units in zip((FEATURES, *hidden), hidden, strict=False):
            layers += [nn.Linear(inputs, units, dtype=torch.float32), nn.ReLU()]
        self.trunk: nn.Sequential = nn.Sequential(*layers)
        self.head: nn.Linear = nn.Linear(hidden[-1], OUTPUTS, dtype=torch.float32)
        nn.init.orthogonal_(self.head.weight, 0.01)
        nn.init.zeros_(self.head.bias)

    def arrays(self) -> dict[str, Float32Array]:
        """Return the network's arrays by name: for each layer its weights, then its biases.

        They are float32. If the network is on the CPU, they may share its memory.
        """
        return {name: tensor.float().cpu().numpy() for name, tensor in self.state_dict().items()}

    def forward(self, encodings: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits float[R] and values float[R] of R actions.

        A value is the expected result, -1 to 1, for the player who chooses the action.

        Args:
            encodings: uint8[R, ENCODING_SIZE] on the CPU.
        """
        return logits_and_values(self.head_outputs(encodings))

    def head_outputs(self, encodings: Tensor) -> Tensor:
        """Return the outputs of the head, float32[R, 2]; see :meth:`forward`."""
        weight = self.head.weight
        features = torch.from_numpy(expand(encodings.numpy())).view(torch.bfloat16)
        with torch.autocast(weight.device.type, enabled=False):  # whatever the caller's default is
            outputs: Tensor = self.head(self.trunk(features.to(weight.device, weight.dtype)))
            return outputs.float()


def check_finite(*outputs: npt.NDArray[Any]) -> None:
    """Validate the outputs of a network.

    Raises:
        ValueError: a number is infinite or not a number.
    """
    if not all(np.isfinite(output).all() for output in outputs):
        raise ValueError(
            "the network's outputs are not finite: some weights are too large or NaN; use another "
            "checkpoint"
        )
