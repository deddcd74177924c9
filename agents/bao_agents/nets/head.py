"""Turn the outputs of a network's last layer into logits and values.

A network has two outputs for each legal action::

    out[0]    the preference for the action, apart from its value
    out[1]    the action's value, before its tanh
    logit = out[0] + TRUST * tanh(out[1])

So the policy is greedy in the values at first, and the first output learns to deviate from that.
Searches compute the formula in compiled functions, and training computes it in torch. Both versions
stand here to keep them the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bao_env.compiled.compile import jit_inline

if TYPE_CHECKING:  # torch is slow to import, and the compiled part does not need it
    from torch import Tensor

OUTPUTS = 2
"""The number of outputs of the last layer for each legal action."""
TRUST = 6.0
"""Weight of an action's value in its logit."""


@jit_inline
def action_value(output: np.float32) -> np.float32:
    """Return the value, float32 from -1 to 1, from the last output of the head."""
    return np.float32(math.tanh(output))


@jit_inline
def action_logit(preference: np.float32, value: np.float32) -> np.float32:
    """Return the logit of an action.

    Args:
        preference: float32, the first output.
        value: float32, the action's value (:func:`action_value`).
    """
    return preference + np.float32(TRUST) * value


def logits_and_values(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits float[R] and values float[R] from outputs of the head, float[R, 2].

    The gradient of a logit does not flow into the action's value.
    """
    values = outputs[:, 1].tanh()
    return outputs[:, 0] + TRUST * values.detach(), values
