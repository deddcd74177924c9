"""The engine and the players: odd arrays, threads, and the rules themselves."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, GreedyAgent, RandomAgent
from bao_env.engine.batch import Engine, random_actions, random_states, unpack_masks
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import NO_WINNER, unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import packed
from bao_env.notation import (
    format_position,
    parse_position,
)
from tests import reference
from tests.attacks.limits import within
from tests.positions import random_position


def random_batch(
    engine: Engine, size: int, plies: int, seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Positions of random games after so many plies, and their legal actions."""
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (size, 1)), np.full(size, mask)
    winners = np.full(size, NO_WINNER, np.int8)
    engine.play_random(positions, masks, winners, random_states(size, seed), plies)
    return positions, masks


def odd(rng: random.Random, array: npt.NDArray[Any]) -> Any:
    """Something like an array, but not quite."""
    wide = np.zeros((array.shape[0], *array.shape[1:], 2), array.dtype)
    wide[..., 0] = array
    bytes_ = np.zeros(array.nbytes + 1, np.uint8)
    misaligned = bytes_[1:].view(array.dtype).reshape(array.shape)
    misaligned[...] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    others = [np.int8, np.int32, np.int64, np.float64, np.bool_, np.complex128, np.uint8]
    return rng.choice(
        [
            array[: len(array) // 2],
            array[:0],
            np.concatenate([array, array]),
            array[..., None],
            array.reshape(-1),
            array[::-1],
            wide[..., 0],
            np.asfortranarray(array),
            array.T,
            read_only,
            misaligned,
            array.astype(array.dtype.newbyteorder()),
            array.astype(rng.choice(others)),
            array.view(np.uint8),
            array.astype(object),
            array[0],
            array.tolist(),
            None,
            7,
            "array",
            np.array(7, array.dtype),
            memoryview(array.data),
            np.ma.masked_array(array),
        ]
    )


def _players(ruleset: Ruleset) -> dict[str, Agent]:
    from agents.nets.network import NetworkConfig, PolicyNetwork
    from agents.nets.policy import NetworkAgent
    from agents.search.alphabeta.player import AlphaBetaAgent
    from agents.search.gumbel.player import SearchAgent
    from agents.search.mcts import MctsAgent

    network = PolicyNetwork(NetworkConfig("moves", (8,)))
    return {
        "random": RandomAgent(1),
        "greedy": GreedyAgent(ruleset),
        "alphabeta": AlphaBetaAgent(ruleset, depth=2, threads=2),
        "mcts": MctsAgent(ruleset, simulations=4, threads=2),
        "network": NetworkAgent(network, ruleset),
        "search": SearchAgent(network, ruleset, 4, threads=2),
    }


def arrays(rng: random.Random, folder: Path) -> None:
    """Odd arrays, and several threads, are refused or served; nothing crashes."""
    ruleset = RULESETS[rng.choice(list(RULESETS))]
    size = rng.choice((1, 3, 64, 700))
    engines = [Engine(ruleset, threads) for threads in (1, 2, 3)]
    positions, masks = random_batch(engines[0], size, 20, rng.randrange(1000))
    players = _players(ruleset)
    for player in players.values():
        player.act(positions[:3], masks[:3])  # compiles

    def good() -> dict[str, npt.NDArray[Any]]:
        actions = np.zeros(size, np.int64)
        random_actions(masks, random_states(size, 1), actions)
        return {
            "positions": positions.copy(),
            "masks": masks.copy(),
            "winners": np.full(size, NO_WINNER, np.int8),
            "actions": actions,
            "rng": random_states(size, 2),
            "out": np.zeros((size, 64), np.int8),
        }

    def calls(engine: Engine) -> dict[str, tuple[Callable[..., Any], tuple[str, ...]]]:
        of_engine: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
            "legal_masks": (engine.legal_masks, ("positions", "masks", "winners")),
            "step": (engine.step, ("positions", "actions", "masks", "winners")),
            "play_random": (
                partial(engine.play_random, plies=3),
                ("positions", "masks", "winners", "rng"),
            ),
            "random_actions": (random_actions, ("masks", "rng", "actions")),
            "unpack_masks": (unpack_masks, ("masks", "out")),
        }
        return of_engine | {
            name: (player.act, ("positions", "masks")) for name, player in players.items()
        }

    def one(rng: random.Random, oddness: float) -> None:
        name, (call, names) = rng.choice(list(calls(rng.choice(engines)).items()))
        given: list[Any] = [good()[key] for key in names]
        for i in range(len(given)):
            if rng.random() < oddness:
                given[i] = odd(rng, given[i])
        print(name, *(f"{getattr(g, 'dtype', g)}{np.shape(g)}" for g in given), flush=True)
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            call(*given)

    for _ in range(600):
        with within(60):
            one(rng, 0.5)
    # Threads share engines and players, for which these are not made: refused or not, no crash.
    with within(120), ThreadPoolExecutor(4) as pool:
        list(pool.map(one, [random.Random(rng.random()) for _ in range(200)], [0.1] * 200))


def engine_moves(engine: Engine, text: str) -> dict[int, str]:
    """What :func:`tests.reference.legal_moves` finds, by the engine."""
    words = packed(parse_position(text, engine.ruleset))
    masks, winners = np.zeros(1, np.uint64), np.zeros(1, np.int8)
    engine.legal_masks(words[None], masks, winners)
    legal = [action for action in range(64) if int(masks[0]) >> action & 1]
    assert bool(legal) == (winners[0] == NO_WINNER)
    if not legal:
        return {}
    positions, masks = np.tile(words, (len(legal), 1)), np.full(len(legal), masks[0])
    winners = np.full(len(legal), NO_WINNER, np.int8)
    engine.step(positions, np.array(legal), masks, winners)
    return {
        action: f"{'SN'[winners[i]]} wins"
        if winners[i] != NO_WINNER
        else format_position(unpack(positions[i]))
        for i, action in enumerate(legal)
    }


def rules(rng: random.Random, folder: Path) -> None:
    """Random games and positions: the engine and the literal reference never differ."""
    for name in rng.sample(list(RULESETS), 2):
        ruleset = RULESETS[name]
        engine = Engine(ruleset, rng.choice((1, 2)))
        text = reference.opening(ruleset)
        for _ in range(400):
            if rng.random() < 0.3:
                other = random_position(rng, ruleset)
                found = engine_moves(engine, other)
                assert found == reference.legal_moves(other, ruleset), (name, other)
            moves = engine_moves(engine, text)
            assert moves == reference.legal_moves(text, ruleset), (name, text)
            text = rng.choice(list(moves.values()))
            if text in reference.WINS.values():
                seat = rng.choice((SOUTH, NORTH)) if ruleset.first_player == "lot" else SOUTH
                text = reference.opening(ruleset, "SN"[seat])
