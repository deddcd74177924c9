"""Keep the settings of a run in its folder, and decide what a resumed run may change.

``run.json`` is written when a run starts, before its first checkpoint, so a run that is killed at
any moment goes on with the settings that it was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bao_agents.support.files import write_atomically
from bao_env.files import read_text
from bao_training.config import ConfigError

MAY_CHANGE = (
    "steps",
    "device",
    "evaluate_every",
    "evaluate_pairs",
    "blunder_positions",
    "keep_every",
    "checkpoint_every",
)
"""What a resumed run may change: its length, which may grow, its device, and how it is watched and
saved. The other settings decide what it learns, ``workers`` among them."""
NOTE = "run.json"
"""The file in a run's folder with its settings."""


def runs_in(folder: Path) -> list[str]:
    """Return the names of the runs in a folder."""
    return sorted(path.parent.name for path in folder.glob(f"*/{NOTE}"))


def read_note(folder: Path) -> dict[str, Any]:
    """Return what a run has noted when it started, its settings under ``config``.

    Raises:
        ConfigError: there is no note, or it cannot be read.
    """
    path = folder / NOTE
    try:
        note = json.loads(read_text(path))
        if not isinstance(note["config"], dict):
            raise TypeError("its config is not an object")
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is not the note of a run: {error!r:.300}") from error
    return dict(note)


def write_note(folder: Path, note: Mapping[str, Any]) -> None:
    """Write a run's note: ``config``, its settings, and what it was made with."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / NOTE, json.dumps(note, indent=2) + "\n")


def check_changes(
    folder: Path, old_settings: Mapping[str, Any], new_settings: Mapping[str, Any]
) -> None:
    """Check that a resumed run may change its settings.

    Args:
        folder: the run's folder, for the message.
        old_settings: those that it was started with, its method's in a table of their own.
        new_settings: those that it would go on with.

    Raises:
        ConfigError: more would change than may, or the run would become shorter.
    """
    old_values, new_values = _flat(old_settings), _flat(new_settings)
    refused = [
        f"{name}={json.dumps(old_values[name])}, not {json.dumps(value)}"
        for name, value in new_values.items()
        if value != old_values.get(name, value)
        and (name not in MAY_CHANGE or (name == "steps" and value < old_values[name]))
    ]
    if refused:
        raise ConfigError(
            f"{folder} was started with {'; '.join(refused)}: a resumed run keeps its settings. It "
            f"may change {', '.join(MAY_CHANGE[1:])}, and steps may grow; give another --run for a "
            "new run"
        )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of tables under ``table.key``; ``rules`` are one setting."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and name != "rules":
            flat |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            flat[name] = value
    return flat
