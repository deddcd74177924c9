"""Find the text of a rule by the name that events and error messages cite."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from bao_agents.support.files import pages_folder
from bao_env.engine.ruleset import Ruleset

NUMBER = re.compile(r"([\w,]+)<!-- (\w+) -->")
"""A number that depends on the rule set, as ``bao_env/RULES.md`` writes it: its value in zanzibar,
then the name of the switch in a comment."""
_RULE = re.compile(r"(\d\.\d)([a-c]?)")


@cache
def _paragraphs() -> list[str]:
    text = (pages_folder() / "bao_env" / "RULES.md").read_text(encoding="utf-8")
    return [" ".join(part.split()) for part in text.split("\n\n")]


def rule_numbers(rules: Ruleset) -> dict[str, int]:
    """Return the numbers that texts about the rules leave open, by the names of their switches."""
    switches = {switch for part in _paragraphs() for _, switch in NUMBER.findall(part)}
    return {switch: getattr(rules, switch) for switch in sorted(switches)}


@lru_cache(maxsize=1024)  # the rules of every visitor's game are different ones
def rule_text(rule: str, rules: Ruleset) -> str:
    """Return the paragraph of ``bao_env/RULES.md`` for a name like ``Donkers 2.4b``.

    The paragraph has the numbers of ``rules``, and leaves out the opening, which a rule set may
    change. For a name that starts with the name of a rule set, return the description of the rule
    set. Return ``""`` for an unknown name.
    """
    source, _, number = rule.partition(" ")
    match = _RULE.match(number)
    heads = []
    if source == "Donkers" and match:
        heads = [rf"\*\*(?:[\d., ab]*, )?{re.escape(head)}[ ,*]" for head in (match[0], match[1])]
    if "footnote" in number:
        heads.append(r"^\*\*Footnote 2")
    for head in heads:
        for paragraph in _paragraphs():
            if re.search(head, paragraph):
                text = re.sub(r"At the start .*?begins\. ", "", paragraph.replace("**", ""))
                return NUMBER.sub(lambda match: str(getattr(rules, match[2])), text)
    row = f"| `{source.lower()}` |"
    for paragraph in _paragraphs():
        if row in paragraph:
            return paragraph.partition(row)[2].split("| |")[0].strip(" |").replace("`", "")
    return ""
