"""Test the Gumbel search: schedule, legal actions, determinism, play where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bao_agents.nets.player import NetworkAgent
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN
from bao_agents.search.gumbel.action_selection import (
    STANDARD,
    GumbelSettings,
    visit_schedule,
)
from bao_agents.search.gumbel.search import GumbelSearch
from bao_agents.search.gumbel.tree import ROOT, Tree
from bao_agents.search.limits import Limit
from bao_agents.search.solver.solver import Solver
from bao_env import RULESETS
from bao_env.engine.batch import Engine
from bao_env.engine.bits import FULL as LOST
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.masks import is_legal
from bao_env.engine.position import unpack
from bao_env.engine.sampling import random_states
from bao_env.engine.successors import ACTION, RESULT
from tests.networks import make_network
from tests.positions import draw, pack_texts

EITHER = pytest.mark.parametrize("name", ["zanzibar", "dutch"])
ZANZIBAR = RULESETS["zanzibar"].kernel


def search_of(
    name: str, games: int, simulations: int, settings: GumbelSettings = STANDARD
) -> GumbelSearch:
    """Make a search with an untrained network."""
    rules = RULESETS[name].kernel
    return GumbelSearch(rules, make_network(), games, simulations, settings=settings)


@pytest.mark.parametrize(
    ("actions", "tried"),
    [
        (4, [4, 2, 2]),
        (4, [4] * 2 + [2] * 4),
        (4, [4, 2, 2, 2, 1]),
        (5, [5] * 2 + [2] * 10),
        (8, [6]),
        (8, [8] * 6 + [4] * 12 + [2] * 24),
    ],
)
def test_schedule_worked_out_by_hand(actions: int, tried: list[int]) -> None:
    """It follows the paper's algorithm 1; ``tried`` counts the actions that get one visit more.

    The last two actions share the remainder.
    """
    expected = np.repeat(np.arange(len(tried)), tried)
    np.testing.assert_array_equal(visit_schedule(actions, sum(tried)), expected)


@pytest.mark.parametrize("actions", range(1, STANDARD.considered + 1))
def test_schedule_can_be_followed(actions: int) -> None:
    """Each simulation visits the first action that has the scheduled number of visits."""
    for simulations in (2, 7, 24, 64, 100, 1000):
        schedule = visit_schedule(actions, simulations)
        assert len(schedule) == simulations
        visits = np.zeros(actions, np.int64)
        for scheduled in schedule:
            due = np.flatnonzero(visits == scheduled)
            assert len(due)
            visits[due[0]] += 1
        assert (np.diff(visits) <= 0).all()  # better actions are visited more often
        assert visits[:2].max() - visits[:2].min() <= 1


def edges_of_root(tree: Tree) -> slice:
    """Return which edges of a tree are the root's."""
    return slice(tree.first_edge[ROOT], tree.first_edge[ROOT] + tree.num_edges[ROOT])


@pytest.mark.parametrize("name", RULESETS)
def test_policies_are_of_the_legal_actions(name: str) -> None:
    search = search_of(name, 60, 20)
    for count, plies in ((3, 2), (50, 20)):
        positions, legal = draw(name, count, plies)
        for rng in (None, random_states(count, 1)):
            found = search.search(positions, rng)
            np.testing.assert_allclose(found.policies.sum(axis=1), 1.0, rtol=1e-5)
            allowed = (legal[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) != 0
            assert (found.policies[~allowed] == 0).all() and (found.policies >= 0).all()
            assert is_legal(found.actions, legal).all()
            assert (np.abs(found.values) <= 1).all()
            assert np.isnan(found.qvalues[~allowed]).all()
            assert (~np.isnan(found.qvalues)).any(axis=1).all()  # actions that were visited
            assert search.tree.node_visits[ROOT] == 20


@pytest.mark.parametrize("name", ["zanzibar", "dutch", "kujifunza"])
def test_roots_have_the_logits_and_values_of_the_network(name: str) -> None:
    """They do unless an action decides the game at once."""
    positions, legal = draw(name, 200, 24)
    search = search_of(name, 1, 2)
    tree = search.tree
    policy = NetworkAgent(make_network(), RULESETS[name]).evaluate(positions, legal)
    index = {action: i for i, action in enumerate(policy.legal_actions.tolist())}
    compared = decided = 0
    for g in range(200):
        search.search(positions[g : g + 1])
        below = edges_of_root(tree)
        edges = tree.positions[below]
        going = edges[:, RESULT] == 0
        rows = [index[64 * g + int(action)] for action in edges[going, ACTION]]
        np.testing.assert_allclose(tree.logits[below][going], policy.logits[rows], atol=1e-4)
        np.testing.assert_allclose(tree.qvalues[below][going], policy.values[rows], atol=1e-5)
        compared += len(rows)
        decided += going.any() and not going.all()
    assert compared > 200 and decided > 3


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("zanzibar", STANDARD),
        ("zanzibar", GumbelSettings(considered=1)),
        ("dutch", GumbelSettings(4, 20, 1, 0.8)),
    ],
)
def test_values_and_policies_worked_out_literally(name: str, settings: GumbelSettings) -> None:
    """An edge sums the values of its node and of the edges there, as seen by who chooses it.

    The policy follows Danihelka et al. (2022), equation 11; an action without visits has the
    network's value.
    """
    positions, _ = draw(name, 40, 24)
    search = search_of(name, 1, 60, settings)
    tree, discount = search.tree, float(search.workspace.discount)
    edges_compared = policies_compared = 0
    for g in range(40):
        found = search.search(positions[g : g + 1])
        for node in range(ROOT + 1, tree.next_node[0]):
            edge, first = tree.parent_edge[node], tree.first_edge[node]
            below = slice(first, first + tree.num_edges[node])
            if tree.positions[edge, RESULT] or not tree.num_edges[node]:
                continue  # a known result is backed up in place of a value
            assert tree.edge_visits[edge] == 1 + tree.edge_visits[below].sum()
            seen_there = tree.node_values[node] + tree.value_sums[below].sum()
            sign = 1 if unpack(tree.positions[edge]).pending is not None else -1
            assert tree.value_sums[edge] == pytest.approx(sign * discount * seen_there, abs=1e-4)
            edges_compared += tree.edge_visits[edge] > 1
        edges = edges_of_root(tree)
        logits, visits = tree.logits[edges], tree.edge_visits[edges]
        if tree.positions[edges, RESULT].any():
            continue
        values = np.where(visits, tree.value_sums[edges] / np.maximum(visits, 1), 0)
        values[visits == 0] = tree.qvalues[edges][visits == 0]
        considered, offset, growth, factor = settings
        assert np.count_nonzero(visits) <= considered
        scale = factor * (offset + growth * np.sqrt(visits.max()))
        # Values are from -1 to 1, the paper's from 0.
        score = logits + scale * values / 2
        score = np.exp(score - score.max())
        actions = tree.positions[edges, ACTION].astype(int)
        policy = score / score.sum()
        np.testing.assert_allclose(found.policies[0, actions], policy, atol=1e-4)
        assert found.values[0] == pytest.approx(policy @ values, abs=1e-4)
        policies_compared += 1
    assert edges_compared > 100 and policies_compared > 10


