"""Tell whether a player is still the one that played earlier games."""

from __future__ import annotations

import hashlib

from bao_agents.players import registry
from bao_agents.players.base import NamedPlayer
from bao_env.engine.ruleset import Ruleset


def fingerprint(spec: str, player: NamedPlayer, ruleset: Ruleset) -> str | None:
    """Return a hash of a player, 16 hex digits; empty for a bot that comes with the project.

    It covers a checkpoint's file, the version that a program gives, or the source file of
    ``module:function``, the file after its ``@`` and the fingerprint of its agent. None if there is
    no version or fingerprint: then the program, its weights or the modules it imports could change
    unnoticed.

    Args:
        spec: the player's name for :func:`bao_agents.players.registry.load`.
        player: the player.
        ruleset: the rules that it plays.

    Raises:
        ValueError: the agent's fingerprint is not a string.
    """
    found = registry.parse(spec)
    file, code = found.file(ruleset), found.kind.code
    if file is not None:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    if code is None:
        return ""
    if player.fingerprint is None:
        return None
    return hashlib.sha256(code(found) + player.fingerprint.encode()).hexdigest()[:16]
