"""Record how results were made: the code, the rules, the networks, the machine, the command.

:func:`provenance` makes the record, for JSON. :func:`facts` turns it into short texts for comment
lines, cards and the metadata of pictures.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bao_env
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.engine.signature import signature

UNKNOWN = "unknown"
"""The result of :func:`current_commit` for code that was copied without Git and without a build."""


@cache
def current_commit() -> str:
    """Return the commit of the code: of the checkout at the first call, or of the package.

    ``-dirty`` is appended if files had been changed. A built package holds its commit in
    ``bao_env/COMMIT`` (``.ci/hatch_build.py``).
    """
    packaged = Path(bao_env.__file__).with_name("COMMIT")
    if packaged.exists():
        return packaged.read_text(encoding="utf-8").strip()
    checkout = Path(__file__).parents[3]
    if not (checkout / ".git").exists():  # a copy, perhaps inside another repository
        return UNKNOWN
    git = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    # In a Git hook, Git's variables name the hook's repository.
    env = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(git, capture_output=True, text=True, check=True, env=env)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return done.stdout.strip()


def digest(path: Path) -> str:
    """Return the first 16 hex digits of a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def machine() -> dict[str, Any]:
    """Return the processor (``cpu``), its ``cores``, and the version of ``python``."""
    model = platform.processor() or platform.machine()
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            model = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version()}


def packages() -> dict[str, str]:
    """Return the versions of bao_env, numba, numpy and, if it is loaded, torch."""
    names = ["numba", "numpy", *(["torch"] if sys.modules.get("torch") else [])]
    return {"bao_env": bao_env.__version__} | {name: version(name) for name in names}


def provenance(
    ruleset: Ruleset,
    *,
    networks: Mapping[str, Path] | None = None,
    seed: int | None = None,
    command: Sequence[str] = (),
    with_machine: bool = True,
) -> dict[str, Any]:
    """Return a record of how results were made, as plain values.

    Args:
        ruleset: the rules of the games.
        networks: the files of the networks that played or were trained, by the players' names.
        seed: the seed of the games or the training.
        command: the words of the command.
        with_machine: whether to name the machine. Leave out the machine and the command where equal
            runs must write equal files.

    Returns:
        ``commit`` (:func:`current_commit`), ``packages``, ``rules_version``, ``engine_signature``
        (:func:`bao_env.engine.signature.signature`) and ``ruleset``, with its name and all
        switches. If they are given, also ``networks``, with the :func:`digest` of each, ``seed``,
        ``machine`` and ``command``, quoted for a shell.
    """
    record: dict[str, Any] = {
        "commit": current_commit(),
        "packages": packages(),
        "rules_version": RULES_VERSION,
        "engine_signature": signature(ruleset),
        "ruleset": ruleset.to_dict(),
    }
    if networks:
        record["networks"] = {name: digest(path) for name, path in networks.items()}
    if seed is not None:
        record["seed"] = seed
    if with_machine:
        record["machine"] = machine()
    if command:
        record["command"] = shlex.join(command)
    return record


def facts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the record of :func:`provenance` as short texts of one line each.

    The keys are ``rules``, ``networks``, ``seed``, ``commit``, ``versions``, ``machine`` and
    ``command``; keys without a value in the record are left out.
    """
    rules = Ruleset.from_dict(record["ruleset"])
    name = rules.name if rules.is_shipped else f"{rules.name} (own rules)"
    texts = {
        "rules": f"{name}, version {record['rules_version']}, engine {record['engine_signature']}",
        "networks": _listed(record.get("networks", {})),
        "seed": str(record.get("seed", "")),
        "commit": record["commit"],
        "versions": _listed(record["packages"]),
        "command": record.get("command", ""),
    }
    if "machine" in record:
        cpu, cores, python = (record["machine"][key] for key in ("cpu", "cores", "python"))
        texts["machine"] = f"{cpu}, {cores} cores, Python {python}"
    return {key: text for key, text in texts.items() if text}


def _listed(names: Mapping[str, str]) -> str:
    """Return names with their versions or digests in one line."""
    return ", ".join(f"{name} {mark}" for name, mark in names.items())
