"""Read rule sets from files."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from bao_env.engine.ruleset import Ruleset, get_ruleset

_MAX_BYTES = 8 << 10
"""Parsing takes quadratic time; a rule set is shorter than 2 KiB."""


def load_ruleset(path: str | os.PathLike[str]) -> Ruleset:
    """Read a rule set from a TOML file: switches of :class:`Ruleset`, each ``switch = value``.

    ``base`` is the rule set to change (default ``zanzibar``), and ``name`` is the name of the new
    one (default: the file's name).

    Raises:
        ValueError: the file is not TOML, or a switch is unknown or contradicts another.
        OSError: the file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"{path} is too long: a rule set takes at most {_MAX_BYTES} bytes")
    try:
        switches = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    switches.setdefault("name", path.stem)
    try:
        return get_ruleset(switches.pop("base", "zanzibar")).replace(**switches)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
