"""Turn the outputs of a network's last layer into logits and expected results.

A network that reads positions (``position``) has 65 outputs per position::

    out[a]    the logit of action a
    out[64]   the position's expected result, before its tanh

A network that reads the board after each action (``afterstate``) has two outputs per action::

    out[0]    the preference for the action, apart from its expected result
    out[1]    the action's expected result, before its tanh
    logit = out[0] + TRUST * tanh(out[1])

A network of the kind ``afterstate+replies`` has the same two outputs. It reads the board from the
side of the player who moves next, so the sign of its last output changes if that is the opponent.
If the action ends the game, the result is known (:data:`OPPONENT_NEXT` and the constants after it).

So the policy of a network that reads afterstates starts from its own expected results, and the
first output learns only the rest. Searches compute this in compiled functions, and training in
torch. Both are here to keep the formula the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.compile import jit_inline

if TYPE_CHECKING:  # torch is slow to import, and the compiled part does not need it
    from torch import Tensor

TRUST = 6.0
"""Weight of an action's expected result in its logit, if the network reads afterstates."""

OPPONENT_NEXT = 0
SAME_NEXT = 1
HAS_WON = 2
HAS_LOST = 3
"""The end of an action, in the last byte of an encoding for ``afterstate+replies``."""
SIGN_AND_RESULT = np.array([[-1, 0], [1, 0], [0, 1], [0, -1]], np.float32)
"""For each ending (sign, result): the chooser expects sign times the next player's value, plus
result."""


def num_outputs(per_action: bool) -> int:
    """Return the outputs of the last layer for each encoding: 2 for an action, 65 for a board."""
    return 2 if per_action else NUM_ACTIONS + 1


@jit_inline
def expected_result(output):
    """Return the expected result, float32 from -1 to 1, from the last output of the head."""
    return np.float32(math.tanh(output))


@jit_inline
def action_logit(preference, value):
    """Return the logit of an action, for a network that reads afterstates.

    Args:
        preference: float32, the first output.
        value: float32, the action's expected result (:func:`expected_result`).
    """
    return preference + np.float32(TRUST) * value


def logits_and_values(
    outputs: Tensor, legal_actions: Tensor, kind: str, encodings: Tensor
) -> tuple[Tensor, Tensor]:
    """Return logits and expected results of a batch, in torch.

    Args:
        outputs: float[R, 65 or 2], outputs of the head.
        legal_actions: int64[K], position * 64 + action; used for ``position`` only.
        kind: the kind of the network.
        encodings: uint8[R, size], its inputs; used for ``afterstate+replies`` only.

    Returns:
        logits, float[K], or float[R] if it reads actions, and expected results, float[R]. The
        gradient of a logit does not flow into the expected result that it trusts.
    """
    values = outputs[:, -1].tanh()
    if kind == "position":
        return outputs[:, :-1].reshape(-1)[legal_actions], values
    if kind == "afterstate+replies":
        result = values.new_tensor(SIGN_AND_RESULT[encodings[:, -1].numpy(), 1])
        values = values.where(result == 0, result)
    return outputs[:, 0] + TRUST * values.detach(), values
