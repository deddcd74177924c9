"""Read the files that a run's settings name, and keep copies of them in the run's folder.

So a run holds all that it needs: once it has started, the path in a setting only says where a file
came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.checkpoint_files import find_checkpoint
from bao_training.config import ConfigError, TrainConfig
from bao_training.run_settings import foreign_file, read_note

COPIES = {"start": "start.safetensors", "blunder_positions": "blunder_positions.npz"}
"""The settings that name a file, each with the name of its copy in the run's folder."""


@dataclass(frozen=True)
class Inputs:
    """The contents of the files that a run's settings name; None for settings without a file."""

    start: Checkpoint | None = None
    """The checkpoint that the run starts with (``start``)."""
    won: SolvedPositions | None = None
    """The won positions of the metric ``blunders`` (``blunder_positions``)."""

    def copy_into(self, folder: Path) -> dict[str, Path]:
        """Write copies of the files into a run's folder.

        Returns:
            the copies of networks, by the names of their settings.

        Raises:
            OSError: a copy cannot be written.
        """
        if self.won is not None:
            self.won.save(folder / COPIES["blunder_positions"])
        if self.start is None:
            return {}
        copy = folder / COPIES["start"]
        checkpoint.save(copy, replace(self.start, arrays={}))
        return {"start": copy}

    def check_place_for_copies(self, folder: Path) -> None:
        """Check that the copies of a new run would replace no file of someone else.

        A run that was killed while it started may have left the same copies.

        Raises:
            ConfigError: a file in the folder has the name of a copy, but another content.
        """
        with TemporaryDirectory() as temporary:
            self.copy_into(Path(temporary))
            for copy in Path(temporary).iterdir():
                file = folder / copy.name
                if file.exists() and file.read_bytes() != copy.read_bytes():
                    raise foreign_file(file)


def copies_for(folder: Path, settings: Mapping[str, Any]) -> dict[str, Path]:
    """Return the copies in a run's folder that replace files named in settings.

    Args:
        folder: the folder of a run.
        settings: the settings, which may belong to another run. A copy is returned only where
            both runs name the same file.

    Returns:
        the paths of the copies, by the names of their settings.

    Raises:
        ConfigError: run.json cannot be read.
    """
    copied = read_note(folder)["config"]
    paths = {setting: folder / name for setting, name in COPIES.items()}
    return {
        setting: path
        for setting, path in paths.items()
        if path.exists() and settings.get(setting) == copied.get(setting)
    }


def read_inputs(config: TrainConfig, copies: Mapping[str, Path] | None = None) -> Inputs:
    """Read the files that a run's settings name.

    Args:
        config: the settings.
        copies: files to read instead, by the names of their settings.

    Raises:
        ConfigError: a file does not exist or does not fit the settings.
        CheckpointError: the checkpoint ``start`` cannot be read.
    """
    copies = copies or {}
    return Inputs(
        _read_start(config, copies.get("start")) if config.start else None,
        _read_won(config, copies.get("blunder_positions")) if config.blunder_positions else None,
    )


def _read_start(config: TrainConfig, copy: Path | None) -> Checkpoint:
    path = copy or find_checkpoint(config.start)
    if path is None:
        raise ConfigError(
            f"start={config.start!r}: there is no such checkpoint; expected a file, or the name of "
            "a shipped checkpoint"
        )
    start = checkpoint.load(path)
    if start.hidden != [*config.hidden]:
        raise ConfigError(
            f"start={config.start!r} has hidden={start.hidden}, but this run has "
            f"hidden={list(config.hidden)}: set hidden={start.hidden}, or start from another "
            "checkpoint"
        )
    return start


def _read_won(config: TrainConfig, copy: Path | None) -> SolvedPositions:
    name = config.blunder_positions
    try:
        return SolvedPositions.load(copy or name, config.get_ruleset()).won
    except ValueError as error:
        raise ConfigError(f"blunder_positions={name!r}: {error}") from error
