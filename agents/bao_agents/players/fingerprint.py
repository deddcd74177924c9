"""Tell whether a player is still the one that played earlier games."""

from __future__ import annotations

import hashlib

from bao_agents.players import plugins, registry
from bao_agents.players.names import PlayerName
from bao_agents.players.player import NamedPlayer
from bao_agents.support.provenance import digest
from bao_env.engine.ruleset import Ruleset


def fingerprint(spec: str | PlayerName, player: NamedPlayer, ruleset: Ruleset) -> str | None:
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
