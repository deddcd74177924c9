"""Write the parts of pages that are generated while the site is built.

Markers in the Markdown files say where they go, so that nothing generated is committed:

* ``<!-- commands -->``: the help of every command;
* ``<!-- adapters -->``: the docstrings of the adapters, read without importing their libraries;
* ``<!-- rules NAME -->``: the rules of a rule set in words;
* ``<!-- move POSITION MOVE -->``: the board before and after a move; MOVE may be ``none``;
* ``<!-- notebook FILE -->``: a notebook, with its stored outputs;
* ``<!-- index WORD -->``: an entry of the index, which the site's search finds first.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import textwrap
from pathlib import Path

from bao_env.board import Board, EventKind
from bao_env.engine.action import unpack_action
from bao_env.engine.layout import LEFT, RIGHT
from bao_env.engine.ruleset import RULESETS
from bao_env.render.marks import Mark, MarkKind
from bao_env.render.svg import svg_board
from bao_env.rules_in_words import rules_in_words

ROOT = Path(__file__).resolve().parent.parent
PICTURES: dict[str, str] = {}
"""The SVG documents of the pages read so far, by file name."""


def fill_in(text: str, pictures: str) -> str:
    """Return a page with its markers replaced; ``pictures`` is the address of their folder."""
    text = re.sub("<!-- index (.+) -->", r"```{index} ! \1\n```", text)
    text = re.sub("<!-- commands -->", lambda _: commands(), text)
    text = re.sub("<!-- adapters -->", lambda _: adapters(), text)
    text = re.sub(r"<!-- rules (\w+) -->", lambda found: rules(found[1]), text)
    text = re.sub(r"<!-- notebook (\S+) -->", lambda found: notebook(found[1], pictures), text)
    return re.sub(
        r"<!-- move (.+) (\S+) -->\n", lambda found: move(found[1], found[2], pictures), text
    )


def commands() -> str:
    """Return the help of every command as Markdown, with an anchor for each option."""
    from bao_agents.cli.main import COMMANDS, find

    parts = []
    for name, (_, summary) in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"bao {name}", description=f"{summary.capitalize()}.")
        find(name)(parser)
        formatter = parser._get_formatter()
        lines = [f".. program:: bao {name}"]
        for action in parser._actions:
            if isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS:
                continue
            words = formatter._expand_help(action).replace("*", r"\*") if action.help else ""
            value = (
                ""
                if action.nargs == 0
                else f" {formatter._format_args(action, action.dest.upper())}"
            )
            positional = str(action.metavar or action.dest)
            names = ", ".join(f"{flag}{value}" for flag in action.option_strings) or positional
            lines.append(f".. option:: {names}\n\n{textwrap.indent(words, '   ')}")
        options = "\n\n".join(lines)
        parts.append(
            f"## bao {name}\n\n{parser.description}\n\n```text\n{parser.format_usage()}```\n"
        )
        parts.append(f"```{{eval-rst}}\n{options}\n```\n")
        if parser.epilog:
            parts.append(f"```text\n{parser.epilog}\n```\n")
    return "\n".join(parts)


def rules(name: str) -> str:
    """Return the rules of a rule set in words, as Markdown."""
    parts = []
    for part in rules_in_words(RULESETS[name]).split("\n\n"):
        part = re.sub(r"^([A-Z][A-Z ]*[A-Z])(\.?) ", _bold, part)
        part = re.sub(r"\n([A-Z]\d( [A-Z]\d)+)\n", r"\n\n`\1`\n\n", part)
        parts.append(re.sub(r"([.:])\n-", r"\1\n\n-", part))
    return "\n\n".join(parts)


def _bold(title: re.Match[str]) -> str:
    return f"**{title[1].capitalize()}{title[2]}** "


def move(position: str, name: str, pictures: str) -> str:
    """Return pictures of a position and of a move in it, as an HTML block."""
    board = Board.from_text(position)
    if name == "none":
        images = [_image(board.svg(), "a position", pictures)]
    else:
        action, seat = board.parse_move(name), board.turn
        pit, *_ = unpack_action(action)
        images = [
            _image(svg_board(board.position, marks=_marks(board, action)), "before", pictures)
        ]
        board.push(action)
        outcome = board.outcome()
        after = svg_board(
            board.position,
            marks=[Mark(MarkKind.LAST, seat, pit)],
            status=str(outcome) if outcome else None,
        )
        images.append(_image(after, "after", pictures))
    return "<div>\n" + "\n".join(images) + "\n</div>\n\n"


def notebook(name: str, pictures: str) -> str:
    """Return a notebook with its stored outputs, as Markdown without its first heading."""
    cells = json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = text.replace("](../../", "](../")  # the page is in docs/
            parts.append(re.sub(r"\A# .*\n", "", text))
            continue
        parts.append(f"```ipython3\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text")})
            if "image/svg+xml" in data:
                parts.append(_image("".join(data["image/svg+xml"]), "drawn", pictures))
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts)


def _marks(board: Board, action: int) -> list[Mark]:
    """Return the hole where an action starts, the way of its hand, and what it captures at once."""
    pit, direction, _ = unpack_action(action)
    marks = [Mark(MarkKind.HINT, board.turn, pit, (direction,))]
    for event in board.trace(action):
        if event.kind is EventKind.SOW:
            break
        if event.kind is EventKind.CAPTURE:
            marks = [
                Mark(MarkKind.NOW, board.turn, pit),
                Mark(MarkKind.PREY, event.seat, event.pits[0]),
            ]
        if event.kind is EventKind.SIDE:  # the hand goes inward from a kichwa
            kichwa = event.pits[0]
            marks.append(Mark(MarkKind.HINT, board.turn, kichwa, (LEFT if kichwa else RIGHT,)))
    return marks


def _image(svg: str, words: str, pictures: str) -> str:
    name = f"{hashlib.sha256(svg.encode()).hexdigest()[:16]}.svg"
    PICTURES[name] = svg
    return f'<img src="{pictures}/{name}" alt="The board: {words}" width="600">'


def adapters() -> str:
    """Return the docstrings of the adapters' public names, as Markdown with directives."""
    parts = []
    for file in sorted((ROOT / "bao_env" / "adapters").glob("[!_]*.py")):
        module = f"bao_env.adapters.{file.stem}"
        tree = ast.parse(file.read_text(encoding="utf-8"))
        body = [f".. py:module:: {module}", _docstring(tree), *_members(tree.body, "function")]
        directives = "\n\n".join(body)
        parts.append(f"## {module}\n\n```{{eval-rst}}\n{directives}\n```\n")
    return "\n".join(parts)


def _members(statements: list[ast.stmt], kind: str) -> list[str]:
    """Return directives for the public classes and functions that have docstrings."""
    parts = []
    for node in statements:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        if node.name.startswith("_") or not ast.get_docstring(node):
            continue
        if isinstance(node, ast.FunctionDef):
            head, inner = f".. py:{kind}:: {node.name}({ast.unparse(node.args)})", []
        else:
            start = [item for item in node.body if getattr(item, "name", "") == "__init__"]
            signature = ast.unparse(start[0].args) if start else ""
            head = f".. py:class:: {node.name}({signature.removeprefix('self, ')})"
            inner = _members(node.body, "method")
        content = "\n\n".join([_docstring(node), *inner])
        parts.append(f"{head}\n\n{textwrap.indent(content, '   ')}")
    return parts


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    from sphinx.ext.napoleon import Config, GoogleDocstring

    config = Config(napoleon_use_rtype=False)
    return str(GoogleDocstring(ast.get_docstring(node) or "", config))
