"""Test guided alpha-beta: its proofs; order, reductions and extensions are as documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.checkpoint_files import GUIDES
from bao_agents.nets.network import PolicyNetwork
from bao_agents.nets.player import NetworkAgent
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.policy_order import (
    ENCODING_NODES,
    MIN_POLICY_DEPTH,
    make_guides,
    order_by_policy,
)
from bao_agents.search.alphabeta.reductions import (
    GAP_UNIT,
    STANDARD,
    reduction_by_order,
    reduction_by_policy,
)
from bao_agents.search.alphabeta.transposition import PROVEN, WIN_VALUE
from bao_agents.search.alphabeta.workspace import make_workspaces
from bao_agents.search.limits import Limit
from bao_env import RULESETS
from bao_env.engine.action import actions_of
from bao_env.engine.position import META, Rows
from bao_env.engine.successors import (
    ACTION,
    RESULT,
    successors,
)
from tests.networks import make_network
from tests.positions import draw
from tests.searches import minimax, tables_evaluator

ZANZIBAR = RULESETS["zanzibar"].kernel


def network() -> PolicyNetwork:
    """Make a small untrained network."""
    return make_network((16, 8))


def guide(name: str = "zanzibar") -> Checkpoint:
    """Return that network as a guide."""
    return Checkpoint(network().arrays(), RULESETS[name])


@pytest.mark.parametrize("name", RULESETS)
def test_proofs_are_true(name: str) -> None:
    """A win or loss within n plies is also a win or loss in a full search of n plies."""
    guided = AlphaBetaAgent(name, Limit(nodes=20_000), guide=guide(name), threads=1)
    proven = 0
    for position, bits in zip(*draw(name, 60, 45, seed=7), strict=True):
        result = guided.search(position)
        assert int(bits) >> result.action & 1
        assert result.line[0] == result.action
        plies = WIN_VALUE - abs(result.value)
        if abs(result.value) > PROVEN and plies <= 9:
            full = AlphaBetaAgent(name, Limit(plies=plies), threads=1).search(position)
            assert abs(full.value) > PROVEN and (full.value > 0) == (result.value > 0)
            proven += 1
    assert proven > 5


def test_actions_are_in_the_order_of_the_policy() -> None:
    """An action's score is the distance of its logit from the best; the table's action comes first.

    An action costs as much as some nodes.
    """
    batch, legal = draw("zanzibar", 40, 16, seed=7)
    policy = NetworkAgent(network(), RULESETS["zanzibar"]).evaluate(batch, legal)
    policy_guide, memory = make_guides(network().arrays(), 1)[0], make_workspaces(1, 64)[0].memory
    stack, frame, ply = memory["stack"][0], memory["frames"][0, 3:4], 3
    scores, gaps = memory["scores"][0], memory["gaps"][0, ply]
    compared = 0
    for i, position in enumerate(batch):
        stack[0, : META + 1] = position[: META + 1]
        count = successors(ZANZIBAR, Rows.of(position), stack, 1)
        rows = stack[1 : 1 + count]
        frame["row"], frame["first"], frame["end"], frame["key"] = 0, 1, 1 + count, 1_000_003 * i
        frame["tt_move"], frame["by_policy"], memory["nodes"] = rows[-1, ACTION], 0, 0
        order_by_policy(ZANZIBAR, policy_guide, memory[0], ply)
        if count == 1 or rows[:, RESULT].any():
            continue
        assert memory["nodes"] == ENCODING_NODES * count
        logits = policy.logits[policy.indptr[i] : policy.indptr[i + 1]]
        actions = actions_of(legal[i])
        np.testing.assert_allclose(gaps[actions] / GAP_UNIT, logits.max() - logits, atol=0.1)
        *unlikely, last = rows[:, ACTION].astype(int)
        assert scores[1 : count + 1].tolist() == [*-gaps[unlikely], 1]
        compared += 1
    assert compared > 20
    large = make_guides(make_network((256, 256)).arrays(), 1)[0]
    assert large.encoding_nodes == ENCODING_NODES + 10  # one more for 7,000 weights
    larger = make_guides(make_network((512, 256)).arrays(), 1)[0]
    depths = [guide.min_depth for guide in (policy_guide, large, larger)]
    assert depths == [MIN_POLICY_DEPTH, MIN_POLICY_DEPTH, MIN_POLICY_DEPTH + 2]


def test_reductions() -> None:
    """Less likely actions are reduced more; none is dropped altogether."""
    for depth in map(np.int64, range(2, 40)):
        by_gap = [
            reduction_by_policy(STANDARD, depth, np.int64(gap)) for gap in range(0, 60_000, 500)
        ]
        by_order = [reduction_by_order(STANDARD, depth, index) for index in range(1, 30)]
        for plies in (by_gap, by_order):
            assert plies == sorted(plies)
            assert plies[0] >= 0 and plies[-1] <= depth - 2
        if depth < STANDARD.order_depth:
            assert by_order[-1] == 0
    assert reduction_by_policy(STANDARD, np.int64(20), np.int64(0)) == 0
    assert reduction_by_policy(STANDARD, np.int64(20), np.int64(10 * GAP_UNIT)) > 5


def test_a_search_reduces_by_the_numbers_that_it_is_given() -> None:
    """Every number changes searches; without reductions a search is far less deep."""
    guide = checkpoint.load(GUIDES / "zanzibar.safetensors")
    limit = Limit(nodes=20_000)

    def depths(**numbers: Any) -> list[tuple[int, int]]:
        reductions = STANDARD._replace(**numbers)
        agent = AlphaBetaAgent("zanzibar", limit, guide=guide, reductions=reductions, threads=1)
        results = [agent.search(position) for position in draw("zanzibar", 12, 8)[0]]
        assert all(result.nodes < 20_000 + 64 * ENCODING_NODES for result in results)
        return [(result.depth, result.nodes) for result in results]

    standard = depths()
    for name, number in STANDARD._asdict().items():
        assert depths(**{name: number + 1}) != standard, name
    full = depths(policy_plies=-99, order_plies=-99, unknown_depth=99)
    assert np.mean([depth for depth, _ in full]) < np.mean([depth for depth, _ in standard]) - 1


@pytest.mark.parametrize("plies", [8, 30, 50])
def test_forced_actions_extend_the_search(plies: int) -> None:
    """Without reductions, values are those of the literal search; extensions change some."""
    batch, _ = draw("zanzibar", 60, plies, seed=7)
    evaluator = tables_evaluator(RULESETS["zanzibar"])
    changed = 0
    for depth in range(1, STANDARD.order_depth):
        full = AlphaBetaAgent("zanzibar", Limit(plies=depth), threads=1)
        guided = AlphaBetaAgent("zanzibar", Limit(plies=depth), guide=guide(), threads=1)
        for position in batch:
            value = guided.search(position).value
            if abs(value) < PROVEN:  # else an earlier depth ended the search
                assert value == minimax(ZANZIBAR, evaluator, position, depth, extends=True)[0]
                changed += value != full.search(position).value
    assert changed > 3
