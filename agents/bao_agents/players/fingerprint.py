"""Detect whether a player has changed since it played earlier games."""

from __future__ import annotations

import hashlib

from bao_agents.players import plugins, registry
from bao_agents.players.names import PlayerName
from bao_agents.players.player import NamedPlayer
from bao_agents.support.provenance import digest
from bao_env.engine.ruleset import Ruleset


def fingerprint(spec: str | PlayerName, player: NamedPlayer, ruleset: Ruleset) -> str | None:
    """Return a hash of a player, 16 hex digits; empty for a bot that comes with the project.

    The hash covers a checkpoint's file, or the version that a program reports. For
    ``module:function`` it covers the module's source file, the file after ``@`` and the agent's
    fingerprint. The result is None if a program reports no version or an agent has no fingerprint:
    the program, the weights or the imported modules could then change unnoticed.

    Args:
        spec: the player's name for :func:`bao_agents.players.registry.load`.
        player: the player.
        ruleset: the rules of its games.

    Raises:
        ValueError: no player has that name, or the rule set has no guide.
    """
    parsed = registry.parse(spec) if isinstance(spec, str) else spec
    file = parsed.file(ruleset)
    if file is not None:
        return digest(file)
    if not parsed.kind.is_foreign:
        return ""
    if player.fingerprint is None:
        return None
    code = parsed.function and plugins.source(parsed.function, parsed.parts.get("FILE", ""))
    return hashlib.sha256((code or b"") + player.fingerprint.encode()).hexdigest()[:16]
