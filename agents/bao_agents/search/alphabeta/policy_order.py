"""Order the actions of a guided search by a policy network.

A guided search reduces the depth of unlikely actions. Far from the horizon, a policy network finds
these actions. Tsuruoka, Yokoyama and Chikayama, "Game-tree search algorithm based on
realization probability" (2002), derive the depth of an action from its probability in the same
way. Near the horizon, a network would cost more than it saves, so the order of actions decides
instead (:mod:`bao_agents.search.alphabeta.reductions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bao_agents.nets.compiled import (
    NO_WEIGHTS,
    NetworkWorkspace,
    Weights,
    compile_arrays,
    forward,
    make_network_workspace,
)
from bao_agents.nets.encoding import encode_successors
from bao_agents.nets.features import ENCODING_SIZE
from bao_agents.nets.head import OUTPUTS, action_logit, action_value
from bao_agents.search.alphabeta.reductions import GAP_UNIT
from bao_agents.support.array_types import Float32Array, Uint8Array, Uint64Array
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.position import Index
from bao_env.engine.ruleset import KernelRules
from bao_env.engine.successors import ACTION, MAX_SUCCESSORS, RESULT

MIN_POLICY_DEPTH = 7
"""The least depth, in plies, of a node at which a small network is run."""
LARGE = 100_000
"""For a network with at least this many weights after its first layer, that depth is 2 more."""
ENCODING_NODES = 7
"""Running a small network on one encoding counts as this many nodes, because it takes as long."""
WEIGHTS_A_NODE = 7_000
"""The number of weights after the first layer for which an encoding counts as one more node."""

_MAX_GAP = 60.0  # logits
_REMEMBERED = 1 << 13
"""The number of nodes for which a guide keeps the gaps between the best logit and the others. A
search returns to most nodes in every iteration."""


class PolicyGuide(NamedTuple):
    """A policy network, and the memory that one thread needs to run it.

    A search without a network has a guide, too, of the same type but empty. So searches with and
    without a network share their compiled code.
    """

    is_present: bool
    """Whether there is a network. Without one, the search is a full search."""
    weights: Weights
    network_workspace: NetworkWorkspace
    min_depth: int
    """The least depth, in plies, of a node at which the network is run."""
    encoding_nodes: int
    """The number of nodes that running the network on one encoding counts as."""
    encodings: Uint8Array
    """uint8[64, ENCODING_SIZE], the network's inputs."""
    outputs: Float32Array
    """float32[64, 2], its outputs."""
    logits: Float32Array
    """float32[64], the logits of a node's successors in their order."""
    remembered: Uint64Array
    """uint64[:data:`_REMEMBERED`], the node of each row of ``gaps``: its hash XOR the number of
    the search."""
    gaps: npt.NDArray[np.uint16]
    """uint16[:data:`_REMEMBERED`, 64], how far the logit of each legal action of those nodes
    lies below the best, in 1024ths."""


def make_guides(network: Mapping[str, Float32Array] | None, threads: int) -> list[PolicyGuide]:
    """Return a guide for each thread, with the network's current weights.

    Args:
        network: the weights of a policy network, as :meth:`PolicyNetwork.arrays` returns them; None
            for empty guides.
        threads: the number of threads.
    """
    weights = NO_WEIGHTS if network is None else compile_arrays(network)
    successors, nodes = (0, 0) if network is None else (MAX_SUCCESSORS, _REMEMBERED)
    return [
        PolicyGuide(
            is_present=network is not None,
            weights=weights,
            network_workspace=make_network_workspace(weights),
            min_depth=MIN_POLICY_DEPTH + (2 if weights.matrix.size >= LARGE else 0),
            encoding_nodes=ENCODING_NODES + weights.matrix.size // WEIGHTS_A_NODE,
            encodings=np.zeros((successors, ENCODING_SIZE), np.uint8),
            outputs=np.zeros((successors, OUTPUTS), np.float32),
            logits=np.zeros(successors, np.float32),
            remembered=np.zeros(nodes, np.uint64),
            gaps=np.zeros((nodes, NUM_ACTIONS), np.uint16),
        )
        for _ in range(threads)
    ]


@jit_inline
def is_worth_asking(guide: PolicyGuide, frame: np.record) -> bool:
    """Return whether to run the network, if any, on a node, a :data:`~.workspace.FRAME`."""
    is_choice = frame.end - frame.first >= 2
    return guide.is_present and frame.depth >= guide.min_depth and is_choice


@jit
def order_by_policy(rules: KernelRules, guide: PolicyGuide, work: np.record, ply: Index) -> None:
    """Order the actions of the node at ``ply`` by the network's policy.

    The action of the transposition table still comes first. Each encoding that the network reads
    counts as ``guide.encoding_nodes`` nodes; remembered gaps cost nothing.

    Args:
        rules: the :class:`KernelRules`.
        guide: a :class:`PolicyGuide` with a network.
        work: a record of :data:`bao_agents.search.alphabeta.workspace.MEMORY`. Scores and gaps are
            filled in. If the network runs, so are the results of successors that leave a player
            without a move.
        ply: plies from the root to the node, which has been expanded.
    """
    frame, stack = work.frames[ply], work.stack
    # Gaps are remembered for this search only, because the result must not depend on a thread's
    # earlier searches. The root may lack actions, so it is not remembered.
    mark = frame.key ^ work.searches
    slot = np.int64(mark & U(_REMEMBERED - 1))
    if ply == 0 or guide.remembered[slot] != mark:
        _ask_network(rules, guide, work, ply, slot)
        guide.remembered[slot] = mark if ply > 0 else ZERO
    for k in range(frame.first, frame.end):
        action = np.int64(stack[k, ACTION])
        gap = np.int64(guide.gaps[slot, action])
        work.gaps[ply, action] = gap
        work.scores[k] = 1 if action == frame.tt_move else -gap
    frame.by_policy = 1


@jit
def _ask_network(
    rules: KernelRules, guide: PolicyGuide, work: np.record, ply: Index, slot: Index
) -> None:
    """Fill row ``slot`` of ``guide.gaps`` for the actions of the node at ``ply``."""
    frame, stack = work.frames[ply], work.stack
    inputs = encode_successors(
        rules, stack[frame.row], stack, frame.first, frame.end, guide.encodings
    )
    forward(guide.weights, guide.encodings, inputs, guide.network_workspace, guide.outputs)
    # A decided successor has no output. A win gets a very high logit, a loss a very low one.
    logits, outputs = guide.logits, guide.outputs
    output = 0
    top = np.float32(-np.inf)
    for k in range(frame.first, frame.end):
        i = k - frame.first
        if stack[k, RESULT] != ZERO:
            logits[i] = _MAX_GAP if stack[k, RESULT] == ONE else -_MAX_GAP
        else:
            logits[i] = action_logit(outputs[output, 0], action_value(outputs[output, 1]))
            output += 1
        top = max(top, logits[i])
    for k in range(frame.first, frame.end):
        gap = min(float(top - logits[k - frame.first]), _MAX_GAP) * GAP_UNIT
        guide.gaps[slot, np.int64(stack[k, ACTION])] = np.uint16(gap)
    work.nodes += np.int64(guide.encoding_nodes) * max(inputs, np.int64(1))
