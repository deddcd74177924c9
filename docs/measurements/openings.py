"""Measure who begins with an advantage, and which first move is best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bao_agents import analyse, load
from bao_agents.arena.games import play_games
from bao_agents.arena.openings import draw_openings, read_openings
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint_files import CHECKPOINTS
from bao_agents.nets.legal_actions import best_legal_actions
from bao_agents.nets.player import NetworkAgent
from bao_env import Board, Engine
from bao_env.engine.position import PackedPositions
from bao_env.engine.ruleset import RULESETS
from docs.measurements.parts import Part, share


def policy_openings(count: int) -> PackedPositions:
    """Return different positions after eight plies drawn by the policy of zanzibar's network."""
    engine, rng = Engine(), np.random.default_rng(1)
    shipped = checkpoint.load(CHECKPOINTS / "zanzibar.safetensors", engine.ruleset)
    agent = NetworkAgent(shipped.network, engine.ruleset)
    positions, legal, winners = engine.new_games(3 * count)
    for _ in range(8):
        evaluation = agent.evaluate(positions, legal)
        noise = rng.gumbel(size=len(evaluation.logits)).astype(np.float32)
        actions = best_legal_actions(evaluation.logits + noise, evaluation.indptr, legal)
        engine.step(positions, actions, legal, winners)
    first = np.sort(np.unique(positions, axis=0, return_index=True)[1])
    return positions[first[legal[first] != 0]][:count]


def random_openings(count: int) -> PackedPositions:
    """Return positions after eight random plies."""
    return draw_openings(RULESETS["zanzibar"], count, 8, seed=1, balance=None).positions


def balanced_openings(count: int) -> PackedPositions:
    """Return positions of the balanced openings that ship."""
    return read_openings("balanced", RULESETS["zanzibar"], count, seed=1).positions


OPENINGS = {
    "drawn by the policy of the network `zanzibar`": (policy_openings, 800),
    "random": (random_openings, 800),
    "balanced openings": (balanced_openings, 2000),
}
"""The positions from which guided alpha-beta plays itself, and how many, by a row's first cell."""


def south_wins(openings: Callable[[int], PackedPositions], games: int) -> str:
    """Return South's share of wins where guided alpha-beta plays itself, as a cell."""
    positions = openings(games)
    player = load("guided:2000n", ruleset="zanzibar")
    first_players = np.zeros(len(positions), np.int8)
    winners = play_games((player, player), positions, first_players, Engine()).winners
    return share(int((winners == 0).sum()), len(positions))


def opening_parts() -> tuple[Part, ...]:
    """Return the games from each kind of openings."""

    def part(openings: Callable[[int], PackedPositions], games: int) -> Part:
        call = f"south_wins({openings.__name__}, {games})"
        return Part(call, 1, lambda folder: south_wins(openings, games))

    return tuple(part(*row) for row in OPENINGS.values())


def opening_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of who begins."""
    rows = [
        [row, f"{games:,}", cell]
        for (row, (_, games)), cell in zip(OPENINGS.items(), results, strict=True)
    ]
    return [["positions", "games", "South wins, % (95% interval)"], *rows]


def first_moves() -> list[list[str]]:
    """Return each first move and its value as cells, best first."""
    board = Board()
    analysis = analyse(board, "guided:200000000n", lines=None, threads=1)
    return [[f"`{board.move_text(line.action)}`", f"{line.score:.2f}"] for line in analysis.lines]


def first_move_parts() -> tuple[Part, ...]:
    """Return the analysis of the opening."""
    return (Part("first_moves()", 3, lambda folder: first_moves()),)


def first_move_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of first moves."""
    return [["South's first move", "value, from -1 to 1"], *results[0]]
