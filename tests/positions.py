"""Provide positions for tests: named ones, random ones, and positions of random games.

Random positions come from two functions. `some_positions` returns texts and uses only the
reference: half of the texts are from random games, and half are corner cases. `draw` plays random
games with the engine and returns packed positions. Texts follow RULES.md, "Board and notation".
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from bao_env.board import Board
from bao_env.engine.batch import Engine
from bao_env.engine.position import WORDS, Legal, PackedPositions, pack, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.openings import Openings
from bao_env.notation.positions import format_position, parse_position
from tests.reference import (
    BACK,
    FACING,
    FRONT,
    HOUSE,
    NORTH,
    OPPONENT,
    SIDE,
    SOUTH,
    WINS,
    Hole,
    Position,
    in_namua,
    legal_moves,
    opening,
    takasia_hole,
    write,
)

# --- positions by name ------------------------------------------------------------------------

OPENING = "0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0/0,0,0,0,6,2,2,0/0,0,0,0,0,0,0,0 22,22 SN S -"
"""The opening of zanzibar, kibao and dutch."""
HOUSE_CHOICE = "1,0,0,0,12,0,0,1/0,0,0,0,0,0,1,1/0,1,3,0,9,0,3,1/1,1,1,1,1,1,0,0 12,13 SN N -"
"""North captures at a8 and reaches their own house: 8 and 8> are both legal."""
TAKASIA = "2,3,0,7,1,8,0,3/5,7,3,2,2,3,4,4/0,0,0,0,0,0,1,0/1,0,0,1,2,1,2,2 0,0 - S A2"
"""Takasia bars A2; the endelea of A6L ends there."""
WAITING = "0,0,5,3,0,2,0,4/1,3,1,2,1,1,1,0/1,1,3,1,9,2,3,0/2,5,1,4,1,3,4,0 0,0 - N - A3:14"
"""Dutch: North must still choose the side of the capture at a3, after 14 seeds sown."""
LONE_KICHWA = "4,0,0,0,0,0,0,0/0,1,2,1,3,0,2,2/1,5,8,13,2,3,0,0/4,0,3,0,5,1,3,1 0,0 - S -"
"""South's only filled front hole is a kichwa, A1."""
ENDLESS = "4,2,5,4,5,0,1,0/3,4,7,6,0,3,4,1/0,0,2,0,0,0,0,0/13,0,0,0,0,0,0,0 0,0 - S -"
"""The takasa A1R sows more than 1,000 seeds."""

MAKES_TAKASIA = "0,0,0,0,0,0,2,6/0,1,1,2,2,0,2,0/0,0,1,3,4,4,6,1/1,4,2,1,0,3,12,6 0,0 - N -"
"""North's takasa a7R bars one of South's holes."""
WON = "1,1,0,5,7,0,4,8/3,0,2,0,2,0,5,1/1,1,2,1,2,0,3,1/0,2,0,2,0,2,1,3 2,2 - S -"
"""South wins in 13 plies with three of eight moves, and loses with the others."""
SMOTHERS = "0,1,1,1,1,1,2,2/0,1,0,1,0,1,0,0/1,3,3,1,9,11,6,1/3,2,3,2,2,4,1,0 0,0 - N -"
"""Six of North's eight moves leave South without a legal move; none empties the front row."""
STUCK = "1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1/0,0,0,0,0,0,0,1/0,0,0,0,0,0,0,47 0,0 - S -"
"""South has no legal move: the game is over."""

# --- random positions -------------------------------------------------------------------------


ANY_DENSITY = (0.15, 0.3, 0.5, 0.75, 0.95)
LAYOUTS: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]] = {
    "sparse or dense": (ANY_DENSITY, ANY_DENSITY, (1, 2, 3, 6)),
    "full front": ((1.0,), (0.0, 1.0), (1, 2, 3)),
    "lone front": ((0.0,), (0.0, 0.2, 0.6, 1.0), (3,)),
    "lone house": ((0.0,), (0.0, 0.0, 0.2, 0.6), (3,)),
    "house": (ANY_DENSITY, ANY_DENSITY, (1, 2, 3, 6)),
    "singletons": ((0.3, 0.6, 0.9), (0.3, 0.6, 0.9), (1,)),
    "huge": (ANY_DENSITY, ANY_DENSITY, (1, 2, 3, 6)),
}
"""Layouts to choose from: the densities of the front row and of the back row, and the most seeds in
a hole."""


