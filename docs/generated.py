"""Write the parts of the pages that come from the code: ``python docs/generated.py``.

Each such part of a Markdown page stands between a marker and ``<!-- end -->``:

* ``<!-- move NAME POSITION MOVE -->``: the boards before and after a move (the files
  ``docs/boards/NAME-before.svg`` and ``NAME-after.svg``), and its events in words; with the move
  ``none``, only a board, ``NAME.svg``; the page must be in ``docs``;
* ``<!-- rules NAME -->``: the rules of a rule set in words: zanzibar in full, others by their
  differences from it;
* ``<!-- switches -->``: the switches of a rule set;
* ``<!-- ladder FILE -->``: the players of a rating ladder; FILE begins at the repository's root;
* ``<!-- commands -->``: the help of every command;
* ``<!-- docstring FILE -->``: the docstring of a module; FILE begins at the repository's root;
* ``<!-- api KIND NAME OPTIONS -->``: the signature and docstrings of a public name, where the site
  has Sphinx' directive of this KIND with these OPTIONS (``docs/conf.py``).

The site shows the committed pages. ``tests/test_generated.py`` compares them with new ones.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "agents", "training")]

from bao_env.board import Board, EventKind  # noqa: E402  (it needs the path above)
from bao_env.engine.ruleset import CHOICES, RULESETS  # noqa: E402
from bao_env.render.marks import Mark, MarkKind, action_marks  # noqa: E402
from bao_env.render.svg import svg_board  # noqa: E402
from bao_env.rules_in_words import rules_in_words  # noqa: E402
from docs.reference import describe, markdown, module_docstring  # noqa: E402

BOARDS = ROOT / "docs" / "boards"
FOLDERS = (".", "agents", "bao_env", "docs", "docs/api", "training")
"""The folders whose Markdown files may have markers."""
_PART = re.compile(r"(<!-- (move|rules|switches|ladder|commands|docstring|api)(.*?) -->\n)")
_END = "<!-- end -->\n"


def pages() -> list[Path]:
    """Return the Markdown files that have markers."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).glob("*.md"))]
    return [file for file in files if _PART.search(file.read_text(encoding="utf-8"))]


def make(page: Path) -> tuple[str, dict[str, str]]:
    """Return a page with new parts, and the pictures that they show, by file name.

    Raises:
        ValueError: a marker has no ``<!-- end -->``.
    """
    pictures: dict[str, str] = {}
    kinds: dict[str, Callable[..., str]] = {
        "rules": rules,
        "switches": switches,
        "ladder": ladder,
        "commands": commands,
        "docstring": lambda file: module_docstring(ROOT / file),
        "api": describe,
    }
    text, remaining = "", page.read_text(encoding="utf-8")
    while match := _PART.search(remaining):
        marker, kind, words = match.groups()
        if _END not in remaining[match.end() :]:
            raise ValueError(f"{page}: {marker.strip()} has no {_END.strip()}")
        if kind == "move":  # a position text has spaces
            name, position, played = re.findall(r" (\S+) (.+) (\S+)$", words)[0]
            part = move(pictures, name, position, played)
        else:
            part = kinds[kind](*words.split())
        text += f"{remaining[: match.end()]}\n{part.strip()}\n\n{_END}"
        remaining = remaining[match.end() :].partition(_END)[2]
    return text + remaining, pictures


# --- boards -----------------------------------------------------------------------------------


def move(pictures: dict[str, str], name: str, position: str, text: str) -> str:
    """Return the boards before and after a move, and its events in words, as Markdown."""

    def image(suffix: str, title: str, board: Board, marks: list[Mark]) -> str:
        outcome = board.outcome()
        status = str(outcome) if outcome else None
        pictures[f"{name}{suffix}.svg"] = svg_board(
            board.position, marks=marks, status=status, width=600
        )
        return f"![{title}: {board.text()}](boards/{name}{suffix}.svg)"

    board = Board.from_text(position)
    if text == "none":
        return image("", "The board", board, [])
    action = board.parse_move(text)
    events = board.trace(action)
    played = action_marks(MarkKind.LAST, board.packed, board.ruleset, [action])
    parts = [image("-before", f"Before {text}", board, _marks(board, action))]
    board.push(action)
    parts.append(image("-after", f"After {text}", board, played))
    story = "\n".join(f"{number}. {event.sentence}" for number, event in enumerate(events, start=1))
    return "\n\n".join([*parts, f"```text\n{story}\n```"])


def _marks(board: Board, action: int) -> list[Mark]:
    """Return marks for where an action starts, the way it sows, and what it captures at once."""
    marks = action_marks(MarkKind.HINT, board.packed, board.ruleset, [action])
    for event in board.trace(action):
        if event.kind is EventKind.SOW:
            break
        if event.kind is EventKind.CAPTURE:
            marks.append(Mark(MarkKind.PREY, event.seat, event.pits[0]))
    return marks


# --- rules ------------------------------------------------------------------------------------


def rules(name: str) -> str:
    """Return the rules of zanzibar in words, or how other rules differ from them, as Markdown."""
    zanzibar, played = _sections("zanzibar"), _sections(name)
    if name == "zanzibar":
        return "\n\n".join(played.values())
    changed = [
        part
        for title, text in played.items()
        for number, part in enumerate(text.split("\n\n"))
        if text != (same := zanzibar.get(title, "")) and (number == 0 or part not in same)
    ]
    missing = ", ".join(title for title in zanzibar if title not in played)
    return "\n\n".join([*changed, f"Left out: {missing}."] if missing else changed)


