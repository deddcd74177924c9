"""Test alpha-beta: it equals plain minimax, keeps its limits, and depends on nothing else."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from types import FrameType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from bao_agents.evaluators import tables
from bao_agents.evaluators.tables import SCALE, load_tables
from bao_agents.players.player import new_games
from bao_agents.players.registry import load
from bao_agents.search.alphabeta import game_tables
from bao_agents.search.alphabeta import player as alphabeta_player
from bao_agents.search.alphabeta.game_tables import GameTables
from bao_agents.search.alphabeta.player import AlphaBetaAgent, SearchResult
from bao_agents.search.alphabeta.transposition import (
    BOUND_EXACT,
    EPOCHS,
    NO_ACTION,
    PROVEN,
    WIN_VALUE,
    game_table_words,
    next_age,
    next_epoch,
    probe,
    store,
    table_words,
)
from bao_agents.search.alphabeta.workspace import MAX_DEPTH
from bao_agents.search.limits import Limit
from bao_agents.search.player import NO_MEMORY
from bao_agents.support.cores import cores
from bao_env import Board
from bao_env.engine.action import actions_of
from bao_env.engine.bits import U
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.position import (
    META,
    Rows,
    packed_opening,
    unpack,
)
from bao_env.engine.ruleset import RULESETS
from bao_env.engine.starts import is_stuck, startable
from bao_env.engine.successors import (
    ACTION,
    CAPTURED,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)
from tests.positions import SMOTHERS, WON, mixed_batch, seeds_of
from tests.rulesets import every_ruleset
from tests.searches import minimax, tables_evaluator


def make_table(nodes: float) -> np.ndarray:
    """Return an empty transposition table for a small search."""
    return np.zeros(table_words(nodes), np.uint64)


@every_ruleset("zanzibar", "dutch", name="name")
def test_successors_are_the_legal_moves(name: str) -> None:
    """The successors are the positions that play() makes of all legal actions."""
    ruleset = RULESETS[name]
    rules = ruleset.kernel
    out = np.empty((3 + MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)
    for position in mixed_batch(ruleset, 400, seed=1):
        rows = out[3 : 3 + successors(rules, Rows.of(position), out, 3)]
        assert sorted(map(int, rows[:, ACTION])) == actions_of(legal_of(rules, position))
        before = unpack(position)
        seat, waits = before.mover, before.pending is not None
        for row in rows:
            after = position.copy()
            result = play(rules, after, row[ACTION])
            np.testing.assert_array_equal(row[: META + 1], after[: META + 1])
            assert row[RESULT] == result
            gain = seeds_of(after, seat) - seeds_of(position, seat)
            if unpack(after).pending is None:
                assert row[CAPTURED] >= gain if waits else row[CAPTURED] == gain
            if result == 0:
                stuck = not startable(rules, after)[1]
                assert is_stuck(Rows.of(after)) == stuck


@every_ruleset("zanzibar", "dutch", name="name")
def test_search_is_minimax(name: str) -> None:
    ruleset = RULESETS[name]
    rules, evaluator = ruleset.kernel, tables_evaluator(ruleset)
    agents = {
        depth: AlphaBetaAgent(ruleset, Limit(plies=depth), threads=1) for depth in (1, 2, 3, 4)
    }
    proven = 0
    for position in mixed_batch(ruleset, 60, seed=4):
        for depth, agent in agents.items():
            result = agent.search(position)
            value, actions = minimax(rules, evaluator, position, depth)
            assert result.value == value, (unpack(position), depth)
            assert result.action in actions and result.line[0] == result.action
            proven += abs(value) > PROVEN
    assert proven > 5  # wins and losses are among them


def test_line_leads_to_the_value() -> None:
    """The best line is legal, and leads to the end of a proven win."""
    ruleset = RULESETS["zanzibar"]
    rules = ruleset.kernel
    agent = AlphaBetaAgent(ruleset, Limit(plies=7), threads=1)
    wins = 0
    for position in mixed_batch(ruleset, 100, seed=8):
        result = agent.search(position)
        after = position.copy()
        for action in result.line:
            assert action in actions_of(legal_of(rules, after))
            ending = int(play(rules, after, U(action)))
        if result.value > PROVEN:
            wins += 1
            # The table keeps values, not lines: a line may end early where it knew the value.
            plies = WIN_VALUE - result.value
            assert len(result.line) <= plies
            if len(result.line) == plies:
                assert ending == 1 or not legal_of(rules, after)
    assert wins > 10


def test_threads_share_the_nodes_of_a_position(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, limits = AlphaBetaAgent("zanzibar", Limit(nodes=100_001), threads=4), list[Limit]()
    monkeypatch.setattr(agent, "_find", lambda question, *_: limits.append(question.limit))
    agent.act(*Board().batch(), together=True)
    assert set(limits) == {Limit(nodes=25_001)}


def test_own_rules_borrow_the_nearest_tables() -> None:
    own = RULESETS["kujifunza"].replace(name="mine", sow_limit=500)
    for rules in (own, RULESETS["kujifunza"]):
        assert load_tables(rules).cells is tables._fitted()["kujifunza"]
    switches = {"lone_kichwa_takasa": "loses", "first_player": "random", "takasia": "none"}
    opening = {"opening_front": (6, 0, 0, 0, 6, 0, 0, 0), "opening_back": (2,) * 8}
    with_namua = RULESETS["zanzibar"].replace(opening_store=4, **opening, **switches, house_min=5)
    assert load_tables(with_namua).cells is tables._fitted()["zanzibar"]  # kujifunza has no namua


@pytest.mark.parametrize(
    ("stored", "depth", "deeper", "alpha", "is_known"),
    [
        (7, 4, False, 100, True),  # within the window: exact, for the depth asked for ...
        (7, 3, False, -9, False),
        (7, 5, True, -9, False),
        (7, 3, True, -9, True),  # ... or for a lower depth, if that is enough
        (60, 4, False, 59, True),  # beta or more: a lower bound
        (60, 4, False, 60, False),
        (-60, 4, False, -60, True),  # alpha or less: an upper bound
        (-60, 4, False, -61, False),
        (50, 4, False, 49, True),  # on the edges of the window: still bounds
        (50, 4, False, 50, False),
        (-50, 4, False, -50, True),
        (-50, 4, False, -51, False),
    ],
)
def test_table_knows_exact_values_and_bounds(
    stored: int, depth: int, deeper: bool, alpha: int, is_known: bool
) -> None:
    epoch, key = U(8), U(0x123456789ABCDEF)
    table = make_table(4)
    store(table, epoch, key, 4, -50, 50, 0, stored, 63)  # a search of 4 plies from -50 to 50
    entry = probe(table, epoch, key, depth, deeper, alpha, alpha + 1, 0)
    assert tuple(map(int, entry)) == (is_known, stored, 63)
    for unknown in ((U(next_epoch(table, epoch)), key), (epoch, key + U(1))):
        entry = probe(table, *unknown, depth, deeper, alpha, alpha + 1, 0)
        assert tuple(map(int, entry)) == (False, 0, NO_ACTION)


def test_entries_of_earlier_searches_make_room() -> None:
    """A game's next search reads the entry of an earlier search, and replaces it by its own deepest
    result.

    All keys have the same slot.
    """
    table, first = make_table(4), U(8)
    keys = [U(3 + (i << 40)) for i in range(3)]
    for epoch, i, depth in ((first, 0, 9), (U(next_age(first)), 1, 5), (U(next_age(first)), 2, 4)):
        store(table, epoch, keys[i], depth, -1, 1, 0, 0, i)
    epoch = first
    for _ in range(8):
        are_known = [
            probe(table, epoch, key, depth, False, -1, 1, 0)[0]
            for key, depth in zip(keys, (9, 5, 4), strict=True)
        ]
        assert are_known == [False, True, True]
        epoch = U(next_age(epoch))
    assert epoch == first


def test_table_counts_wins_from_the_position() -> None:
    """A win found 5 plies from the root is as far from the position 2 plies from the root."""
    table, key = make_table(4), U(77)
    for sign in (1, -1):
        store(table, U(1), key, 3, -WIN_VALUE, WIN_VALUE, 5, sign * (WIN_VALUE - 8), 0)
        assert probe(table, U(1), key, 3, False, 0, 1, 2)[1] == sign * (WIN_VALUE - 5)


def test_limits() -> None:
    """Within each limit a search returns an action and its line, and ends in time."""
    opening = packed_opening(RULESETS["zanzibar"])
    legal = Board().legal_actions
    anything = AlphaBetaAgent("zanzibar", Limit(plies=2), threads=1)
    for limit in (Limit(nodes=1), Limit(nodes=40), Limit(nodes=40_000), Limit(seconds=0.05)):
        result = AlphaBetaAgent("zanzibar", limit, threads=1).search(opening)
        assert 1 <= result.depth < MAX_DEPTH and result.line[0] == result.action in legal
        assert result.nodes <= 1.05 * (limit.nodes or math.inf) + 20
        if limit.nodes:
            assert anything.search(opening, limit) == result
    assert result.depth >= 3


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize(("bits", "plies"), [(4, 5), (14, 8)])
def test_threads_together_are_minimax(
    threads: int, bits: int, plies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full search has the value of one thread, even with a table of 16 slots that the threads
    share. In 8 plies, threads also leave nodes whose values another thread has found.
    """
    monkeypatch.setattr("bao_agents.search.player.WORTH_SHARING", 0.0)
    monkeypatch.setattr(alphabeta_player, "table_words", lambda nodes, max_bytes=0: 4 << bits)
    ruleset = RULESETS["zanzibar"]
    limit = Limit(plies=plies, nodes=10**9)
    together, alone = (AlphaBetaAgent(ruleset, limit, threads=n) for n in (threads, 1))
    for position in mixed_batch(ruleset, 30, seed=4):
        result = together.search(position)
        assert result.depth == plies or abs(result.value) > PROVEN
        assert result.value == alone.search(position, Limit(plies=result.depth)).value
        assert result.line[0] == result.action
        after = position.copy()
        if play(ruleset.kernel, after, U(result.action)) == 0 and abs(result.value) <= PROVEN:
            assert -alone.search(after, Limit(plies=plies - 1)).value == result.value


