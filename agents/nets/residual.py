"""The architecture ``residual``: layers that each add to what the others have found."""

from __future__ import annotations

from torch import Tensor, nn


class Residual(nn.Module):
    """From float[R, features] to float[R, hidden[-1]], through blocks with normalisation.

    The first layer is linear. Each further one is a block of two linear layers whose result is
    added to its input, which it normalises first: He et al., "Identity mappings in deep residual
    networks" (2016), with the layer normalisation of Ba et al. (2016).

    Args:
        features: numbers that the first layer reads.
        hidden: units of each layer, all the same.

    Raises:
        ValueError: the layers have different numbers of units.
    """

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        width = hidden[0]
        if set(hidden) != {width}:
            raise ValueError(
                f"hidden={list(hidden)}: architecture residual expects as many units in each layer,"
                " for example [256, 256, 256]"
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
        """The units that the head reads."""
        units = self.first(features)
        for block in self.blocks:
            units = units + block(units)
        return self.last(units).relu()
