"""Evaluate a position without a search, by a sum over 16 pairs of pits.

The value is the sum of one number for each of the position's patterns
(:mod:`bao_agents.evaluators.pairs`): a logistic model of who wins, which treats counts of seeds as
categories rather than numbers.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bao_agents.evaluators.pairs import FINE, number_of_patterns, patterns_of
from bao_agents.support.array_types import Int16Array
from bao_env.compiled.compile import jit
from bao_env.engine.position import Index, Rows
from bao_env.engine.ruleset import RULESETS, Ruleset

SCALE = 200
"""Units of an evaluation per logit: at +200, e (2.718) games are won for each game lost."""
LIMIT = 20_000
"""Evaluations lie between minus and plus this number; proven results lie beyond."""

CELLS = number_of_patterns(FINE)
"""The number of fitted numbers per rule set."""

FILE = Path(__file__).with_name("tables.npz")
"""The file of each rule set's numbers. The numbers are fitted to self-play. They must not change,
because the ladder of players depends on them."""


class PairTables(NamedTuple):
    """An evaluator with one number for each fine pattern."""

    cells: Int16Array
    """int16[CELLS], in units of :data:`SCALE` per logit."""


@jit
def tables_value(tables: PairTables, rows: Rows) -> Index:
    """Return the value of a position for its mover, int64, in units of :data:`SCALE` per logit.

    Args:
        tables: the :class:`PairTables`.
        rows: the position, a :class:`Rows`.
    """
    cells, of = tables.cells, patterns_of(rows, FINE)
    # Written term by term: a loop would keep the 16 numbers in memory and take twice as long.
    front = np.int64(cells[of[0]]) + cells[of[1]] + cells[of[2]] + cells[of[3]]
    front += np.int64(cells[of[4]]) + cells[of[5]] + cells[of[6]] + cells[of[7]]
    back = np.int64(cells[of[8]]) + cells[of[9]] + cells[of[10]] + cells[of[11]]
    back += np.int64(cells[of[12]]) + cells[of[13]] + cells[of[14]] + cells[of[15]]
    return max(-LIMIT, min(LIMIT, front + back))


@cache
def _fitted() -> dict[str, Int16Array]:
    """Return the numbers in :data:`FILE`, by rule set.

    Raises:
        ValueError: the file cannot be read, or an array is missing or has another shape or dtype.
    """
    try:
        with np.load(FILE, allow_pickle=False) as archive:
            tables = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive raises almost anything
        raise ValueError(
            f"{FILE} cannot be read ({error!r:.100}): restore it from the repository"
        ) from error
    for name in ("zanzibar", *tables):
        array = tables.get(name)
        if array is None or array.shape != (CELLS,) or array.dtype != np.int16:
            description = "none" if array is None else f"{array.dtype}{list(array.shape)}"
            raise ValueError(
                f"{FILE}: expected int16[{CELLS}] for the rule set {name}, found {description}: "
                "restore it from the repository"
            )
    return {name: tables[name] for name in RULESETS if name in tables}


def load_tables(ruleset: Ruleset) -> PairTables:
    """Return the fitted tables of a rule set.

    A rule set without tables gets the tables of the most similar rule set. Both play namua, or
    neither does: tables fitted to mtaji alone know nothing of namua.

    Raises:
        ValueError: the file is damaged.
    """
    fitted = _fitted()
    settings = ruleset.to_dict()

    def differences(name: str) -> tuple[bool, int]:
        switches = RULESETS[name].to_dict()
        has_other_stages = bool(switches["opening_store"]) != bool(ruleset.opening_store)
        changed = [key for key, value in settings.items() if switches[key] != value]
        return has_other_stages, len(changed)

    return PairTables(fitted[min(fitted, key=differences)])
