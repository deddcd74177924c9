"""The solver as a player: proven wins are won, proven losses resisted as long as possible.

A part of each position's limit goes to a proof. If there is one, the rest goes to a shorter win, or
to the action after which the loss takes longest. If there is none, alpha-beta chooses with the rest
of the limit, among the actions that are not proven to lose.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.solver.proof_number import LOSS, UNKNOWN
from agents.search.solver.proof_search import ProofSearch
from agents.search.solver.solver import TABLE_BITS
from agents.search.threads import check_seconds, check_threads, share
from bao_env.engine.action import mask_of
from bao_env.engine.array_checks import as_batch
from bao_env.engine.exclusive import Exclusive
from bao_env.engine.position import Words, packed_opening
from bao_env.engine.ruleset import Ruleset, get_ruleset

if TYPE_CHECKING:
    import numpy.typing as npt

    from agents.nets.network import PolicyNetwork

PROOF_PART: Final = 8
"""One part in so many of a limit goes to the proof."""
_LEAST_SECONDS: Final = 0.001
"""Least time that a search can be given."""


class SolverAgent:
    """Wins what it can prove to be won, and plays the best action of an alpha-beta search else.

    With a limit of nodes its choice depends on the position alone, so that each move needs a proof
    of its own. With a limit of time it keeps what it has proved from one move to the next.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        seconds: time for a position, at most.
        nodes: positions to visit for it, at most.
        network: guides the alpha-beta search (:mod:`agents.search.alphabeta.reductions`).
        threads: positions of a batch are searched on so many threads, each position on one;
            all cores by default.

    Raises:
        ValueError: there is no limit, or one is out of range.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        *,
        seconds: float | None = None,
        nodes: int | None = None,
        network: PolicyNetwork | None = None,
        threads: int | None = None,
    ) -> None:
        if seconds is None and nodes is None:
            raise ValueError("solver: give a time or a number of nodes")
        if seconds is not None:
            check_seconds("solver", seconds)
        if nodes is not None and nodes < 1:
            raise ValueError(f"solver: {nodes} nodes: expected at least 1")
        rules = get_ruleset(ruleset)
        self._seconds = seconds
        self._nodes = nodes
        self._threads = check_threads(threads)
        self._exclusive = Exclusive("player")
        bits = TABLE_BITS if nodes is None else min(TABLE_BITS, nodes.bit_length())
        self._searches = [ProofSearch(rules, bits) for _ in range(self._threads)]
        with self._searches[0].answer(1, None) as search:  # compile before a clock runs
            search.prove(packed_opening(rules))
        self._alphabeta = AlphaBetaAgent(
            rules,
            seconds=seconds and max(seconds - seconds / PROOF_PART, _LEAST_SECONDS),
            nodes=nodes and nodes - nodes // PROOF_PART,
            network=network,
            threads=self._threads,
        )

    def act(self, positions: Words, masks: Words) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        positions, masks = as_batch(positions, masks)
        good = masks.copy()

        def work(part: slice, thread: int) -> None:
            for i in np.flatnonzero(masks[part] & (masks[part] - np.uint64(1))) + part.start:
                good[i] = self._good_actions(self._searches[thread], positions[i], int(masks[i]))

        with self._exclusive:
            share(len(masks), 1, self._threads, work)
            return self._alphabeta.act(positions, good)

    def _good_actions(self, search: ProofSearch, position: Words, mask: int) -> int:
        """The mask of the actions that alpha-beta may choose from.

        Args:
            search: of the thread.
            position: uint64[6].
            mask: its legal actions, two or more.

        Returns:
            one action, if it is known who wins; else all that are not proven to lose.
        """
        begun = time.monotonic()
        seconds, nodes = self._seconds, self._nodes
        if seconds is None:
            search.table.clear()
        with search.answer(
            None if nodes is None else nodes // PROOF_PART,
            None if seconds is None else seconds / PROOF_PART,
        ):
            value = search.prove(position)
        if value == UNKNOWN:
            return mask & ~mask_of(one.action for one in search.known() if one.value == LOSS)
        with search.answer(
            None if nodes is None else nodes - search.nodes,
            None if seconds is None else max(begun + seconds - time.monotonic(), _LEAST_SECONDS),
        ):
            action = search.bisect(position, value, search.distance(value)).action
        assert action is not None
        return 1 << action