def lay(rng: random.Random, rules: Any, player: str) -> tuple[dict[Hole, int], list[Hole]]:
    """Fill both rows of a player according to one of the layouts.

    Returns:
        the seeds by hole, and the holes where more may be added.
    """
    layout = rng.choice(list(LAYOUTS))
    fronts, backs, mosts = LAYOUTS[layout]
    rows = (FRONT[player], rng.choice(fronts)), (BACK[player], rng.choice(backs))
    most_seeds = rng.choice(mosts)
    laid = {hole: rng.randint(1, most_seeds) for row, p in rows for hole in row if rng.random() < p}
    fixed: dict[Hole, int] = {}
    chance = rng.random()
    if layout == "lone front":  # mostly a kichwa
        lone = rng.choice((FRONT[player][0], FRONT[player][7], rng.choice(FRONT[player])))
        fixed[lone] = rng.choice((1, 1, 2, 3, rng.randint(4, 20)))
    elif layout in ("house", "lone house") or (layout == "singletons" and chance < 0.3):
        around = rng.choice((-1, -1, 0, 0, 1, 1, rng.randint(2, 8)))
        fixed[HOUSE[player]] = max(1, rules.house_min + around)
    elif layout == "singletons" and chance < 0.5:
        fixed[rng.choice(FRONT[player])] = rng.randint(2, 4)
    elif layout == "huge":  # about 16 seeds, the limit for a capture, or more
        for hole in rng.sample(SIDE[player], rng.choice((1, 1, 2))):
            fixed[hole] = rng.choice((15, 16, 17, rng.randint(16, 30), rng.randint(16, 50)))
    sinks = [hole for hole in laid if hole not in fixed and layout != "singletons"]
    return laid | fixed, sinks


def random_stores(rng: random.Random, rules: Any) -> tuple[dict[str, int], str]:
    """Draw stores that occur in play, and the player to move."""
    starter = rng.choice((SOUTH, SOUTH, SOUTH, NORTH))
    mover = rng.choice((SOUTH, NORTH))
    full = min(rules.opening_store, 30)
    # Half of the positions are in mtaji, and many of the others at the very end of namua.
    store = min(full, rng.choice((0, 0, 0, 1, rng.randint(0, full), rng.randint(0, full))))
    stores = {SOUTH: store, NORTH: store}
    # The starter always moves with equal stores; the other player then has one seed more,
    # until both stores are empty.
    if mover != starter and store > 0:
        stores[starter] = store - 1
    return stores, mover


def random_board(rng: random.Random, rules: Any, mover: str, seeds: int) -> dict[Hole, int] | None:
    """Draw a board with that many seeds, or None if this attempt fails."""
    holes = dict.fromkeys(SIDE[SOUTH] + SIDE[NORTH], 0)
    sinks = []
    for player in (SOUTH, NORTH):
        laid, player_sinks = lay(rng, rules, player)
        holes.update(laid)
        sinks += player_sinks

    # Sometimes no filled hole faces another: seeds move to the hole behind, mostly on the
    # opponent's side, so that the mover's layout survives.
    if rng.random() < 0.4:
        yielding = OPPONENT[mover] if rng.random() < 0.7 else mover
        for hole, behind in zip(FRONT[yielding], BACK[yielding], strict=True):
            if holes[hole] > 0 and holes[FACING[hole]] > 0:
                holes[behind] += holes[hole]
                holes[hole] = 0
                sinks = [sink for sink in sinks if sink != hole] + [behind]
    for player in (SOUTH, NORTH):
        if all(holes[hole] == 0 for hole in FRONT[player]):
            return None

    # Add the missing seeds one by one to the sinks, all of them or a few.
    missing = seeds - sum(holes.values())
    if missing < 0:
        return None
    if not sinks:
        sinks = rng.sample(BACK[SOUTH] + BACK[NORTH], rng.choice((1, 3, 16)))
    elif rng.random() < 0.3:
        sinks = rng.sample(sinks, min(len(sinks), rng.choice((1, 2, 4))))
    for _ in range(missing):
        holes[rng.choice(sinks)] += 1
    return holes


