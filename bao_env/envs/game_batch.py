"""Play many games side by side, for the vector environment.

One step fills these arrays, each with one row per game::

    actions ---> Engine.step ---> GameStates            positions, legal actions, winners
    agent -----> _reply --------> GameStates            its answers, if there is an opponent
    GameStates > _set_viewers --> ObservationBuffer     viewers and their legal actions
    GameStates > Observer ------> ObservationBuffer     observations and action masks
    GameStates > _score --------> StepResult            rewards, terminated, truncated

Each thread does all of this for its own *part* of the batch, a slice. Only the agent answers for
all games at once. An argument *games* is int64[n], the indices of some of the B games.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, opponent_actions
from bao_env.compiled.compile import jit, jit_inline
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import Engine
from bao_env.engine.bits import ZERO, U
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import (
    META,
    NO_WINNER,
    PLY,
    WORDS,
    Actions,
    Flags,
    Index,
    Legal,
    PackedPositions,
    Seats,
    mover_of,
    movers,
)
from bao_env.engine.ruleset import Ruleset
from bao_env.game import CUT_SHORT, Outcome, Termination, legal_and_outcome
from bao_env.observation.arrays import Arrays, empty_arrays, put_rows, take_rows
from bao_env.observation.observer import Observer

GameIndices = npt.NDArray[np.int64]

NO_LEARNER = -1
"""Stands for the learner's seat in self-play, where there is no learner."""


class GameStates(NamedTuple):
    """The state of games, one row each, which every ply changes in place."""

    positions: PackedPositions
    """Packed positions, uint64[n, 6]."""
    legal: Legal
    """The mover's legal actions, uint64[n]; 0 once the game is over."""
    winners: Seats
    """The seats that have won, int8[n]; -1 while nobody has."""
    learner_seats: Seats
    """The seats that the learner plays, int8[n]; -1 in self-play."""

    def rows(self, rows: slice | GameIndices) -> GameStates:
        """Return some of the games: views for a slice, copies for indices."""
        return GameStates._make(array[rows] for array in self)


class StepResult(NamedTuple):
    """The result of a step, one row per game."""

    rewards: npt.NDArray[np.float64]
    """+1 for a win, -1 for a loss, else 0, float64[B]."""
    terminated: Flags
    """Whether somebody has won, bool[B]."""
    truncated: Flags
    """Whether the game was cut short, bool[B]."""


class ObservationBuffer(NamedTuple):
    """What the *viewer* of each game sees: the learner or, in self-play, the player to move."""

    viewers: Seats
    """The viewers' seats, int8[n]."""
    legal: Legal
    """The viewers' legal actions, uint64[n]; 0 where they are not to move."""
    action_masks: npt.NDArray[np.int8]
    """The same legal actions as masks, int8[n, 64], 1 = legal."""
    arrays: Arrays
    """The viewers' observations, n rows."""

    @classmethod
    def empty(cls, size: int, observer: Observer) -> ObservationBuffer:
        """Return uninitialised arrays for ``size`` games."""
        return cls(
            np.empty(size, np.int8),
            np.empty(size, np.uint64),
            np.empty((size, NUM_ACTIONS), np.int8),
            empty_arrays(observer.space, size),
        )

    def rows(self, part: slice) -> ObservationBuffer:
        """Return some of the rows, as views."""
        return ObservationBuffer._make(take_rows(array, part) for array in self)

    def fill(self, positions: PackedPositions, observer: Observer) -> None:
        """Write the observations of ``positions``, uint64[n, 6], for the viewers."""
        observer.fill(positions, self.legal, self.viewers, self.arrays)
        unpack_masks(self.legal, self.action_masks)


@jit_inline
def _mover(positions: PackedPositions, g: Index) -> np.int8:
    """Return the seat to move in game g."""
    return np.int8(mover_of(positions[g, META]))


@jit_inline
def _set_viewer(state: GameStates, viewers: Seats, legal: Legal, g: Index) -> None:
    """Write the viewer of game g, and the viewer's legal actions."""
    viewer, learner = _mover(state.positions, g), state.learner_seats[g]
    bits = state.legal[g]
    if learner >= 0 and learner != viewer:
        viewer = learner
        bits = ZERO
    viewers[g] = viewer
    legal[g] = bits


