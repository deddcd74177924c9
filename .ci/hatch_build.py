"""Write the commit into each wheel and sdist, as ``bao_env/COMMIT``: results then name it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "bao_env/COMMIT"


class CommitHook(BuildHookInterface):
    """Add the file to what is built.

    A checkout asks Git; an sdist has the file already. An editable install is a checkout, which
    :mod:`bao_agents.support.provenance` asks.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file into the folder of what is built, and have it included."""
        root = Path(self.root)
        self.file = Path(self.directory) / ".commit"
        if version == "editable":
            return
        if (root / ".git").exists():
            git = ["git", "-C", str(root), "describe", "--always", "--dirty"]
            try:
                commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout
            except (OSError, subprocess.CalledProcessError) as error:
                self.app.display_warning(f"the commit stays unknown, since Git failed: {error}")
                return
        elif (root / PLACE).exists():
            commit = (root / PLACE).read_text(encoding="utf-8")
        else:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(commit, encoding="utf-8")
        build_data["force_include"][str(self.file)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file that was included."""
        self.file.unlink(missing_ok=True)
