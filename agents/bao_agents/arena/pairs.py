"""Play pairs of games between two players: each opening twice, once from each seat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bao_agents.arena.elo import Score, score_pairs
from bao_agents.arena.games import GAME_OVER, MAX_MATCH_PLIES, MatchGames, play_games
from bao_agents.arena.openings import BALANCE, OPENING_PLIES, MatchOpenings, draw_openings
from bao_agents.players.player import as_player
from bao_agents.search.limits import LEAST_SECONDS, MAX_CLOCK, MAX_SECONDS, Clock
from bao_agents.support.array_types import Float64Array, Int64Array
from bao_agents.support.files import printable
from bao_env.bots import ActFunction, Agent
from bao_env.engine.argument_checks import MAX_COUNT, as_integer
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import opening
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.game import CUT_SHORT, Outcome, Termination
from bao_env.notation.game_record import GameRecord, transcribe
from bao_env.notation.transcript import format_transcript


@dataclass(frozen=True, eq=False)
class Pairs:
    """The results of pairs of games between two players; ``a + b`` joins two such results."""

    points: Float64Array = field(default_factory=lambda: np.empty((0, 2)))
    """float64[pairs, 2], points of the player named first, as South and as North."""
    plies: Int64Array = field(default_factory=lambda: np.empty((0, 2), np.int64))
    """int64[pairs, 2], length of each game, its opening included."""
    moves: Int64Array = field(default_factory=lambda: np.zeros(2, np.int64))
    """int64[2], the number of actions that each player chose."""
    seconds: Float64Array = field(default_factory=lambda: np.zeros(2))
    """float64[2], the seconds of processor time that each player took."""
    faults: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    """For each player, the cause of each fault by which it lost a game."""
    commits: frozenset[str] = frozenset()
    """Commits of the code that played the games, as far as they are known."""
    games: tuple[str, ...] = ()
    """The games as transcripts; empty if they were not kept."""

    def __len__(self) -> int:
        return len(self.points)

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            points=np.concatenate([self.points, other.points]),
            plies=np.concatenate([self.plies, other.plies]),
            moves=self.moves + other.moves,
            seconds=self.seconds + other.seconds,
            faults=(self.faults[0] + other.faults[0], self.faults[1] + other.faults[1]),
            commits=self.commits | other.commits,
            games=self.games + other.games,
        )

    def swapped(self) -> Pairs:
        """Return the same results with the players swapped."""
        return Pairs(
            points=1.0 - self.points[:, ::-1],
            plies=self.plies[:, ::-1],
            moves=self.moves[::-1],
            seconds=self.seconds[::-1],
            faults=self.faults[::-1],
            commits=self.commits,
            games=self.games,
        )

    @property
    def score(self) -> Score:
        """The score of the player named first.

        Raises:
            ValueError: there is no pair.
        """
        return score_pairs(self.points)

    @property
    def south(self) -> Score:
        """The score of South, whichever player it was.

        Raises:
            ValueError: there is no pair.
        """
        return score_pairs(np.stack([self.points[:, 0], 1.0 - self.points[:, 1]], axis=1))

    @property
    def ms_a_move(self) -> Float64Array:
        """float64[2], average milliseconds of processor time per move of the two players."""
        return 1000.0 * self.seconds / np.maximum(1, self.moves)

    def to_json(self) -> str:
        """Return the results as JSON."""
        return json.dumps(
            vars(self), default=lambda v: v.tolist() if isinstance(v, np.ndarray) else sorted(v)
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the results that :meth:`to_json` wrote.

        Raises:
            ValueError: they are damaged.
        """
        plain = _Plain.model_validate_json(text)
        if len(plain.plies) != len(plain.points):
            raise ValueError(
                f"expected one length for each game, not the lengths of {len(plain.plies)} pairs "
                f"for the points of {len(plain.points)}"
            )
        arrays = {
            "points": np.array(plain.points, np.float64).reshape(-1, 2),
            "plies": np.array(plain.plies, np.int64).reshape(-1, 2),
            "moves": np.array(plain.moves),
            "seconds": np.array(plain.seconds),
        }
        return cls(**dict(plain) | arrays)


_Points = Annotated[float, Field(ge=0, le=1, multiple_of=0.5)]
_Count = Annotated[int, Field(ge=0, le=10**12)]
_Seconds = Annotated[float, Field(ge=0, le=10**9)]
_Text = Annotated[str, AfterValidator(printable)]


