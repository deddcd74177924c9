"""Identify the conditions of a measurement: the machine, and a hash of the engine's behaviour."""

from __future__ import annotations

import hashlib
import os
import platform
from typing import Any

from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import random_states


def machine() -> dict[str, Any]:
    """Return the processor (``cpu``), its ``cores``, and the version of ``python``."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next(line.split(":")[1].strip() for line in info if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}


def signature(ruleset: str | Ruleset) -> str:
    """Return a hash of every position, mask and result of fixed random games.

    It changes if, and only if, the rules or the action encoding behave differently.
    """
    engine = Engine(ruleset)
    positions, legal, winners = engine.new_games(256)
    rng = random_states(256, 20260101)
    digest = hashlib.sha256()
    for _ in range(200):
        ended = engine.play_random(positions, legal, winners, rng, 1)
        digest.update(positions.tobytes() + legal.tobytes() + ended.to_bytes(4, "little"))
    return digest.hexdigest()[:16]