@jit
def _set_viewers(state: tuple[npt.NDArray[Any], ...], viewers: Seats, legal: Legal) -> None:
    """Write the viewer of each game, and the viewer's legal actions.

    Args:
        state: the :class:`GameStates` as a plain tuple, which numba recognises faster.
        viewers: int8[n], filled with the viewers' seats.
        legal: uint64[n], filled; 0 where the viewer is not to move.
    """
    state = GameStates(*state)
    for g in range(viewers.shape[0]):
        _set_viewer(state, viewers, legal, g)


@jit
def _score(
    state: tuple[npt.NDArray[Any], ...],
    low: int,
    high: int,
    max_plies: int,
    actors: Seats,
    viewers: Seats,
    legal: Legal,
    rewards: npt.NDArray[np.float64],
    terminated: Flags,
    truncated: Flags,
) -> None:
    """Write the viewers and the results of a step, and cut short games that are too long.

    Args:
        state: the :class:`GameStates` as a plain tuple, which numba recognises faster; the legal
            actions of games that are cut short become 0.
        low, high: the games from ``low`` to ``high - 1`` are scored.
        max_plies: plies after which a game is cut short.
        actors: int8[B], the seats whose rewards are written.
        viewers, legal: the arrays of :class:`ObservationBuffer`, filled.
        rewards, terminated, truncated: the arrays of :class:`StepResult`, filled.
    """
    state = GameStates(*state)
    for g in range(U(low), U(high)):  # numba tests every signed index for a negative value
        _set_viewer(state, viewers, legal, g)
        won = state.winners[g] >= 0
        cut = not won and state.positions[g, PLY] >= max_plies
        rewards[g] = 0.0
        if won:
            rewards[g] = 1.0 if state.winners[g] == actors[g] else -1.0
        if cut:
            state.legal[g] = ZERO
        terminated[g] = won
        truncated[g] = cut


@jit
def _find_unanswered(state: GameStates, games: GameIndices) -> int:
    """Find the running games in which the agent is to move, and return their number.

    Args:
        state: the :class:`GameStates`.
        games: int64[B], whose first items are filled with these games.
    """
    count = 0
    for g in range(state.winners.shape[0]):
        if state.legal[g] != ZERO and _mover(state.positions, g) != state.learner_seats[g]:
            games[count] = g
            count += 1
    return count


