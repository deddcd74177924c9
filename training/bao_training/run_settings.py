"""Keep the settings of a run in its folder, and decide what a resumed run may change.

Nothing here needs torch, so that a wrong setting is refused at once.

``run.json`` is written when a run starts, before anything is compiled, so a run that is killed at
any moment can be resumed with its settings. The file holds ``config``, the settings, and
``made_with``, the record of :mod:`bao_agents.support.provenance`. If the run was resumed with other
code or other settings, it also holds ``resumed``: for each time, the steps so far, the code, and
what changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bao_agents.support.files import write_atomically
from bao_env.files import read_text
from bao_training.config import (
    METHOD_CONFIGS,
    SHIPPED,
    ConfigError,
    TrainConfig,
    apply_overrides,
    config_from_dict,
    config_to_dict,
    read_config,
)

MAY_CHANGE = (
    "steps",
    "device",
    "evaluate_every",
    "evaluate_pairs",
    "blunder_positions",
    "keep_every",
    "checkpoint_every",
)
"""The settings that a resumed run may change: its length, which may grow, its device, and how it is
evaluated and saved. All other settings, even ``workers``, decide what it learns."""
NOTE = "run.json"
"""The name of the file in a run's folder that holds its settings."""
LAST = "last.safetensors"
"""The name of the file in a run's folder that holds everything needed to resume it."""
FINAL = "final.safetensors"
"""The name of the file in a run's folder that holds the trained network, once the run has ended."""
_RESULTS = FINAL, "metrics.csv", "curves.png", "step-*.safetensors"
"""Files that a new run would replace, as patterns (``glob``). It does not start beside them."""


def holds_run(folder: Path) -> bool:
    """Return whether a folder holds a run."""
    return any((folder / name).exists() for name in (NOTE, LAST))


def runs_in(folder: Path) -> list[str]:
    """Return the names of the runs in a folder."""
    return sorted(path.parent.name for path in folder.glob(f"*/{NOTE}"))


def find_run(path: str | Path | None) -> Path | None:
    """Return the folder of a run, given that folder or its run.json; None for anything else."""
    if path is None or str(path) in SHIPPED:
        return None
    folder = Path(path).parent if Path(path).name == NOTE else Path(path)
    return folder if os.path.isfile(folder / NOTE) else None


def read_settings(path: str | Path | None, overrides: Sequence[str]) -> dict[str, Any]:
    """Read the settings of a run or a configuration, overridden as in
    :func:`~.config.apply_overrides`.

    Raises:
        ConfigError: they cannot be read, or an override is not ``key=value``.
    """
    if path is None:
        return apply_overrides({}, overrides)
    folder = find_run(path)
    settings = read_note(folder)["config"] if folder else read_config(path)
    return apply_overrides(settings, overrides)


