"""Guided alpha-beta: it prunes on guesses, but what it calls proven is, and it keeps its limits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
import torch

import agents
from agents.arena.openings import draw_openings
from agents.nets.network import KINDS, NetworkConfig, PolicyNetwork
from agents.nets.policy import NetworkAgent
from agents.search.alphabeta.evaluation import evaluate, load_weights, merge
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.policy_order import (
    ENCODING_NODES,
    GAP_UNIT,
    MIN_POLICY_DEPTH,
    is_worth_asking,
    make_guides,
    order_by_policy,
)
from agents.search.alphabeta.reductions import (
    MIN_REDUCED_DEPTH,
    MIN_UNKNOWN_DEPTH,
    reduction_by_order,
    reduction_by_policy,
    unknown_reduction,
)
from agents.search.alphabeta.transposition import NO_ACTION, PROVEN, WIN_VALUE
from agents.search.alphabeta.workspace import make_workspace
from bao_env.engine.kernel import legal_mask
from bao_env.engine.position import META, Packed, same_mover
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    is_stuck,
    successors,
)


def network(kind: str = "moves") -> PolicyNetwork:
    """An untrained network with an opinion."""
    torch.manual_seed(5)
    made = PolicyNetwork(NetworkConfig(kind=kind, hidden=(16, 8)))
    torch.nn.init.normal_(made.head.weight, std=0.3)
    return made.eval()


def batch_of(ruleset: str, count: int, plies: int) -> tuple[np.ndarray, np.ndarray]:
    rules = get_ruleset(ruleset).kernel_rules()
    positions = draw_openings(ruleset, count, plies, 7, None).positions
    return positions, np.array([legal_mask(rules, words) for words in positions], np.uint64)


@pytest.mark.parametrize("name", RULESETS)
def test_what_it_calls_proven_is(name: str) -> None:
    """A win within n plies is one in a full search of n plies, and a loss likewise."""
    ruleset = get_ruleset(name)
    guided = AlphaBetaAgent(ruleset, nodes=20_000, network=network(), threads=1)
    proven = 0
    for words in batch_of(name, 60, 45)[0]:
        found = guided.search(words)
        assert int(legal_mask(ruleset.kernel_rules(), words)) >> found.action & 1
        assert found.line[0] == found.action
        plies = WIN_VALUE - abs(found.value)
        if abs(found.value) > PROVEN and plies <= 9:
            full = AlphaBetaAgent(ruleset, depth=plies, threads=1).search(words)
            assert abs(full.value) > PROVEN and (full.value > 0) == (found.value > 0)
            proven += 1
    assert proven > 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_orders_the_actions(kind: str) -> None:
    """As the bare policy likes them, known results and the table's action apart."""
    ruleset = get_ruleset("zanzibar")
    rules, net = ruleset.kernel_rules(), network(kind)
    guide = make_guides(net, 1)[0]
    batch, masks = batch_of("zanzibar", 40, 16)
    policy = NetworkAgent(net, ruleset).evaluate(batch, masks)
    memory = make_workspace(1).memory
    stack, scores, frame = memory["stack"][0], memory["scores"][0], memory["frames"][0, 3:4]
    gaps = memory["gaps"][0, 3]
    frame["row"], frame["first"] = 0, 1
    compared = 0
    for i, words in enumerate(batch):
        stack[0, : META + 1] = words[: META + 1]
        count = successors(rules, Packed.of(words), stack, 1)
        part = slice(policy.indptr[i], policy.indptr[i + 1])
        logits = dict(zip(policy.legal_actions[part] & 63, policy.logits[part], strict=True))
        tt_move = int(stack[count, ACTION])
        frame["end"], frame["tt_move"], frame["by_policy"] = 1 + count, tt_move, 0
        frame["key"] = 1 + i
        memory["nodes"] = 0
        order_by_policy(rules, guide, memory[0], 3)
        assert frame["by_policy"] == 1
        if count == 1 or stack[1 : 1 + count, RESULT].any():
            continue
        assert memory["nodes"] == ENCODING_NODES * (count if kind == "moves" else 1)
        compared += 1
        top = max(logits.values())
        for k in range(1, 1 + count):
            action = int(stack[k, ACTION])
            assert gaps[action] / GAP_UNIT == pytest.approx(top - logits[action], abs=0.1)
            assert scores[k] == (1 if action == tt_move else -gaps[action])
    assert compared > 20