class GameBatch:
    """B games that run side by side, in self-play or against an agent.

    Args:
        ruleset: the rules.
        size: number of games, B.
        max_plies: plies after which a game is cut short.
        threads: number of threads that share the work; the games do not depend on it.
        observer: writes the observations.
    """

    def __init__(
        self, ruleset: Ruleset, size: int, max_plies: int, threads: int, observer: Observer
    ) -> None:
        self.ruleset = ruleset
        self.engine: Engine = Engine(ruleset, threads)
        self.size = size
        self.max_plies = max_plies
        self.observer = observer
        self.agent: Agent | None = None
        """The learner's opponent; None in self-play."""
        self.state: GameStates = GameStates(
            np.zeros((size, WORDS), np.uint64),
            np.zeros(size, np.uint64),
            np.full(size, NO_WINNER, np.int8),
            np.full(size, NO_LEARNER, np.int8),
        )
        self._forfeited = np.zeros(size, np.bool_)
        """Which games have ended by an illegal action."""
        self.before_actions: Callable[[GameIndices, Actions], None] | None = None
        """Called, unless None, with n games and the actions, int64[n], about to be played there."""

    def begin(
        self,
        games: GameIndices,
        positions: PackedPositions,
        legal: Legal,
    ) -> Flags:
        """Begin n games, and play the agent's first plies.

        Args:
            games: int64[n].
            positions: uint64[n, 6], where they begin.
            legal: uint64[n], the legal actions there.

        Returns:
            bool[n], True where the agent has won before the learner can act.
        """
        state = self.state
        state.positions[games] = positions
        state.legal[games] = legal
        state.winners[games] = NO_WINNER
        self._forfeited[games] = False
        if self.agent is None:
            return np.zeros(len(games), np.bool_)
        self._reply(self.agent)
        return np.asarray(state.winners[games] >= 0)

    def forfeit(self, games: GameIndices) -> None:
        """End running games as a loss of the player to move."""
        state = self.state
        state.legal[games] = 0
        state.winners[games] = 1 - movers(state.positions[games])
        self._forfeited[games] = True

    def outcome(self, game: int) -> Outcome | None:
        """Return how a game ended, or None while it runs."""
        state = self.state
        if self._forfeited[game]:
            return Outcome(int(state.winners[game]), Termination.ILLEGAL_ACTION)
        if state.winners[game] < 0:
            return None if state.legal[game] else CUT_SHORT
        winner = int(state.winners[game])
        stuck = Outcome(winner, Termination.NO_LEGAL_MOVE)
        if legal_and_outcome(state.positions[game], self.ruleset)[1] == stuck:
            return stuck
        return Outcome(winner, Termination.FRONT_ROW_EMPTY)

    def step(
        self,
        actions: Actions,
        actors: Seats,
        buffer: ObservationBuffer,
    ) -> StepResult:
        """Play one action and the agent's answers in every running game.

        Args:
            actions: int64[B], legal in the games that run.
            actors: int8[B], the seats whose rewards are returned.
            buffer: B games, filled with their observations.
        """
        state, size = self.state, self.size
        if self.before_actions:
            running = np.flatnonzero(state.legal)
            self.before_actions(running, actions[running])
        result = StepResult(np.empty(size), np.empty(size, np.bool_), np.empty(size, np.bool_))

        def finish(part: slice) -> None:
            _score(
                tuple(state),
                part.start,
                part.stop,
                self.max_plies,
                actors,
                buffer.viewers,
                buffer.legal,
                result.rewards,
                result.terminated,
                result.truncated,
            )
            buffer.rows(part).fill(state.positions[part], self.observer)

        if self.agent is None:
            self.engine.play_legal(
                state.positions, actions, state.legal, state.winners, on_part_done=finish
            )
        else:
            self.engine.play_legal(state.positions, actions, state.legal, state.winners)
            self._reply(self.agent)
            self.engine.run_in_blocks(size, finish)
        return result

    def observe_again(
        self, games: GameIndices, last_view: ObservationBuffer, buffer: ObservationBuffer
    ) -> None:
        """Fill a buffer of B games: observe ``games`` as they are now, the others as before.

        Args:
            games: int64[n].
            last_view: the last observation of the B games.
            buffer: filled.
        """
        state = self.state.rows(games)
        viewers, legal = np.empty(len(games), np.int8), np.empty(len(games), np.uint64)
        _set_viewers(tuple(state), viewers, legal)
        buffer.viewers[:], buffer.legal[:] = last_view.viewers, last_view.legal
        buffer.viewers[games], buffer.legal[games] = viewers, legal

        def work(part: slice) -> None:
            buffer.rows(part).fill(self.state.positions[part], self.observer)

        self.engine.run_in_blocks(self.size, work)

    def observe_some(self, games: GameIndices, buffer: ObservationBuffer) -> None:
        """Observe ``games`` as they are now, in their rows of a buffer of B games."""
        state, rows = self.state.rows(games), ObservationBuffer.empty(len(games), self.observer)
        _set_viewers(tuple(state), rows.viewers, rows.legal)
        rows.fill(state.positions, self.observer)
        for array, values in zip(buffer, rows, strict=True):
            put_rows(array, games, values)

    def _reply(self, agent: Agent) -> None:
        """Play the agent's plies until the learner is to move in every running game."""
        state = self.state
        indices = np.empty(self.size, np.int64)
        while count := _find_unanswered(state, indices):
            games = indices[:count]
            positions, legal, winners, _ = state.rows(games)
            actions = opponent_actions(agent, positions, legal)
            if self.before_actions:
                self.before_actions(games, actions)
            self.engine.play_legal(positions, actions, legal, winners)
            state.positions[games], state.legal[games] = positions, legal
            state.winners[games] = winners
