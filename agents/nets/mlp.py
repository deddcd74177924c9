"""The architecture ``mlp``: a multi-layer perceptron."""

from __future__ import annotations

from torch import nn


class MultilayerPerceptron(nn.Sequential):
    """Linear layers with a ReLU after each: float[R, features] to float[R, hidden[-1]].

    Args:
        features: numbers that the first layer reads.
        hidden: units of each layer.
    """

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        layers: list[nn.Module] = []
        width = features
        for units in hidden:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        super().__init__(*layers)