def test_threads_search_a_board_that_is_asked_alone() -> None:
    """Several threads search a single board under a time limit, and under a node limit if asked to;
    each position of a batch gets one thread."""
    board, limit = Board(), Limit(nodes=400_000)
    together = load("alphabeta:2", threads=2)
    assert together.choose(board, limit, game=1) in board.legal_actions
    limits = Limit(seconds=0.05), limit, Limit(nodes=50), Limit(plies=20)
    for threads, shared in ((2, [2, 2, 1, 1]), (None, [cores(), 1, 1, 1])):
        agent = AlphaBetaAgent("zanzibar", Limit(plies=2), threads=threads)
        assert [agent._threads_alone(limit) for limit in limits] == shared
    alone = [load("alphabeta:2", threads=threads) for threads in (None, 1)]
    assert len({player.choose(board, Limit(nodes=50_000)) for player in alone}) == 1
    batch = [np.repeat(array, 5, axis=0) for array in board.batch()]
    assert len(set(together.act(*batch, limit=limit).tolist())) == 1


@pytest.mark.parametrize(
    ("results", "best"),
    [
        pytest.param([(5, -31_990), (5, -300)], 1, id="a loss, and an action that avoids it"),
        pytest.param([(6, -31_990), (5, -300)], 0, id="a proven loss"),
        pytest.param([(6, 100), (5, 31_990)], 1, id="a win"),
        pytest.param([(5, 100), (6, -300)], 1, id="the deeper search"),
        pytest.param([(5, 100), (5, 200)], 1, id="the better action"),
    ],
)
def test_the_best_result_of_the_threads_counts(
    results: list[tuple[int, int]], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AlphaBetaAgent("zanzibar", Limit(seconds=1.0), threads=2)
    of_threads = [SearchResult(7, value, depth, 1, (7,)) for depth, value in results]
    barrier = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(agent, "_find", lambda *arguments: barrier.wait())
    monkeypatch.setattr(agent, "_result", of_threads.__getitem__)
    assert agent.search(Board().packed)[:3] == of_threads[best][:3]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("player", ["alphabeta:30ms", "solver:30ms"])
def test_threads_keep_deadlines(player: str, threads: int) -> None:
    """A search uses no more processor time than its cores provide until ten milliseconds after the
    deadline."""
    bot, board, seconds = load(player, threads=threads), Board(), []
    for _ in range(8):
        start = time.process_time()
        bot.choose(board)
        seconds.append(time.process_time() - start)
    assert min(seconds) < min(threads, os.cpu_count() or 1) * 0.040


def test_an_analysis_does_not_depend_on_threads() -> None:
    board = Board()
    on_one, on_two = (
        load("alphabeta:20000n", threads=threads).analyse(board) for threads in (1, 2)
    )
    assert on_one == on_two and on_one
    assert all(opinion.line for opinion in on_one)
    opinions = load("alphabeta:1", ruleset="kibao").analyse(Board.from_text(SMOTHERS, "kibao"))
    winning = [opinion.action for opinion in opinions or () if opinion.score == 1.0]
    assert winning == [10, 22, 24, 32, 36, 40]


@pytest.mark.parametrize(
    ("limit", "part"),
    [
        (Limit(plies=5), Limit(plies=4)),
        (Limit(plies=1), Limit(plies=1)),
        (Limit(seconds=16.0), Limit(seconds=4.0)),  # two of eight actions at once
        (Limit(seconds=0.001), Limit(seconds=0.001)),
        (Limit(nodes=16_007), Limit(nodes=2000)),
        (Limit(nodes=7999), Limit(nodes=1000)),
    ],
)
def test_the_actions_of_an_analysis_share_its_limit(
    limit: Limit, part: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, board = AlphaBetaAgent("zanzibar", Limit(plies=2), threads=2), Board.from_text(WON)
    assert len(board.legal_actions) == 8
    results = [SearchResult(-1, 10 * i, 1, 1, (i,)) for i in range(8)]
    monkeypatch.setattr(agent, "_search_all", search := Mock(return_value=results))
    opinions = agent.analyse(board, limit)
    assert search.call_args.args[1] == part
    assert [opinion.action for opinion in opinions] == board.legal_actions  # the best first
    assert [opinion.line for opinion in opinions] == [(i,) for i in range(8)]
    assert -1 < opinions[-1].score < opinions[1].score < opinions[0].score == 0


def test_a_capture_that_waits_is_analysed_for_its_player(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, board = AlphaBetaAgent("dutch", Limit(plies=2), threads=1), Board("dutch")
    while not (waiting := [a for a in board.legal_actions if is_next(board, a)]):
        board.push(board.legal_actions[0])
    results = [SearchResult(-1, 1000, 1, 1, ())] * len(board.legal_actions)
    monkeypatch.setattr(agent, "_search_all", lambda *_: results)
    score = math.tanh(1000 / (2 * SCALE))
    for opinion in agent.analyse(board):
        assert opinion.score == pytest.approx(score if opinion.action in waiting else -score)


def is_next(board: Board, action: int) -> bool:
    """Return whether the same player is to move after an action."""
    after = board.copy()
    after.push(action)
    return after.turn == board.turn


def test_chooses_among_the_actions_of_the_mask() -> None:
    """Without the best action, it plays the best of the others."""
    ruleset = RULESETS["zanzibar"]
    rules = ruleset.kernel
    agent, shallow = (AlphaBetaAgent(ruleset, Limit(plies=depth), threads=1) for depth in (3, 2))
    compared = 0
    for position in mixed_batch(ruleset, 40, seed=12):
        best = agent.search(position).action
        worse = np.array([int(legal_of(rules, position)) & ~(1 << best)], np.uint64)
        if worse[0] == 0:
            continue
        values = {}
        for action in actions_of(worse[0]):
            after = position.copy()
            result = int(play(rules, after, U(action)))
            values[action] = result * WIN_VALUE if result else -shallow.search(after).value
        assert values[int(agent.act(position[None], worse)[0])] == max(values.values())
        compared += 1
    assert compared > 20


def test_what_is_remembered_is_true() -> None:
    """In a game, a full search still finds the best actions of minimax.

    Before each position, the positions after its actions are searched without their best answer.
    Such a search says nothing about the position itself.
    """
    ruleset = RULESETS["zanzibar"]
    rules, evaluator = ruleset.kernel, tables_evaluator(ruleset)
    agent = AlphaBetaAgent(ruleset, Limit(plies=3), threads=1)
    for position in mixed_batch(ruleset, 40, seed=4):
        game = new_games(1)
        for action in actions_of(legal_of(rules, position)):
            after = position.copy()
            if play(rules, after, U(action)) or not legal_of(rules, after):
                continue
            best = agent.search(after, Limit(plies=2)).action
            worse = np.array([int(legal_of(rules, after)) & ~(1 << best)], np.uint64)
            agent.act(after[None], worse, limit=Limit(plies=2), games=game)
        legal = np.array([legal_of(rules, position)], np.uint64)
        if legal[0]:
            action = agent.act(position[None], legal, games=game)[0]
            assert action in minimax(rules, evaluator, position, 3)[1]


def test_tables_have_the_documented_sizes() -> None:
    """A table fits the nodes of a search, and all tables fit the memory."""
    nodes = 500, 25_000, 1_000_000, 5_000_000
    assert [GameTables(count).most for count in nodes] == [32_768, 512, 64, 8]
    kilobytes = [8 * game_table_words(count) >> 10 for count in nodes]
    assert kilobytes == [8, 512, 4096, 32_768]
    assert [8 * table_words(count) >> 10 for count in nodes] == [512, 512, 4096, 32_768]
    assert [GameTables(10**9, megabytes << 20).most for megabytes in (1, 3)] == [1, 1]
    assert 8 * table_words(10**9, 3 << 20) == 2 << 20


def test_memory_of_games_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The game that was asked about longest ago is forgotten; after a batch with too many games
    none is remembered."""
    monkeypatch.setattr(game_tables, "MAX_BYTES", 3 * 8 * game_table_words(100))
    memory = GameTables(100)
    tables, epochs, rows = memory.find(np.array([7, 8, 9]))
    assert sorted(rows) == [0, 1, 2] and tables.nbytes == 3 * 8192 and memory.most == 3
    np.testing.assert_array_equal(memory.find(np.array([8, 7])).rows, rows[[1, 0]])
    before = epochs.copy()
    np.testing.assert_array_equal(memory.find(np.array([10, 7])).rows, rows[[2, 0]])
    assert (epochs == before).tolist() == [i != rows[2] for i in range(3)]
    assert memory.find(np.array([1, 2, 3, 4])) is NO_MEMORY
    epochs[rows[1]] = EPOCHS
    tables[rows[1]] = 5
    memory.find(np.array([11]))  # replaces game 8
    assert epochs[rows[1]] == 8 and not tables[rows[1]].any()


class Torn(BaseException):
    """An exception that stands for Ctrl-C or for memory that runs out."""


def test_memory_of_games_is_never_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an exception at any bytecode each game has a table of its own, old or empty."""
    monkeypatch.setattr(game_tables, "MAX_BYTES", 4 * 8 * game_table_words(100))
    batches = [[0], [1, 2], [1, 3, 4], [5, 2], [5]]

    def find(memory: GameTables, count: int) -> int:
        """Ask for games, and raise at the ``count``-th bytecode; return the bytecodes left."""

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal count
            if not frame.f_code.co_filename.endswith("game_tables.py"):
                return None
            frame.f_trace_opcodes = True
            count -= event == "opcode"
            if count == 0:
                raise Torn
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for games in batches:
                memory.find(np.array(games))
        except Torn:
            pass
        finally:
            sys.settrace(before)
        return count

    count = 0
    while True:
        count += 1
        memory = GameTables(100)
        left = find(memory, count)
        tables, epochs, rows = memory.find(np.array([1, 2, 5, 7]))
        assert sorted(rows) == [0, 1, 2, 3] and len(tables) == len(epochs) == 4
        assert epochs[rows].all()
        if left > 0:
            break


def test_without_memory_for_tables_a_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_tables, "MAX_BYTES", 1 << 60)
    board = Board()
    agents = [AlphaBetaAgent("zanzibar", Limit(nodes=500), threads=1) for _ in range(2)]
    arrays = board.packed[None], np.array([1 << 20 | 1 << 22 | 1 << 24 | 1 << 26], np.uint64)
    assert agents[0].act(*arrays, games=np.array([1])) == agents[1].act(*arrays)


def test_epochs_do_not_overtake_their_bits() -> None:
    """After the last epoch the table is cleared, so no entry can be mistaken for one of the first
    epoch."""
    table, key, epoch = make_table(4), U(5), U(next_epoch(make_table(4), U(0)))
    store(table, epoch, key, 3, -1, 1, 0, 0, 7)
    assert probe(table, epoch, key, 3, False, -1, 1, 0)[0]
    assert next_epoch(table, EPOCHS) == epoch
    assert not probe(table, epoch, key, 3, False, -1, 1, 0)[0]


@every_ruleset("zanzibar", "dutch", name="name")
def test_positions_with_the_same_hash_cost_only_strength(name: str) -> None:
    """Entries of other positions, with any values and actions, still lead to legal moves."""
    agent, rng = AlphaBetaAgent(name, Limit(plies=4), threads=1), np.random.default_rng(1)
    differ = 0
    for position in mixed_batch(RULESETS[name], 100, seed=1):
        honest = agent.search(position).action
        assert agent._memory_alone is not None
        table, [epoch] = agent._memory_alone.tables[0], agent._memory_alone.epochs
        keys, data = table[::2] ^ table[1::2], table[1::2]
        is_current = data >> U(33) == epoch
        value, depth, action = rng.integers([0, 1, 0], [1 << 16, 5, 128], (is_current.sum(), 3)).T
        forged = value | depth << 16 | BOUND_EXACT << 24 | action << 26
        data[is_current] = forged.astype(np.uint64) | (epoch + U(8)) << U(33)
        table[::2] = keys ^ data
        misled = agent.search(position).action
        assert misled in (actions_of(legal_of(RULESETS[name].kernel, position)) or [-1])
        differ += misled != honest
    assert differ
