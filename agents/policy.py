"""A checkpoint as a player: one network call a position, no search."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from agents.network import PolicyNetwork
from agents.sampling import best_actions, sample_actions
from bao_env.engine.batch import random_states
from bao_env.observation import OBSERVATION_SIZE, observe

_CHUNK: Final = 8192


class PolicyAgent:
    """Plays what a network prefers.

    Args:
        network: logits and values from observations; it is put into evaluation mode.
        sample: draw from the policy's probabilities instead of taking its best action.
        seed: of the draws.
    """

    def __init__(self, network: PolicyNetwork, *, sample: bool = False, seed: int = 0) -> None:
        self.network = network.eval()
        self.sample = sample
        self._seeds = np.random.SeedSequence(seed)
        self._states = np.zeros(0, np.uint64)

    def evaluate(
        self, positions: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Logits float32[B, 64] and expected results float32[B] (-1..1, for the mover)."""
        observations = np.empty((len(positions), OBSERVATION_SIZE), np.uint8)
        observe(positions, observations)
        device = next(self.network.parameters()).device
        with torch.inference_mode():
            parts = [
                self.network(torch.from_numpy(observations[low : low + _CHUNK]).to(device))
                for low in range(0, len(positions), _CHUNK)
            ]
        logits, values = (torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True))
        return logits, values

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        actions = np.zeros(len(masks), np.int64)
        if not len(masks):
            return actions
        logits, _ = self.evaluate(positions)
        if not self.sample:
            best_actions(logits, masks, actions)
            return actions
        missing = len(masks) - len(self._states)
        if missing > 0:
            more = random_states(missing, self._seeds.spawn(1)[0])
            self._states = np.concatenate([self._states, more])
        log_probs = np.empty(len(masks), np.float32)
        sample_actions(logits, masks, self._states[: len(masks)], actions, log_probs)
        return actions
