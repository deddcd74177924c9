"""Gumbel tree search with a network, for many positions a call.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, actions are drawn without replacement by the Gumbel-top-k trick and
sequential halving spends the simulations on them (:mod:`agents.search.halving`); below it, actions
are taken so that visits follow the improved policy (:mod:`agents.search.improved_policy`). No
exploration constant is needed, and few simulations suffice to improve on the policy.

Each game has a tree of its own (:mod:`agents.search.tree`). On a processor the network is compiled
(:mod:`agents.nets.compiled`) and one tree after another grows to its end, which keeps it in the
cache. With a network on a GPU, or one that cannot be compiled, all trees grow in lock step: a
simulation walks every tree to a leaf, and the leaves go through the network as one batch.
Expanding a leaf plays all of its actions (:mod:`bao_env.engine.successors`), so results of the
game are known at once.

A win known for certain is always taken, a known loss only where there is nothing else.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.nets.compiled import (
    NetworkWorkspace,
    Weights,
    compile_network,
    forward,
    is_compilable,
    make_network_workspace,
)
from agents.nets.encoding import ENCODING_STEP, encode_successors, padded_encodings
from agents.nets.head import action_logit, expected_result
from agents.nets.network import PolicyNetwork
from agents.search.halving import visit_schedule
from agents.search.improved_policy import (
    MAX_CONSIDERED,
    consider_root_edges,
    improve,
    select_inner_edge,
    select_root_edge,
    softmax,
)
from agents.search.tree import NO_NODE, Tree, add_node, backup, known_edge, make_tree, prove
from bao_env.engine.bits import FULL, ONE, ZERO
from bao_env.engine.compile import jit
from bao_env.engine.position import META
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import ACTION, MAX_SUCCESSORS, RESULT, same_mover


class SearchOutput(NamedTuple):
    """What searches of B positions found."""

    actions: npt.NDArray[np.int64]
    """int64[B], the actions to play."""
    policies: npt.NDArray[np.float32]
    """float32[B, 64], the improved policies, to learn from."""
    values: npt.NDArray[np.float32]
    """float32[B], expected results under them."""
    qvalues: npt.NDArray[np.float32]
    """float32[B, 64], expected results of the actions visited; else not a number."""


class SearchSettings(NamedTuple):
    """What stays the same during a search."""

    rules: KernelRules
    """The rules to search by."""
    schedule: npt.NDArray[np.int32]
    """int32[MAX_CONSIDERED + 1, simulations], :func:`visit_schedule` of each number of actions."""
    discount: np.float32
    """A win is worth this much less for each ply before it."""


class RootNoise(NamedTuple):
    """What varies the choice between the actions of the roots."""

    scale: np.float32
    """1 for Gumbel noise, 0 for none."""
    rng: npt.NDArray[np.uint64]
    """uint64[B], non-zero xorshift states."""


class SearchWorkspace(NamedTuple):
    """What one thread's compiled functions work in."""

    per_action: int
    """1 for a network that reads each legal action, else 0."""
    encodings: npt.NDArray[np.uint8]
    """uint8[R, ENCODING_SIZE], what the network is to read of the leaves."""
    improved: npt.NDArray[np.float32]
    """float32[64], the improved policy of a node."""


class CompiledNetwork(NamedTuple):
    """A compiled network and what one thread runs it in."""

    weights: Weights
    workspace: NetworkWorkspace
    outputs: npt.NDArray[np.float32]
    """float32[64, 65 or 2], the head's."""


@jit
def _init_roots(settings, tree, positions, workspace):
    """Begin a tree for each position, and encode the roots.

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`, overwritten.
        positions: uint64[B, 6].
        workspace: the :class:`SearchWorkspace`.
    """
    end = np.int64(0)
    for g in range(positions.shape[0]):
        tree.nodes[g] = 0
        tree.edges[g] = 0
        add_node(settings.rules, tree, g, positions[g], NO_NODE)
        tree.leaves[g] = 0
        tree.starts[g] = end
        end = encode_successors(
            settings.rules,
            workspace.per_action,
            positions[g],
            tree.words[g],
            0,
            np.int64(tree.num_edges[g, 0]),
            workspace.encodings,
            end,
        )
    tree.starts[positions.shape[0]] = end


