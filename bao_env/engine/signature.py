"""Hash the engine's behaviour, so that any change of the rules shows at once."""

from __future__ import annotations

import hashlib

import numpy as np

from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import random_actions, random_states


def signature(ruleset: str | Ruleset) -> str:
    """Return a hash of fixed random games: the positions, legal actions and numbers of games won.

    The hash changes if the rules or the action encoding behave differently in any of these games.
    """
    engine = Engine(ruleset)
    positions, legal, winners = engine.new_games(256)
    rng = random_states(256, 20260101)
    actions = np.empty(256, np.int64)
    opening, opening_legal = engine.opening()
    digest = hashlib.sha256()
    for _ in range(200):
        random_actions(legal, rng, actions)
        engine.step(positions, actions, legal, winners)
        ended = winners >= 0
        positions[ended], legal[ended], winners[ended] = opening, opening_legal, -1
        count = int(ended.sum())
        digest.update(positions.tobytes() + legal.tobytes() + count.to_bytes(4, "little"))
    return digest.hexdigest()[:16]
