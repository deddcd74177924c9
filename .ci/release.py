"""Print what prevents a release, and exit with 1 if so: ``python .ci/release.py TAG``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def obstacles(tag: str, package: str, changelog: str) -> list[str]:
    """Return the reasons not to publish.

    Args:
        tag: the tag of the release.
        package: the source of bao_env/__init__.py, which has the version.
        changelog: the text of CHANGELOG.md; its newest version must be this one, with a date.
    """
    version_line = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    newest = re.search(r"^## (\S+), (.+)$", changelog, re.MULTILINE)
    if version_line is None or newest is None:
        return [
            "expected __version__ in bao_env/__init__.py, and '## VERSION, DATE' in CHANGELOG.md"
        ]
    version, date = version_line[1], newest[2]
    reasons = []
    if tag != f"v{version}":
        reasons.append(f"the tag is {tag}, and the version {version}: expected the tag v{version}")
    if newest[1] != version:
        reasons.append(f"CHANGELOG.md begins with {newest[1]}, and the version is {version}")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        reasons.append(f"CHANGELOG.md says {date!r} of {newest[1]}: expected a date, YYYY-MM-DD")
    return reasons


if __name__ == "__main__":
    reasons = obstacles(
        sys.argv[1],
        (ROOT / "bao_env" / "__init__.py").read_text(encoding="utf-8"),
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    )
    sys.exit("\n".join(reasons) or None)
