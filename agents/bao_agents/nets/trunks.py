"""Define the trunks of the network: the architectures ``mlp`` and ``residual``."""

from __future__ import annotations

from torch import Tensor, nn


class MultilayerPerceptron(nn.Sequential):
    """Linear layers with a ReLU after each: float[R, features] to float[R, hidden[-1]].

    Args:
        features: the number of inputs of the first layer.
        hidden: the units of each layer.
    """

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        layers: list[nn.Module] = []
        width = features
        for units in hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        super().__init__(*layers)


class Residual(nn.Module):
    """Residual blocks with normalisation: float[R, features] to float[R, hidden[-1]].

    The first layer is linear. Each further one is a block that normalises its input, applies two
    linear layers, and adds the result to its input, as in He et al., "Identity mappings in deep
    residual networks" (2016), with the layer normalisation of Ba et al. (2016).

    Args:
        features: the number of inputs of the first layer.
        hidden: the units of each layer, all the same.

    Raises:
        ValueError: the layers have different numbers of units.
    """

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        width = hidden[0]
        if set(hidden) != {width}:
            raise ValueError(
                f"hidden={list(hidden)}: architecture residual expects the same number of units "
                "in each layer, for example [256, 256, 256]"
            )
        self.first = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
            )
            for _ in hidden[1:]
        )
        self.last = nn.LayerNorm(width)

    def forward(self, features: Tensor) -> Tensor:
        """Return the units that the head reads."""
        units = self.first(features)
        for block in self.blocks:
            units = units + block(units)
        return self.last(units).relu()
