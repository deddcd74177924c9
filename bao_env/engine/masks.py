"""Spread sets of legal actions over arrays, and check actions against them.

A set is a uint64 with bit a set where action a is legal (:mod:`bao_env.engine.action`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.action import NUM_ACTIONS, IllegalMoveError, actions_of
from bao_env.engine.bits import BYTE, ONE, ZERO, U, spread_bits
from bao_env.engine.position import Actions, Flags, Legal


def unpack_masks(legal: Legal, action_masks: npt.NDArray[Any]) -> None:
    """Spread legal actions, uint64[B], over ``action_masks``, bool or int8 [B, 64]: 1 = legal.

    Both arrays must be C-contiguous, which is not validated.
    """
    _unpack_masks(legal, action_masks.view(np.uint64))


@jit
def _unpack_masks(legal: Legal, masks: npt.NDArray[np.uint64]) -> None:
    """Spread legal actions, uint64[B], over the bytes of ``masks``, uint64[B, 8]."""
    for i in range(legal.shape[0]):
        for k in range(8):
            masks[i, k] = spread_bits((legal[i] >> U(8 * k)) & BYTE)


@jit_inline
def _allows(legal: U, action: np.int64) -> bool:
    """Return True if ``action``, int64, is legal or the game is over (``legal`` is 0)."""
    inside = action >= 0 and action < NUM_ACTIONS
    return legal == ZERO or bool(inside and (legal >> U(action)) & ONE != ZERO)


@jit
def is_legal(actions: Actions, legal: Legal) -> Flags:
    """Return which actions are legal, bool[B]; where a game is over, any action is.

    Args:
        actions: int64[B].
        legal: uint64[B], the legal actions; 0 where the game is over.
    """
    flags = np.empty(legal.shape[0], np.bool_)
    for i in range(legal.shape[0]):
        flags[i] = _allows(legal[i], actions[i])
    return flags


@jit
def illegal_games(actions: Actions, legal: Legal) -> npt.NDArray[np.int64]:
    """Return the games whose action is not legal, int64[n], ascending; see :func:`is_legal`."""
    games = np.empty(legal.shape[0], np.int64)
    count = 0
    for i in range(legal.shape[0]):
        if not _allows(legal[i], actions[i]):
            games[count] = i
            count += 1
    return games[:count]


def check_in_space(actions: Actions, legal: Legal) -> None:
    """Check that the actions of a batch are from 0 to 63; the arguments are those of
    :func:`check_legal`.

    Raises:
        IllegalMoveError: an action is not; the message names the first one and its game.
    """
    outside = (actions < 0) | (actions >= NUM_ACTIONS)
    games = np.flatnonzero(outside & (legal != 0))
    if len(games):
        game = games[0]
        raise IllegalMoveError(
            f"action {actions[game]} in game {game}: an action is an integer from 0 to "
            f"{NUM_ACTIONS - 1}; legal there: {actions_of(legal[game])}"
        )


def check_legal(actions: Actions, legal: Legal, player: str = "") -> None:
    """Validate the actions of a batch.

    Args:
        actions: int64[B].
        legal: uint64[B], the legal actions; where they are 0, any action is allowed.
        player: the player who chose them, for the message.

    Raises:
        IllegalMoveError: an action is illegal; the message names the first one, its game or the
            player, and the legal actions.
    """
    games = illegal_games(actions, legal)
    if not len(games):
        return
    game = games[0]
    action, allowed = actions[game], actions_of(legal[game])
    if player:
        raise IllegalMoveError(
            f"{player} chose action {action}, which is illegal; legal: {allowed}"
        )
    raise IllegalMoveError(f"action {action} is illegal in game {game}; legal there: {allowed}")
