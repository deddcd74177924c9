"""The Gumbel search: schedule, legality, improvement, what it finds where the answer is known."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from agents.arena.openings import draw_openings
from agents.nets.features import ENCODING_SIZE
from agents.nets.network import KINDS, Inputs, NetworkConfig, PolicyNetwork
from agents.nets.policy import NetworkAgent
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.transposition import PROVEN
from agents.search.gumbel.action_selection import MAX_CONSIDERED, halving_rounds, visit_schedule
from agents.search.gumbel.player import SearchAgent
from agents.search.gumbel.search import GumbelSearch
from agents.search.gumbel.simulation import root_outputs
from bao_env.engine.batch import Engine, random_states
from bao_env.engine.bits import FULL as LOST
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import WORDS, movers, pack
from bao_env.engine.ruleset import RULESETS, KernelRules, get_ruleset
from bao_env.engine.successors import ACTION, RESULT
from bao_env.notation import parse_position


def network(kind: str = "moves", hidden: tuple[int, ...] = (32, 16)) -> PolicyNetwork:
    """An untrained network with an opinion, exact whatever the batch."""
    torch.manual_seed(3)
    made = PolicyNetwork(NetworkConfig(kind=kind, hidden=hidden))
    torch.nn.init.normal_(made.head.weight, std=0.3)
    return made.double().eval()


def batch_of(ruleset: str, count: int, plies: int) -> tuple[np.ndarray, np.ndarray]:
    rules = get_ruleset(ruleset).kernel_rules()
    positions = draw_openings(ruleset, count, plies, 3, None).positions
    return positions, np.array([legal_mask(rules, words) for words in positions], np.uint64)


def test_a_schedule_worked_out_by_hand() -> None:
    """From the paper's algorithm 1, and what is left over for the last two."""
    assert visit_schedule(1, 3).tolist() == [0, 1, 2]
    assert visit_schedule(2, 4).tolist() == [0, 0, 1, 1]
    assert visit_schedule(4, 8).tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert visit_schedule(4, 16).tolist() == [0] * 4 + [1] * 4 + [2, 2, 3, 3, 4, 4, 5, 5]
    assert visit_schedule(4, 11).tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert visit_schedule(8, 6).tolist() == [0] * 6


@pytest.mark.parametrize("actions", range(2, MAX_CONSIDERED + 1))
def test_sequential_halving(actions: int) -> None:
    """The better half stays, each round has its share, and the budget is spent to the last."""
    number = math.ceil(math.log2(actions))
    for simulations in (2, 7, 24, 64, 100, 1000):
        rounds = list(halving_rounds(actions, simulations))
        assert rounds[0].survivors == actions
        for (before, _), (after, _) in pairwise(rounds):
            assert after == max(2, before // 2)
        if simulations >= actions * number:  # else a share is less than one visit
            # A round's share, but for what does not divide; one round more spends the rest.
            share = simulations / number
            for survivors, visits in rounds:
                assert share - survivors < survivors * visits <= share
            assert [survivors for survivors, _ in rounds[number - 1 :]] == [2] * (
                len(rounds) - number + 1
            )
        spent = [survivors * visits for survivors, visits in rounds]
        assert sum(spent[:-1]) < simulations <= sum(spent)
    if actions & (actions - 1) == 0:  # all divides: the paper's algorithm to the letter
        shares = [(actions >> r, 6 << r) for r in range(number)]
        assert list(halving_rounds(actions, 6 * actions * number)) == shares


@pytest.mark.parametrize("actions", range(1, MAX_CONSIDERED + 1))
def test_a_schedule_can_be_followed(actions: int) -> None:
    """Of the actions tried as often as it says, always taking the first."""
    for simulations in (2, 7, 24, 64, 100, 1000):
        schedule = visit_schedule(actions, simulations)
        assert len(schedule) == simulations
        visits = np.zeros(actions, np.int64)
        for wanted in schedule:
            due = np.flatnonzero(visits == wanted)
            assert len(due)
            visits[due[0]] += 1
        assert (np.diff(visits) <= 0).all()  # the better, the more often
        assert visits[:2].max() - visits[:2].min() <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RULESETS)