def load_config(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> tuple[TrainConfig, Any]:
    """Read the common settings and those of the chosen method.

    Defaults come first, then a TOML file or the folder of a run, then ``key=value`` strings with
    TOML values.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type or is
            out of bounds.
    """
    return config_from_dict(read_settings(path, overrides))


def read_note(folder: Path) -> dict[str, Any]:
    """Return the contents of a run's run.json, with its settings under ``config``.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    path = folder / NOTE
    try:
        note = json.loads(read_text(path))
        if not isinstance(note["config"], dict):
            raise TypeError("its config is not an object")
        if not isinstance(note.get("made_with", {}), dict):
            raise TypeError("its made_with is not an object")
        if not all(isinstance(entry, dict) for entry in note.get("resumed", [])):
            raise TypeError("its resumed is not a list of objects")
    except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is not the note of a run: {error!r:.300}") from error
    return dict(note)


def write_note(folder: Path, note: Mapping[str, Any]) -> None:
    """Write run.json; the module's docstring describes its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / NOTE, json.dumps(note, indent=2) + "\n")


def config_of_run(
    folder: Path, settings: Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> tuple[TrainConfig, Any]:
    """Return the settings with which the run in a folder starts or continues.

    Args:
        folder: the run's folder.
        settings: the settings of a new run, as plain values; missing ones have their defaults.
        overrides: continue the run if it exists, with its own settings except for these. None
            starts a new run.

    Raises:
        ConfigError: the settings cannot be used, the run exists, or there is no run to resume.
    """
    if overrides is not None and holds_run(folder):
        return config_of_resumed_run(folder, overrides)
    if holds_run(folder):
        raise ConfigError(
            f"{folder} already holds a run: continue it with --resume, or choose another --run"
        )
    if overrides is not None and not settings:
        names = ", ".join(runs_in(folder.parent)) or "none"
        raise ConfigError(f"there is no run {folder} to resume; the runs there: {names}")
    if foreign := [file for pattern in _RESULTS for file in folder.glob(pattern)]:
        raise foreign_file(foreign[0])
    return config_from_dict(settings)


def foreign_file(file: Path) -> ConfigError:
    """Return the error for a file that a new run would replace."""
    return ConfigError(
        f"{file.parent} holds {file.name}, but no run that could be continued: move it elsewhere, "
        "or choose another --run"
    )


def config_of_resumed_run(folder: Path, overrides: Mapping[str, Any]) -> tuple[TrainConfig, Any]:
    """Return the settings with which the run in a folder continues.

    Args:
        folder: the run's folder.
        overrides: new values of settings; see :func:`_check_changes`. Tables of other methods
            have no effect.

    Raises:
        ConfigError: the settings cannot be used, the run may not change them, or it has ended and
            could only begin again, in place of its results.
    """
    if (folder / FINAL).exists() and not (folder / LAST).exists():
        raise ConfigError(
            f"{folder} holds the result of a run, {FINAL}, but no {LAST} to continue from: bao "
            "train repeats a run by its folder, under another --run"
        )
    settings = read_note(folder)["config"]
    new_settings = settings | dict(overrides)
    for table in settings.keys() & METHOD_CONFIGS:
        if isinstance(new_settings[table], dict):
            new_settings[table] = settings[table] | new_settings[table]
    try:
        config_from_dict(settings)
    except ConfigError as error:
        raise ConfigError(
            f"{folder} cannot be resumed: {error}. Resume a run with the version of bao_env that "
            "started it"
        ) from error
    config, method_config = config_from_dict(new_settings)
    _check_changes(folder, settings, config_to_dict(config, method_config))
    return config, method_config


def _check_changes(
    folder: Path, old_settings: Mapping[str, Any], new_settings: Mapping[str, Any]
) -> None:
    """Check that a resumed run may change its settings.

    Args:
        folder: the run's folder, for the message.
        old_settings: the settings that the run was started with, its method's in a table.
        new_settings: the settings that it would continue with.

    Raises:
        ConfigError: a setting would change that may not, or the run would become shorter.
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


def differing(settings: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that have other values in ``others``."""
    other_values = _flat(others)
    return [
        name for name, value in _flat(settings).items() if value != other_values.get(name, value)
    ]


def note_of_resumed_run(
    note: Mapping[str, Any], steps: int, settings: Mapping[str, Any], made_with: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the new contents of run.json for a resumed run, with any change of code or settings.

    Args:
        note: the contents of run.json.
        steps: the steps so far.
        settings: the settings that the run continues with.
        made_with: the provenance of the code that continues it.
    """
    code = {key: made_with[key] for key in ("commit", "packages")}
    resumed = note.get("resumed", [])
    latest = resumed[-1] if resumed else note.get("made_with", {})
    old, new = _flat(note["config"]), _flat(settings)
    changed = {name: [old.get(name), new[name]] for name in new if new[name] != old.get(name)}
    if changed or any(latest.get(key) != value for key, value in code.items()):
        resumed = [*resumed, {"steps": steps, **code, "changed": changed}]
    return {**note, "config": settings, **({"resumed": resumed} if resumed else {})}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten settings: a key in a table becomes ``table.key``; ``rules`` stays one setting."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and name != "rules":
            flat |= {f"{name}.{key}": entry for key, entry in value.items()}
        else:
            flat[name] = value
    return flat
