"""Define the policy and value network: a trunk of some architecture and one linear head.

Its kind determines its inputs for a position:

``position``
    The board as it is. The outputs are a logit for each of the 64 actions and one expected result.
    This takes one encoding per position, so it is the fastest.

``afterstate``
    The board after each legal action. The outputs are a logit and an expected result for every
    legal action. This takes about four encodings per position.

``afterstate+replies``
    The board after each legal action, from the side of the next player, with the captures of each
    of their actions and of the replies to it, a summary of them, what can be answered to each
    action, and how play then goes on. The outputs are those of ``afterstate``. It is the strongest
    kind without a search, and the slowest.

Everything else is the same for all kinds. Inputs are :class:`Inputs`, and outputs are flat arrays
over legal actions, so sampling, loss and training do not depend on the kind. An architecture is a
trunk: one of :data:`ARCHITECTURES`, or yours under the name ``package.module:name``
(:func:`allow_architecture`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from bao_agents import plugins
from bao_agents.nets.features import (
    ENCODING_SIZE,
    FEATURES,
    REPLIES_FEATURES,
    REPLIES_SIZE,
    expand,
)
from bao_agents.nets.head import OPPONENT_NEXT, logits_and_values, num_outputs
from bao_agents.nets.trunks import MultilayerPerceptron, Residual

KINDS = ("position", "afterstate", "afterstate+replies")
OLD_KINDS = {"board": "position", "moves": "afterstate", "replies": "afterstate+replies"}
"""The names of the kinds in older checkpoints and configurations."""

ARCHITECTURES: dict[str, Callable[[int, tuple[int, ...]], nn.Module]] = {
    "mlp": MultilayerPerceptron,
    "residual": Residual,
}
"""Trunks by name. A trunk is called with FEATURES and :attr:`NetworkConfig.hidden`; it returns a
module from features float[R, FEATURES] to float[R, hidden[-1]], which must treat each row of a
batch independently. Checkpoints contain the name, so it must not change, and the module's
parameters and buffers, which must be floats."""


def allow_architecture(name: str) -> None:
    """Import your trunk, ``package.module:name``, and add it to :data:`ARCHITECTURES`.

    An architecture that a configuration names is allowed. One that only a checkpoint names is not,
    because loading a file never imports code. Allow it before you load its network.

    Raises:
        ValueError: it cannot be imported, or cannot be called as a trunk.
    """
    if name in ARCHITECTURES:
        return
    trunk = plugins.find(name)
    try:
        inspect.signature(trunk).bind(FEATURES, ())
    except (TypeError, ValueError):
        raise ValueError(
            f"architecture {name} is {trunk!r:.200}: expected a module's class, or a function of "
            "the number of features and the hidden units that makes a module"
        ) from None
    ARCHITECTURES[name] = trunk


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of the network.

    Raises:
        ValueError: the kind or architecture is unknown, a value has the wrong type, or there are
            not one to 64 layers of 1 to 65,536 units each.
    """

    kind: str = "position"
    """The inputs of the network: one of :data:`KINDS`, or its old name."""
    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer."""
    architecture: str = "mlp"
    """Name of the trunk in :data:`ARCHITECTURES`."""

    def __post_init__(self) -> None:
        if isinstance(self.kind, str):
            object.__setattr__(self, "kind", OLD_KINDS.get(self.kind, self.kind))
        own = self.architecture
        if plugins.is_own(own) and own not in ARCHITECTURES:
            raise ValueError(
                f"architecture={own!r:.100} is custom code, which is not imported because "
                f"a file names it: if you trust it, give --allow {own:.100} (bao train: --set "
                f"architecture={own:.100}) or call bao_agents.allow_architecture({own!r:.100})"
            )
        for name, value, allowed in (
            ("kind", self.kind, KINDS),
            ("architecture", self.architecture, ARCHITECTURES),
        ):
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name}={value!r:.200}: expected one of {', '.join(allowed)}")
        hidden = self.hidden
        if (
            not isinstance(hidden, (tuple, list))
            or not 1 <= len(hidden) <= 64
            or not all(type(units) is int and 1 <= units <= 65536 for units in hidden)
        ):
            raise ValueError(
                f"hidden={hidden!r:.200}: expected 1 to 64 layers of 1 to 65536 units, as a list"
            )
        object.__setattr__(self, "hidden", tuple(hidden))

    @property
    def per_action(self) -> bool:
        """Whether each encoding is of a legal action rather than of a position."""
        return self.kind != "position"

    @property
    def reads_replies(self) -> bool:
        """Whether an encoding has the captures of the next player and of the replies to them."""
        return self.kind == "afterstate+replies"


class Inputs(NamedTuple):
    """A batch for the network; see :func:`bao_agents.nets.encoding.encode`."""

    encodings: Tensor
    """uint8[R, encoding_size] on the CPU: the encodings of B positions or, if the network reads
    afterstates, of K legal actions."""
    legal_actions: Tensor
    """int64[K], position * 64 + action of each legal action; read for ``position`` only."""


class PolicyNetwork(nn.Module):
    """The network: it maps inputs to logits of the legal actions and expected results.

    Args:
        config: its kind, architecture and shape.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.trunk = ARCHITECTURES[config.architecture](self.num_features, config.hidden)
        self.head = nn.Linear(config.hidden[-1], num_outputs(config.per_action))
        nn.init.orthogonal_(self.head.weight, 0.01)
        nn.init.zeros_(self.head.bias)

    @property
    def num_features(self) -> int:
        """Return the number of inputs of the first layer."""
        return REPLIES_FEATURES if self.config.reads_replies else FEATURES

    @property
    def encoding_size(self) -> int:
        """Return the number of bytes in an encoding."""
        return REPLIES_SIZE if self.config.reads_replies else ENCODING_SIZE

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Return logits float[K] of the legal actions and expected results float[R] of encodings.

        Both cover all R encodings, padding included, unless the kind is ``position``. An expected
        result lies between -1 and 1, for the player who chooses the action.
        """
        outputs = self.head_outputs(inputs.encodings)
        return logits_and_values(outputs, inputs.legal_actions, self.config.kind, inputs.encodings)

    def head_outputs(self, encodings: Tensor) -> Tensor:
        """Return the outputs of the head, float32[R, 65 or 2]; see :mod:`bao_agents.nets.head`.

        Args:
            encodings: uint8[R, encoding_size] on the CPU.
        """
        weight = self.head.weight
        features = torch.from_numpy(expand(encodings.numpy())).view(torch.bfloat16)
        features = features.to(weight.device, weight.dtype)
        outputs = self.head(self.trunk(features)).float()
        if self.config.reads_replies:
            signs = torch.ones(outputs.shape)
            signs[encodings[:, -1] == OPPONENT_NEXT, 1] = -1.0
            outputs = outputs * signs.to(weight.device)
        return outputs


def check_finite(*outputs: npt.NDArray[Any]) -> None:
    """Validate the outputs of a network.

    Raises:
        ValueError: a number is infinite or not a number.
    """
    if not all(np.isfinite(output).all() for output in outputs):
        raise ValueError(
            "the network's outputs are not finite: its weights are too large or not numbers; "
            "use another checkpoint"
        )


def outline(config: NetworkConfig) -> PolicyNetwork:
    """Return a network without its weights, which takes no memory."""
    with torch.device("meta"):
        return PolicyNetwork(config)
