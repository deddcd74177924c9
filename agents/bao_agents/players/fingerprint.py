"""Tell whether a player is still the one that played earlier games."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from pathlib import Path

from bao_agents.players import registry
from bao_agents.players.base import NamedPlayer


def fingerprint(spec: str, player: NamedPlayer) -> str | None:
    """Return a hash of a player, 16 hex digits; empty for a bot that comes with the project.

    It covers a checkpoint's file, the version that a program gives, or the source file of
    ``module:function``, the file after its ``@`` and the fingerprint of its agent. None if there is
    no version or fingerprint: then the program, its weights or the modules it imports could change
    unnoticed.

    Raises:
        ValueError: the agent's fingerprint is not a string.
    """
    found = registry.parse(spec)
    if found.path is not None:
        return hashlib.sha256(found.path.read_bytes()).hexdigest()[:16]
    if found.kind.name not in ("function", "pipe"):
        return ""
    if player.fingerprint is None:
        return None
    code = b""
    if found.kind.name == "function":
        source = inspect.getsourcefile(importlib.import_module(spec.partition(":")[0]))
        files = source, spec.partition("@")[2]
        code = b"".join(Path(file).read_bytes() for file in files if file)
    return hashlib.sha256(code + player.fingerprint.encode()).hexdigest()[:16]
