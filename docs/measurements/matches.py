"""Measure players by commands: matches between them, and won games that they give away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bao_env.engine.ruleset import RULESETS
from docs.measurements.parts import Part, json_of, match, rows_of, run_bao, share

EIGHT = """name = "eight"
opening_front = [0, 0, 0, 0, 8, 2, 2, 0]
opening_store = 20
takasia = "none"
"""
"""A file of rules without shipped networks: more seeds in each house, and no takasia."""

LIMITS = {"3,000 nodes": ("3000n", 300, 1), "3 ms": ("3ms", 250, 2), "30 ms": ("30ms", 40, 2)}
"""The limit of both players, the pairs of games and their minutes, by the head of a column."""


def training_parts() -> tuple[Part, ...]:
    """Return a training and a match for each rule set, and for :data:`EIGHT`."""
    parts = []
    for name in (*RULESETS, "eight"):
        rules = "eight.toml" if name == "eight" else name
        line = f"bao train quick --run {name} --ruleset {rules}"

        def train(folder: Path, line: str = line) -> None:
            (folder / "eight.toml").write_text(EIGHT, encoding="utf-8")
            run_bao(line, folder, "--resume")

        parts.append(Part(line, 5, train))
        line = f"bao match guided:runs/{name}:3ms alphabeta:3ms --pairs 200 --seed 21"
        parts.append(match(line, 2))
    return tuple(parts)


def training_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of training in minutes."""
    names = [*(f"`{name}`" for name in RULESETS), "*eight*, against the tables of zanzibar"]
    return [["rule set", "points against `alphabeta:3ms`, %"], *rows_of(names, results[1::2])]


BOTS = "greedy alphabeta:2 alphabeta:4"
"""The opponents of the shipped networks without a search."""


def network_parts() -> tuple[Part, ...]:
    """Return the matches of each shipped network without a search."""
    return tuple(
        match(f"bao match {name} {BOTS} --ruleset {name} --pairs 1000 --seed 1", 2)
        for name in RULESETS
    )


def network_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of networks without a search."""
    names = [f"`{name}`" for name in RULESETS]
    return [["network", *(f"`{bot}`, %" for bot in BOTS.split())], *rows_of(names, results)]


def guide_parts() -> tuple[Part, ...]:
    """Return the matches of each shipped guide against alpha-beta, at each limit."""
    players = [
        (f"guided:{limit} alphabeta:{limit}", pairs, minutes)
        for limit, pairs, minutes in LIMITS.values()
    ]
    return tuple(
        match(f"bao match {names} --ruleset {rules} --pairs {pairs} --seed 21", minutes)
        for rules in RULESETS
        for names, pairs, minutes in players
    )


def guide_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of the shipped guides."""
    cells = iter(results)
    rows = [[f"`guides/{name}`", *(next(cells)[0] for _ in LIMITS)] for name in RULESETS]
    return [["guide", *(f"{limit}, %" for limit in LIMITS)], *rows]


# --- won games given away ---------------------------------------------------------------------

DECIDERS = "random greedy alphabeta:2 alphabeta:4 alphabeta:6 mcts:1000 NETWORK guided:2000n"
"""The players who are asked in won positions; NETWORK is the rule set's network alone."""


def _blunders(ruleset: str) -> Part:
    """Return a part that counts won games given away; its result is a cell for each player."""
    line = f"bao blunders {DECIDERS.replace('NETWORK', ruleset)} --ruleset {ruleset}"

    def count(folder: Path) -> list[str]:
        results = json_of(line, folder)["results"]
        counts = [result["blunders"]["all"]["all"] for result in results]
        return [share(count["mistakes"], count["moves"]) for count in counts]

    return Part(line, 1, count)


def blunder_parts() -> tuple[Part, ...]:
    """Return a part for each rule set with positions that are proven won."""
    return _blunders("kujifunza"), _blunders("zanzibar")


def blunder_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of won games given away."""
    names = [f"`{name}`" for name in DECIDERS.split()]
    names[names.index("`NETWORK`")] = "the shipped network"
    heads = ["player", "kujifunza: win given away, %", "zanzibar: win given away, %"]
    return [heads, *map(list, zip(names, *results, strict=True))]
