"""Build the site: `sphinx-build -W -c docs -b html . site`, with the repository's root as source.

The Markdown files stay where they are; `docs/index.md` orders them. Parts of some pages are
generated while the site is built: docs/generated.py has their markers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "agents", "training", "docs")]
os.environ["COLUMNS"] = "90"  # the width of the commands' help

import generated  # noqa: E402  (it needs the path above)

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
smartquotes_action = "qe"  # "--set" keeps its two dashes
html_title = "bao_env"
html_static_path: list[str] = []
html_favicon = "../agents/bao_agents/play/static/icon.svg"
html_baseurl = os.environ.get("SITE_URL", "")  # only with an address can links show a picture
SUMMARY = "Bao la Kiswahili, the four-row mancala of East Africa, for reinforcement learning"
myst_html_meta = {
    "description": SUMMARY,
    "property=og:title": "bao_env",
    "property=og:description": SUMMARY,
    **({"property=og:image": f"{html_baseurl}_images/move.gif"} if html_baseurl else {}),
}
myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the markers of a page (docs/generated.py)."""
    up = "../" * name.count("/")
    source[0] = generated.fill_in(source[0], f"{up}_static/boards")


def add_files(app: Sphinx, error: Exception | None) -> None:
    """Write the pictures, and make the site's address lead to the home page, in a folder."""
    if app.builder.name == "html" and error is None:
        folder = Path(app.outdir, "_static", "boards")
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in generated.PICTURES.items():
            (folder / name).write_text(picture, encoding="utf-8")
        page = '<meta http-equiv="refresh" content="0; url=docs/index.html"><title>bao_env</title>'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the functions above; Sphinx calls this."""
    app.connect("source-read", fill_in)
    app.connect("build-finished", add_files)
