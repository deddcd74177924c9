"""Spread sets of legal actions over arrays, and check actions against them.

A set is a uint64 with bit a set where action a is legal (:mod:`bao_env.engine.action`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.compiled.compile import jit
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


def is_legal(actions: Actions, legal: Legal) -> Flags:
    """Return which actions are legal, bool[B]; where a game is over, any action is.

    Args:
        actions: int64[B].
        legal: uint64[B], the legal actions; 0 where the game is over.
    """
    inside = (actions >= 0) & (actions < NUM_ACTIONS)
    bits = (legal >> np.where(inside, actions, 0).astype(np.uint64)) & ONE
    return (legal == ZERO) | (inside & (bits != ZERO))


@jit
def are_legal(actions: Actions, legal: Legal) -> bool:
    """Return whether all actions are legal; see :func:`is_legal`."""
    for i in range(legal.shape[0]):
        inside = actions[i] >= 0 and actions[i] < NUM_ACTIONS
        if legal[i] != ZERO and not (inside and (legal[i] >> U(actions[i])) & ONE != ZERO):
            return False
    return True


_NO_GAMES = np.empty(0, np.int64)


def illegal_games(actions: Actions, legal: Legal) -> npt.NDArray[np.int64]:
    """Return the games whose action is not legal, int64[n], ascending; see :func:`is_legal`."""
    return _NO_GAMES if are_legal(actions, legal) else np.flatnonzero(~is_legal(actions, legal))


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
