"""Record in files of results which versions of the code made them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bao_env
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.engine.signature import signature


@cache
def current_commit() -> str:
    """Return the checkout's commit as of this process's first call, or ``unknown``."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "pyproject.toml").exists():  # installed, perhaps inside another repository
        return "unknown"
    git = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def provenance(ruleset: Ruleset) -> dict[str, Any]:
    """Return the versions of the code that makes results, as plain values.

    Args:
        ruleset: the rules of the games.

    Returns:
        ``commit``; ``rules_version``; ``engine_signature``
        (:func:`bao_env.engine.signature.signature`); ``packages``, their versions by name (torch
        only if it is loaded).
    """
    packages = ["numba", "numpy", *(["torch"] if sys.modules.get("torch") else [])]
    return {
        "commit": current_commit(),
        "rules_version": RULES_VERSION,
        "engine_signature": signature(ruleset),
        "packages": {"bao_env": bao_env.__version__} | {name: version(name) for name in packages},
    }