def random_position(rng: random.Random, rules: Any) -> str:
    """Draw a valid position text, rich in corner cases.

    It has 64 seeds, no empty front row, and no owned house that is empty or, if the rules end such
    a house, below its minimum. Stores are as they occur in play; either player may have begun the
    game. A hole is barred only where takasia could bar it. No position waits for a side.
    """
    stores, mover = random_stores(rng, rules)
    seeds = 64 - stores[SOUTH] - stores[NORTH]
    holes = None
    while holes is None:
        holes = random_board(rng, rules, mover, seeds)
    position = Position(
        holes=holes,
        stores=stores,
        owned={
            player: rules.house
            and holes[HOUSE[player]] > 0
            and rng.random() < 0.65
            and not (rules.house_lost_below_min and holes[HOUSE[player]] < rules.house_min)
            for player in (SOUTH, NORTH)
        },
        mover=mover,
    )
    if not in_namua(position, OPPONENT[mover]) and rng.random() < 0.7:
        position.barred = takasia_hole(position, rules)
    return write(position)


# --- positions of random games ----------------------------------------------------------------


def random_games(rng: random.Random, rules: Any) -> Iterator[str]:
    """Yield the positions of random games from the opening, game after game, endlessly.

    Every position has a legal move.
    """
    while True:
        starters = (SOUTH, NORTH) if rules.first_player == "random" else (SOUTH,)
        text = opening(rules, rng.choice(starters))
        while text not in WINS.values():
            yield text
            text = rng.choice(list(legal_moves(text, rules).values()))


def some_positions(rules: Any, count: int, seed: int) -> list[str]:
    """Return positions: half are from random games, half are corner cases."""
    rng = random.Random(seed)
    texts = list(islice(random_games(rng, rules), count // 2))
    return texts + [random_position(rng, rules) for _ in range(count - len(texts))]


def played(ruleset: str | Ruleset, seed: int, first_player: int = 0) -> Board:
    """Return a board at the end of a random game."""
    rng = random.Random(seed)
    board = Board(ruleset, first_player)
    while not board.outcome():
        board.push(rng.choice(board.legal_actions))
    return board


def pack_texts(texts: list[str], ruleset: Ruleset) -> tuple[PackedPositions, Legal]:
    """Return packed positions, uint64[B, 6], and their legal actions, uint64[B]."""
    positions = np.zeros((len(texts), WORDS), np.uint64)
    for text, position in zip(texts, positions, strict=True):
        pack(parse_position(text, ruleset), position)
    legal = np.zeros(len(texts), np.uint64)
    Engine(ruleset).find_legal(positions, legal, np.zeros(len(texts), np.int8))
    return positions, legal


def board_of(position: PackedPositions, ruleset: str | Ruleset) -> Board:
    """Return a board with a packed position."""
    return Board.from_text(format_position(unpack(position)), ruleset)


def seeds_of(packed: PackedPositions, seat: int) -> int:
    """Return the seeds of a seat, on the board and in the store."""
    position = unpack(packed)
    return sum(position.pits(seat)) + position.store[seat]


def draw(
    ruleset: str | Ruleset, count: int = 200, plies: int | tuple[int, int] = 25, seed: int = 0
) -> tuple[PackedPositions, Legal]:
    """Draw positions of random games with the engine, and their legal actions.

    Args:
        ruleset: the rules.
        count: the number of games, one position of each.
        plies: the number of random plies before the position, or the lowest and the highest
            number. No game is over.
        seed: the seed of the games.

    Returns:
        positions: uint64[count, 6], packed.
        legal: uint64[count], bit a = action a.
    """
    bounds = plies if isinstance(plies, tuple) else (plies, plies)
    return Openings(get_ruleset(ruleset), bounds).draw(count, np.random.default_rng(seed))


def mixed_batch(ruleset: Ruleset, count: int, seed: int) -> PackedPositions:
    """Return the packed positions of :func:`some_positions` that have legal actions."""
    positions, legal = pack_texts(some_positions(ruleset, count, seed), ruleset)
    return positions[legal != 0]
