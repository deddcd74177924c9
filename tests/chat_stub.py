"""What a language model would do, without one: read prompts, answer them, serve the answers."""

from __future__ import annotations

import re

from bao_env.engine.position import Position
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import parse_position

_ROWS = re.compile(r"([abAB])([1-8]): ?(\d+)")


def read_prompt(prompt: str, ruleset: Ruleset) -> Position:
    """Return the position that a prompt shows, from its words alone."""
    counts = {row: ["0"] * 8 for row in "ABab"}
    for row, hole, count in _ROWS.findall(prompt):
        counts[row][int(hole) - 1] = count
    stores = re.search(r"Stores: South (\d+), North (\d+)\.", prompt)
    mover = re.search(r"(South|North) is to move", prompt)
    assert stores and mover
    owners = "".join(name[0] for name in ("South", "North") if f"{name} owns the house" in prompt)
    barred = re.search(r"Takasia bars (\w\d)", prompt)
    waiting = re.search(r"The capture at (\w\d) waits for its end; (\d+) seeds", prompt)
    fields = [
        "/".join(",".join(row) for row in counts.values()),
        f"{stores[1]},{stores[2]}",
        owners or "-",
        mover[1][0],
        barred[1] if barred else "-",
        *([f"{waiting[1]}:{waiting[2]}"] if waiting else []),
    ]
    return parse_position(" ".join(fields), ruleset)
