"""Rule sets from files and from the command line."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset

_MAX_BYTES = 8 << 10
"""Parsing takes quadratic time; a rule set has less than 2 KiB."""


def load_ruleset(path: str | os.PathLike[str]) -> Ruleset:
    """Read a rule set from a TOML file: switches of :class:`Ruleset`, each ``switch = value``.

    ``base`` is the rule set to change (default ``zanzibar``), ``name`` the name of the new one
    (default: the file's).

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


def ruleset_argument(text: str) -> Ruleset:
    """Parse an argument: the name of a rule set, or the path of a ``.toml`` file.

    Raises:
        argparse.ArgumentTypeError: it is neither; the message says why.
    """
    try:
        return load_ruleset(text) if text.endswith(".toml") else get_ruleset(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from error
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


RULESET_HELP = f"{', '.join(RULESETS)}, or a .toml file of switches"
"""The values of a ``--ruleset`` option."""
