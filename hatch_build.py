"""Add addresses and the README, as a package index shows it, to the metadata of a build.

The repository's address is only in ``repository-code`` in CITATION.cff. Without that line the
package has no addresses, and its description names files instead of linking them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def repository(citation: str) -> str:
    """Return the repository's address in CITATION.cff, or an empty string."""
    found = re.search(r'^repository-code: *"?(https://[^\s"]+)', citation, re.MULTILINE)
    return found[1].rstrip("/") if found else ""


def description(readme: str, address: str, version: str) -> str:
    """Return the README for readers who have no checkout.

    It installs the package from the index. What stands between ``<!-- checkout -->`` and the next
    heading is left out. A link leads to the repository; without an address, the words stay, and the
    file stands behind them in parentheses.

    Args:
        readme: the README, whose links are relative to the repository's root.
        address: the repository's address; empty if it has none.
        version: the package's version, whose tag is in the links.
    """
    text = re.sub(r"<!-- checkout -->.*?(?=^## |\Z)", "", readme, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- .*? -->\n", "", text)
    text = re.sub(r"pip install -e '\.(\[\w+\])'", r"pip install 'bao_env\1'", text)
    text = text.replace("In a clone, `pip install -e .`", "`pip install bao_env`")

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if target.startswith(("http", "#")):
            return found[0]
        if address:
            return f"{image}[{words}]({address}/{'raw' if image else 'blob'}/v{version}/{target})"
        return "" if image else f"{words} (`{target.partition('#')[0]}`)"

    text = re.sub(r"(!?)\[([^\]]*)\]\(([^)]+)\)", link, text)
    if not address:
        text = text.replace(
            "## Read on\n", "## Read on\n\nThe source distribution has the files:\n"
        )
    return re.sub(r"\n{3,}", "\n\n", text)


class Metadata(MetadataHookInterface):
    """Fill in ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Change the metadata in place."""
        root = Path(self.root)
        address = repository((root / "CITATION.cff").read_text(encoding="utf-8"))
        version = metadata["version"]
        text = description((root / "README.md").read_text(encoding="utf-8"), address, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if address:
            changes = f"{address}/blob/v{version}/CHANGELOG.md"
            metadata["urls"] = {"Repository": address, "Changelog": changes}
