"""Build the site: `sphinx-build -W -c docs -b html . site`, with the repository's root as source.

The pages are the repository's Markdown files, in the order of `docs/index.md`. Their parts that are
generated from the code are committed (docs/generated.py). Only the pages of docs/api are filled
again here, from the same docstrings.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "agents", "training")]

project = "bao_env"
author = copyright = "The bao_env developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/api/*.md", "bao_env/*.md", "agents/*.md"]
include_patterns += ["training/*.md", "training/examples/*.md", "tests/*.md"]
html_theme = "furo"
smartquotes_action = "qe"  # "--set" keeps its two dashes
html_title = "bao_env"
html_favicon = "../agents/bao_agents/play/static/icon.svg"
html_baseurl = os.environ.get("SITE_URL", "")  # previews of links need an address
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
autodoc_mock_imports = ["pyspiel", "open_spiel", "stable_baselines3"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as in the code, not as objects
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
nitpicky = True  # a name without a target is a warning
_GYMNASIUM, _NUMPY = "https://gymnasium.farama.org/api", "https://numpy.org/doc/stable/reference"
OTHER_LIBRARIES = {
    r"numpy\.(ndarray|dtype)": rf"{_NUMPY}/generated/numpy.\1.html",
    r"(?:numpy|np)\.(u?int\d+|float\d+|bool|str_)": rf"{_NUMPY}/arrays.scalars.html#numpy.\1",
    r"np\.random\.SeedSequence": f"{_NUMPY}/random/bit_generators/index.html",
    r"(numpy\._typing\..*|npt\..*)": f"{_NUMPY}/typing.html",
    r"gymnasium\.core\.Env": f"{_GYMNASIUM}/env/",
    r"gymnasium\.spaces\..*": f"{_GYMNASIUM}/spaces/",
    r"gymnasium\.vector\..*|AutoresetMode": f"{_GYMNASIUM}/vector/",
    r"gymnasium\.error\..*|ResetNeeded|DependencyNotInstalled": f"{_GYMNASIUM}/env/",
    r"stable_baselines3\..*": "https://stable-baselines3.readthedocs.io/",
    r"pyspiel\..*": "https://openspiel.readthedocs.io/",
    r"pettingzoo\..*": "https://pettingzoo.farama.org/api/aec/",
    r"(collections\.abc|contextlib|os|pathlib|enum)\.(\w+)": r"https://docs.python.org/3/library/\1.html#\1.\2",
    "Path": "https://docs.python.org/3/library/pathlib.html#pathlib.Path",
}
"""Addresses of the documentation of other libraries, by patterns of names."""
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def add_directives(app: Sphinx, name: str, source: list[str]) -> None:
    """Add what only the site needs: the tree of all pages, and entries of the index.

    docs/index.md has the tree as headings and links; the README is its root. The comment
    `<!-- index WORD -->` makes an entry of the index: a search for the word finds its page first.
    """
    text = re.sub("<!-- index (.+) -->", r"```{index} ! \1\n```", source[0])
    text = re.sub(r"<!-- api ([^>]+) -->\n.*?<!-- end -->", _directive, text, flags=re.DOTALL)
    text = re.sub("<!-- .* -->\n+", "", text)
    if name == root_doc:
        index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
        for caption, links in re.findall(
            r"^## (.+)\n\n((?:[*] .+\n|  .+\n)+)", index, re.MULTILINE
        ):
            rows = [
                f"{title} <{posixpath.normpath(posixpath.join('/docs', page))}>"
                for title, page in re.findall(r"\[([^\]]+)\]\(([^)#]+)\.md\)", links)
            ]
            lines = "\n".join(
                ["```{toctree}", ":hidden:", f":caption: {caption}", "", *rows, "```"]
            )
            text += f"\n{lines}\n"
        text += "\n```{toctree}\n:hidden:\n\nAll pages </docs/index>\n```\n"
    source[0] = text


def _directive(marker: re.Match[str]) -> str:
    """Return the directive of Sphinx for a marker of docs/generated.py."""
    kind, name, *options = marker[1].split()
    lines = [f".. auto{kind}:: {name}"]
    lines += [
        f"   :{key}: {value}".rstrip()
        for key, _, value in (option.partition("=") for option in options)
    ]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def add_home(app: Sphinx, error: Exception | None) -> None:
    """Make the site's address lead to the README."""
    if app.builder.name == "html" and error is None:
        page = f'<meta http-equiv="refresh" content="0; url={root_doc}.html"><title>bao_env</title>'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def mend_links_from_code(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Make links in the pages of source code lead to where the names are documented.

    Sphinx assumes one package for all names of a file, but users import some of them from another.
    """
    if not page.startswith("_modules/"):
        return
    module = page.removeprefix("_modules/").replace("/", ".")
    objects = app.env.domains.python_domain.objects

    def mend(match: re.Match[str]) -> str:
        parts = match[2].split(".")
        names = [match[2], *(".".join([module, *parts[skip:]]) for skip in range(1, len(parts)))]
        return match[1] + next((name for name in names if name in objects), match[2])

    context["body"] = re.sub(r'(viewcode-back" href="[^"#]*#)([\w.]+)', mend, context["body"])


def link_other_names(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """Return the link to a name that Sphinx has not found; None makes Sphinx warn.

    A name of ours may be documented in `bao_env`, where users import it. If it is documented
    nowhere, it is shown as code, without a link. Names of other libraries link to their
    documentation.
    """
    target, objects = node["reftarget"], env.domains.python_domain.objects
    ours = f"bao_env.{target.rpartition('.')[2]}"
    if ours in objects:
        page, anchor = objects[ours].docname, objects[ours].node_id
        return make_refnode(app.builder, node["refdoc"], page, anchor, content, ours)
    for pattern, address in OTHER_LIBRARIES.items():
        if match := re.fullmatch(pattern, target):
            return nodes.reference("", "", content, internal=False, refuri=match.expand(address))
    return content if re.match(r"bao_|\w+$|[A-Z]\w+\.\w+$", target) else None


def setup(app: Sphinx) -> None:
    """Register the functions above; Sphinx calls this."""
    app.connect("source-read", add_directives)
    app.connect("build-finished", add_home)
    app.connect("missing-reference", link_other_names)
    app.connect("html-page-context", mend_links_from_code)
    # Our attributes have their types in the code, so a colon in their docstrings is only a colon.
    GoogleDocstring._consume_inline_attribute = lambda self: ("", self._consume_to_end())  # type: ignore[method-assign]
