"""What a network's last layer says: from its outputs to logits and expected results.

A network that reads the board (``board``) has 65 outputs a position::

    out[a]    the logit of action a
    out[64]   the position's expected result, before its tanh

A network that reads the board after each action (``moves``) has two outputs an action::

    out[0]    how much the action is liked for reasons other than its expected result
    out[1]    the action's expected result, before its tanh
    logit = out[0] + TRUST * tanh(out[1])

A network of the kind ``replies`` has the same two outputs. It reads the board as the player who
moves next sees it, so the sign of its last number changes where that is the opponent, and where the
action ends the game the result is known (:data:`OPPONENT_NEXT` and what follows).

So the policy of a ``moves`` network starts from its own expected results, and the first output
learns only what they leave out. Searches compute this in compiled functions and training in
torch; both are here, so that they stay the same formula.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.compile import jit_inline

if TYPE_CHECKING:  # torch is slow to import, and the compiled part needs none of it
    from torch import Tensor

TRUST: Final = 6.0
"""Weight of an action's expected result in its logit, for ``moves``."""

OPPONENT_NEXT: Final = 0
SAME_NEXT: Final = 1
HAS_WON: Final = 2
HAS_LOST: Final = 3
"""How an action ends, in the last byte of an encoding for ``replies``."""
SIGN_AND_RESULT: Final = np.array([[-1, 0], [1, 0], [0, 1], [0, -1]], np.float32)
"""For each of them, what the expected result of who moves next is multiplied by, and what is added,
to get that of the player who chose the action."""


def num_outputs(per_action: bool) -> int:
    """Outputs of the last layer for each encoding: 2 if it is of an action, 65 if of a board."""
    return 2 if per_action else NUM_ACTIONS + 1


@jit_inline
def expected_result(output):
    """The expected result, float32 from -1 to 1, that the last output of the head stands for."""
    return np.float32(math.tanh(output))


@jit_inline
def action_logit(preference, value):
    """The logit of an action for ``moves``.

    Args:
        preference: float32, the first output.
        value: float32, the action's expected result (:func:`expected_result`).
    """
    return preference + np.float32(TRUST) * value


def logits_and_values(
    outputs: Tensor, legal_actions: Tensor, kind: str, encodings: Tensor
) -> tuple[Tensor, Tensor]:
    """The same in torch, for a batch.

    Args:
        outputs: float[R, 65 or 2], the head's.
        legal_actions: int64[K], position * 64 + action; read for ``board`` alone.
        kind: the kind of the network.
        encodings: uint8[R, size], what it has read; read for ``replies`` alone.

    Returns:
        logits, float[K], or float[R] if it reads actions, and expected results, float[R]. The
        gradient of a logit does not flow into the expected result that it trusts.
    """
    values = outputs[:, -1].tanh()
    if kind == "board":
        return outputs[:, :-1].reshape(-1)[legal_actions], values
    if kind == "replies":
        result = values.new_tensor(SIGN_AND_RESULT[encodings[:, -1].numpy(), 1])
        values = values.where(result == 0, result)
    return outputs[:, 0] + TRUST * values.detach(), values
