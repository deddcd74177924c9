"""A network architecture of your own: attention over the pits.

    OWN=attention:Attention
    bao train --set architecture=$OWN --set "hidden=[32, 64]" --set steps=500_000 \\
        --run attention
    bao match runs/attention/final.safetensors --allow $OWN

Each pit is a token, and one more token has what belongs to no pit. With ``hidden = [32, 32, 64]``
there are two layers of attention of 32 units, and 64 units go to the head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

PITS = 32
STEPS = 10
COUNTS = 34
"""Counts of the pits and the two stores, with which the features begin
(bao_agents.nets.features)."""
STEPS_END = COUNTS + STEPS * PITS


class Attention(nn.Module):
    """A trunk from float[R, features] to float[R, hidden[-1]].

    Args:
        features: the number of inputs of the first layer.
        hidden: the units of each layer of attention, all the same, and of the output.

    Raises:
        ValueError: ``hidden`` has another form.
    """

    def __init__(self, features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        *layers, units = hidden
        if not layers or len(set(layers)) > 1 or layers[0] % 4:
            raise ValueError(
                f"hidden={list(hidden)}: expected the same multiple of 4 for each layer of "
                "attention, then the units of the output, for example [32, 32, 64]"
            )
        width = layers[0]
        self.pit = nn.Linear(1 + STEPS, width)
        self.place = nn.Parameter(0.02 * torch.randn(PITS, width))
        self.rest = nn.Linear(features - PITS - STEPS * PITS, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in layers
        )
        self.last = nn.Linear(2 * width, units)

    def forward(self, features: Tensor) -> Tensor:
        """Return the units that the head reads."""
        steps = features[:, COUNTS:STEPS_END].unflatten(1, (STEPS, PITS)).transpose(1, 2)
        pits = torch.cat([features[:, :PITS, None], steps], dim=2)
        rest = torch.cat([features[:, PITS:COUNTS], features[:, STEPS_END:]], dim=1)
        tokens = torch.cat([self.rest(rest)[:, None], self.pit(pits) + self.place], dim=1)
        for layer in self.layers:
            tokens = layer(tokens)
        return self.last(torch.cat([tokens[:, 0], tokens.mean(dim=1)], dim=1)).relu()
