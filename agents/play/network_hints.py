"""Evaluate one position with a checkpoint; a file of its own because it needs torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agents.nets.legal_actions import probabilities
from agents.nets.policy import NetworkAgent
from agents.play.networks import Networks
from bao_env.board import Board
from bao_env.engine.action import mask_of


def evaluate(
    networks: Networks, path: Path, board: Board, legal: list[int], simulations: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the probability of each legal action and the mover's chance after it, both 0 to 1.

    Args:
        networks: the cache of networks.
        path: the checkpoint.
        board: a game that is not over.
        legal: its legal actions.
        simulations: the simulations of a search; 0 evaluates with the network alone.

    Raises:
        ImportError: torch is not installed.
        OSError, ValueError: the checkpoint cannot be used under these rules, or answers with
            infinities or NaN.
    """
    agent = NetworkAgent(networks.network(path, board.ruleset), board.ruleset)
    shares, values = _by_network(agent, board, legal)
    if simulations:
        with networks.search(path, board.ruleset, simulations) as search:
            found = search.search(board.words[None])
        shares = {action: float(found.policies[0, action]) for action in legal}
        for action in legal:
            if np.isfinite(found.qvalues[0, action]):
                values[action] = _share(float(found.qvalues[0, action]))
    return shares, values


def _share(value: float) -> float:
    """Return a result between -1 and 1 as a share of games."""
    return min(1.0, max(0.0, (value + 1) / 2))


def _by_network(
    agent: NetworkAgent, board: Board, legal: list[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the result of :func:`evaluate` for the network without a search."""
    mask = np.array([mask_of(legal)], np.uint64)
    found = agent.evaluate(board.words[None], mask)
    actions = [int(legal_action) & 63 for legal_action in found.legal_actions]
    shares = dict(zip(actions, map(float, probabilities(found.logits)), strict=True))
    if agent.network.config.per_action:
        chances = (_share(float(value)) for value in found.values)
        return shares, dict(zip(actions, chances, strict=True))
    values = {}
    for action in legal:
        after = board.copy()
        after.push(action)
        outcome = after.outcome()
        if outcome is not None:
            values[action] = float(outcome.winner == board.turn)
            continue
        replies = np.array([mask_of(after.legal_actions)], np.uint64)
        value = _share(float(agent.evaluate(after.words[None], replies).values[0]))
        values[action] = value if after.turn == board.turn else 1 - value
    return shares, values
