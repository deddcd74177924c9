"""Print what is wrong with a built site, and exit with 1 if so: ``python .ci/check_site.py SITE``.

The build itself fails on links to unknown names (``nitpicky`` in docs/conf.py).
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import defaultdict
from html import unescape
from pathlib import Path
from urllib.parse import unquote


def faults(pages: dict[str, str]) -> list[str]:
    """Return the faults of pages, HTML by file name."""
    problems = []
    titles = defaultdict(list)
    anchors = {name: {*re.findall(r'\bid="([^"]+)"', page)} for name, page in pages.items()}
    for name, page in pages.items():
        if title := re.search(r"<h1>(.*?)<a ", page):
            titles[re.sub("<.*?>", "", title[1])].append(name)
        code = unescape(" ".join(re.findall(r"<(?:pre|code)\b.*?</(?:pre|code)>", page, re.DOTALL)))
        if quote := re.search("[\u201c\u201d\u2018\u2019].{0,30}", code):
            problems.append(f"{name}: code has curly quotes: {quote[0]!r}")
        if re.search(r"\d%\|", page):
            problems.append(f"{name}: an example's output has a progress bar")
        if 'Type<span class="colon">' in page:
            problems.append(f"{name}: words before a colon in a docstring are shown as a type")
        for link in re.findall(r'<a\b[^>]*\bhref="(?!\w+:)([^"]*#[^"]+)"', page):
            path, _, anchor = unquote(unescape(link)).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if anchor not in anchors.get(target if path else name, ()):
                problems.append(f"{name}: the link {link} leads nowhere")
    return problems + [
        f"{' and '.join(names)} have the same title, {title!r}"
        for title, names in titles.items()
        if len(names) > 1
    ]


if __name__ == "__main__":
    site = Path(sys.argv[1])
    problems = faults(
        {
            str(file.relative_to(site)): file.read_text(encoding="utf-8")
            for file in sorted(site.rglob("*.html"))
        }
    )
    print("\n".join(problems) or "the site has no known faults")
    sys.exit(bool(problems))