@jit
def _select(settings, tree, simulation, workspace, games):
    """Walk one simulation of each game down to a leaf, and encode the leaves.

    A simulation that comes to a known result, or to a leaf that cannot be expanded, is backed up
    here; its game has no leaf (``tree.leaves``).

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`; of each game, a node may be added.
        simulation: its number, from 0.
        workspace: the :class:`SearchWorkspace`.
        games: how many of the trees to walk down.
    """
    words = tree.words
    discount = settings.discount
    per_action, improved = workspace.per_action, workspace.improved
    end = np.int64(0)
    for g in range(games):
        tree.leaves[g] = NO_NODE
        tree.starts[g] = end
        count = np.int64(tree.num_edges[g, 0])
        if count == 0:
            continue
        visits = settings.schedule[min(count, MAX_CONSIDERED), simulation]
        edge = select_root_edge(tree, g, visits, per_action, improved)
        while True:
            if words[g, edge, RESULT] != ZERO:
                value = np.float32(1.0) if words[g, edge, RESULT] == ONE else np.float32(-1.0)
                backup(tree, g, edge, value, discount)
                break
            node = np.int64(tree.child[g, edge])
            if node == NO_NODE:
                position = words[g, edge]
                node = add_node(settings.rules, tree, g, position, edge)
                tree.child[g, edge] = node
                if tree.num_edges[g, node] == 0:  # the player to move there has lost (1.2)
                    value = np.float32(-1.0) if same_mover(position[META]) else np.float32(1.0)
                    words[g, edge, RESULT] = ONE if value > 0 else FULL
                    prove(tree, g, edge)
                    backup(tree, g, edge, value, discount)
                    break
                first_edge = np.int64(tree.first_edge[g, node])
                end = encode_successors(
                    settings.rules,
                    per_action,
                    position,
                    words[g],
                    first_edge,
                    first_edge + np.int64(tree.num_edges[g, node]),
                    workspace.encodings,
                    end,
                )
                tree.leaves[g] = node
                break
            if tree.num_edges[g, node] == 0:  # there was no space to expand it
                value = discount * tree.node_values[g, node]
                if not same_mover(words[g, edge, META]):
                    value = -value
                backup(tree, g, edge, value, discount)
                break
            edge = select_inner_edge(tree, g, node, per_action, improved)
    tree.starts[games] = end


@jit
def _set_priors(tree, g, node, outputs, workspace):
    """Enter what the network says of a node and its edges; returns the node's value, float32.

    Args:
        tree: the :class:`Tree`; the node's logits and, for ``moves``, its q-values are filled.
        g: the game.
        node: the node, whose encodings begin at ``tree.starts[g]``.
        outputs: float32[R, 65 or 2], the head's (:mod:`agents.nets.head`).
        workspace: the :class:`SearchWorkspace`.
    """
    first_edge = np.int64(tree.first_edge[g, node])
    last = first_edge + np.int64(tree.num_edges[g, node])
    k = tree.starts[g]
    if workspace.per_action == 0:
        for e in range(first_edge, last):
            tree.logits[g, e] = outputs[k, np.int64(tree.words[g, e, ACTION])]
        return expected_result(outputs[k, outputs.shape[1] - 1])
    # Actions whose result is known were not encoded; their logits trust it like any other.
    for e in range(first_edge, last):
        if tree.words[g, e, RESULT] != ZERO:
            won = tree.words[g, e, RESULT] == ONE
            value = np.float32(1.0) if won else np.float32(-1.0)
            tree.logits[g, e] = action_logit(np.float32(0.0), value)
        else:
            value = expected_result(outputs[k, 1])
            tree.logits[g, e] = action_logit(outputs[k, 0], value)
            k += 1
        tree.qvalues[g, e] = value
    policy = workspace.improved
    for i in range(last - first_edge):
        policy[i] = tree.logits[g, first_edge + i]
    softmax(policy, last - first_edge)
    expected = np.float32(0.0)
    for i in range(last - first_edge):
        expected += policy[i] * tree.qvalues[g, first_edge + i]
    return expected


@jit
def _expand_and_backup(settings, tree, outputs, workspace, games):
    """Enter what the network says of the leaves, and back their values up.

    Args:
        settings: the :class:`SearchSettings`.
        tree: the :class:`Tree`.
        outputs: float32[R, 65 or 2], the head's, of the leaves' encodings.
        workspace: the :class:`SearchWorkspace`.
        games: how many of the trees to do it for.
    """
    for g in range(games):
        node = np.int64(tree.leaves[g])
        if node == NO_NODE or tree.num_edges[g, node] == 0:
            continue
        value = _set_priors(tree, g, node, outputs, workspace)
        known = known_edge(tree, g, node)
        if known != NO_NODE:
            value = np.float32(1.0) if tree.words[g, known, RESULT] == ONE else np.float32(-1.0)
            prove(tree, g, known)
        tree.node_values[g, node] = value
        # No space for the edges: the next node writes over them.
        first_edge = np.int64(tree.first_edge[g, node])
        if np.int64(tree.edges[g]) == first_edge:
            tree.num_edges[g, node] = 0
        if node == 0:
            continue
        edge = np.int64(tree.parent_edge[g, node])
        value *= settings.discount
        if not same_mover(tree.words[g, edge, META]):
            value = -value
        backup(tree, g, edge, value, settings.discount)


