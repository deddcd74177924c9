"""Players: the simple bots, names of players, and the arrays that all of them check."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

import agents
from agents.registry import CHECKPOINTS, GUIDES, KINDS, PLAYERS, checkpoint_of, parse
from bao_env import Board
from bao_env.bots import Agent, GreedyAgent, RandomAgent, get_agent
from bao_env.engine.position import Words, unpack
from bao_env.engine.ruleset import RULESETS
from bao_env.notation import format_position
from tests import reference
from tests.positions import random_play


@pytest.mark.parametrize("ruleset", RULESETS)
def test_greedy_captures_most(ruleset: str) -> None:
    """By the literal reference: seeds gained by the move, on the board and in the store."""
    positions, masks = random_play(ruleset)
    chosen = GreedyAgent(ruleset).act(positions, masks)
    captures = 0
    for words, action in zip(positions, chosen, strict=True):
        position = unpack(words)
        mover = position.mover
        before = sum(position.pits(mover)) + position.store[mover]
        moves = reference.legal_moves(format_position(position), RULESETS[ruleset])
        if any("wins" in text or len(text.split()) > 5 for text in moves.values()):
            continue  # a win or a waiting capture: not told apart by counting seeds
        gains = {}
        for option, text in moves.items():
            rows = [sum(map(int, row.split(","))) for row in text.split()[0].split("/")]
            store = int(text.split()[1].split(",")[mover])
            gains[option] = rows[2 * mover] + rows[2 * mover + 1] + store - before
        best = max(gains.values(), default=0)
        captures += best > 0
        assert not gains or action == min(a for a, gain in gains.items() if gain == best)
    assert captures > 50


def test_greedy_takes_a_win() -> None:
    board = Board.from_text(
        "0,0,4,0,0,2,0,1/0,0,0,0,0,0,0,0/1,0,0,0,0,0,0,0/9,9,9,9,9,2,0,0 5,4 - S -"
    )
    board.push(agents.load("greedy").choose(board))
    outcome = board.outcome()
    assert outcome is not None and outcome.winner == 0


def test_random_agent_is_seeded_and_uniform() -> None:
    positions, masks = random_play("zanzibar")
    first, again, other = (RandomAgent(seed).act(positions, masks) for seed in (3, 3, 4))
    assert first.tolist() == again.tolist() != other.tolist()
    agent = RandomAgent(0)
    counts = np.bincount(
        [agent.act(positions[:1], masks[:1])[0] for _ in range(4000)], minlength=64
    )
    legal = [a for a in range(64) if int(masks[0]) >> a & 1]
    assert counts[legal].sum() == 4000 and len(legal) > 1
    assert counts[legal].min() > 0.8 * 4000 / len(legal)


def test_unknown_name_raises() -> None:
    message = r"unknown player 'gredy' \(did you mean 'greedy'\?\): expected .* random, greedy"
    for load in (agents.load, get_agent):
        with pytest.raises(ValueError, match=message):
            load("gredy")


@pytest.mark.parametrize(
    "spec, message",
    [
        ("alphabeta:", "expected something like alphabeta:6, alphabeta:100ms, alphabeta:20000n"),
        ("alphabeta:0", "depth=0: expected 1 to 60"),
        ("mcts:1", "simulations=1: expected 2 to"),
        ("solver:0n", "nodes=0: expected 1 to"),
        ("guided:zanzibar", "something like guided:zanzibar:6, guided:zanzibar:100ms"),
        ("guided:zanzibar:99", "expected 1 to 60"),
        ("guided:kibao:6", "trained under rule set 'kibao'"),
        ("solver:1", "expected something like solver:1s, solver:500ms, solver:200000n"),
        ("solver:zanzibr:1s", r"no checkpoint 'zanzibr' \(did you mean 'zanzibar'\?\)"),
        ("mcts:10:lucky", "expected something like mcts:1000, mcts:1000:greedy, mcts:100ms"),
        ("alfabeta:6", r"\(did you mean 'alphabeta:6'\?\)"),
        ("search:zanzibr:64", r"no checkpoint 'zanzibr' \(did you mean 'zanzibar'\?\)"),
        ("no_such_module:make", "no_such_module:make cannot be imported: .*No module named"),
        ("agents.registry:nobody", "agents.registry:nobody cannot be imported: .* no attribute"),
        (f"{__name__}:make_nothing", "returned 'nothing': expected an object with act"),
        ("runs/nowhere.safetensors", "'runs/nowhere.safetensors': there is no such file"),
        ("../agents/registry", "there is no such file"),
    ],
)
def test_invalid_player_raises(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        agents.load(spec)


def test_every_example_is_a_player() -> None:
    """It belongs to its row of the registry, and is spelled alike."""
    for kind in KINDS:
        for example in kind.examples:
            if example != "runs/quick/final.safetensors":  # the user's own
                found = parse(example)
                assert found.kind is kind and str(found) == example
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len(PLAYERS) == sum(len(kind.examples) for kind in KINDS)


@pytest.mark.parametrize(
    ("spec", "name", "fields"),
    [
        ("alphabeta:100 ms", "alphabeta", (None, 100, "")),
        ("mcts:7:random", "mcts", (None, 7, "random")),
        ("mcts:100ms:greedy", "mcts", (None, 100, "greedy")),
        ("search:zanzibar:64", "search", ("zanzibar", 64, "")),
        ("guided:kibao:20000n", "guided", ("kibao", 20000, "")),
        ("solver:2s", "solver", (None, 2, "")),
        ("solver:2ms", "solver", (None, 2, "")),
        ("solver:zanzibar:2n", "guided-solver", ("zanzibar", 2, "")),
        ("kibao", "network", ("kibao", 0, "")),
        (
            f"{CHECKPOINTS}/kibao.safetensors",
            "network",
            (f"{CHECKPOINTS}/kibao.safetensors", 0, ""),
        ),
    ],
)
def test_parse(spec: str, name: str, fields: tuple) -> None:
    found = parse(spec)
    assert found.kind.name == name
    assert (found.checkpoint, found.budget, found.option) == fields
    assert checkpoint_of(spec) == found.path
    assert (found.path is None) == (found.checkpoint is None)
    if found.path is not None:
        folder = GUIDES if found.kind.reads_guide else CHECKPOINTS
        assert found.path.samefile(folder / f"{found.path.stem}.safetensors")


def test_bots_have_no_checkpoint() -> None:
    assert [checkpoint_of(spec) for spec in ("greedy", "alphabeta:3", "a:b", "nobody")] == [
        None
    ] * 4


def make_nothing(ruleset: object, seed: int) -> str:
    return "nothing"


def make_last(ruleset: object, seed: int) -> object:
    class Last:
        def act(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return np.array([int(mask).bit_length() - 1 for mask in masks])

    return Last()


def test_own_function_is_a_player() -> None:
    board = Board()
    player = agents.load(f"{__name__}:make_last")
    assert player.choose(board) == max(board.legal_actions)
    assert player.name == f"{__name__}:make_last"


def test_choose() -> None:
    board = Board()
    for name in ("random", "greedy"):
        assert agents.load(name).choose(board) in board.legal_actions
    while board.outcome() is None:
        board.push(board.legal_actions[0])
    with pytest.raises(ValueError, match="the game is over"):
        agents.load("greedy").choose(board)


@pytest.mark.parametrize(
    "spec",
    [
        kind.spelling.format(checkpoint="zanzibar", budget=f"2{unit}")
        for kind in KINDS
        for unit in kind.limits
        if kind.name != "function" and unit != "s"  # as good as ms, and slower
    ],
)
def test_players_check_arrays(spec: str) -> None:
    """Compiled code would read beyond the end of an array that is too short."""
    positions, masks = random_play("zanzibar")
    positions, masks = positions[:8], masks[:8]
    player = agents.load(spec, threads=1)
    for wrong, error in (
        ((positions[:1], np.resize(masks, 20_000)), ValueError),
        ((positions[0], masks[:1]), ValueError),
        ((positions[:, :5], masks), ValueError),
        ((positions, masks[:, None]), ValueError),
        ((positions.view(np.int64), masks), TypeError),
        ((positions, masks.tolist()), TypeError),
    ):
        with pytest.raises(error, match=r"(positions|legal): expected a C-contiguous uint64"):
            player.act(*wrong)
    assert player.act(positions[:0], masks[:0]).shape == (0,)
    views = positions[::2], masks[::2]
    chosen = player.act(*views).tolist()
    if "ms" not in spec:  # what time allows for differs from call to call
        copies = (array.copy() for array in views)
        assert chosen == agents.load(spec, threads=1).act(*copies).tolist()


@pytest.mark.parametrize("spec", ["alphabeta:300ms", "mcts:300ms", "solver:300ms"])
def test_search_from_two_threads_raises(spec: str) -> None:
    """Both would use the same memory."""
    positions, masks = random_play("zanzibar")
    choices = np.flatnonzero(masks & (masks - np.uint64(1)))[:1]
    positions, masks = positions[choices], masks[choices]
    player = agents.load(spec, threads=1)
    player.act(positions, masks)  # compiles
    together = threading.Barrier(2)

    def act() -> str:
        together.wait()
        try:
            player.act(positions, masks)
        except RuntimeError as error:
            return str(error)
        return "played"

    with ThreadPoolExecutor(2) as pool:
        said = sorted(future.result() for future in [pool.submit(act), pool.submit(act)])
    assert said[0] == "played"
    assert "this player is at work in another thread" in said[1]
    player.act(positions, masks)


SEARCHES = (
    "alphabeta:3",
    "guided:zanzibar:500n",
    "mcts:50",
    "solver:zanzibar:500n",
    "search:zanzibar:8",
    "zanzibar",
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_searches_in_workers(threads: int) -> None:
    """Players choose the same in a thread, in a forked process and in a spawned one."""
    positions, masks = (array[:40] for array in random_play("zanzibar"))

    def load() -> list[Agent]:
        return [agents.load(name, seed=1, threads=threads) for name in SEARCHES]

    def act(bots: list[Agent]) -> list[npt.NDArray[np.int64]]:
        return [bot.act(positions, masks) for bot in bots]

    expected = act(load())
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: act(load()), range(3)))
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    bots = load()
    act(bots)  # now they have threads
    child = fork.Process(target=lambda: queue.put(act(bots)))
    child.start()
    try:
        found.append(queue.get(timeout=60))
    finally:
        child.kill()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as processes:
        found.append(processes.submit(_act_with, SEARCHES, threads, positions, masks).result())
    for actions in found:
        np.testing.assert_array_equal(actions, expected)


def _act_with(
    names: Sequence[str], threads: int, positions: Words, masks: Words
) -> list[npt.NDArray[np.int64]]:
    return [agents.load(name, seed=1, threads=threads).act(positions, masks) for name in names]
