"""Where checkpoints are and what they are called. This module needs no torch."""

from __future__ import annotations

import os
from pathlib import Path

CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"
"""Folder of the shipped checkpoints; they are loaded by name, without the suffix."""
GUIDES = CHECKPOINTS / "guides"
"""Folder of the small networks that guide alpha-beta, one for each rule set, by its name."""


def shipped() -> list[str]:
    """Return the names of the shipped checkpoints."""
    return sorted(path.stem for path in CHECKPOINTS.glob("*.safetensors"))


def find_checkpoint(name: str) -> Path | None:
    """Return a checkpoint's file, by its path or its shipped name; None if there is none."""
    if name in shipped():
        return CHECKPOINTS / f"{name}.safetensors"
    return Path(name) if os.path.isfile(name) else None  # also False if the path is invalid


def find_guide(ruleset: str) -> Path:
    """Return the file of a rule set's own guide.

    Raises:
        ValueError: it has none.
    """
    path = GUIDES / f"{ruleset}.safetensors"
    guides = sorted(path.stem for path in GUIDES.glob("*.safetensors"))
    if ruleset not in guides:
        raise ValueError(
            f"rule set {ruleset!r} has no guide: name a checkpoint, guided:CHECKPOINT:100ms; "
            f"guides are shipped for {', '.join(guides)}"
        )
    return path
