"""Attacks on everything that takes something from outside, for the standing watch (tests/soak.py).

An attack draws what it does from one generator, so its seed repeats it. It fails by any exception,
by a crash of its process, or by not ending in time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.attacks.board import board
from tests.attacks.checkpoints import checkpoints
from tests.attacks.engine import arrays, rules
from tests.attacks.killed import tournament, training
from tests.attacks.texts import texts

Run = Callable[[random.Random, Path], None]
"""An attack: takes its generator, and an empty folder for its files."""


class Attack(NamedTuple):
    """One way to try to break something."""

    run: Run
    seconds: float
    """After this time it hangs."""


ATTACKS: Final[Mapping[str, Attack]] = {
    "training": Attack(training, 600.0),
    "tournament": Attack(tournament, 600.0),
    "texts": Attack(texts, 300.0),
    "checkpoints": Attack(checkpoints, 300.0),
    "arrays": Attack(arrays, 300.0),
    "rules": Attack(rules, 300.0),
    "board": Attack(board, 300.0),
}
"""Every attack, by name."""
