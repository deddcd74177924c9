"""Say how each table of the pages is measured; ``docs/results.py`` measures and prints them."""

from __future__ import annotations

from collections.abc import Mapping

from bao_env.engine.ruleset import RULESETS
from docs.measurements import matches, openings, random_games, speed
from docs.measurements.parts import Part, Table

__all__ = ["TABLES", "Part", "Table"]

EVALUATION = "evaluators/tables.npz"
"""The evaluation of alpha-beta, which also chooses balanced openings."""
GUIDES = tuple(f"guides/{name}" for name in RULESETS)

TABLES: Mapping[str, Table] = {
    "speed": Table(speed.speed_parts(), speed.speed_lines),
    "first-minute": Table(speed.start_parts(), speed.start_lines),
    "training": Table(matches.training_parts(), matches.training_lines, (EVALUATION,)),
    "networks": Table(matches.network_parts(), matches.network_lines, (EVALUATION, *RULESETS)),
    "guides": Table(matches.guide_parts(), matches.guide_lines, (EVALUATION, *GUIDES)),
    "blunders": Table(
        matches.blunder_parts(),
        matches.blunder_lines,
        (
            *("kujifunza", "zanzibar", "guides/kujifunza", "guides/zanzibar", EVALUATION),
            *("exact/won/kujifunza.npz", "exact/won/zanzibar.npz"),
        ),
    ),
    "random-games": Table(random_games.random_parts(), random_games.random_lines),
    "who-begins": Table(
        openings.opening_parts(),
        openings.opening_lines,
        ("guides/zanzibar", "zanzibar", EVALUATION, "arena/balanced/zanzibar.tsv"),
    ),
    "first-moves": Table(
        openings.first_move_parts(), openings.first_move_lines, ("guides/zanzibar",)
    ),
}
"""The tables that ``docs/results.py`` makes, by name."""