def _sections(name: str) -> dict[str, str]:
    """Return the sections of the rules of a rule set, Markdown by title."""
    sections = {}
    for part in re.split(r"\n\n(?=[A-Z]{2})", rules_in_words(RULESETS[name])):
        title = re.findall(r"^(?:[A-Z ]+[A-Z]\b\.?)?", part)[0]
        part = part.replace(title, f"**{title.capitalize()}**", 1) if title else part
        part = re.sub(r"\n([A-Z]\d( [A-Z]\d)+)\n", r"\n\n`\1`\n\n", part)
        sections[title.capitalize().rstrip(".")] = re.sub(r"([.:])\n-", r"\1\n\n-", part)
    return sections


def switches() -> str:
    """Return a table of the switches of a rule set, with their defaults."""
    tree = ast.parse((ROOT / "bao_env" / "engine" / "ruleset.py").read_text(encoding="utf-8"))
    [ruleset] = [node for node in tree.body if getattr(node, "name", "") == "Ruleset"]
    assert isinstance(ruleset, ast.ClassDef)
    words = {
        ast.unparse(field.target): ast.literal_eval(text.value)
        for field, text in pairwise(ruleset.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    lines = ["| switch | default | what it decides |", "|---|---|---|"]
    for name, value in RULESETS["zanzibar"].to_dict().items():
        if name in words:
            allowed = ", ".join(json.dumps(choice) for choice in CHOICES.get(name, ()))
            default = f"`{json.dumps(value)}`" + (f" of `{allowed}`" if allowed else "")
            lines.append(f"| `{name}` | {default} | {_cell(markdown(words[name]))} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


def ladder(file: str) -> str:
    """Return what made a ladder, and a table of its players, the strongest first."""
    data = json.loads((ROOT / file).read_text(encoding="utf-8"))
    event = data["tournament"]
    command = " ".join(["bao tournament", *event["players"], "--anchor random"])
    rows = [
        f"| `{anchor['player']}` "
        f"| {anchor['elo']:.0f} ({anchor['low']:.0f} to {anchor['high']:.0f}) "
        f"| {anchor['ms_a_move']:.2g} |"
        for anchor in reversed(data["anchors"])
    ]
    return (
        f"Commit `{event['made_with']['commit']}`, "
        f"`{command} --pairs {event['pairs']} --seed {event['seed']}`:\n\n"
        + "\n".join(["| player | Elo (95% interval) | ms a move |", "|---|---:|---:|", *rows])
    )


# --- commands ---------------------------------------------------------------------------------


def commands() -> str:
    """Return the help of every command as Markdown; a shared option is described only once."""
    from bao_agents.cli.main import COMMANDS, find

    parts: list[str] = []
    first_command: dict[str, str] = {}
    for name, (_, summary) in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"bao {name}")
        find(name)(parser)
        parser.set_defaults(threads="all")  # the number of cores depends on the machine
        parts.append(f"## bao {name}\n\n{summary.capitalize()}.")
        parts.append(f"```text\n{_usage(parser)}\n```")
        parts += _tables(name, parser, first_command)
        if parser.epilog:
            epilog = re.sub(r"workers=\d+ ", "workers=2 ", parser.epilog)
            parts.append(f"```text\n{epilog}\n```")
    return "\n\n".join(parts)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return a line with a command and its arguments."""
    formatter = parser._get_formatter()
    arguments = [
        formatter._format_args(action, _label(action, formatter))
        for action in parser._actions
        if not action.option_strings and action.help != argparse.SUPPRESS
    ]
    return " ".join([parser.prog, *arguments, "[OPTIONS]"])


def _tables(name: str, parser: argparse.ArgumentParser, first_command: dict[str, str]) -> list[str]:
    """Return the tables of a command's arguments, and what it shares with earlier commands.

    Args:
        name: the command.
        parser: its parser.
        first_command: the command that has each row, which receives the new rows.
    """
    formatter = parser._get_formatter()
    tables: list[tuple[str, list[str]]] = [("", [])]  # captions and rows
    repeated: dict[str, list[str]] = {}
    for group in parser._action_groups:
        if group.description:
            tables.append((f"{str(group.title).capitalize()}: {group.description}", []))
        for action in group._group_actions:
            if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
                continue
            row = _row(action, formatter)
            first = first_command.setdefault(row, name)
            if first == name:
                tables[-1][1].append(row)
            else:
                flag = (action.option_strings or [_label(action, formatter)])[0]
                repeated.setdefault(first, []).append(f"`{flag}`")
    parts = []
    for caption, rows in tables:
        parts += [caption] if caption else []
        parts += ["\n".join(["| argument | meaning |", "|---|---|", *rows])] if rows else []
    for command, flags in repeated.items():
        parts.append(f"As in [{command}](#bao-{command.replace(' ', '-')}): {', '.join(flags)}.")
    return parts


def _row(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    """Return the row of an argument."""
    words = formatter._expand_help(action) if action.help else ""
    words = re.sub(r"([*<_])", r"\\\1", words)
    return f"| `{_cell(_label(action, formatter))}` | {_cell(words)} |"


def _label(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    """Return the name of a positional argument, or the flags of an option with their values."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = formatter._format_args(action, str(action.metavar or action.dest.upper()))
    return ", ".join(f"{flag} {value}".strip() for flag in action.option_strings)


def main() -> None:
    """Write all pages and pictures, and remove pictures that no page shows any more."""
    everything: dict[str, str] = {}
    for page in pages():
        text, pictures = make(page)
        everything |= pictures
        page.write_text(text, encoding="utf-8")
    for old in BOARDS.glob("*.svg"):
        if old.name not in everything:
            old.unlink()
    for name, picture in everything.items():
        (BOARDS / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
