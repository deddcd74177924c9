"""The Gumbel search: schedule, legality, improvement, what it finds where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agents.alphabeta import PROVEN, AlphaBetaAgent
from agents.arena import movers
from agents.features import ROW_SIZE, WINS, expand
from agents.gumbel import CONSIDERED, GumbelSearch, visit_schedule
from agents.network import Inputs, NetworkConfig, PolicyNetwork
from agents.openings import draw_openings
from agents.options import encode
from agents.policy import SearchAgent
from bao_env.bots import GreedyAgent
from bao_env.engine.batch import random_states
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.ruleset import RULESETS, get_ruleset


def network(kind: str = "actions", hidden: tuple[int, ...] = (32, 16)) -> PolicyNetwork:
    """An untrained network with an opinion, exact whatever the batch."""
    torch.manual_seed(3)
    made = PolicyNetwork(NetworkConfig(kind=kind, hidden=hidden))
    torch.nn.init.normal_(made.head.weight, std=0.3)
    return made.double().eval()


def batch_of(ruleset: str, count: int, plies: int) -> tuple[np.ndarray, np.ndarray]:
    rules = get_ruleset(ruleset).kernel_rules()
    positions = draw_openings(ruleset, count, plies, 3, None).positions
    return positions, np.array([legal_mask(rules, words) for words in positions], np.uint64)


def test_sequential_halving() -> None:
    """Worked out by hand from the paper's algorithm 1."""
    assert visit_schedule(1, 3) == [0, 1, 2]
    assert visit_schedule(2, 4) == [0, 0, 1, 1]
    assert visit_schedule(4, 8) == [0, 0, 0, 0, 1, 1, 2, 2]
    assert visit_schedule(4, 16) == [0] * 4 + [1] * 4 + [2, 2, 3, 3, 4, 4, 5, 5]
    assert visit_schedule(8, 6) == [0] * 6
    for actions in range(1, CONSIDERED + 1):
        for simulations in (2, 7, 24, 100):
            assert len(visit_schedule(actions, simulations)) == simulations


@pytest.mark.parametrize("name", RULESETS)
def test_policies_are_of_the_legal_actions(name: str) -> None:
    rules = get_ruleset(name).kernel_rules()
    search = GumbelSearch(rules, network(), 60, 20)
    for plies in (2, 20):
        positions, masks = batch_of(name, 3 if plies == 2 else 50, plies)
        for rng in (None, random_states(len(masks), 1)):
            found = search.search(positions, rng)
            np.testing.assert_allclose(found.policies.sum(axis=1), 1.0, rtol=1e-5)
            legal = (masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) != 0
            assert (found.policies[~legal] == 0).all() and (found.policies[legal] > 0).all()
            assert legal[np.arange(len(masks)), found.actions].all()
            assert (np.abs(found.values) <= 1).all()


@pytest.mark.parametrize("kind", ["board", "actions"])
def test_rows_are_those_that_the_bare_policy_reads(kind: str) -> None:
    ruleset = get_ruleset("zanzibar")
    positions, masks = batch_of("zanzibar", 100, 24)
    config = NetworkConfig(kind=kind)
    search = GumbelSearch(ruleset.kernel_rules(), network(kind), 100, 2)
    rows = encode(ruleset.kernel_rules(), positions, masks, config)[0]
    np.testing.assert_array_equal(search.search(positions).rows, rows[:100])


def test_action_rows_tell_what_greedy_knows() -> None:
    ruleset = get_ruleset("zanzibar")
    positions, masks = batch_of("zanzibar", 200, 30)
    rows = encode(ruleset.kernel_rules(), positions, masks, NetworkConfig(kind="actions"))[0]
    said = rows[: len(masks), ROW_SIZE:]
    legal = (masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) != 0
    np.testing.assert_array_equal(said > 0, legal)
    greedy = GreedyAgent().act(positions, masks)
    np.testing.assert_array_equal(said[np.arange(len(masks)), greedy], said.max(axis=1))
    assert (said == WINS).any()
    features = torch.from_numpy(expand(rows)).view(torch.bfloat16).float()
    assert set(np.unique(features * 8)) <= set(range(65))
    np.testing.assert_array_equal(features[: len(masks), -192:-128].numpy() == 1, legal)
    np.testing.assert_array_equal(features[: len(masks), -64:].numpy() == 1, said == WINS)


@pytest.mark.parametrize("name", ["zanzibar", "dutch", "kujifunza"])
def test_it_finds_wins_with_an_ignorant_network(name: str) -> None:
    """Nothing but the rules tells it, so it takes simulations; wins at once take few."""
    rules = get_ruleset(name).kernel_rules()
    blank = network()
    torch.nn.init.zeros_(blank.head.weight)
    search = GumbelSearch(rules, blank, 300, 400)
    judge = AlphaBetaAgent(name, depth=3, threads=1)
    positions, masks = batch_of(name, 300, 22)
    won = np.flatnonzero(judge.values(positions, masks) > PROVEN)
    actions = search.search(positions[won]).actions
    kept = 0
    for i, action in zip(won, actions, strict=True):
        after = positions[i].copy()
        result = play(rules, after, np.uint64(action))
        sign = 1 if movers(after[None]) == movers(positions[i : i + 1]) else -1
        kept += result == 1 or sign * judge.search(after).value > PROVEN
    assert len(won) >= 5 and kept >= 0.9 * len(won)


def test_values_are_the_players_own() -> None:
    """A won position is worth about 1 to the player to move, the one before about -1."""
    judge = AlphaBetaAgent(depth=3, threads=1)
    positions, masks = batch_of("zanzibar", 400, 26)
    values = judge.values(positions, masks)
    search = GumbelSearch(get_ruleset("zanzibar").kernel_rules(), network(), 400, 300)
    found = search.search(positions).values
    assert found[values > PROVEN].mean() > 0.5
    assert found[values < -PROVEN].mean() < -0.5


def test_search_does_not_depend_on_the_batch() -> None:
    ruleset = get_ruleset("zanzibar")
    positions, masks = batch_of("zanzibar", 70, 12)
    together = SearchAgent(network(), ruleset, 30, threads=2).act(positions, masks)
    alone = SearchAgent(network(), ruleset, 30, threads=1)
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
    with pytest.raises(ValueError, match="kind board or actions"):
        SearchAgent(network("moves"), ruleset, 10)
    with pytest.raises(ValueError, match="1 simulations: expected 2"):
        SearchAgent(network(), ruleset, 1)
    agent = SearchAgent(network(), ruleset, 4)
    positions, masks = batch_of("zanzibar", 2, 4)
    assert agent.act(positions, np.zeros(2, np.uint64)).tolist() == [0, 0]
    logits, values = network()(Inputs(torch.zeros((1, 119), dtype=torch.uint8), torch.tensor([3])))
    assert logits.shape == (1,) and values.shape == (1,)
    assert masks.all()
