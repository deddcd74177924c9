"""Run ``bao rules``: print the rules of a rule set in plain words, on one page."""

from __future__ import annotations

import argparse
import shutil
import textwrap

from bao_agents.cli.options import OPTIONS, Run
from bao_env.rules_in_words import rules_in_words


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao rules``: print the rules of a rule set, by name or of a TOML file."""
    option = OPTIONS["ruleset"]
    words = f"{option['help']} (default: %(default)s)"
    parser.add_argument("ruleset", nargs="?", **option | {"help": words})
    return _run


def _run(options: argparse.Namespace) -> None:
    width = min(100, shutil.get_terminal_size().columns)
    for line in rules_in_words(options.ruleset).split("\n"):
        indent = "  " if line.startswith("- ") else ""
        print(textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False))
