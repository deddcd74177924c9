"""The alpha-beta search against plain minimax, which it must equal."""

from __future__ import annotations

import random

import numpy as np
import pytest

from agents import load
from agents.arena.openings import draw_openings
from agents.search.alphabeta.evaluation import (
    FEATURES,
    WEIGHTS,
    evaluate,
    features,
    load_weights,
    merge,
)
from agents.search.alphabeta.player import MAX_DEPTH, AlphaBetaAgent
from agents.search.alphabeta.transposition import (
    NO_ACTION,
    PROVEN,
    WIN_VALUE,
    make_table,
    probe,
    store,
)
from bao_env import Board
from bao_env.engine.bits import U
from bao_env.engine.kernel import candidates, legal_mask, play
from bao_env.engine.position import (
    META,
    WORDS,
    Packed,
    pack,
    packed_opening,
    same_mover,
    unpack,
)
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    CAPTURED,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    is_stuck,
    successors,
)
from bao_env.notation import parse_position
from tests.positions import random_position
from tests.rulesets import every_ruleset


def positions(ruleset: Ruleset, count: int, seed: int) -> np.ndarray:
    """Packed positions with legal actions: half from random games, half made up."""
    found = []
    for plies in (2, 5, 12, 25, 40, 60):
        share = 1 if plies == 2 else count // 10
        found += list(draw_openings(ruleset, share, plies, seed, None).positions)
    rng = random.Random(seed)
    rules = ruleset.kernel_rules()
    while len(found) < count:
        words = np.empty(WORDS, np.uint64)
        pack(parse_position(random_position(rng, ruleset), ruleset), words)
        if legal_mask(rules, words):
            found.append(words)
    return np.array(found)


def minimax(
    rules: object, sums: np.ndarray, words: np.ndarray, depth: int, ply: int = 0
) -> tuple[int, list[int]]:
    """Value of a position and its best actions, by looking at everything."""
    mask = int(legal_mask(rules, words))
    if mask == 0:
        return ply - WIN_VALUE, []
    best, actions = -WIN_VALUE - 1, []
    for action in range(64):
        if not mask >> action & 1:
            continue
        after = words.copy()
        result = int(play(rules, after, np.uint64(action)))
        waits = same_mover(after[META])
        if result:
            value = WIN_VALUE - ply - 1 if result == 1 else ply + 1 - WIN_VALUE
        elif depth == 1 and not waits:
            if not int(candidates(rules, Packed.of(after))) & 0xFFFFFFFF:
                value = WIN_VALUE - ply - 1
            else:
                value = -int(evaluate(sums, Packed.of(after)))
        else:
            value = minimax(rules, sums, after, max(depth - 1, 1), ply + 1)[0]
            value = value if waits else -value
        if value > best:
            best, actions = value, []
        if value == best:
            actions.append(action)
    return best, actions


def masks_of(ruleset: Ruleset, batch: np.ndarray) -> np.ndarray:
    rules = ruleset.kernel_rules()
    return np.array([legal_mask(rules, words) for words in batch], np.uint64)


