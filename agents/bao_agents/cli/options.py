"""Define the options, argument types and output functions that the commands of ``bao`` share.

A command is a function in a file of its own. It adds its arguments to a parser, and returns the
function that runs it::

    def command(parser):
        add_options(parser, "ruleset", "seed")
        return run  # called with the parsed arguments; its result is the exit status, None is 0

:mod:`bao_agents.cli.main` has the table of all commands.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bao_agents.support.cores import cores
from bao_agents.support.figures import SUFFIXES
from bao_agents.support.output import say

Run: TypeAlias = Callable[[argparse.Namespace], int | None]
_LONGEST_NAME = 200
"""Most bytes in the name of a new file; until the file is complete, its name is longer."""
_INPUTS = {".npz", ".py", ".safetensors", ".toml"}
"""The suffixes of files that commands read. No file of results has one of them."""


def at_least(
    lowest: float, kind: type[int] | type[float] = int, highest: float = 2**63 - 1
) -> Callable[[str], Any]:
    """Return an argument type: numbers from ``lowest`` to ``highest``, by default whole ones."""

    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(lowest) - 1
        if not lowest <= number <= highest:
            kind_in_words = "a whole number" if kind is int else "a number"
            limits = f"of at least {lowest} and less than 2**63"
            if highest < 2**63 - 1:
                limits = f"from {lowest} to {highest}"
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: expected {kind_in_words} {limits}")
        return number

    return parse


def new_file(text: str) -> str:
    """Check that a file can be written, and return its name; this is an argument type.

    Without this check, a command would do its work and only then fail to write the file.

    Raises:
        ArgumentTypeError: the folder is missing or not writable, or the name is wrong.
    """
    folder, name = os.path.dirname(text) or ".", os.path.basename(text)
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder[:200]}: make it first")
    if not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"no files can be written in the folder {folder[:200]}")
    if os.path.exists(text) and not os.path.isfile(text):
        raise argparse.ArgumentTypeError(
            f"{text[:200]!r} is a folder or a device: expected the name of a file"
        )
    if not 0 < len(os.fsencode(name)) <= _LONGEST_NAME:
        raise argparse.ArgumentTypeError(
            f"{text[:200]!r}: expected a file name of at most {_LONGEST_NAME} bytes"
        )
    return text


def check_results(args: argparse.Namespace) -> None:
    """Check that each file of results is named only once on the command line.

    The results would replace other results, or a file that the command reads, such as its openings
    or the file in a player's name. The reports that the command writes into the folder ``--out``,
    ``args.reports``, count too.

    Raises:
        ValueError: a file is named twice, is one of the reports, or exists and is a network or
            another input; the games' file is a number; or the games would be printed, or more than
            one form of the results.
    """
    printed = [option for option in ("json", "csv") if getattr(args, option, None) == "-"]
    if printed:
        refuse_unused(args, "with --json - or --csv -", "format")
    if len(printed) > 1:
        raise ValueError("--json - and --csv - exclude each other: only one of them can be printed")
    games = getattr(args, "games", None)
    if games == "-":
        raise ValueError("--games -: the games cannot be printed: name a file")
    if games and games.isdecimal():
        raise ValueError(
            f"--games {games:.80}: expected a file for the games, such as games.txt, and not their "
            "number"
        )
    named = [os.path.realpath(word.rpartition("=")[2]) for word in args.words]
    # The texts of players: guided:FILE:5ms, module:function@FILE, pipe:python FILE.
    texts = [re.sub("^[^:=]*=", "", word) for word in args.words if not word.startswith("-")]
    parts = [part for text in texts for part in re.split("[=:@ ]", text) if part != text]
    within = {os.path.realpath(part) for part in parts if os.path.isfile(part)}
    folder = getattr(args, "out", None)
    reports = [] if folder is None else [folder / name for name in getattr(args, "reports", ())]
    for option in ("json", "csv", "games", "svg", "png", "pdf", "gif"):
        file = getattr(args, option, None)
        if not isinstance(file, str | Path) or file == "-":
            continue
        if named.count(os.path.realpath(file)) > 1 or os.path.realpath(file) in within:
            raise ValueError(
                f"--{option} {file}: the command line names this file twice, and the results would "
                "replace it: choose another name"
            )
        if Path(file).suffix in _INPUTS and os.path.exists(file):
            raise ValueError(
                f"--{option} {file}: this file exists and is no file of results, which would "
                "replace it: choose another name"
            )
        if os.path.realpath(file) in map(os.path.realpath, reports):
            raise ValueError(f"--{option} {file}: --out writes a report there: choose another name")


def picture_file(text: str, suffixes: Sequence[str] = SUFFIXES) -> Path:
    """Check that a picture can be written to a file, and return the file; an argument type.

    Raises:
        ArgumentTypeError: the name does not end in one of ``suffixes``, or as in :func:`new_file`.
    """
    file = Path(new_file(text))
    if file.suffix.lower() not in suffixes:
        raise argparse.ArgumentTypeError(
            f"{text!r:.200}: expected a file name that ends in {' or '.join(suffixes)}"
        )
    return file


def _ruleset(text: str) -> Any:
    """Return the rule set of a name or of a ``.toml`` file; this is an argument type."""
    from bao_env import RULESETS, load_ruleset
    from bao_env.suggestions import did_you_mean

    if text in RULESETS:
        return RULESETS[text]
    if not text.endswith(".toml"):
        raise argparse.ArgumentTypeError(
            f"unknown rule set {text!r:.80}{did_you_mean(text, RULESETS)}: expected one of "
            f"{', '.join(RULESETS)}, or the path of a .toml file of switches"
        )
    try:
        return load_ruleset(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from error


OPTIONS: dict[str, dict[str, Any]] = {
    "ruleset": {
        "type": _ruleset,
        "default": "zanzibar",
        "metavar": "RULES",
        "help": "zanzibar, kibao, kujifunza, malawi, dutch, or a .toml file of switches",
    },
    "seed": {"type": at_least(0), "default": 1, "help": "seed of all random numbers"},
    "threads": {
        "type": at_least(1, highest=1024),
        "default": cores(),
        "help": "cores to use",
    },
    "ray": {
        "nargs": "?",
        "const": "",
        "metavar": "ADDRESS",
        "help": "use the cores of a Ray cluster at ADDRESS, a host:port or 'local' to start a "
        "cluster here; without ADDRESS, Ray looks for a running cluster; all its machines must "
        "have this package and the players' files at the same paths (pip install ray)",
    },
    "json": {
        "type": new_file,
        "metavar": "FILE",
        "help": "also write the results to FILE as JSON; - prints the JSON and nothing else",
    },
    "csv": {
        "type": new_file,
        "metavar": "FILE",
        "help": "also write the results to FILE as CSV; - prints the CSV and nothing else",
    },
    "format": {
        "choices": ["markdown", "latex"],
        "help": "print nothing but a table of the results, in this format",
    },
    "out": {"type": Path, "metavar": "DIR", "help": "folder of the results"},
    "path": {
        "action": "append",
        "default": [],
        "metavar": "DIR",
        "help": "folder of your own Python modules; may be repeated",
    },
}
"""The options that several commands share, each with its arguments for argparse."""


def add_options(parser: argparse._ActionsContainer, *names: str, **defaults: Any) -> None:
    """Add options of :data:`OPTIONS` to a parser.

    Args:
        parser: the parser, or a group of its arguments.
        names: the names of options.
        defaults: the names of more options, each with another default.
    """
    for name in (*names, *defaults):
        option = dict(OPTIONS[name])
        option["default"] = defaults.get(name, option.get("default"))
        if option["default"] not in (None, [], ()):
            option["help"] += " (default: %(default)s)"
        parser.add_argument(f"--{name}", **option)


def add_player_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that load players."""
    add_options(parser, "path")
    parser.epilog = "bao players lists the players."


def refuse_unused(args: argparse.Namespace, why: str, *names: str) -> None:
    """Refuse options that would have no effect, rather than ignore them silently.

    Args:
        args: the command's arguments.
        why: when the options have no effect, such as ``"with --openings"``.
        names: the options' names among the arguments, such as ``"opening_plies"``.

    Raises:
        ValueError: the command line has one of these options; the message names it.
    """
    for name in names:
        if name in args.given:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} has no effect {why}: leave it out")


def warn(lines: Iterable[str]) -> None:
    """Print lines on stderr."""
    for line in lines:
        say(line)


def write_json(file: str | None, report: Any) -> None:
    """Write the results of ``--json FILE``; see :func:`write_text`."""
    write_text(file, json.dumps(report, indent=2, allow_nan=False) + "\n")


def write_text(file: str | None, text: str) -> None:
    """Write the results of ``--json FILE`` or ``--csv FILE``.

    Args:
        file: the file; ``-`` is standard output, None writes nothing.
        text: its content.

    Raises:
        OSError: the file cannot be written.
    """
    if file == "-":
        sys.stdout.write(text)
    elif file is not None:
        from bao_agents.support.files import write_atomically

        write_atomically(file, text)
