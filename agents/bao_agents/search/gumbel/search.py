"""Search many positions per call with a Gumbel tree search and a network.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel"
(ICLR 2022). At the root, the Gumbel-top-k trick draws actions without replacement, and sequential
halving spends the simulations on them. Below it, visits follow the improved policy
(:mod:`bao_agents.search.gumbel.action_selection`). The search needs no exploration constant, and
improves on the policy with few simulations.

The positions of a batch are searched one after another in the same tree, which stays in the
processor's cache, with the network compiled (:mod:`bao_agents.nets.compiled`). Expanding a leaf
plays all of its actions (:mod:`bao_env.engine.successors`), so the ends of games are known at once.

A known win is always played, and a known loss only if there is nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bao_agents.nets.compiled import (
    NetworkWorkspace,
    Weights,
    compile_network,
    forward,
    make_network_workspace,
)
from bao_agents.nets.features import ENCODING_SIZE
from bao_agents.nets.head import OUTPUTS
from bao_agents.nets.network import PolicyNetwork, check_finite
from bao_agents.search.gumbel.action_selection import (
    STANDARD,
    GumbelSettings,
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
    encode_leaf,
    expand_and_backup,
    init_root,
    root_output,
    select,
)
from bao_agents.search.gumbel.tree import NO_NODE, Tree, make_tree
from bao_agents.search.limits import NEVER, nanoseconds
from bao_agents.search.uncounted import uncounted
from bao_agents.support.array_types import Float32Array
from bao_env.compiled.compile import jit
from bao_env.engine.array_checks import as_integer, batch_size, check_output
from bao_env.engine.bits import FULL, ZERO
from bao_env.engine.kernel import legal_of
from bao_env.engine.position import Legal, PackedPositions
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.sampling import RandomStates
from bao_env.engine.successors import MAX_SUCCESSORS

MAX_SIMULATIONS = 1_000_000
"""The most simulations of a search."""
_SEARCHES_CACHED = 3
"""Searches of each game whose leaves the cache has space for."""


class CompiledNetwork(NamedTuple):
    """A compiled network, and the memory that one thread needs to run it."""

    weights: Weights
    workspace: NetworkWorkspace
    outputs: Float32Array
    """float32[64, 2], outputs of the head."""
    cache: NetworkCache
    """Its earlier outputs, with these weights."""


@jit
def _evaluate(tree, leaf, position, whole, network, workspace):
    """Write the network's outputs for a leaf into ``network.outputs``.

    Args:
        tree: the :class:`Tree`.
        leaf: the node, or :data:`NO_NODE`: then nothing happens.
        position: uint64[6], the position of the root.
        whole: whether the root has all of its legal actions.
        network: the :class:`CompiledNetwork`.
        workspace: the :class:`SearchWorkspace`.

    Returns:
        int64, the number of encodings that the network has read.
    """
    if leaf == NO_NODE:
        return np.int64(0)
    edge = tree.parent_edge[leaf]
    if edge != NO_NODE:
        position, whole = tree.positions[edge], True
    if whole and recall(network.cache, position, network.outputs):
        return np.int64(0)
    undecided = count_undecided(tree, leaf)
    count = encode_leaf(tree, leaf, position, workspace)
    forward(network.weights, workspace.encodings, count, network.workspace, network.outputs)
    # Encoding may prove that an action wins. The cache cannot store that, so it skips the leaf.
    if whole and count == undecided:
        remember(network.cache, position, network.outputs, count)
    return count


@jit
def _search_each(tree, network, workspace, deadline, positions, legal, rng, output):
    """Search one position after another.

    Args:
        tree: the :class:`Tree`, overwritten.
        network: the :class:`CompiledNetwork`.
        workspace: the :class:`SearchWorkspace`.
        deadline: int64[1], see :mod:`bao_agents.search.limits`.
        positions: uint64[B, 6].
        legal: uint64[B], the actions to choose from.
        rng: uint64[B], xorshift states, advanced in place; 0 for no noise.
        output: the :class:`SearchOutput`, filled.

    Returns:
        int64, the number of encodings that the network has read.
    """
    tree, network, workspace = uncounted(tree), uncounted(network), uncounted(workspace)
    positions, rng, output = uncounted(positions), uncounted(rng), uncounted(output)
    encodings_read = np.int64(0)
    for i in range(positions.shape[0]):
        leaf = init_root(tree, positions[i], legal[i], workspace)
        whole = legal_of(workspace.rules, positions[i]) & ~legal[i] == ZERO
        encodings_read += _evaluate(tree, leaf, positions[i], whole, network, workspace)
        expand_and_backup(tree, leaf, network.outputs, workspace)
        consider_root_edges(tree, workspace.settings.considered, rng[i : i + 1])
        for simulation in range(workspace.schedule.shape[1]):
            if nanoseconds() >= deadline[0]:
                break
            leaf = select(tree, simulation, workspace)
            encodings_read += _evaluate(tree, leaf, positions[i], whole, network, workspace)
            expand_and_backup(tree, leaf, network.outputs, workspace)
        root_output(tree, workspace, output, i)
    return encodings_read


class GumbelSearch:
    """Search up to ``games`` positions at a time with one network.

    Args:
        rules: the rules.
        network: the network, whose current weights are compiled (:meth:`sync_weights`).
        games: the most positions per call.
        simulations: simulations of each search, at least 2.
        discount: factor of a win's value for each ply before it, which makes sooner wins better.
        settings: how the search chooses actions.
        weights: the network as compiled for another search; None compiles it here.

    Raises:
        TypeError, ValueError: a number is out of range.
    """

    def __init__(
        self,
        rules: KernelRules,
        network: PolicyNetwork,
        games: int,
        simulations: int,
        discount: float = 0.998,
        *,
        settings: GumbelSettings = STANDARD,
        weights: Weights | None = None,
    ) -> None:
        simulations = as_integer(simulations, "simulations", 2, MAX_SIMULATIONS)
        settings = settings.checked()
        self.simulations = simulations
        self.encodings_read = 0
        """Encodings that the network has read so far."""
        self.deadline = np.full(1, NEVER)
        """The search stops when it has passed (:mod:`bao_agents.search.limits`)."""
        self._games = games
        self.tree: Tree = make_tree(simulations)
        """The tree of the last position searched."""
        self.workspace = SearchWorkspace(
            rules=rules,
            schedule=np.stack(
                [visit_schedule(n, simulations) for n in range(settings.considered + 1)]
            ),
            settings=settings,
            discount=np.float32(discount),
            encodings=np.zeros((MAX_SUCCESSORS, ENCODING_SIZE), np.uint8),
            improved=np.empty(MAX_SUCCESSORS, np.float32),
        )
        """Constants of the search, and the arrays that it overwrites."""
        weights = weights or compile_network(network)
        self._compiled = CompiledNetwork(
            weights=weights,
            workspace=make_network_workspace(weights),
            outputs=np.empty((MAX_SUCCESSORS, OUTPUTS), np.float32),
            cache=make_cache(_SEARCHES_CACHED * games * simulations),
        )

    @property
    def weights(self) -> Weights:
        """The compiled network."""
        return self._compiled.weights

    def sync_weights(self, network: PolicyNetwork) -> None:
        """Use the current weights of ``network``, which has the same shape, from now on."""
        self._compiled = self._compiled._replace(weights=compile_network(network))
        self._compiled.cache.keys[:] = 0

    def search(
        self,
        positions: PackedPositions,
        rng: RandomStates | None = None,
        legal: Legal | None = None,
    ) -> SearchOutput:
        """Search a batch of positions.

        Args:
            positions: uint64[B, 6], B at most ``games``.
            rng: uint64[B], non-zero xorshift states, advanced in place. They draw the Gumbel noise
                of the roots, which training needs. Without them, choose the best action.
            legal: uint64[B], the actions to choose from; None for all that are legal.

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
        if legal is None:
            legal = np.full(games, FULL)
        output = SearchOutput(
            np.empty(games, np.int64),
            np.empty((games, 64), np.float32),
            np.empty(games, np.float32),
            np.empty((games, 64), np.float32),
        )
        self.encodings_read += _search_each(
            self.tree, self._compiled, self.workspace, self.deadline, positions, legal, rng, output
        )
        check_finite(output.policies, output.values)
        return output
