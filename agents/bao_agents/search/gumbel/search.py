"""Search many positions per call with a Gumbel tree search and a network.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, the Gumbel-top-k trick draws actions without replacement, and sequential
halving spends the simulations on them. Below it, visits follow the improved policy
(:mod:`bao_agents.search.gumbel.action_selection`). The search needs no exploration constant, and
improves on the policy with few simulations.

Each game has its own tree (:mod:`bao_agents.search.gumbel.tree`). On a CPU the network is compiled
(:mod:`bao_agents.nets.compiled`), and the trees grow one after another, which keeps each in the
cache. With a network on a GPU, or one that cannot be compiled, all trees grow in lock step: a
simulation walks every tree to a leaf, and the leaves go through the network as one batch. Expanding
a leaf plays all of its actions (:mod:`bao_agents.successors`), so the ends of games are known
at once.

A known win is always played, and a known loss only if there is nothing else.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch

from bao_agents.array_types import Float32Array
from bao_agents.nets.compiled import (
    NetworkWorkspace,
    Weights,
    compile_network,
    forward,
    is_compilable,
    make_network_workspace,
)
from bao_agents.nets.encoding import ENCODING_STEP, afterstate_memory, padded_encodings
from bao_agents.nets.network import PolicyNetwork, check_finite
from bao_agents.search.gumbel.action_selection import (
    MAX_CONSIDERED,
    consider_root_edges,
    visit_schedule,
)
from bao_agents.search.gumbel.network_cache import (
    NetworkCache,
    make_cache,
    recall,
    remember,
)
from bao_agents.search.gumbel.simulation import (
    SearchOutput,
    SearchWorkspace,
    count_undecided,
    encode_leaves,
    expand_and_backup,
    init_roots,
    leaf_position,
    root_output,
    root_outputs,
    select,
)
from bao_agents.search.gumbel.tree import NO_NODE, Tree, make_tree
from bao_agents.search.limits import NEVER, check_whole, nanoseconds
from bao_agents.search.uncounted import uncounted
from bao_agents.successors import MAX_SUCCESSORS
from bao_env.engine.array_checks import batch_size, check_output
from bao_env.engine.compile import jit
from bao_env.engine.position import Words
from bao_env.engine.ruleset import KernelRules

_SEARCHES_CACHED = 3
"""Searches of each game whose leaves the cache has space for."""


class CompiledNetwork(NamedTuple):
    """A compiled network, and the memory that one thread needs to run it."""

    weights: Weights
    workspace: NetworkWorkspace
    outputs: Float32Array
    """float32[64, 65 or 2], outputs of the head."""
    cache: NetworkCache
    """Its earlier outputs, with these weights."""


@jit
def _evaluate(tree, positions, network, workspace):
    """Write the network's outputs for the leaf of the only tree into ``network.outputs``.

    Args:
        tree: the :class:`Tree` of one game.
        positions: uint64[1, 6], the position of the root.
        network: the :class:`CompiledNetwork`.
        workspace: the :class:`SearchWorkspace`.

    Returns:
        int64, the number of encodings that the network has read.
    """
    if tree.leaves[0] == NO_NODE:
        return np.int64(0)
    position = leaf_position(tree, 0, positions)
    tree.starts[0] = 0
    if recall(network.cache, position, network.outputs):
        return np.int64(0)
    undecided = count_undecided(tree, tree.leaves[0])
    encode_leaves(tree, positions, workspace, 1)
    count = tree.starts[1]
    forward(network.weights, workspace.encodings, count, network.workspace, network.outputs)
    # Encoding may prove that an action wins. The cache cannot store that, so it skips the leaf.
    if count == undecided or workspace.per_action == 0:
        remember(network.cache, position, network.outputs, count)
    return count


@jit
def _search_each(tree, network, workspace, deadline, positions, rng, output):
    """Search one position after another with a compiled network.

    Args:
        tree: a :class:`Tree` of one game, overwritten.
        network: the :class:`CompiledNetwork`.
        workspace: the :class:`SearchWorkspace`.
        deadline: int64[1], see :mod:`bao_agents.search.limits`.
        positions: uint64[B, 6].
        rng: uint64[B], xorshift states, advanced in place; 0 for no noise.
        output: the :class:`SearchOutput`, filled.

    Returns:
        int64, the number of encodings that the network has read.
    """
    tree, network, workspace = uncounted(tree), uncounted(network), uncounted(workspace)
    positions, rng, output = uncounted(positions), uncounted(rng), uncounted(output)
    encodings_read = np.int64(0)
    for i in range(positions.shape[0]):
        root = positions[i : i + 1]
        init_roots(tree, root, workspace)
        encodings_read += _evaluate(tree, root, network, workspace)
        expand_and_backup(tree, network.outputs, workspace, 1)
        consider_root_edges(tree, rng[i : i + 1])
        for simulation in range(workspace.schedule.shape[1]):
            if nanoseconds() >= deadline[0]:
                break
            select(tree, simulation, workspace, 1)
            encodings_read += _evaluate(tree, root, network, workspace)
            expand_and_backup(tree, network.outputs, workspace, 1)
        root_output(tree, 0, workspace, output, i)
    return encodings_read


# For the search in lock step, which Python drives.


@jit
def _encode_leaves(tree, positions, workspace, games):
    encode_leaves(tree, positions, workspace, games)


@jit
def _select(tree, simulation, workspace, games):
    select(tree, simulation, workspace, games)


@jit
def _expand_and_backup(tree, outputs, workspace, games):
    expand_and_backup(tree, outputs, workspace, games)


class GumbelSearch:
    """Search up to ``games`` positions at a time with one network.

    Args:
        rules: the rules.
        network: the network. On a CPU its current weights are compiled (:meth:`sync_weights`); in
            lock step it runs as it is, on its own device.
        games: the most positions per call.
        simulations: simulations of each search, at least 2.
        discount: factor of a win's value for each ply before it, which makes sooner wins better.
        lock_step: grow all trees together, and run the network on their leaves as one batch. None
            does so for a network that is on a GPU or that cannot be compiled.
        weights: the network as compiled for another search; None compiles it here.

    Raises:
        ValueError: a number is out of range, or ``lock_step`` is False and the network cannot be
            compiled.
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
        weights: Weights | None = None,
    ) -> None:
        simulations = check_whole("simulations", simulations, 2, 1_000_000)
        if lock_step is None:
            on_gpu = next(network.parameters()).device.type != "cpu"
            lock_step = on_gpu or not is_compilable(network)
        per_action = network.config.per_action
        self.network = network
        self.simulations = simulations
        self.network_seconds = 0.0
        """Time that the network has taken so far; measured only in lock step."""
        self.encodings_read = 0
        """Encodings that the network has read so far."""
        self.deadline = np.full(1, NEVER)
        """The search stops when it has passed (:mod:`bao_agents.search.limits`)."""
        self._games = games
        self._lock_step = lock_step
        trees = games if lock_step else 1
        self.tree: Tree = make_tree(trees, simulations)
        """The trees of the latest search; in lock step one for each game, else the last game's."""
        leaves = trees * (MAX_SUCCESSORS if per_action else 1)
        self.workspace = SearchWorkspace(
            rules=rules,
            schedule=np.stack([visit_schedule(n, simulations) for n in range(MAX_CONSIDERED + 1)]),
            discount=np.float32(discount),
            per_action=int(per_action),
            encodings=padded_encodings(leaves, network.encoding_size),
            after=afterstate_memory(leaves, network.config.kind),
            improved=np.empty(MAX_SUCCESSORS, np.float32),
        )
        """Constants of the search, and the arrays that it overwrites."""
        if not lock_step:
            weights = weights or compile_network(network)
            self._compiled = CompiledNetwork(
                weights=weights,
                workspace=make_network_workspace(weights),
                outputs=np.empty((MAX_SUCCESSORS, weights.outputs), np.float32),
                cache=make_cache(_SEARCHES_CACHED * games * simulations, per_action),
            )

    @property
    def weights(self) -> Weights | None:
        """The compiled network; None in lock step."""
        return None if self._lock_step else self._compiled.weights

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Use the current weights of ``network``, which has the same shape, from now on."""
        self.network = network
        if not self._lock_step:
            self._compiled = self._compiled._replace(weights=compile_network(network))
            self._compiled.cache.keys[:] = 0

    def search(
        self,
        positions: Words,
        rng: Words | None = None,
    ) -> SearchOutput:
        """Search a batch of positions.

        Args:
            positions: uint64[B, 6], B at most ``games``.
            rng: uint64[B], non-zero xorshift states, advanced in place. They draw the Gumbel noise
                of the roots, which training needs. Without them, choose the best action.

        Raises:
            TypeError, ValueError: an array has another type, shape or layout.
            ValueError: there are more than ``games`` positions, or the network's outputs are not
                finite.
        """
        games = batch_size(positions)
        if games > self._games:
            raise ValueError(f"{games} positions: expected at most {self._games}")
        if rng is None:
            rng = np.zeros(games, np.uint64)
        else:
            check_output("rng", rng, np.uint64, (games,))
        output = SearchOutput(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            np.empty((games, 64), np.float32),
        )
        if self._lock_step:
            self._search_together(positions, rng, output)
        else:
            self.encodings_read += _search_each(
                self.tree,
                self._compiled,
                self.workspace,
                self.deadline,
                positions,
                rng,
                output,
            )
        check_finite(output.policies, output.values)
        return output

    def _search_together(self, positions: Words, rng: Words, output: SearchOutput) -> None:
        """Do what :func:`_search_each` does, in lock step."""
        games = len(positions)
        tree, workspace = self.tree, self.workspace
        init_roots(tree, positions, workspace)
        _expand_and_backup(tree, self._evaluate_batch(positions), workspace, games)
        consider_root_edges(tree, rng)
        for simulation in range(self.simulations):
            if nanoseconds() >= self.deadline[0]:
                break
            _select(tree, simulation, workspace, games)
            _expand_and_backup(tree, self._evaluate_batch(positions), workspace, games)
        root_outputs(tree, workspace, output, games)

    def _evaluate_batch(self, positions: Words) -> Float32Array:
        """Return the head's outputs, float32[R, 65 or 2], for the leaves of all trees.

        ``positions``, uint64[B, 6], are the roots.
        """
        games = len(positions)
        _encode_leaves(self.tree, positions, self.workspace, games)
        count = int(self.tree.starts[games])
        if not count:
            return np.zeros((1, 2), np.float32)
        step = ENCODING_STEP if count > ENCODING_STEP else 64
        encodings = self.workspace.encodings[: -(-count // step) * step]
        start = time.perf_counter()
        with torch.inference_mode():
            outputs = self.network.head_outputs(torch.from_numpy(encodings)).cpu().numpy()
        self.network_seconds += time.perf_counter() - start
        self.encodings_read += count
        return outputs