class _Plain(BaseModel):
    """:class:`Pairs` as plain values."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    points: list[tuple[_Points, _Points]]
    plies: list[tuple[_Count, _Count]]
    moves: tuple[_Count, _Count]
    seconds: tuple[_Seconds, _Seconds]
    faults: tuple[list[_Text], list[_Text]]
    commits: frozenset[_Text]
    games: tuple[str, ...] = ()


def play_match(
    first: Agent | ActFunction,
    second: Agent | ActFunction,
    *,
    ruleset: str | Ruleset = "zanzibar",
    pairs: int,
    opening_plies: int = OPENING_PLIES,
    balance: float | None = BALANCE,
    seed: int = 0,
    max_plies: int = MAX_MATCH_PLIES,
    clock: Clock | None = None,
    names: tuple[str, str] | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Pairs:
    """Play pairs of games: each opening once with ``first`` as South, once as North.

    >>> from bao_agents import load
    >>> match = play_match(load("greedy"), load("random"), pairs=100, balance=None)
    >>> match.score.games, match.score.wins > 150
    (200, True)
    >>> elo, low, high = match.score.elo    # the difference, and its 95% interval

    Args:
        first, second: the players, or functions of positions and legal actions; each gets all its
            positions of a ply in one call.
        ruleset: the rules.
        pairs: number of openings; twice as many games are played.
        opening_plies: random legal plies in each opening.
        balance: skip openings that a search finds less balanced than this; see
            :func:`bao_agents.arena.openings.draw_openings`.
        seed: the seed of the openings; the players have seeds of their own.
        max_plies: a game that reaches this length is a draw.
        clock: the clock of each player in a game; None to apply the limit in the player's name.
        names: the players' names for transcripts; None keeps no transcripts.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        TypeError, ValueError: an argument is wrong, there are too few different openings, or a
            player chose an illegal action; the message says which.
    """
    max_plies = as_integer(max_plies, "max_plies", 1, MAX_COUNT)
    _check_clock(clock)
    engine = Engine(get_ruleset(ruleset))
    openings = draw_openings(engine.ruleset, pairs, opening_plies, seed, balance)
    return play_pairs(
        first,
        second,
        openings,
        engine,
        max_plies=max_plies,
        clock=clock,
        names=names,
        progress=progress,
    )


def _check_clock(clock: Clock | None) -> None:
    """Check the clock of a match.

    Raises:
        TypeError: it is neither a :class:`Clock` nor None.
        ValueError: a time is out of range.
    """
    if clock is None:
        return
    if not isinstance(clock, Clock):
        raise TypeError(f"clock={clock!r:.80}: expected a Clock, such as Clock.parse('10s+0.1s')")
    in_time = LEAST_SECONDS <= clock.seconds <= MAX_CLOCK and 0 <= clock.increment <= MAX_SECONDS
    if not in_time:
        raise ValueError(
            f"clock={clock}: expected {LEAST_SECONDS} to {MAX_CLOCK:g} seconds, and an increment "
            f"of 0 to {MAX_SECONDS:g}"
        )


def play_pairs(
    first: Agent | ActFunction,
    second: Agent | ActFunction,
    openings: MatchOpenings,
    engine: Engine,
    *,
    max_plies: int = MAX_MATCH_PLIES,
    clock: Clock | None = None,
    names: tuple[str, str] | None = None,
    numbers: Sequence[int] = (),
    progress: Callable[[int], None] = lambda ended: None,
) -> Pairs:
    """Play each opening twice, once with ``first`` as South and once as North.

    Args:
        first, second: the players; each gets all its positions of a ply in one call. No more games
            are played at once than each player can remember.
        openings: the openings.
        engine: the rules.
        max_plies: a game that reaches this length is a draw.
        clock: the clock of each player in a game (:func:`~bao_agents.arena.games.play_games`).
        names: the players' names for transcripts; None keeps no transcripts.
        numbers: numbers of the openings, for transcripts; by default they count from 0.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: a player chose an illegal action, or plays by other rules; the message names it.
    """
    players = as_player(first, "player 1"), as_player(second, "player 2")
    for player in players:
        player.check_rules(engine.ruleset)
    numbers = numbers or range(len(openings))
    size = max(1, min(player.most_games or 2 * len(openings) for player in players) // 2)
    played = Pairs()
    for low in range(0, len(openings), size):
        batch = openings[low : low + size]
        first_seats = np.tile(np.array([SOUTH, NORTH], np.int8), len(batch))
        games = play_games(
            players,
            np.repeat(batch.positions, 2, axis=0),
            first_seats,
            engine,
            max_plies=max_plies,
            clock=clock,
            progress=progress,
        )
        points = np.where(games.winners < 0, 0.5, games.winners == first_seats)
        played += Pairs(
            points=points.reshape(-1, 2),
            plies=games.plies.reshape(-1, 2),
            moves=games.moves,
            seconds=games.seconds,
            faults=games.faults,
            games=tuple(_transcripts(games, batch, engine.ruleset, names, numbers[low:]))
            if names
            else (),
        )
    return played


def _transcripts(
    games: MatchGames,
    openings: MatchOpenings,
    ruleset: Ruleset,
    names: tuple[str, str],
    numbers: Sequence[int],
) -> Iterator[str]:
    """Yield each game as a transcript in Donkers' notation, pair by pair."""
    for game, winner in enumerate(games.winners):
        pair = game // 2
        start = opening(ruleset, int(openings.starting_seats[pair]))
        played = np.concatenate([openings.actions[pair], games.actions[game]])
        actions = tuple(played[played != GAME_OVER].tolist())
        south, north = names if game % 2 == SOUTH else names[::-1]
        head = {
            "event": f"pair {numbers[pair] + 1}",
            "south": south,
            "north": north,
            "opening plies": str(np.sum(openings.actions[pair] != GAME_OVER)),
        }
        # The moves show if the rules ended the game. If not, it was cut short, or lost by a fault.
        is_late = games.lost_on_time[game]
        fault = Termination.LOST_ON_TIME if is_late else Termination.ILLEGAL_ACTION
        end = CUT_SHORT if winner < 0 else Outcome(int(winner), fault)
        yield format_transcript(transcribe(GameRecord(ruleset, start, actions, end, head)))
