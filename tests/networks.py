"""Make untrained networks for tests."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bao_agents.nets.network import KINDS, NetworkConfig, PolicyNetwork

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
"""Parametrises a test by what the network reads."""


def make_network(
    kind: str = "afterstate", hidden: tuple[int, ...] = (32, 16), architecture: str = "mlp"
) -> PolicyNetwork:
    """Make an untrained network whose outputs differ."""
    torch.manual_seed(3)
    network = PolicyNetwork(NetworkConfig(kind, hidden, architecture))
    nn.init.normal_(network.head.weight, std=0.3)
    return network.eval()
