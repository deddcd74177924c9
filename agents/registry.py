"""From a word to a player: ``"greedy"``, ``"runs/quick/final.safetensors"``."""

from __future__ import annotations

import os
from pathlib import Path

from agents.base import NamedPlayer
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.ruleset import Ruleset, get_ruleset

KNOWN = "random, greedy, or the path of a checkpoint (.safetensors)"


def load(
    spec: str | os.PathLike[str], *, ruleset: str | Ruleset = "zanzibar", seed: int = 0
) -> NamedPlayer:
    """The player that ``spec`` names.

    Args:
        spec: ``random``, ``greedy`` or the path of a checkpoint.
        ruleset: the rules to be played; a checkpoint trained under others is refused.
        seed: of whatever the player draws.

    Raises:
        ValueError: nobody has that name, or the checkpoint cannot be used (a
            :class:`~agents.checkpoint.CheckpointError` then says why).
    """
    name = os.fspath(spec)
    rules = get_ruleset(ruleset)
    if name == "random":
        return NamedPlayer(name, RandomAgent(seed))
    if name == "greedy":
        return NamedPlayer(name, GreedyAgent(rules))
    path = Path(name)
    if not path.exists():
        raise ValueError(f"unknown player {name!r}: expected {KNOWN}")
    # Torch is slow to import and the bots don't need it.
    from agents import checkpoint
    from agents.policy import PolicyAgent

    return NamedPlayer(
        path.stem, PolicyAgent(checkpoint.load(path, rules).network, rules, seed=seed)
    )