@every_ruleset("zanzibar", "dutch", name="name")
def test_successors_are_the_legal_moves(name: str) -> None:
    """Each successor is what play() makes of a legal action, and all of them are there."""
    ruleset = get_ruleset(name)
    rules = ruleset.kernel_rules()
    out = np.empty((3 + MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)
    for words in positions(ruleset, 400, seed=1):
        count = successors(rules, Packed.of(words), out, 3)
        assert {int(a) for a in out[3 : 3 + count, ACTION]} == {
            action for action in range(64) if int(legal_mask(rules, words)) >> action & 1
        }
        for row in out[3 : 3 + count]:
            after = words.copy()
            result = play(rules, after, row[ACTION])
            np.testing.assert_array_equal(row[: META + 1], after[: META + 1])
            assert row[RESULT] == result
            seats = [unpack(w) for w in (words, after)]
            own = [sum(p.pits(seats[0].mover)) + p.store[seats[0].mover] for p in seats]
            if unpack(after).pending is None:
                waits = unpack(words).pending is not None
                assert (
                    row[CAPTURED] >= own[1] - own[0] if waits else row[CAPTURED] == own[1] - own[0]
                )
            if result == 0:
                stuck = not int(candidates(rules, Packed.of(after))) & 0xFFFFFFFF
                assert is_stuck(Packed.of(after)) == stuck


@every_ruleset("zanzibar", "dutch", name="name")
def test_search_is_minimax(name: str) -> None:
    ruleset = get_ruleset(name)
    rules, sums = ruleset.kernel_rules(), merge(load_weights(ruleset))
    agents = {depth: AlphaBetaAgent(ruleset, depth=depth, threads=1) for depth in (1, 2, 3, 4)}
    proven = 0
    for words in positions(ruleset, 60, seed=4):
        for depth, agent in agents.items():
            found = agent.search(words)
            value, actions = minimax(rules, sums, words, depth)
            assert found.value == value, (unpack(words), depth)
            assert found.action in actions
            assert found.line[0] == found.action
            proven += abs(value) > PROVEN
    assert proven > 5  # wins and losses were among them


def test_line_leads_to_the_value() -> None:
    """The best line is legal, and of a proven win it is the whole way to it."""
    ruleset = get_ruleset("zanzibar")
    rules = ruleset.kernel_rules()
    agent = AlphaBetaAgent(ruleset, depth=7, threads=1)
    wins = 0
    for words in positions(ruleset, 100, seed=8):
        found = agent.search(words)
        after = words.copy()
        result = 0
        for action in found.line:
            assert int(legal_mask(rules, after)) >> action & 1
            result = play(rules, after, np.uint64(action))
        if found.value > PROVEN:
            wins += 1
            # The table keeps values, not lines: a line may end early where it knew the value.
            assert len(found.line) <= WIN_VALUE - found.value
            if len(found.line) == WIN_VALUE - found.value:
                assert result == 1 or not legal_mask(rules, after)
    assert wins > 10


def test_features_add_up_to_the_evaluation() -> None:
    for name in RULESETS:
        ruleset = get_ruleset(name)
        weights = load_weights(ruleset)
        batch = positions(ruleset, 60, seed=2)
        found = np.empty((len(batch), FEATURES), np.int32)
        features(batch, found)
        assert found.max() < WEIGHTS and found.min() >= 0
        sums = merge(weights)
        for words, indices in zip(batch, found, strict=True):
            assert evaluate(sums, Packed.of(words)) == weights[indices].astype(int).sum()


def test_own_rules_borrow_the_nearest_weights() -> None:
    own = RULESETS["kujifunza"].replace(name="mine", sow_limit=500)
    np.testing.assert_array_equal(load_weights(own), load_weights(RULESETS["kujifunza"]))


def test_choice_depends_on_the_position_alone() -> None:
    """Neither on the rest of the batch, nor on threads, nor on what was searched before."""
    ruleset = get_ruleset("zanzibar")
    batch = positions(ruleset, 80, seed=3)
    masks = masks_of(ruleset, batch)
    actions = AlphaBetaAgent(ruleset, depth=5, threads=2).act(batch, masks)
    agent = AlphaBetaAgent(ruleset, depth=5, threads=1)
    for i in reversed(range(len(batch))):
        part = slice(i, i + 1)
        assert agent.act(batch[part], masks[part])[0] == actions[i]
        assert int(masks[i]) >> int(actions[i]) & 1


def test_a_table_is_as_large_as_its_searches() -> None:
    """A slot of 32 bytes for about four nodes, within its limits."""
    sizes = [make_table(nodes).nbytes for nodes in (1, 72_000, 700_000, 3.0**60)]
    assert sizes == [512 << 10, 512 << 10, 4 << 20, 32 << 20]


def test_table_gives_back_what_it_can_vouch_for() -> None:
    """Exact values and bounds within their meaning, of the depth and the search asked for."""
    epoch, key = U(5), U(0x123456789ABCDEF)
    table = make_table(4)

    def look_up(
        key: object, depth: int, deeper: bool, alpha: int, beta: int
    ) -> tuple[bool, int, int]:
        known, value, action = probe(table, epoch, key, depth, deeper, alpha, beta, 0)
        return bool(known), int(value), int(action)

    assert look_up(key, 4, False, -9, 9) == (False, 0, NO_ACTION)
    store(table, epoch, key, 4, -50, 50, 0, 7, 63)  # within the window: exact
    assert look_up(key, 4, False, 100, 101) == (True, 7, 63)
    assert look_up(key, 3, False, -9, 9) == (False, 7, 63)
    assert look_up(key, 3, True, -9, 9) == (True, 7, 63)
    assert look_up(key, 5, True, -9, 9) == (False, 7, 63)
    assert look_up(key + U(1), 4, False, -9, 9) == (False, 0, NO_ACTION)
    store(table, epoch, key, 4, -50, 50, 0, 60, 1)  # beta or more: a lower bound
    assert look_up(key, 4, False, -9, 60) == (True, 60, 1)
    assert look_up(key, 4, False, -9, 61) == (False, 60, 1)
    store(table, epoch, key, 4, -50, 50, 0, -60, 2)  # alpha or less: an upper bound
    assert look_up(key, 4, False, -60, 9) == (True, -60, 2)
    assert look_up(key, 4, False, -61, 9) == (False, -60, 2)
    for edge, action in ((50, 3), (-50, 4)):  # on the edge of the window: still a bound
        store(table, epoch, key, 4, -50, 50, 0, edge, action)
        assert look_up(key, 4, False, edge, edge + 1) == (edge < 0, edge, action)
        assert look_up(key, 4, False, edge - 1, edge) == (edge > 0, edge, action)
    epoch += U(1)
    assert look_up(key, 4, False, -9, 9) == (False, 0, NO_ACTION)


def test_table_counts_wins_from_the_position() -> None:
    """A win found 5 plies from the root is as far from the position wherever it is met again."""
    table, key = make_table(4), U(77)
    for sign in (1, -1):
        store(table, U(1), key, 3, -WIN_VALUE, WIN_VALUE, 5, sign * (WIN_VALUE - 8), 0)
        assert probe(table, U(1), key, 3, False, 0, 1, 2)[1] == sign * (WIN_VALUE - 5)


def test_table_keeps_the_deepest_of_a_pair() -> None:
    """The first entry of a slot stays for what is less deep; the second one is replaced."""
    table, epoch = make_table(4), U(1)
    deep, shallow, last = (U(i << 32) for i in (1, 2, 3))  # of one slot
    for key, depth in ((deep, 9), (shallow, 3), (last, 2)):
        store(table, epoch, key, depth, -9, 9, 0, 0, 10 + depth)
    found = [int(probe(table, epoch, key, 0, True, 0, 1, 0)[2]) for key in (deep, shallow, last)]
    assert found == [19, NO_ACTION, 12]
    store(table, epoch, shallow, 9, -9, 9, 0, 0, 20)
    assert int(probe(table, epoch, deep, 0, True, 0, 1, 0)[2]) == NO_ACTION


def test_limits() -> None:
    board = Board()
    opening = packed_opening(get_ruleset("zanzibar"))
    few = AlphaBetaAgent(nodes=2000, threads=1).search(opening)
    assert 1 <= few.depth < MAX_DEPTH and few.nodes < 2100 and few.action in board.legal_actions
    assert AlphaBetaAgent(nodes=1, threads=1).act(
        opening[None], masks_of(board.ruleset, opening[None])
    )[0] in (board.legal_actions)
    for nodes in (1, 40, 5000, 40_000):  # whatever stops it, there is an action and its line
        found = AlphaBetaAgent(nodes=nodes, threads=1).search(opening)
        assert found.depth >= 1 and found.line[0] == found.action
    timed = AlphaBetaAgent(seconds=0.05, threads=1).search(opening)
    assert timed.depth >= 3 and timed.action in board.legal_actions
    assert load("alphabeta:4").choose(board) in board.legal_actions
    for bad in ({}, {"depth": 0}, {"depth": MAX_DEPTH + 1}, {"seconds": 0.0}, {"nodes": 0}):
        with pytest.raises(ValueError, match="alphabeta: "):
            AlphaBetaAgent("zanzibar", **bad)


def test_finished_positions_are_passed_over() -> None:
    agent = AlphaBetaAgent(depth=2)
    words = packed_opening(get_ruleset("zanzibar"))
    assert agent.act(np.stack([words] * 2), np.zeros(2, np.uint64)).tolist() == [0, 0]


def test_chooses_among_the_actions_that_it_is_handed() -> None:
    """The best of them: without the best action, the second best."""
    rules = get_ruleset("zanzibar")
    agent = AlphaBetaAgent(rules, depth=3, threads=1)
    shallow = AlphaBetaAgent(rules, depth=2, threads=1)
    compared = 0
    for words in positions(rules, 40, seed=12):
        mask = int(legal_mask(rules.kernel_rules(), words))
        best = agent.search(words).action
        rest = np.array([mask & ~(1 << best)], np.uint64)
        if rest[0] == 0:
            continue
        chosen = int(agent.act(words[None], rest)[0])
        assert int(rest[0]) >> chosen & 1
        values = {}
        for action in (a for a in range(64) if int(rest[0]) >> a & 1):
            after = words.copy()
            result = int(play(rules.kernel_rules(), after, np.uint64(action)))
            if result != 0:
                values[action] = WIN_VALUE if result == 1 else -WIN_VALUE
            else:
                values[action] = -shallow.search(after).value
        assert values[chosen] == max(values.values())
        compared += 1
    assert compared > 20
