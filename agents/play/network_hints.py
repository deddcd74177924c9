"""What a checkpoint thinks of one position; apart from the rest because it needs torch."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from agents.nets import checkpoint
from agents.nets.legal_actions import probabilities
from agents.nets.network import PolicyNetwork
from agents.nets.policy import PolicyAgent
from agents.search.gumbel import GumbelSearch
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset


@lru_cache(maxsize=4)
def _network(path: Path, ruleset: Ruleset) -> PolicyNetwork:
    return checkpoint.load(path, ruleset).network


def evaluate(
    path: Path, board: Board, legal: list[int], simulations: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Probability of each legal action and the mover's chance after it, both 0 to 1.

    Args:
        path: the checkpoint.
        board: a game that is not over.
        legal: its legal actions.
        simulations: of a search with the network; 0 asks the network alone.

    Raises:
        ValueError: the checkpoint cannot be used under these rules.
    """
    network = _network(path, board.ruleset)
    agent = PolicyAgent(network, board.ruleset)
    values = _values(agent, board, legal)
    if simulations:
        rules = board.ruleset.kernel_rules()
        found = GumbelSearch(rules, network, 1, simulations).search(board.words[None])
        shares = {action: float(found.policies[0, action]) for action in legal}
        for action in legal:
            if np.isfinite(found.qvalues[0, action]):
                values[action] = _share(float(found.qvalues[0, action]))
        return shares, values
    mask = np.array([sum(1 << action for action in legal)], np.uint64)
    judged = agent.evaluate(board.words[None], mask)
    policy = probabilities(judged.logits)
    return {
        int(o) & 63: float(p) for o, p in zip(judged.legal_actions, policy, strict=True)
    }, values


def _share(value: float) -> float:
    """A result between -1 and 1 as a share of games."""
    return min(1.0, max(0.0, (value + 1) / 2))


def _values(agent: PolicyAgent, board: Board, legal: list[int]) -> dict[int, float]:
    """The mover's chance after each action, from the network alone."""
    mask = np.array([sum(1 << action for action in legal)], np.uint64)
    judged = agent.evaluate(board.words[None], mask)
    if agent.network.config.per_action:
        return {
            int(legal_action) & 63: _share(float(value))
            for legal_action, value in zip(judged.legal_actions, judged.values, strict=True)
        }
    values = {}
    for action in legal:
        after = board.copy()
        after.push(action)
        outcome = after.outcome()
        if outcome is not None:
            values[action] = float(outcome.winner == board.turn)
            continue
        replies = np.array([sum(1 << reply for reply in after.legal_actions)], np.uint64)
        value = _share(float(agent.evaluate(after.words[None], replies).values[0]))
        values[action] = value if after.turn == board.turn else 1 - value
    return values
