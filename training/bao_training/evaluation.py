"""Measure how strong a network is while it learns: games against bots, and won games given away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bao_agents.arena.elo import Score, wilson_interval
from bao_agents.arena.pairs import play_match
from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.player import NetworkAgent
from bao_agents.players import registry
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit

NODES = 2000
"""The nodes per move of guided alpha-beta and of its opponent."""
_BOT_SEED = 1
_MATCH_SEED = 12345
"""Seeds of every evaluation, so that two evaluations of a run play the same openings."""


class Opponent(NamedTuple):
    """An opponent in each evaluation of a run."""

    name: str
    """Its name, as in ``bao match``."""
    guided: bool = False
    """Whether guided alpha-beta plays against it, with the network and the NNUE of the run. If not,
    the network plays alone, without search."""

    @property
    def column(self) -> str:
        """The column of metrics.csv for the score against this opponent."""
        return f"{'guided_' if self.guided else ''}score_against_{self.name}"

    @property
    def player(self) -> str:
        """The player that this opponent meets, in words."""
        return f"guided, {NODES:,} nodes" if self.guided else "network alone"


OPPONENTS = (Opponent("greedy"), Opponent("alphabeta:2"), Opponent("alphabeta:4"))
"""The opponents of a network that plays alone, without a search."""
GUIDED_OPPONENT = Opponent(f"alphabeta:{NODES}n", guided=True)
"""The opponent of guided alpha-beta: alpha-beta with the shipped tables."""


class Evaluation:
    """Measure the networks of one run.

    Args:
        opponents: the opponents of the networks.
        pairs: the number of pairs of games against each opponent.
        won: won positions, to count how often a network gives the win away.
    """

    def __init__(
        self, opponents: Sequence[Opponent], pairs: int, won: SolvedPositions | None = None
    ) -> None:
        self.scores: dict[Opponent, Score] = {}
        """The score against each opponent in the last evaluation."""
        self._opponents = opponents
        self._pairs = pairs
        self._won = won

    @property
    def measures(self) -> list[str]:
        """Names of the measures, which are columns of metrics.csv."""
        return [
            *(opponent.column for opponent in self._opponents),
            *([] if self._won is None else ["blunders"]),
        ]

    @property
    def columns(self) -> list[str]:
        """Names of the values that :meth:`measure` returns.

        Each measure is followed by the two ends of its interval.
        """
        return [name + end for name in self.measures for end in ("", "_low", "_high")]

    def measure(self, checkpoint: Checkpoint) -> dict[str, float]:
        """Return the share of points against each opponent, and the share of wins given away.

        ``blunders`` is the share of won positions in which the network's move gives the win away.
        ``NAME_low`` and ``NAME_high`` are the ends of the 95% interval of ``NAME``.
        """
        ruleset = checkpoint.ruleset
        network = NetworkAgent(checkpoint.network, ruleset)
        for opponent in self._opponents:
            self.scores[opponent] = play_match(
                AlphaBetaAgent(ruleset, Limit(nodes=NODES), guide=checkpoint)
                if opponent.guided
                else network,
                registry.load(opponent.name, ruleset=ruleset, seed=_BOT_SEED),
                ruleset=ruleset,
                pairs=self._pairs,
                seed=_MATCH_SEED,
            ).score
        values = [
            value for score in self.scores.values() for value in (score.rate, score.low, score.high)
        ]
        if self._won is not None:
            mistakes = self._won.mistakes(network)
            share = float(mistakes.mean())
            values += [share, *wilson_interval(share, len(mistakes))]
        return dict(zip(self.columns, values, strict=True))
