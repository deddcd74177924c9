"""Find the text of a rule by the name that events and error messages cite."""

from __future__ import annotations

import re
from functools import cache

from bao_agents.support.files import pages_folder
from bao_env.engine.ruleset import Ruleset

_NUMBER = re.compile(r"(\d\.\d)([a-c]?)")


@cache
def _paragraphs() -> list[str]:
    text = (pages_folder() / "bao_env" / "RULES.md").read_text(encoding="utf-8")
    return [" ".join(part.split()) for part in text.split("\n\n")]


@cache
def rule_text(rule: str, house_min: int = Ruleset.house_min) -> str:
    """Return the paragraph of ``bao_env/RULES.md`` for a name like ``Donkers 2.4b``.

    The paragraph gives ``house_min`` as the fewest seeds of a house, and leaves out the opening,
    which a rule set may change. For a name that starts with the name of a rule set, return the
    description of the rule set. Return ``""`` for an unknown name.
    """
    source, _, number = rule.partition(" ")
    match = _NUMBER.match(number)
    heads = []
    if source == "Donkers" and match:
        heads = [rf"\*\*(?:[\d., ab]*, )?{re.escape(head)}[ ,*]" for head in (match[0], match[1])]
    if "footnote" in number:
        heads.append(r"^\*\*Footnote 2")
    for head in heads:
        for paragraph in _paragraphs():
            if re.search(head, paragraph):
                text = re.sub(r"At the start .*?begins\. ", "", paragraph.replace("**", ""))
                return text.replace("six", f"{house_min}")
    row = f"| `{source.lower()}` |"
    for paragraph in _paragraphs():
        if row in paragraph:
            return paragraph.partition(row)[2].split("| |")[0].strip(" |").replace("`", "")
    return ""