@jit
def _root_output(tree, g, workspace, output, i):
    """What the search of one position found.

    Args:
        tree: the :class:`Tree`.
        g: the game.
        workspace: the :class:`SearchWorkspace`.
        output: a :class:`SearchOutput`.
        i: the row of its arrays that is filled.
    """
    actions, policies, values, qvalues = output
    improved = workspace.improved
    actions[i] = 0
    values[i] = 0.0
    policies[i] = 0.0
    qvalues[i] = np.nan
    count = np.int64(tree.num_edges[g, 0])
    if count == 0:
        return
    improve(tree, g, 0, workspace.per_action, improved)
    max_visits = np.int32(0)  # visits of the finalist, known losses apart
    for e in range(count):
        if tree.considered[g, e] and tree.words[g, e, RESULT] != FULL:
            max_visits = max(max_visits, tree.edge_visits[g, e])
    best = np.int64(0)
    best_score = -np.inf
    for e in range(count):
        score = improved[e]
        if tree.considered[g, e]:
            score += tree.noise[g, e]
        if tree.words[g, e, RESULT] == ZERO and not (
            tree.considered[g, e] and tree.edge_visits[g, e] == max_visits
        ):
            continue
        if score > best_score:
            best_score = score
            best = e
    actions[i] = np.int64(tree.words[g, best, ACTION])
    softmax(improved, count)
    for e in range(count):
        action = np.int64(tree.words[g, e, ACTION])
        policies[i, action] = improved[e]
        value = tree.qvalues[g, e] if workspace.per_action != 0 else tree.node_values[g, 0]
        if tree.edge_visits[g, e] > 0:
            value = tree.value_sums[g, e] / np.float32(tree.edge_visits[g, e])
            qvalues[i, action] = value
        values[i] += improved[e] * value


@jit
def _root_outputs(tree, workspace, output, games):
    """:func:`_root_output` of the first ``games`` trees."""
    for g in range(games):
        _root_output(tree, g, workspace, output, g)


@jit
def _evaluate(network, tree, workspace):
    """Run a compiled network on the leaf of the only tree; returns how many encodings it read."""
    count = tree.starts[1]
    forward(network.weights, workspace.encodings, count, network.workspace, network.outputs)
    return count


@jit
def _search_each(settings, tree, network, workspace, positions, noise, output):
    """Search one position after another with a compiled network.

    Args:
        settings: the :class:`SearchSettings`.
        tree: a :class:`Tree` of one game, overwritten.
        network: the :class:`CompiledNetwork`.
        workspace: the :class:`SearchWorkspace`.
        positions: uint64[B, 6].
        noise: the :class:`RootNoise`.
        output: the :class:`SearchOutput`, filled.

    Returns:
        int64, how many encodings the network has read.
    """
    encodings_read = np.int64(0)
    for i in range(positions.shape[0]):
        _init_roots(settings, tree, positions[i : i + 1], workspace)
        encodings_read += _evaluate(network, tree, workspace)
        _expand_and_backup(settings, tree, network.outputs, workspace, 1)
        consider_root_edges(tree, noise.scale, noise.rng[i : i + 1], 1)
        for simulation in range(settings.schedule.shape[1]):
            _select(settings, tree, simulation, workspace, 1)
            encodings_read += _evaluate(network, tree, workspace)
            _expand_and_backup(settings, tree, network.outputs, workspace, 1)
        _root_output(tree, 0, workspace, output, i)
    return encodings_read