@EITHER
def test_noise_draws_other_actions(name: str) -> None:
    """The states of the generator advance, and each position is searched as if alone."""
    positions, _ = draw(name, 200, 18)
    search = search_of(name, 200, 40)
    rng = random_states(200, 5)
    before = rng.copy()
    noisy = search.search(positions, rng)
    assert (rng != before).all()
    assert (noisy.actions != search.search(positions).actions).any()  # which draws nothing
    alone = search_of(name, 1, 40).search(positions[7:8], before[7:8])
    np.testing.assert_array_equal(alone.policies[0], noisy.policies[7])


@EITHER
def test_cache_of_network_outputs_changes_nothing(name: str) -> None:
    """It saves about half of the evaluations after a move, and follows the network."""
    engine = Engine(name)
    positions, legal = draw(name, 40, 12)
    winners = np.full(40, -1, np.int8)
    search = search_of(name, 40, 24)
    read = 0
    for _ in range(4):
        fresh = search_of(name, 40, 24)
        found = search.search(positions)
        for array, other in zip(found, fresh.search(positions), strict=True):
            np.testing.assert_array_equal(array, other)
        read += fresh.encodings_read
        engine.step(positions, found.actions, legal, winners)
    assert 0.5 * read < search.encodings_read < 0.85 * read
    blank = make_network()
    torch.nn.init.zeros_(blank.head.weight)
    search.sync_weights(blank)
    expected = GumbelSearch(engine.rules, blank, 40, 24).search(positions)
    np.testing.assert_array_equal(search.search(positions).policies, expected.policies)


@pytest.mark.parametrize("name", ["zanzibar", "dutch", "kujifunza"])
def test_known_results_are_true(name: str) -> None:
    """The solver agrees with each result in the tree; a win is played, and a loss only if it must.

    Few actions are considered, so sometimes all of them lose.
    """
    positions, legal = draw(name, 150, 24)
    judged = Solver(name, nodes=3000).judge(positions, legal)
    search = search_of(name, 1, 60, GumbelSettings(considered=2))
    rng = random_states(150, 7)
    checked = deep = escaped = 0
    for g in range(150):
        chosen = search.search(positions[g : g + 1], rng[g : g + 1]).actions[0]
        edges = search.tree.positions[edges_of_root(search.tree)]
        known = {int(row[ACTION]): row[RESULT] for row in edges if row[RESULT]}
        for action, result in known.items():
            right, wrong = judged.winning[g], judged.losing[g]
            if result == LOST:
                right, wrong = wrong, right
            assert not int(wrong) >> action & 1
            checked += int(right) >> action & 1
            deep += judged.plies[g, action] > 1
        assert 1 not in known.values() or known[int(chosen)] == 1
        lost = edges[:, RESULT] == LOST
        assert known.get(int(chosen)) != LOST or lost.all()
        escaped += lost[search.tree.considered[: len(edges)]].all() and not lost.all()
    assert checked > 10 and deep > 3 and escaped


def test_no_move_in_a_waiting_capture_loses() -> None:
    """The player whose waiting capture is endless on both sides has lost (Donkers 1.5a)."""
    ruleset = RULESETS["dutch"].replace(sow_limit=64)
    text = "1,1,1,1,7,10,1,1/1,1,1,1,1,1,1,1/2,1,1,20,2,1,2,2/0,0,0,0,0,0,0,0 1,1 SN S -"
    (positions, _), rules = pack_texts([text], ruleset), ruleset.kernel
    value = AlphaBetaAgent(ruleset, Limit(plies=4), threads=1).search(positions[0]).value
    found = GumbelSearch(rules, make_network(), 1, 60).search(positions)
    after = positions[0].copy()
    assert play(rules, after, np.uint64(found.actions[0])) == 0
    assert legal_of(rules, after) or value < -PROVEN


def test_full_tree() -> None:
    """A search plays on with more simulations than a tree has room for nodes."""
    positions, legal = draw("zanzibar", 4, 60)
    found = GumbelSearch(ZANZIBAR, make_network(), 4, 3000).search(positions)
    assert is_legal(found.actions, legal).all()
