"""The policy and value network: a multi-layer perceptron, read in one of two ways.

``board``
    The network sees the board as it is, and the outlook of the player to move (the most
    seeds he can capture at once, see :mod:`agents.options`), and gives a logit for each of the
    64 actions and one expected result. One row of input a position: the fastest.

``moves``
    The network sees the board after each legal action, and the outlook of the player who
    is to move there, mostly the opponent's best reply, and judges each: a logit and an
    expected result for every *option*. A move of Bao can run to hundreds of seeds; with the
    engine to play it out, the network need not learn to sow. About four rows a position.

Both go in and out as :class:`Inputs` and flat arrays over options, so that sampling, loss
and training are the same for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from bao_env.engine.action import NUM_ACTIONS
from bao_env.observation import OBSERVATION_SIZE

KINDS: Final = ("board", "moves")

ROW_SIZE: Final = OBSERVATION_SIZE + 3
"""Numbers in a row of input, see :mod:`agents.options`."""
_PITS: Final = 32
_FLAGS_FROM: Final = 34
_TRUST: Final = 6.0
"""How much an option's expected result weighs in its logit."""
_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)


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
            raise ValueError(f"kind={self.kind!r}: expected {' or '.join(KINDS)}")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if not 1 <= len(self.hidden) <= 64 or not all(
            isinstance(units, int) and 1 <= units <= 65536 for units in self.hidden
        ):
            raise ValueError(f"hidden={self.hidden}: expected 1 to 64 layers of 1 to 65536 units")

    @property
    def per_option(self) -> bool:
        """Whether each option, rather than each position, is a row of input."""
        return self.kind == "moves"


class Inputs(NamedTuple):
    """A batch for the network; see :func:`agents.options.encode`."""

    rows: Tensor
    """uint8[R, 55], the boards of B positions (``board``) or after K options (``moves``)."""
    options: Tensor
    """int64[K], position * 64 + action of each option; ``moves`` does not read it."""


class PolicyNetwork(nn.Module):
    """Inputs to logits of the options and expected results of the rows.

    The input of the first layer is each count of seeds, for each pit whether it holds at
    least 1, 2, 3 ... seeds, since where a sowing ends hangs on the exact count, the flags, and the
    outlook of the player to move.

    Args:
        config: its kind and shape.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = _FLAGS_FROM + len(_STEPS) * _PITS + ROW_SIZE - _FLAGS_FROM
        layers: list[nn.Module] = []
        for units in config.hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(width, (1 if config.per_option else NUM_ACTIONS) + 1)
        nn.init.orthogonal_(self.head.weight, 0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits float[K] of the options and expected results float[R] of the rows.

        An expected result lies between -1 and 1 and is that of the player who is to choose.
        """
        dtype = self.head.weight.dtype
        seeds = inputs.rows[:, :_FLAGS_FROM].to(dtype)
        pits = seeds[:, :_PITS]
        features = [seeds * 0.125]
        features += [(pits >= least).to(dtype) for least in _STEPS]
        features.append(inputs.rows[:, _FLAGS_FROM:OBSERVATION_SIZE].to(dtype))
        outlook = inputs.rows[:, OBSERVATION_SIZE:].to(dtype)
        features += [outlook[:, :1] * 0.125, outlook[:, 1:]]
        out = self.head(self.trunk(torch.cat(features, dim=1))).float()
        values = out[:, -1].tanh()
        if self.config.per_option:
            return out[:, 0] + _TRUST * values.detach(), values
        return out[:, :-1].reshape(-1)[inputs.options], values
