"""Measure how often players give won games away.

Each player chooses a move in positions that are proved to be won for the player to move. Positions
come from random games, from games of a strong player, and from games that the player plays against
itself. At most one comes from each game, which keeps them independent. All players get the same
ones, except for their own games. Positions that the solver cannot solve within its limit are
counted and dropped.

Mistakes have two shares: among all moves from won positions, and among the moves that could give
the win away because some legal action does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bao_agents.arena.elo import wilson_interval
from bao_agents.exact.sampling import games, random_play
from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.exact.solving import Solved, solve
from bao_agents.players.base import NamedPlayer
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.progress import Progress
from bao_env.bots import Agent
from bao_env.engine.position import Flags
from bao_env.engine.ruleset import Ruleset
from bao_env.game import Stage

STRONG = "alphabeta:4"
"""Plays the games of the strong source, after up to eight random plies."""
SOURCES = {"random": "random play", "strong": f"games of {STRONG}", "own": "own games"}
"""Where positions come from."""
DISTANCES = {
    "1": (1, 1),
    "2 to 3": (2, 3),
    "4 to 7": (4, 7),
    "8 to 15": (8, 15),
    "16 and more": (16, 999),
}
"""Classes of positions, by the fewest and the most plies to the win."""


class Share(NamedTuple):
    """A share of independent trials."""

    rate: float
    low: float
    """Lower end of its 95 % interval, after Wilson."""
    high: float
    """Upper end of it."""

    @classmethod
    def of(cls, count: int, trials: int) -> Self | None:
        """Return the share of ``count`` in ``trials``; None without a trial."""
        if not trials:
            return None
        return cls(count / trials, *wilson_interval(count / trials, trials))


@dataclass(frozen=True)
class Blunders:
    """Counts of the wins that a player gave away."""

    moves: int
    """Moves from won positions."""
    choices: int
    """Those among them that could have given the win away: some legal action does."""
    mistakes: int
    """Those that did."""

    @classmethod
    def count(
        cls,
        won: SolvedPositions,
        mistakes: Flags,
        where: Flags | slice = slice(None),
    ) -> Self:
        """Count mistakes.

        Args:
            won: N won positions.
            mistakes: bool[N], the result of :meth:`SolvedPositions.mistakes`.
            where: bool[N], the positions that count; all by default.
        """
        return cls(len(mistakes[where]), int(won.choices[where].sum()), int(mistakes[where].sum()))

    @property
    def of_moves(self) -> Share | None:
        """Mistakes among all moves from won positions."""
        return Share.of(self.mistakes, self.moves)

    @property
    def of_choices(self) -> Share | None:
        """Mistakes among the moves that could have been mistakes."""
        return Share.of(self.mistakes, self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a share without a trial is None."""
        return asdict(self) | {
            "of_moves": self.of_moves and self.of_moves._asdict(),
            "of_choices": self.of_choices and self.of_choices._asdict(),
        }


@dataclass(frozen=True)
class Settings:
    """Which positions to draw, and how to solve them."""

    ruleset: Ruleset
    positions: int
    """Positions to draw from each source."""
    plies: tuple[int, int]
    """The least and the most plies of a position."""
    nodes: int
    """Most positions that the solver visits for each one."""
    seed: int
    threads: int
    cache: Path
    """The folder that keeps solved positions."""


def solved(source: str, player: NamedPlayer, settings: Settings) -> Solved:
    """Draw and solve the positions of a source; ``player`` plays its games, unless random."""
    rules, count, plies = settings.ruleset, settings.positions, settings.plies
    seed = np.random.SeedSequence(settings.seed, spawn_key=(list(SOURCES).index(source),))
    if source == "random":
        sample = random_play(rules, count, plies=plies, seed=seed)
    else:
        sample = games(rules, player, player, count, plies=plies, seed=seed)
    name = SOURCES[source] if source != "own" else f"own games of {player.name}"
    with Progress(total=len(sample.legal), unit="position", desc=name, leave=False) as bar:
        return solve(
            sample.positions,
            sample.legal,
            rules,
            source=source,
            nodes=settings.nodes,
            threads=settings.threads,
            cache=settings.cache,
            progress=bar.update,
        )


def classify(won: SolvedPositions, player: Agent) -> dict[str, dict[str, Blunders]]:
    """Count how often a player gives wins away: in total, by source, stage and plies to the win.

    Args:
        won: won positions.
        player: the player.

    Raises:
        ValueError: the player chooses an illegal action.
    """
    mistakes = won.mistakes(player)
    groups = {
        "all": {"all": np.ones(len(won), np.bool_)},
        "source": {name: won.source == name for name in SOURCES if (won.source == name).any()},
        "stage": {stage.value: won.stages == stage.value for stage in Stage},
        "plies": {
            name: (won.plies >= low) & (won.plies <= high)
            for name, (low, high) in DISTANCES.items()
        },
    }
    return {
        by: {name: Blunders.count(won, mistakes, where) for name, where in classes.items()}
        for by, classes in groups.items()
    }


def measure(
    spec: str,
    player: NamedPlayer,
    shared: Mapping[str, SolvedPositions],
    settings: Settings,
    own_games: bool,
) -> dict[str, Any]:
    """Measure one player; return plain values for JSON.

    Args:
        spec: the player's name on the command line.
        player: the player.
        shared: the won positions that all players get, by source.
        settings: the rules, and which positions to draw from the player's own games.
        own_games: whether positions of its own games count, too.

    Raises:
        ValueError: the player chooses an illegal action, or its games have too few positions.
    """
    won, counts = dict(shared), None
    if own_games:
        own = solved("own", player, settings)
        won["own"], counts = own.known.won, own.counts
    blunders = classify(SolvedPositions.concatenate(list(won.values())), player)
    return {
        "player": player.name,
        "spec": spec,
        "fingerprint": fingerprint(spec, player, settings.ruleset),
        "blunders": {
            by: {name: found.to_dict() for name, found in classes.items()}
            for by, classes in blunders.items()
        },
        "own_games": counts,
    }
