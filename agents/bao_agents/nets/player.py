"""Play with a network alone, without a search."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from bao_agents.nets.compiled import Weights, compile_if_faster, evaluate_network
from bao_agents.nets.encoding import PLAYING_STEP, encode
from bao_agents.nets.legal_actions import (
    best_legal_actions,
    list_legal_actions,
    probabilities,
)
from bao_agents.nets.network import PolicyNetwork, check_finite
from bao_agents.support.array_types import Float32Array, Int64Array
from bao_agents.support.opinion import Opinion, by_probability
from bao_agents.support.remade import Remade
from bao_env.board import Board
from bao_env.engine.argument_checks import as_batch
from bao_env.engine.position import Actions, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset

_MAX_POSITIONS = 4096
"""The most positions per pass through the network, which limits the memory for large batches."""


class NetworkOutput(NamedTuple):
    """A network's outputs for a batch of B positions with K legal actions in all."""

    logits: Float32Array
    """float32[K], the logit of each legal action."""
    values: Float32Array
    """float32[K], the value of each legal action."""
    legal_actions: Int64Array
    """int64[K], position * 64 + action."""
    indptr: Int64Array
    """int64[B + 1], the start of each position's legal actions."""


class NetworkAgent(Remade):
    """Play the action that a network prefers.

    Args:
        network: the network, which is switched to evaluation mode. The agent plays with the weights
            that the network has at the agent's first move.
        ruleset: the rules to play by.
    """

    seeded = False
    """Its play does not depend on a seed; see :class:`bao_env.Agent`."""

    def __init__(self, network: PolicyNetwork, ruleset: Ruleset) -> None:
        self.network: PolicyNetwork = network.eval()
        self.ruleset = ruleset
        self._rules = ruleset.kernel

    @cached_property
    def _weights(self) -> Weights | None:
        return compile_if_faster(self.network)

    def evaluate(self, positions: PackedPositions, legal: Legal) -> NetworkOutput:
        """Run the network on positions uint64[B, 6] with legal actions uint64[B].

        Raises:
            TypeError, ValueError: see :func:`bao_env.engine.argument_checks.as_batch`.
            ValueError: the network's outputs are not finite.
        """
        positions, legal = as_batch(positions, legal)
        step = PLAYING_STEP if self._weights is None else 1
        parts = []
        for low in range(0, max(1, len(positions)), _MAX_POSITIONS):
            part = slice(low, low + _MAX_POSITIONS)
            encodings, legal_actions, _ = encode(self._rules, positions[part], legal[part], step)
            logits, values = evaluate_network(self.network, encodings, self._weights)
            parts.append((logits[: len(legal_actions)], values[: len(legal_actions)]))
        logits, values = (np.concatenate(outputs) for outputs in zip(*parts, strict=True))
        check_finite(logits, values)
        indptr, legal_actions = list_legal_actions(legal)
        return NetworkOutput(logits, values, legal_actions, indptr)

    def analyse(self, board: Board, limit: object = None) -> list[Opinion]:
        """Return an opinion of each legal action of a board, best first.

        Args:
            board: a game that is not over.
            limit: ignored, because a network needs no limit.
        """
        del limit
        actions = board.legal_actions
        outputs = self.evaluate(*board.batch())
        chances = probabilities(outputs.logits).tolist()
        values = outputs.values.clip(-1, 1).tolist()
        return sorted(map(Opinion, actions, values, chances), key=by_probability, reverse=True)

    def act(self, positions: PackedPositions, legal: Legal) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`."""
        positions, legal = as_batch(positions, legal)
        outputs = self.evaluate(positions, legal)
        return best_legal_actions(outputs.logits, outputs.indptr, legal)
