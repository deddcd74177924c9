"""List the layers of a network without torch, which is slow to import."""

from __future__ import annotations

from collections.abc import Sequence

from bao_agents.nets.features import FEATURES
from bao_agents.nets.head import OUTPUTS


def shapes_of_layers(hidden: Sequence[int]) -> dict[str, list[int]]:
    """Return the names and shapes of a network's weights, as torch has them.

    Args:
        hidden: the units of each hidden layer of a :class:`~bao_agents.nets.network.PolicyNetwork`.

    Raises:
        ValueError: there are not one to 64 layers of 1 to 65,536 units each.
    """
    if (
        not isinstance(hidden, (tuple, list))
        or not 1 <= len(hidden) <= 64
        or not all(type(units) is int and 1 <= units <= 65536 for units in hidden)
    ):
        raise ValueError(
            f"hidden={hidden!r:.200}: expected 1 to 64 layers of 1 to 65536 units, as a list"
        )
    names = [*(f"trunk.{2 * layer}" for layer in range(len(hidden))), "head"]
    shapes: dict[str, list[int]] = {}
    for name, inputs, units in zip(names, (FEATURES, *hidden), (*hidden, OUTPUTS), strict=True):
        shapes |= {f"{name}.weight": [units, inputs], f"{name}.bias": [units]}
    return shapes
