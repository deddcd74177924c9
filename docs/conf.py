"""Build the site: `sphinx-build -W -c docs -b html . site`, with the repository's root as source.

The Markdown files stay where they are; `docs/index.md` orders them. Two markers are replaced at
build time, so that nothing generated is committed: `<!-- commands -->` by the parsers' own help,
`<!-- adapters -->` by the docstrings of the adapters, read without importing their libraries.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "agents", "training")]
os.environ["COLUMNS"] = "90"  # the width of the commands' help

project = "bao_env"
author = copyright = "The bao_env developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/api/*.md", "bao_env/*.md", "agents/*.md"]
include_patterns += ["training/*.md", "training/examples/*.md", "tests/*.md"]
html_theme = "furo"
html_title = "bao_env"
html_static_path: list[str] = []
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def commands() -> str:
    """Return what `bao COMMAND --help` prints, for every command, as Markdown."""
    from bao_training.cli import COMMANDS, find

    parts = []
    for name, summary in COMMANDS.items():
        parser = argparse.ArgumentParser(
            prog=f"bao {name}",
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        find(name)(parser)
        parts.append(f"## bao {name}\n\n```text\n{parser.format_help()}```\n")
    return "\n".join(parts)


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


def fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the markers of a page."""
    for marker, text in (("<!-- commands -->", commands), ("<!-- adapters -->", adapters)):
        if marker in source[0]:
            source[0] = source[0].replace(marker, text())


def add_front_page(app: Sphinx, error: Exception | None) -> None:
    """Make the site's address lead to the home page, which is in a folder."""
    if app.builder.name == "html" and error is None:
        page = '<meta http-equiv="refresh" content="0; url=docs/index.html"><title>bao_env</title>'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the functions above; Sphinx calls this."""
    app.connect("source-read", fill_in)
    app.connect("build-finished", add_front_page)
