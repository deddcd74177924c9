"""A network that guides alpha-beta: which actions come first, and how deep each is worth a look.

A full search spends most of its time on actions that nobody would play. A guided search looks
at them less deep and, should one of them do better than expected after all, once more as deep as at
the others (late move reductions, https://www.chessprogramming.org/Late_Move_Reductions). Which
actions those are, a policy network says at nodes far from the horizon, as in Tsuruoka, Yokoyama and
Chikayama, "Game-tree search algorithm based on realization probability" (2002), where the depth
of an action follows from its probability; near the horizon, where a network would cost more than it
saves, the order of moves says it.

The other way round, an action without an alternative costs no depth and one of two costs half
a ply (one-reply extensions, https://www.chessprogramming.org/One_Reply_Extensions): captures are
mandatory, so forced lines are long, and a horizon in the midst of one tells little.

A result that the search calls proven is proven: reductions change how far it looks, not what
the end of a game is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.nets.compiled import (
    NetworkWorkspace,
    Weights,
    compile_network,
    forward,
    make_network_workspace,
)
from agents.nets.encoding import encode_successors
from agents.nets.features import ENCODING_SIZE
from agents.nets.head import action_logit, expected_result
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit
from bao_env.engine.position import META, write
from bao_env.engine.successors import ACTION, CAPTURED, MAX_SUCCESSORS, RESULT

if TYPE_CHECKING:  # torch is slow to import, and this file's compiled part needs none of it
    from agents.nets.network import PolicyNetwork

CONSULT_DEPTH: Final = 7
"""Plies above the horizon from which on the network is asked."""
ROW_NODES: Final = 7
"""A row that the network reads counts as so many nodes, for it takes about as long."""
REDUCE_DEPTH: Final = 3
"""Plies above the horizon from which on actions are looked at less deep."""
EXTEND_PLIES: Final = 60
"""Plies from the root from which on forced actions cost depth too, for they may go on for ever."""

_UNIT: Final = 1024.0
_MAX_GAP: Final = 60.0  # logits


class Guide(NamedTuple):
    """A network, and what one thread asks it with."""

    weights: Weights
    workspace: NetworkWorkspace
    per_action: int
    """1 for a network that reads each legal action, else 0."""
    position: npt.NDArray[np.uint64]
    """uint64[5], the node's."""
    encodings: npt.NDArray[np.uint8]
    """uint8[64, ENCODING_SIZE]."""
    outputs: npt.NDArray[np.float32]
    """float32[64, 65 or 2]."""
    logits: npt.NDArray[np.float32]
    """float32[64], of a node's actions."""


def make_guides(network: PolicyNetwork, threads: int) -> list[Guide]:
    """A guide for each thread, with the network's weights as they are now."""
    weights = compile_network(network)
    return [
        Guide(
            weights=weights,
            workspace=make_network_workspace(weights),
            per_action=int(network.config.per_action),
            position=np.zeros(META + 1, np.uint64),
            encodings=np.zeros((MAX_SUCCESSORS, ENCODING_SIZE), np.uint8),
            outputs=np.zeros((MAX_SUCCESSORS, int(weights.widths[-1])), np.float32),
            logits=np.zeros(MAX_SUCCESSORS, np.float32),
        )
        for _ in range(threads)
    ]


@jit
def consult(
    rules,
    guide,
    stack,
    scores,
    base,
    count,
    packed,
    depth,
    hint,
):
    """Order the actions of a node as the network likes them, if it is worth asking.

    Args:
        rules: the :class:`KernelRules`.
        guide: a :class:`Guide`.
        stack: uint64[N, 8], with the node's successors; their word CAPTURED, of no more use,
            takes how far the logit of each lies below the highest, in 1024ths.
        scores: int64[N], filled: the higher, the earlier it is searched.
        base, count: where the successors begin, and how many there are.
        packed: the node's position.
        depth: plies from the horizon.
        hint: the action that comes first in any case.

    Returns:
        the nodes that it counts as; 0 if the network was not asked.
    """
    if depth < CONSULT_DEPTH or count < 2:
        return np.int64(0)
    last = base + count
    position = guide.position
    write(position, packed)
    asked = encode_successors(
        rules, guide.per_action, position, stack, base, last, guide.encodings, np.int64(0)
    )
    forward(guide.weights, guide.encodings, asked, guide.workspace, guide.outputs)
    logits = guide.logits
    at = 0
    top = np.float32(-np.inf)
    for i in range(count):
        k = base + i
        if stack[k, RESULT] != ZERO:
            logits[i] = _MAX_GAP if stack[k, RESULT] == ONE else -_MAX_GAP
        elif guide.per_action != 0:
            logits[i] = action_logit(guide.outputs[at, 0], expected_result(guide.outputs[at, 1]))
            at += 1
        else:
            logits[i] = guide.outputs[0, np.int64(stack[k, ACTION])]
        top = max(top, logits[i])
    for i in range(count):
        k = base + i
        gap = min(float(top - logits[i]), _MAX_GAP)
        stack[k, CAPTURED] = U(gap * _UNIT)
        scores[k] = np.int64(-gap * _UNIT)
        if np.int64(stack[k, ACTION]) == hint:
            scores[k] = 1
    return np.int64(ROW_NODES) * max(asked, np.int64(1))


@jit
def _limited(plies, depth):
    """A reduction that leaves at least a ply below the action."""
    return max(np.int64(0), min(np.int64(plies), depth - 2))


@jit
def reduction(depth, gap):
    """By how many plies less to look at an action.

    Args:
        depth: of the node, in plies from the horizon.
        gap: how far the action's logit lies below the highest, in 1024ths (:func:`consult`).
    """
    return _limited(0.3 + math.log(depth) * float(gap) / (2.5 * _UNIT), depth)


@jit
def half_plies_saved(actions):
    """By how much less than two half plies an action costs where there are ``actions`` of them."""
    return max(np.int64(0), np.int64(3) - actions)


@jit
def reduction_by_order(depth, place):
    """:func:`reduction` where the network was not asked; ``place`` counts actions from 0."""
    if depth < REDUCE_DEPTH:
        return np.int64(0)
    return _limited(0.5 + 0.5 * math.log(depth) * math.log(place + 1.0), depth)
