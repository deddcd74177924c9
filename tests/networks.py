"""Make untrained networks for tests."""

from __future__ import annotations

import torch
from torch import nn

from bao_agents.nets.network import PolicyNetwork


def make_network(hidden: tuple[int, ...] = (32, 16)) -> PolicyNetwork:
    """Make an untrained network whose outputs differ."""
    torch.manual_seed(3)
    network = PolicyNetwork(hidden)
    nn.init.normal_(network.head.weight, std=0.3)
    return network.eval()
