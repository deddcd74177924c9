"""What every worker learns with: its copy of the network, and the gradients it leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agents.nets.network import Inputs, PolicyNetwork
from training.config import TrainConfig

Gradient = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32], Any, Any], None]


class Learner:
    """One thread's copy of the network, in the dtype that it computes in.

    Args:
        config: of the run.
        network: the float32 network whose weights the copy follows.
    """

    def __init__(self, config: TrainConfig, network: PolicyNetwork) -> None:
        self.config = config
        self.device = next(network.parameters()).device
        self.dtype = torch.bfloat16 if config.bfloat16 else torch.float32
        self.network_config = network.config
        self.replica = copy.deepcopy(network).to(self.dtype)
        self.parameters = list(self.replica.parameters())
        self.gradients = [torch.zeros_like(p) for p in network.parameters()]
        """float32, one for each parameter: what :meth:`add_gradient` adds to."""

    def follow(self, network: PolicyNetwork) -> None:
        """Take over the weights of ``network``."""
        with torch.no_grad():
            for mine, theirs in zip(self.parameters, network.parameters(), strict=True):
                mine.copy_(theirs)

    def inputs(self, rows: npt.NDArray[np.uint8], legal_actions: npt.NDArray[np.int64]) -> Inputs:
        """A batch for the network."""
        return Inputs(torch.from_numpy(rows), torch.from_numpy(legal_actions).to(self.device))

    def clear_gradients(self) -> None:
        """Begin a new sum of gradients."""
        for total in self.gradients:
            total.zero_()

    def add_gradient(
        self, rows: npt.NDArray[np.uint8], legal_actions: npt.NDArray[np.int64], gradient: Gradient
    ) -> None:
        """Run the network forward and backward and add to :attr:`gradients`.

        Args:
            rows, legal actions: what the network reads.
            gradient: called with logits float32[K] and values float32[R], fills the loss's
                gradients in the two arrays of the same shapes that it is given.
        """
        logits, values = self.replica(self.inputs(rows, legal_actions))
        logit_gradient = np.zeros(len(logits), np.float32)
        value_gradient = np.zeros(len(values), np.float32)
        gradient(
            logits.detach().cpu().numpy(),
            values.detach().cpu().numpy(),
            logit_gradient,
            value_gradient,
        )
        torch.autograd.backward(
            [logits, values],
            [
                torch.from_numpy(logit_gradient).to(self.device),
                torch.from_numpy(value_gradient).to(self.device),
            ],
        )
        with torch.no_grad():
            for total, parameter in zip(self.gradients, self.parameters, strict=True):
                if parameter.grad is not None:
                    total += parameter.grad
        self.replica.zero_grad(set_to_none=True)
