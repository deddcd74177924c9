"""Complete what hatchling builds: add the commit to each package, and the pages to the wheel.

``bao_env/COMMIT`` has the commit, so that results can name it. In the wheel the pages lie beside
each other as in a checkout, in ``bao_training/pages``, and their links to code lead into the
packages.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT = "bao_env/COMMIT"

PAGES = "bao_training/pages"
"""The folder of the wheel in which the pages lie as in the repository."""

PAGE_FILES = (
    *("*.md", "CITATION.cff", "agents/*.*", "bao_env/*.md", "tests/*.md", "training/*.md"),
    *("docs/**/*.md", "docs/**/*.svg", "docs/*.bib", "docs/endless.py"),
    *("docs/results.py", "docs/measurements/*.py"),
    "training/examples/*.*",
)
"""Patterns of the pages, and of the pictures, examples and programs that they link to."""

PACKAGES = {
    "bao_env": "bao_env",
    "agents/bao_agents": "bao_agents",
    "training/bao_training": "bao_training",
    "configs": "bao_training/configs",
}
"""The repository's folders of code, each with its place in the wheel."""


class BuildHook(BuildHookInterface):
    """Add the commit and the pages to what is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit and the pages into a temporary folder, and add them to the build.

        An editable install needs neither: it is a checkout, which has the pages and can ask Git.
        """
        self.folder = Path(tempfile.mkdtemp())
        if version == "editable":
            return
        included = build_data["force_include"]
        if commit := self._commit():
            (self.folder / "COMMIT").write_text(commit, encoding="utf-8")
            included[str(self.folder / "COMMIT")] = COMMIT
        if self.target_name == "wheel":
            root = Path(self.root)
            files = {file for pattern in PAGE_FILES for file in root.glob(pattern)}
            names = {file.relative_to(root).as_posix() for file in files}
            for name in sorted(names):
                source = root / name
                if source.suffix == ".md":
                    text = link_in_wheel(source.read_text(encoding="utf-8"), name, names)
                    source = self.folder / name
                    source.parent.mkdir(parents=True, exist_ok=True)
                    source.write_text(text, encoding="utf-8")
                included[str(source)] = f"{PAGES}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        shutil.rmtree(self.folder)

    def _commit(self) -> str:
        """Return the commit: a checkout asks Git, and an sdist has the file already."""
        root = Path(self.root)
        if (root / ".git").exists():
            git = ["git", "-C", str(root), "describe", "--always", "--dirty"]
            # In a Git hook, Git's variables name the hook's repository.
            env = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
            try:
                done = subprocess.run(git, capture_output=True, text=True, check=True, env=env)
                return done.stdout
            except (OSError, subprocess.CalledProcessError) as error:
                self.app.display_warning(f"the commit stays unknown, since Git failed: {error}")
        return (root / COMMIT).read_text(encoding="utf-8") if (root / COMMIT).exists() else ""


def link_in_wheel(text: str, name: str, pages: set[str]) -> str:
    """Return the text of a page with links that lead to the right place in the wheel.

    Args:
        text: the Markdown of a page.
        name: its path in the repository.
        pages: the paths of all pages, and of the files beside them. Links to other files lead
            into the packages; a link to a file that the wheel lacks becomes plain text.
    """
    folder = posixpath.dirname(name)

    def link(match: re.Match[str]) -> str:
        words, target, anchor = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in pages:
            return match[0]
        for source, package in PACKAGES.items():
            if path.startswith(f"{source}/"):
                place = package + path.removeprefix(source)
                return f"[{words}]({posixpath.relpath(place, f'{PAGES}/{folder}')}{anchor or ''})"
        return words

    return re.sub(r"\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)", link, text)