def test_the_network_is_asked_once_in_a_search() -> None:
    """Coming back to a node costs nothing; the next search, another node and the root do ask."""
    ruleset = get_ruleset("zanzibar")
    guide = make_guides(network("moves"), 1)[0]
    memory = make_workspace(1).memory

    def asked(words: npt.NDArray[np.uint64], key: int, epoch: int, ply: int = 3) -> bool:
        memory["stack"][0, 0, : META + 1] = words[: META + 1]
        count = successors(ruleset.kernel_rules(), Packed.of(words), memory["stack"][0], 1)
        frame = memory["frames"][0, ply : ply + 1]
        frame["row"], frame["first"], frame["end"], frame["key"] = 0, 1, 1 + count, key * 1_000_003
        memory["epoch"], memory["nodes"] = epoch, 0
        order_by_policy(ruleset.kernel_rules(), guide, memory[0], ply)
        return bool(memory["nodes"][0])

    one, other = batch_of("zanzibar", 40, 16)[0][:2]
    assert asked(one, 1, 1)
    gaps, scores = memory["gaps"][0, 3].copy(), memory["scores"][0].copy()
    assert not asked(one, 1, 1)
    np.testing.assert_array_equal(memory["gaps"][0, 3], gaps)
    np.testing.assert_array_equal(memory["scores"][0], scores)
    assert asked(one, 1, 2)
    assert asked(other, 2, 2)
    assert not asked(one, 1, 2)
    assert asked(one, 1, 2, ply=0)  # which may lack actions
    assert asked(one, 1, 2)


@pytest.mark.parametrize(
    ("depth", "actions", "asked"),
    [(MIN_POLICY_DEPTH, 2, True), (MIN_POLICY_DEPTH - 1, 2, False), (MIN_POLICY_DEPTH, 1, False)],
)
def test_the_network_is_asked_far_from_the_horizon(depth: int, actions: int, asked: bool) -> None:
    frame = make_workspace(1).memory["frames"][0, :1]
    frame["depth"], frame["first"], frame["end"] = depth, 5, 5 + actions
    assert is_worth_asking(frame[0]) == asked


def test_reductions() -> None:
    """The less likely, the less deep; nothing is dropped altogether."""
    for depth in range(2, 40):
        by_gap = [
            reduction_by_policy(np.int64(depth), np.int64(gap)) for gap in range(0, 60_000, 500)
        ]
        by_place = [reduction_by_order(np.int64(depth), place) for place in range(1, 30)]
        for plies in (by_gap, by_place):
            assert plies == sorted(plies)
            assert plies[0] >= 0 and plies[-1] <= depth - 2
        if depth < MIN_REDUCED_DEPTH:
            assert by_place[-1] == 0
    assert reduction_by_policy(np.int64(20), np.int64(0)) == 0
    assert reduction_by_policy(np.int64(20), np.int64(10 * GAP_UNIT)) > 5


def test_a_node_without_a_remembered_action_is_reduced() -> None:
    depths = [np.int64(depth) for depth in range(1, 20)]
    plies = [unknown_reduction(True, depth, np.int64(NO_ACTION)) for depth in depths]
    assert plies == [0] * (MIN_UNKNOWN_DEPTH - 1) + [1] * (20 - MIN_UNKNOWN_DEPTH)
    assert not any(unknown_reduction(True, depth, np.int64(7)) for depth in depths)
    assert not any(unknown_reduction(False, depth, np.int64(NO_ACTION)) for depth in depths)


