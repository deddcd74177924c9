"""The policy and value network: a multi-layer perceptron, read in one of two ways.

``board``
    The network sees the board as it is, and the capture_features of the player to move (the most
    seeds he can capture at once), and gives a logit for each of the 64 actions and one expected
    result. One row of input a position: the fastest.

``moves``
    The network sees the board after each legal action, and the capture_features of the player who
    is to move there, mostly the opponent's best reply, and judges each: a logit and an
    expected result for every *legal action*. About four rows a position.

All go in and out as :class:`Inputs` and flat arrays over legal actions, so that sampling, loss
and training are the same for all. What a row holds, see :mod:`agents.nets.features`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from agents.nets.features import FEATURES, expand
from bao_env.engine.action import NUM_ACTIONS

KINDS: Final = ("board", "moves")

TRUST: Final = 6.0
"""How much an legal action's expected result weighs in its logit."""


@dataclass(frozen=True)
class NetworkConfig:
    """Shape of the network.

    Raises:
        ValueError: an unknown kind, or not one to 64 layers of 1 to 65,536 units each.
    """

    kind: str = "board"
    """``board`` or ``moves``: what the network sees."""
    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r}: expected one of {', '.join(KINDS)}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if not 1 <= len(self.hidden) <= 64 or not all(
            isinstance(units, int) and 1 <= units <= 65536 for units in self.hidden
        ):
            raise ValueError(f"hidden={self.hidden}: expected 1 to 64 layers of 1 to 65536 units")

    @property
    def per_action(self) -> bool:
        """Whether each legal action, rather than each position, is a row of input."""
        return self.kind == "moves"


class Inputs(NamedTuple):
    """A batch for the network; see :func:`agents.nets.legal_actions.encode`."""

    encodings: Tensor
    """uint8[R, ENCODING_SIZE] on the CPU, the boards of B positions or, for ``moves``, after K
    legal actions."""
    legal_actions: Tensor
    """int64[K], position * 64 + action of each legal action; ``moves`` does not read it."""


class PolicyNetwork(nn.Module):
    """Inputs to logits of the legal actions and expected results of the rows.

    Args:
        config: its kind and shape.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = FEATURES
        layers: list[nn.Module] = []
        for units in config.hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(width, (1 if config.per_action else NUM_ACTIONS) + 1)
        nn.init.orthogonal_(self.head.weight, 0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits float[K] of the legal actions and expected results float[R] of the rows.

        An expected result lies between -1 and 1 and is that of the player who is to choose.
        """
        out = self.head_outputs(inputs.encodings)
        values = out[:, -1].tanh()
        if self.config.per_action:
            return out[:, 0] + TRUST * values.detach(), values
        return out[:, :-1].reshape(-1)[inputs.legal_actions], values

    def head_outputs(self, rows: Tensor) -> Tensor:
        """What the head says of rows, float32[R, 65 or 2]: logits, and a value before its tanh."""
        weight = self.head.weight
        features = torch.from_numpy(expand(rows.numpy())).view(torch.bfloat16)
        features = features.to(weight.device, weight.dtype)
        return self.head(self.trunk(features)).float()
