"""Play with the solver: win proven wins, and resist proven losses as long as possible.

An eighth of each position's limit is spent on a proof. If one is found, the rest is spent on a
shorter win, or on the action after which the loss takes longest. Otherwise alpha-beta uses the rest
to choose among the actions that are not proven to lose.
"""

from __future__ import annotations

import time

import numpy as np

from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import LEAST_SECONDS, MAX_NODES, Limit
from bao_agents.search.player import has_choice
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN
from bao_agents.search.solver.proof_search import ProofSearch, share_proofs
from bao_agents.search.solver.solver import HIGHEST, LOWEST, TABLE_BITS
from bao_agents.support.array_types import Int64Array
from bao_agents.support.legal_bits import bits_of
from bao_env.engine.array_checks import as_batch
from bao_env.engine.position import Actions, Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset

PROOF_PART = 8
"""One eighth of a limit is spent on the proof."""


class SolverAgent(AlphaBetaAgent):
    """Win proven wins, and otherwise play the best action of an alpha-beta search.

    With a node limit each move needs its own proof, so a choice depends on what alpha-beta's choice
    depends on. With a time limit it keeps its proofs for the next move.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        limit: time, positions to visit, or both, for each position.
        threads: see :class:`~bao_agents.search.player.SearchPlayer`.

    Raises:
        TypeError, ValueError: the limit is not one, or out of range.
    """

    NAME = "solver"
    LOWEST, HIGHEST = LOWEST, HIGHEST

    def __init__(self, ruleset: str | Ruleset, limit: Limit, *, threads: int | None = None) -> None:
        super().__init__(ruleset, limit, threads=threads)
        bits = min(TABLE_BITS, (self.limit.nodes or MAX_NODES).bit_length())
        self._proofs = ProofSearch.for_threads(self.ruleset, bits, len(self._deadlines))

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
    ) -> Actions:
        """Choose actions; see :meth:`~bao_agents.search.player.SearchPlayer.act`."""
        positions, legal = as_batch(positions, legal)
        choices = has_choice(legal)
        good, spent = legal.copy(), np.zeros(len(legal))
        with self._exclusive:
            _, seconds, nodes = allowed = self._limit(limit)

            def prove(part: slice, thread: int) -> None:
                for i in choices[part]:
                    begun = time.monotonic()
                    good[i] = self._good_actions(
                        self._proofs[thread], positions[i], int(legal[i]), allowed
                    )
                    spent[i] = time.monotonic() - begun

            share_proofs(self._proofs, len(choices), 1, prove, nodes, seconds)
        left = has_choice(good)
        if seconds is not None and len(left):  # on a busy machine a proof takes longer
            seconds = max(seconds - float(spent[left].mean()), LEAST_SECONDS)
        rest = Limit(seconds=seconds, nodes=nodes and nodes - nodes // PROOF_PART)
        return super().act(positions, good, limit=rest, games=games)

    def _good_actions(
        self, search: ProofSearch, position: PackedPositions, legal: int, limit: Limit
    ) -> int:
        """Return the bits of the actions that alpha-beta may choose from.

        Args:
            search: the thread's search.
            position: uint64[6].
            legal: the bits of the actions to choose from, at least two.
            limit: what it may use.

        Returns:
            one action if the winner is known, otherwise all that are not proven to lose; if the
            mask leaves these out, all of its actions.
        """
        begun = time.monotonic()
        _, seconds, nodes = limit
        if seconds is None:
            search.table.clear()
        search.begin(nodes and nodes // PROOF_PART, seconds and seconds / PROOF_PART)
        value = search.prove(position)
        lost = bits_of(one.action for one in search.known() if one.value == LOSS)
        open_actions = legal & ~lost or legal
        if value == UNKNOWN:
            return open_actions
        search.begin(
            nodes and nodes - search.nodes,
            seconds and max(begun + seconds - time.monotonic(), LEAST_SECONDS),
        )
        action = search.bisect(position, value, search.distance(value)).action
        assert action is not None
        return legal & 1 << action or open_actions