def test_policies_are_of_the_legal_actions(name: str, kind: str) -> None:
    rules = get_ruleset(name).kernel_rules()
    search = GumbelSearch(rules, network(kind), 60, 20, lock_step=True)
    for plies in (2, 20):
        positions, masks = batch_of(name, 3 if plies == 2 else 50, plies)
        for rng in (None, random_states(len(masks), 1)):
            found = search.search(positions, rng)
            np.testing.assert_allclose(found.policies.sum(axis=1), 1.0, rtol=1e-5)
            legal = (masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) != 0
            assert (found.policies[~legal] == 0).all() and (found.policies >= 0).all()
            assert legal[np.arange(len(masks)), found.actions].all()
            assert (np.abs(found.values) <= 1).all()
            assert np.isnan(found.qvalues[~legal]).all()
            # Each simulation of an open position visits an action of the root.
            visited = ~np.isnan(found.qvalues)
            assert visited.any(axis=1).all()
            assert search._tree.node_visits[: len(masks), 0].tolist() == [20] * len(masks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zanzibar", "dutch"])
def test_roots_are_evaluated_as_by_the_bare_policy(kind: str, name: str) -> None:
    """Where nothing is decided at once, the search starts from what the network says."""
    ruleset = get_ruleset(name)
    positions, masks = batch_of(name, 100, 24)
    search = GumbelSearch(ruleset.kernel_rules(), network(kind), 100, 2, lock_step=True)
    search.search(positions)
    tree = search._tree
    policy = NetworkAgent(network(kind), ruleset).evaluate(positions, masks)
    compared = 0
    for g in range(len(masks)):
        count = int(tree.num_edges[g, 0])
        if (tree.words[g, :count, RESULT] != 0).any():
            continue
        part = slice(policy.indptr[g], policy.indptr[g + 1])
        by_action = dict(zip(policy.legal_actions[part] % 64, policy.logits[part], strict=True))
        for e in range(count):
            action = int(tree.words[g, e, ACTION])
            assert tree.logits[g, e] == pytest.approx(by_action[action], abs=1e-4)
        if kind != "moves":
            assert tree.node_values[g, 0] == pytest.approx(policy.values[g], abs=1e-5)
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zanzibar", "dutch"])
def test_one_after_another_as_in_lock_step(name: str, kind: str) -> None:
    """The two ways to grow trees differ in nothing but the rounding of the network."""
    rules = get_ruleset(name).kernel_rules()
    positions, _ = batch_of(name, 200, 18)
    found = []
    for lock_step in (False, True):
        search = GumbelSearch(rules, network(kind), 200, 40, lock_step=lock_step)
        rng = random_states(200, 5)
        found.append((search.search(positions, rng), rng))
    (alone, left), (together, right) = found
    np.testing.assert_array_equal(left, right)
    close = np.isclose(alone.policies, together.policies, atol=1e-3).all(axis=1)
    assert close.mean() > 0.95
    np.testing.assert_array_equal(alone.actions[close], together.actions[close])
    np.testing.assert_allclose(alone.values[close], together.values[close], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zanzibar", "dutch"])
def test_a_search_finds_the_same_whatever_it_searched_before(name: str, kind: str) -> None:
    """The cache knows half of a tree after a move, and is no other than the network."""
    engine = Engine(name)
    positions, masks = batch_of(name, 40, 12)
    winners = np.full(len(masks), -1, np.int8)
    search = GumbelSearch(engine.rules, network(kind), len(masks), 24, lock_step=False)
    read = 0
    for _ in range(4):
        fresh = GumbelSearch(engine.rules, network(kind), len(masks), 24, lock_step=False)
        found, expected = search.search(positions), fresh.search(positions)
        for array, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(array, other)
        read += fresh.encodings_read
        engine.step(positions, found.actions, masks, winners)
    assert 0.5 * read < search.encodings_read < 0.85 * read
    before = search.encodings_read
    search.search(positions)
    search.search(positions)
    again = search.encodings_read
    assert again - before < fresh.encodings_read
    search.sync_weights(network(kind))
    search.search(positions)
    assert search.encodings_read > again


def test_a_search_follows_its_network() -> None:
    positions, _ = batch_of("zanzibar", 50, 18)
    rules = get_ruleset("zanzibar").kernel_rules()
    trained, blank = network(), network()
    torch.nn.init.zeros_(blank.head.weight)
    search = GumbelSearch(rules, blank, 50, 8)
    before = search.search(positions).policies
    search.sync_weights(trained)
    after = search.search(positions).policies
    np.testing.assert_array_equal(after, GumbelSearch(rules, trained, 50, 8).search(positions)[1])
    assert (before != after).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zanzibar", "dutch", "kujifunza"])
def test_it_finds_wins_with_an_ignorant_network(name: str, kind: str) -> None:
    """Nothing but the rules tells it, so it takes simulations; wins at once take few."""
    rules = get_ruleset(name).kernel_rules()
    blank = network(kind)
    torch.nn.init.zeros_(blank.head.weight)
    search = GumbelSearch(rules, blank, 300, 400)
    searcher = AlphaBetaAgent(name, depth=3, threads=1)
    positions, masks = batch_of(name, 300, 22)
    won = np.flatnonzero(searcher.values(positions, masks) > PROVEN)
    actions = search.search(positions[won]).actions
    kept = 0
    for i, action in zip(won, actions, strict=True):
        after = positions[i].copy()
        result = play(rules, after, np.uint64(action))
        sign = 1 if movers(after[None]) == movers(positions[i : i + 1]) else -1
        kept += result == 1 or sign * searcher.search(after).value > PROVEN
    assert len(won) >= 5 and kept >= 0.9 * len(won)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["zanzibar", "dutch", "kujifunza"])
def test_known_results_are_true(name: str, kind: str) -> None:
    """What a search marks as won or lost is so, and it takes a win that it knows."""
    rules = get_ruleset(name).kernel_rules()
    searcher = AlphaBetaAgent(name, depth=9, threads=1)
    positions, _ = batch_of(name, 150, 24)
    search = GumbelSearch(rules, network(kind), 150, 60, lock_step=True)
    actions = search.search(positions, random_states(150, 7)).actions
    tree = search._tree
    checked = deep = 0
    for g in range(len(positions)):
        results = []
        for e in range(int(tree.num_edges[g, 0])):
            words = np.concatenate([tree.words[g, e, :5], [np.uint64(0)]])
            known = int(tree.words[g, e, RESULT])
            results.append(known)
            if known == 0:
                continue
            after = positions[g].copy()
            result = int(play(rules, after, tree.words[g, e, ACTION]))
            if result == 0 and legal_mask(rules, words):
                value = searcher.search(words).value
                again = movers(words[None]) == movers(positions[g : g + 1])
                if abs(value) < PROVEN:
                    continue  # deeper than that search looks
                result = 1 if (value > 0) == again else -1
                deep += 1
            elif result == 0:
                result = 1
            assert (known == 1) == (result == 1)
            checked += 1
        if 1 in results:
            by_action = {
                int(tree.words[g, e, ACTION]): int(tree.words[g, e, RESULT])
                for e in range(int(tree.num_edges[g, 0]))
            }
            assert by_action[int(actions[g])] == 1
    assert checked > 10 and deep > 3


def many_actions() -> tuple[KernelRules, np.ndarray]:
    """A position of zanzibar, uint64[1, 6], with more actions than a search looks into."""
    ruleset = get_ruleset("zanzibar")
    text = "3,2,5,3,1,2,1,1/0,0,0,0,0,0,0,0/1,7,2,3,3,2,2,2/2,2,3,1,2,7,5,2 0,0 SN N -"
    words = np.empty((1, WORDS), np.uint64)
    pack(parse_position(text, ruleset), words[0])
    rules = ruleset.kernel_rules()
    assert int(legal_mask(rules, words[0])).bit_count() > MAX_CONSIDERED
    return rules, words


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_considered_actions_lose_another_is_taken(kind: str) -> None:
    rules, words = many_actions()
    search = GumbelSearch(rules, network(kind), 1, 20, lock_step=True)
    output = search.search(words)
    tree = search._tree
    results = tree.words[0, : tree.num_edges[0, 0], RESULT]
    considered = tree.considered[0, : len(results)]
    results[:] = np.where(considered, LOST, 0)
    root_outputs(tree, search._workspace, output, 1)
    actions = tree.words[0, : len(results), ACTION]
    assert output.actions[0] in actions[~considered]
    results[:] = LOST
    root_outputs(tree, search._workspace, output, 1)
    assert output.actions[0] in actions


@pytest.mark.parametrize("kind", KINDS)
def test_wins_beyond_the_considered_actions(kind: str) -> None:
    """With more actions than are looked into, a win at once is still taken."""
    rules, words = many_actions()
    mask = int(legal_mask(rules, words[0]))
    legal = [action for action in range(64) if mask >> action & 1]
    wins = []
    for action in legal:
        after = words[0].copy()
        if play(rules, after, np.uint64(action)) == 1 or not legal_mask(rules, after):
            wins.append(action)
    assert 0 < len(wins) < 4
    for seed in range(5):
        torch.manual_seed(seed)
        biased = network(kind)
        torch.nn.init.normal_(biased.head.weight, std=3.0)
        found = GumbelSearch(rules, biased, 1, 20).search(words, random_states(1, seed))
        assert found.actions[0] in wins


def test_no_move_in_a_waiting_capture_loses() -> None:
    """With both sides of a waiting capture infinite, whoever made it has lost (1.5a)."""
    ruleset = RULESETS["dutch"].replace(sow_limit=64)
    text = "1,1,1,1,7,10,1,1/1,1,1,1,1,1,1,1/2,1,1,20,2,1,2,2/0,0,0,0,0,0,0,0 1,1 SN S -"
    words = np.empty((1, WORDS), np.uint64)
    pack(parse_position(text, ruleset), words[0])
    searcher = AlphaBetaAgent(ruleset, depth=4, threads=1)
    value = searcher.search(words[0]).value
    for kind in KINDS:
        found = GumbelSearch(ruleset.kernel_rules(), network(kind), 1, 60).search(words)
        after = words[0].copy()
        assert play(ruleset.kernel_rules(), after, np.uint64(found.actions[0])) == 0
        assert legal_mask(ruleset.kernel_rules(), after) or value < -PROVEN


def test_values_are_the_players_own() -> None:
    """A won position is worth about 1 to the player to move, the one before about -1."""
    searcher = AlphaBetaAgent(depth=3, threads=1)
    positions, masks = batch_of("zanzibar", 400, 26)
    values = searcher.values(positions, masks)
    search = GumbelSearch(get_ruleset("zanzibar").kernel_rules(), network(), 400, 300)
    found = search.search(positions).values
    assert found[values > PROVEN].mean() > 0.5
    assert found[values < -PROVEN].mean() < -0.5


@pytest.mark.parametrize("kind", KINDS)
def test_search_does_not_depend_on_the_batch(kind: str) -> None:
    ruleset = get_ruleset("zanzibar")
    positions, masks = batch_of("zanzibar", 70, 12)
    together = SearchAgent(network(kind), ruleset, 30, threads=2).act(positions, masks)
    alone = SearchAgent(network(kind), ruleset, 30, threads=1)
    for i in range(len(positions)):
        part = slice(i, i + 1)
        assert alone.act(positions[part], masks[part])[0] == together[i]
        assert int(masks[i]) >> int(together[i]) & 1


def test_noise_varies_the_choice_and_is_seeded() -> None:
    positions, _ = batch_of("zanzibar", 64, 12)
    search = GumbelSearch(get_ruleset("zanzibar").kernel_rules(), network(), 64, 16)
    draws = [search.search(positions, random_states(64, seed)).actions for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_full_trees_go_on() -> None:
    """Far more simulations than a decided position has nodes, and a tree that runs full."""
    rules = get_ruleset("zanzibar").kernel_rules()
    positions, masks = batch_of("zanzibar", 4, 60)
    found = GumbelSearch(rules, network(), 4, 3000).search(positions)
    for mask, action in zip(masks, found.actions, strict=True):
        assert int(mask) >> int(action) & 1


def test_limits() -> None:
    ruleset = get_ruleset("zanzibar")
    for simulations in (0, 1):
        with pytest.raises(ValueError, match=f"{simulations} simulations: expected 2"):
            SearchAgent(network(), ruleset, simulations)
    agent = SearchAgent(network(), ruleset, 4)
    positions, masks = batch_of("zanzibar", 2, 4)
    assert agent.act(positions, np.zeros(2, np.uint64)).tolist() == [0, 0]
    logits, values = network("board")(
        Inputs(torch.zeros((1, ENCODING_SIZE), dtype=torch.uint8), torch.tensor([3]))
    )
    assert logits.shape == (1,) and values.shape == (1,)
    assert masks.all()
