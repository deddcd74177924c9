"""A worker's copy of the network, and the gradients computed with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.nets.network import Inputs, PolicyNetwork

_MAX_CHUNK: Final = 2048
"""Decisions that go through the network at a time while learning: their activations fit into the
second-level cache."""


def chunks(index: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Parts of ``index`` small enough to go through the network at once."""
    for low in range(0, len(index), _MAX_CHUNK):
        yield index[low : low + _MAX_CHUNK]


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 in hardware: a GPU, or a CPU with AVX-512."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


class ForwardPass(NamedTuple):
    """The network's outputs for the K legal actions of a batch, and room for the loss's gradients.

    R is the number of encodings read: one a position, or one a legal action; padded.
    """

    outputs: tuple[Tensor, Tensor]
    """Logits and values with their autograd graph."""
    logits: npt.NDArray[np.float32]
    """float32[K], or float32[R] for a network that judges each legal action."""
    values: npt.NDArray[np.float32]
    """float32[R]."""
    logit_gradient: npt.NDArray[np.float32]
    """Zeros like the logits, for the caller to fill."""
    value_gradient: npt.NDArray[np.float32]
    """Zeros like the values, for the caller to fill."""


class Replica:
    """One thread's copy of the network, in the dtype that it computes in.

    Args:
        network: the float32 network to copy.
        bfloat16: compute in bfloat16 instead of float32, where the device has it in hardware: in
            software it takes twenty times as long.
    """

    def __init__(self, network: PolicyNetwork, bfloat16: bool) -> None:
        self.device = next(network.parameters()).device
        dtype = torch.bfloat16 if bfloat16 and has_bfloat16(self.device) else torch.float32
        self.network = copy.deepcopy(network).to(dtype)
        self._parameters = list(self.network.parameters())
        self.gradients = [torch.zeros_like(p) for p in network.parameters()]
        """float32, one for each parameter: what :meth:`backward` adds to."""

    @property
    def per_action(self) -> bool:
        """Whether the network reads and values each legal action, instead of each position."""
        return self.network.config.per_action

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Copy the weights of ``network``."""
        with torch.no_grad():
            for mine, theirs in zip(self._parameters, network.parameters(), strict=True):
                mine.copy_(theirs)

    def make_inputs(
        self, encodings: npt.NDArray[np.uint8], legal_actions: npt.NDArray[np.int64]
    ) -> Inputs:
        """A batch for a network on this device.

        Args:
            encodings: uint8[R, ENCODING_SIZE].
            legal_actions: int64[K], position * 64 + action.
        """
        return Inputs(torch.from_numpy(encodings), torch.from_numpy(legal_actions).to(self.device))

    def clear_gradients(self) -> None:
        """Set the gradients to 0."""
        for total in self.gradients:
            total.zero_()

    def forward(
        self, encodings: npt.NDArray[np.uint8], legal_actions: npt.NDArray[np.int64]
    ) -> ForwardPass:
        """Run the network on a batch, given as to :meth:`make_inputs`, to learn from it."""
        logits, values = self.network(self.make_inputs(encodings, legal_actions))
        return ForwardPass(
            outputs=(logits, values),
            logits=logits.detach().cpu().numpy(),
            values=values.detach().cpu().numpy(),
            logit_gradient=np.zeros(len(logits), np.float32),
            value_gradient=np.zeros(len(values), np.float32),
        )

    def backward(self, forward: ForwardPass) -> None:
        """Propagate the two gradients through the network; adds to :attr:`gradients`."""
        torch.autograd.backward(
            forward.outputs,
            [
                torch.from_numpy(forward.logit_gradient).to(self.device),
                torch.from_numpy(forward.value_gradient).to(self.device),
            ],
        )
        with torch.no_grad():
            for total, parameter in zip(self.gradients, self._parameters, strict=True):
                if parameter.grad is not None:
                    total += parameter.grad
        self.network.zero_grad(set_to_none=True)
