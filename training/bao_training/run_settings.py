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
_FILE = "run.json"


def runs_in(folder: Path) -> list[str]:
    """Return the names of the runs in a folder."""
    return sorted(path.parent.name for path in folder.glob(f"*/{_FILE}"))


def read_note(folder: Path) -> dict[str, Any] | None:
    """Return what a run has noted when it started; None without a note.

    Raises:
        ConfigError: the note cannot be read.
    """
    path = folder / _FILE
    if not path.exists():
        return None
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
    write_atomically(folder / _FILE, json.dumps(note, indent=2) + "\n")


def resumed_settings(
    folder: Path, settings: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a run, with what a resumed run may change as it is given now.

    Args:
        folder: the run's folder, for the message.
        settings: the run's settings, with those of its method in a table of their own.
        given: the settings given now; tables of other methods do not count.

    Raises:
        ConfigError: others differ from the run's, or the run would become shorter.
    """
    wanted, refused = dict(settings), []
    for name, new in _flat(given).items():
        table, _, key = name.rpartition(".")
        if table and table not in settings:
            continue
        old = settings.get(table, {}).get(key) if table else settings.get(key)
        if new == old:
            continue
        if name not in MAY_CHANGE or (name == "steps" and not _is_longer(new, old)):
            refused.append(f"{name}={json.dumps(old)}, not {json.dumps(new)}")
        wanted[name] = new
    if refused:
        raise ConfigError(
            f"{folder} was started with {'; '.join(refused)}: a resumed run keeps its settings. It "
            f"may change {', '.join(MAY_CHANGE[1:])}, and steps may grow; give another --run for a "
            "new run"
        )
    return wanted


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of tables under ``table.key``; ``rules`` are one setting."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and name != "rules":
            flat |= {f"{name}.{key}": one for key, one in value.items()}
        else:
            flat[name] = value
    return flat


def _is_longer(new: Any, old: Any) -> bool:
    return isinstance(new, int) and isinstance(old, int) and new > old