def literal(ruleset: Ruleset, words: np.ndarray, depth: int, saved: int, ply: int) -> int:
    """Minimax with the extensions of a guided search, for the player to move."""
    rules = ruleset.kernel_rules()
    stack = np.zeros((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)
    found = stack[: successors(rules, Packed.of(words), stack, 0)]
    best = ply - WIN_VALUE
    actions = len(found)
    starts = {int(action) >> 1 for action in found[:, ACTION]}  # pit and direction
    for after in found:
        again = bool(same_mover(after[META]))
        plies = depth - 1 if depth > 1 or not again else 1
        spared = saved
        if ply > 0 and not (depth == 1 and len(starts) > 1):
            spared += {1: 2, 2: 1}.get(actions, 0)
            plies, spared = plies + spared // 2, spared % 2
        if after[RESULT]:
            value = WIN_VALUE - ply - 1 if after[RESULT] == 1 else ply + 1 - WIN_VALUE
        else:
            if plies:
                value = literal(ruleset, after, plies, spared, ply + 1)
            elif is_stuck(Packed.of(after)):
                value = ply + 1 - WIN_VALUE
            else:
                value = int(evaluate(merge(load_weights(ruleset)), Packed.of(after)))
            value = value if again else -value
        best = max(best, value)
    return best


@pytest.mark.parametrize("plies", (8, 30, 50))
def test_forced_actions_are_looked_past(plies: int) -> None:
    """Where nothing is reduced, the search is the literal one; and extensions do change values."""
    ruleset = get_ruleset("zanzibar")
    batch, _ = batch_of("zanzibar", 60, plies)
    changed = 0
    for depth in range(1, MIN_REDUCED_DEPTH):
        full = AlphaBetaAgent(depth=depth, threads=1)
        weights = load_weights(ruleset)
        guided = AlphaBetaAgent(depth=depth, weights=weights, network=network(), threads=1)
        for words in batch:
            value = guided.search(words).value
            if abs(value) < PROVEN:  # else an earlier depth ended the search
                assert value == literal(ruleset, words, depth, 0, 0)
                changed += value != full.search(words).value
    assert changed > 3


def test_choice_depends_on_the_position_alone() -> None:
    batch, masks = batch_of("zanzibar", 40, 12)
    together = AlphaBetaAgent(nodes=3000, network=network(), threads=2).act(batch, masks)
    alone = AlphaBetaAgent(nodes=3000, network=network(), threads=1)
    for i in reversed(range(len(batch))):
        assert alone.act(batch[i : i + 1], masks[i : i + 1])[0] == together[i]


def test_it_looks_further_at_the_same_cost() -> None:
    batch, _ = batch_of("zanzibar", 20, 8)
    shipped = agents.load("guided:zanzibar:20000n", threads=1)
    full = AlphaBetaAgent(nodes=20_000, threads=1)
    depths = np.array([(shipped._agent.search(w).depth, full.search(w).depth) for w in batch])
    assert np.median(depths[:, 0]) >= np.median(depths[:, 1]) + 2
    assert all(shipped._agent.search(w).nodes < 20_000 + 64 * ENCODING_NODES for w in batch)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("guided:zanzibar", "something like guided:zanzibar:6, guided:zanzibar:100ms"),
        ("guided:zanzibar:fast", "something like guided:zanzibar:6"),
        ("guided:nobody:6", "no checkpoint 'nobody'"),
        ("guided:zanzibar:0n", "expected at least 1"),
        ("guided:zanzibar:99", "expected 1 to 60 plies"),
        ("guided:kibao:6", "trained under rule set 'kibao'"),
    ],
)
def test_bad_names_are_refused(spec: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        agents.load(spec)


def test_bots_without_a_network_do_without_torch() -> None:
    code = (
        "import sys, agents; from bao_env import Board; "
        "agents.load('alphabeta:2', threads=1).choose(Board()); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