class GumbelSearch:
    """Searches for up to ``games`` positions at a time with one network.

    Args:
        rules: to search by.
        network: on a processor compiled as it is now (:meth:`sync_weights`); in lock step used
            itself, wherever it is.
        games: most positions a call.
        simulations: of each search, at least 2.
        discount: a win is worth this much less for each ply before it, so that sooner is better.
        lock_step: grow all trees together, with the network as a batch. By default so with a
            network that is on a GPU or that cannot be compiled.

    Raises:
        ValueError: a number is out of range.
        NotCompilableError: ``lock_step`` is False, and the network cannot be compiled.
    """

    def __init__(
        self,
        rules: KernelRules,
        network: PolicyNetwork,
        games: int,
        simulations: int,
        discount: float = 0.998,
        *,
        lock_step: bool | None = None,
    ) -> None:
        if not 2 <= simulations <= 1_000_000:
            raise ValueError(f"{simulations} simulations: expected 2 to 1000000")
        if lock_step is None:
            on_gpu = next(network.parameters()).device.type != "cpu"
            lock_step = on_gpu or not is_compilable(network)
        per_action = network.config.per_action
        self.network = network
        self.simulations = simulations
        self.network_seconds = 0.0
        """Time that the network has taken so far; counted in lock step only."""
        self.encodings_read = 0
        """Encodings that the network has read so far."""
        self._games = games
        self._lock_step = lock_step
        self._settings = SearchSettings(
            rules=rules,
            schedule=np.stack([visit_schedule(n, simulations) for n in range(MAX_CONSIDERED + 1)]),
            discount=np.float32(discount),
        )
        trees = games if lock_step else 1
        self._tree: Tree = make_tree(trees, simulations)
        self._workspace = SearchWorkspace(
            per_action=int(per_action),
            encodings=padded_encodings(trees * (MAX_SUCCESSORS if per_action else 1)),
            improved=np.empty(MAX_SUCCESSORS, np.float32),
        )
        if not lock_step:
            weights = compile_network(network)
            self._compiled = CompiledNetwork(
                weights=weights,
                workspace=make_network_workspace(weights),
                outputs=np.empty((MAX_SUCCESSORS, int(weights.widths[-1])), np.float32),
            )

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Search with the weights of ``network``, of the same shape, as they are now."""
        self.network = network
        if not self._lock_step:
            self._compiled = self._compiled._replace(weights=compile_network(network))

    def search(
        self,
        positions: npt.NDArray[np.uint64],
        rng: npt.NDArray[np.uint64] | None = None,
    ) -> SearchOutput:
        """Search a batch of positions.

        Args:
            positions: uint64[B, 6], B at most ``games``.
            rng: uint64[B], non-zero xorshift states, advanced in place. They draw Gumbel noise at
                the roots, as training needs it; without them the search takes what it finds best.

        Raises:
            ValueError: there are more than ``games`` positions.
        """
        games = len(positions)
        if games > self._games:
            raise ValueError(f"{games} positions: expected at most {self._games}")
        if rng is None:
            noise = RootNoise(np.float32(0.0), np.ones(games, np.uint64))
        else:
            noise = RootNoise(np.float32(1.0), rng)
        output = SearchOutput(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            np.empty((games, 64), np.float32),
        )
        if self._lock_step:
            self._search_together(positions, noise, output)
        else:
            self.encodings_read += _search_each(
                self._settings,
                self._tree,
                self._compiled,
                self._workspace,
                positions,
                noise,
                output,
            )
        return output

    def _search_together(
        self, positions: npt.NDArray[np.uint64], noise: RootNoise, output: SearchOutput
    ) -> None:
        """:func:`_search_each` in lock step, with the network as a batch."""
        games = len(positions)
        settings, tree, workspace = self._settings, self._tree, self._workspace
        _init_roots(settings, tree, positions, workspace)
        _expand_and_backup(settings, tree, self._evaluate_batch(games), workspace, games)
        consider_root_edges(tree, noise.scale, noise.rng, games)
        for simulation in range(self.simulations):
            _select(settings, tree, simulation, workspace, games)
            _expand_and_backup(settings, tree, self._evaluate_batch(games), workspace, games)
        _root_outputs(tree, workspace, output, games)

    def _evaluate_batch(self, games: int) -> npt.NDArray[np.float32]:
        """The head's outputs, float32[R, 65 or 2], for the leaves of ``games`` trees."""
        count = int(self._tree.starts[games])
        if not count:
            return np.zeros((1, 2), np.float32)
        step = ENCODING_STEP if count > ENCODING_STEP else 64
        encodings = self._workspace.encodings[: -(-count // step) * step]
        start = time.perf_counter()
        with torch.inference_mode():
            outputs = self.network.head_outputs(torch.from_numpy(encodings)).cpu().numpy()
        self.network_seconds += time.perf_counter() - start
        self.encodings_read += count
        return outputs
