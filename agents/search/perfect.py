"""A player that makes no mistake wherever the solver knows who wins."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from agents.search.solver import Solver
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.arrays import as_batch
from bao_env.engine.batch import unpack_masks
from bao_env.engine.ruleset import Ruleset

_DECIDED: Final = 10_000
"""More plies than any proof has."""

Words = npt.NDArray[np.uint64]


class PerfectAgent:
    """Wins what is won, by the shortest proof, and loses what is lost by the longest one.

    An action of which the solver's limits leave open who wins comes between the two. Among equals
    it takes the action with the lowest number.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        nodes: positions to visit for a move, at most.
        threads: among which a batch is divided; all cores by default.

    Raises:
        ValueError: a limit is out of range.
    """

    def __init__(
        self, ruleset: str | Ruleset = "zanzibar", *, nodes: int, threads: int | None = None
    ) -> None:
        self._solver = Solver(ruleset, nodes=nodes, threads=threads)

    def act(self, positions: Words, masks: Words) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        positions, masks = as_batch(positions, masks)
        judged = self._solver.judge(positions, masks)
        plies = judged.plies.astype(np.int64)
        scores = np.where(_flags(masks), 0, -2 * _DECIDED)
        scores = np.where(_flags(judged.winning), _DECIDED - plies, scores)
        scores = np.where(_flags(judged.losing), plies - _DECIDED, scores)
        return scores.argmax(axis=1)


def _flags(masks: Words) -> npt.NDArray[np.bool_]:
    """Masks uint64[B] as bool[B, 64]."""
    flags = np.empty((len(masks), NUM_ACTIONS), np.bool_)
    unpack_masks(masks, flags)
    return flags
