"""Many games side by side, from start to end: what the vector environment steps.

Who fills what in one step; every array has a row for each game::

    actions ---> Engine.step ---> GameStates          positions, masks, winners
    agent -----> _reply --------> GameStates          its answers, if there is an opponent
    GameStates > _settle -------> StepResult          rewards, terminated, truncated
                         -------> View                who is shown a game, what they may play
                         -------> FinalStates         a copy of each game that has just ended
                         <------- Starts              where ended games of self-play restart
    GameStates, View > fill_arrays > ObservationBuffer    boards, action masks: returned

Each thread does all of this for its own *part* of the batch, a slice of it; only the agent answers
for all games at once. An array of *games* is int64[n], the indices of some of the B games.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent, check_actions
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import Engine, unpack_masks
from bao_env.engine.bits import ZERO, U
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.position import META, NO_WINNER, PLY, WORDS, mover_of, pack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import parse_position
from bao_env.observation.kinds import Arrays, Observer

GameIndices = npt.NDArray[np.int64]

NO_LEARNER: Final = -1
"""The learner's seat in self-play: there is none."""


class GameStates(NamedTuple):
    """The state of games, one row each; changed in place as they are played."""

    positions: npt.NDArray[np.uint64]
    """Packed positions, uint64[n, 6]."""
    masks: npt.NDArray[np.uint64]
    """The mover's legal actions, uint64[n], bit a = action a; 0 once somebody has won."""
    winners: npt.NDArray[np.int8]
    """The seats that have won, int8[n]; -1 while nobody has."""
    learner_seats: npt.NDArray[np.int8]
    """The seats that the learner plays, int8[n]; -1 in self-play."""

    def rows(self, rows: slice | GameIndices) -> GameStates:
        """Some games: the same memory for a slice, copies for indices."""
        return GameStates._make(array[rows] for array in self)


class Starts(NamedTuple):
    """Where each game begins when it restarts."""

    positions: npt.NDArray[np.uint64]
    """uint64[B, 6]."""
    masks: npt.NDArray[np.uint64]
    """Their legal actions, uint64[B]."""


class StepResult(NamedTuple):
    """The result of a step, one row a game."""

    rewards: npt.NDArray[np.float64]
    """+1 for a win, -1 for a loss, else 0, float64[B]."""
    terminated: npt.NDArray[np.bool_]
    """Whether somebody has won, bool[B]."""
    truncated: npt.NDArray[np.bool_]
    """Whether the game was cut short, bool[B]."""


class View(NamedTuple):
    """Who is shown each game, and what they may play.

    In self-play that is the player to move, otherwise the learner.
    """

    viewers: npt.NDArray[np.int8]
    """Their seats, int8[n]."""
    legal: npt.NDArray[np.uint64]
    """Their legal actions as bits, uint64[n]; 0 where they are not to move."""

    @classmethod
    def empty(cls, size: int) -> View:
        """Arrays for ``size`` games, to be filled."""
        return cls(np.empty(size, np.int8), np.empty(size, np.uint64))


class FinalStates(NamedTuple):
    """Games as they stood when they ended. Each thread fills its part from the front."""

    games: GameIndices
    """Which games they are, int64[B]."""
    positions: npt.NDArray[np.uint64]
    """Their last positions, packed, uint64[B, 6]."""
    viewers: npt.NDArray[np.int8]
    """Who is shown them, int8[B]; see :class:`View`."""
    legal: npt.NDArray[np.uint64]
    """What the viewers could have played if the game had not been cut short, uint64[B]."""


class ObservationBuffer(NamedTuple):
    """The arrays of an observation, and the view from which they are written."""

    arrays: Arrays
    """What the viewers see, n rows each (:class:`bao_env.observation.Observer`)."""
    action_masks: npt.NDArray[np.int8]
    """Legal actions, int8[n, 64], 1 = legal."""
    view: View
    """Whose boards and legal actions these are."""

    @classmethod
    def empty(cls, size: int, observer: Observer) -> ObservationBuffer:
        """Arrays for ``size`` games, to be filled."""
        return cls(
            observer.empty(size),
            np.empty((size, NUM_ACTIONS), np.int8),
            View.empty(size),
        )

    def rows(self, part: slice) -> ObservationBuffer:
        """Some rows, the same memory."""
        view = View(self.view.viewers[part], self.view.legal[part])
        arrays = {key: array[part] for key, array in self.arrays.items()}
        return ObservationBuffer(arrays, self.action_masks[part], view)

    def fill_arrays(self, positions: npt.NDArray[np.uint64], observer: Observer) -> None:
        """Write what is seen of ``positions``, uint64[n, 6], as the view says."""
        observer.fill(positions, self.view.legal, self.view.viewers, self.arrays)
        unpack_masks(self.view.legal, self.action_masks)


@jit_inline
def _mover(positions, g):
    """The seat to move in game g."""
    return np.int8(mover_of(positions[g, META]))


@jit_inline
def _set_viewer(state, view, g):
    """Write who is shown game g and what they may play; see :class:`View`."""
    viewer, learner = _mover(state.positions, g), state.learner_seats[g]
    legal = state.masks[g]
    if learner >= 0 and learner != viewer:
        viewer = learner
        legal = ZERO
    view.viewers[g] = viewer
    view.legal[g] = legal


@jit
def _set_viewers(state, view):
    """:func:`_set_viewer` for every row."""
    for g in range(state.masks.shape[0]):
        _set_viewer(state, view, g)


@jit_inline
def _keep_end(state, view, g, ends, row):
    """Copy game g, which has just ended, to a row of ``ends``."""
    ends.games[row] = g
    ends.viewers[row] = view.viewers[g]
    ends.legal[row] = view.legal[g]
    for word in range(WORDS):
        ends.positions[row, word] = state.positions[g, word]


@jit_inline
def _restart(state, starts, g):
    """Restart game g."""
    for word in range(WORDS):
        state.positions[g, word] = starts.positions[g, word]
    state.masks[g] = starts.masks[g]
    state.winners[g] = NO_WINNER


@jit
def _settle(state, starts, restarts, max_plies, actors, low, high, result, view, ends):
    """Write what the last ply has brought to the games from ``low`` to ``high`` - 1.

    The named tuples come as plain ones: numba recognises those in a microsecond and not in five.

    Args:
        state: the :class:`GameStates` of all games, as a tuple, like the other four.
        starts: the :class:`Starts` of ended games.
        restarts: whether they do.
        max_plies: plies after which a game is cut short.
        actors: int8[B], the seats whose rewards are written.
        low, high: the games.
        result: the :class:`StepResult`; rows ``low`` to ``high`` - 1 are filled.
        view: the :class:`View`; the same rows are filled, after restarts.
        ends: the :class:`FinalStates`; filled from row ``low`` on with the games that have ended.

    Returns:
        how many games have ended.
    """
    state, starts = GameStates(*state), Starts(*starts)
    result, view, ends = StepResult(*result), View(*view), FinalStates(*ends)
    row = low
    for g in range(U(low), U(high)):  # numba tests a signed index for a negative one each time
        won = state.winners[g] >= 0
        cut = not won and state.positions[g, PLY] >= max_plies
        result.rewards[g] = 0.0
        if won:
            result.rewards[g] = 1.0 if state.winners[g] == actors[g] else -1.0
        result.terminated[g] = won
        result.truncated[g] = cut
        _set_viewer(state, view, g)
        if won or cut:
            _keep_end(state, view, g, ends, row)
            row += 1
            if restarts:
                _restart(state, starts, g)
                _set_viewer(state, view, g)
    return row - low


@jit
def _find_unanswered(state, max_plies, games):
    """Write the running games with the agent to move to ``games``, int64[B]; their number."""
    count = 0
    for g in range(state.winners.shape[0]):
        running = state.winners[g] < 0 and state.positions[g, PLY] < max_plies
        if running and _mover(state.positions, g) != state.learner_seats[g]:
            games[count] = g
            count += 1
    return count


class GameBatch:
    """B games that run side by side, in self-play or against an agent.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        size: number of games, B.
        max_plies: plies after which a game is cut short.
        threads: how many threads share the work; the games do not depend on it.
        restarts: in self-play, restart an ended game at once.
        observer: what is seen of the games.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        size: int,
        max_plies: int,
        threads: int,
        restarts: bool,
        observer: Observer,
    ) -> None:
        self.engine = Engine(ruleset, threads)
        self.ruleset = self.engine.ruleset
        self.size = size
        self.max_plies = max_plies
        self.restarts = restarts
        self.observer = observer
        self.agent: Agent | None = None
        """Who plays against the learner; None in self-play."""
        self.state = GameStates(
            np.zeros((size, WORDS), np.uint64),
            np.zeros(size, np.uint64),
            np.full(size, NO_WINNER, np.int8),
            np.full(size, NO_LEARNER, np.int8),
        )
        self.starts = Starts(np.zeros((size, WORDS), np.uint64), np.zeros(size, np.uint64))
        """To be filled before the games begin."""
        self._ends = FinalStates(
            np.empty(size, np.int64), np.empty((size, WORDS), np.uint64), *View.empty(size)
        )
        self._end_rows = np.zeros(0, np.int64)
        """The rows of ``_ends`` that the last step has filled: the first ones of each part."""

    def begin(self, games: GameIndices) -> GameIndices:
        """Begin ``games`` at their starts, the agent's first plies included.

        Returns:
            those that have ended before the learner can act.
        """
        state = self.state
        state.positions[games] = self.starts.positions[games]
        state.masks[games] = self.starts.masks[games]
        state.winners[games] = NO_WINNER
        if self.agent is not None:
            self._reply(self.agent)
        over = (state.winners[games] >= 0) | (state.positions[games, PLY] >= self.max_plies)
        return games[over]

    def parse_positions(
        self, texts: list[str]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The packed positions of position texts, uint64[n, 6], and their masks, uint64[n].

        Raises:
            ValueError: a text is not a position, or the game is over there.
        """
        parsed = {text: parse_position(text, self.ruleset) for text in set(texts)}
        positions = np.zeros((len(texts), WORDS), np.uint64)
        for text, words in zip(texts, positions, strict=True):
            pack(parsed[text], words)
        masks, winners = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.int8)
        self.engine.legal_masks(positions, masks, winners)
        for game in np.flatnonzero(winners >= 0)[:1]:
            raise ValueError(
                "position: the game is over there, because the mover has no legal move: "
                f"{texts[game]}"
            )
        return positions, masks

    def step(
        self,
        actions: npt.NDArray[np.int64],
        idle: GameIndices,
        actors: npt.NDArray[np.int8],
        buffer: ObservationBuffer,
    ) -> tuple[StepResult, GameIndices]:
        """Play one action in every game but the ``idle`` ones, and the agent's answers.

        Args:
            actions: int64[B].
            idle: games that stay as they are; their rows of the result are meaningless.
            actors: int8[B], the seats whose rewards are returned.
            buffer: of B games; filled with what they show now.

        Returns:
            the result, and the games that have ended, int64[n]; :meth:`final_observations` shows
            them.

        Raises:
            ValueError: an action is illegal; nothing has changed.
        """
        state, size = self.state, self.size
        restarts = self.restarts and self.agent is None
        result = StepResult(np.empty(size), np.empty(size, np.bool_), np.empty(size, np.bool_))
        end_rows: list[GameIndices] = []

        def settle(part: slice) -> None:
            low, high = part.start, part.stop
            count = _settle(
                tuple(state),
                tuple(self.starts),
                restarts,
                self.max_plies,
                actors,
                low,
                high,
                tuple(result),
                tuple(buffer.view),
                tuple(self._ends),
            )
            end_rows.append(np.arange(low, low + count))
            buffer.rows(part).fill_arrays(state.positions[part], self.observer)

        arguments = state.positions, actions, state.masks, state.winners
        held = state.masks[idle]
        state.masks[idle] = 0  # the engine leaves these games alone
        try:
            if self.agent is None:
                self.engine.step(*arguments, on_part_done=settle)
            else:
                self.engine.step(*arguments)
        except ValueError:
            state.masks[idle] = held
            raise
        if self.agent is not None:
            self._reply(self.agent)
            self.engine.share(size, settle)
        rows = np.sort(np.concatenate(end_rows))
        if len(idle):
            rows = rows[~np.isin(self._ends.games[rows], idle)]
        self._end_rows = rows
        return result, self._ends.games[self._end_rows]

    def final_observations(self) -> ObservationBuffer:
        """What the games that ended in the last step showed at their end."""
        rows, ends = self._end_rows, self._ends
        buffer = ObservationBuffer.empty(len(rows), self.observer)
        buffer = buffer._replace(view=View(ends.viewers[rows], ends.legal[rows]))
        buffer.fill_arrays(ends.positions[rows], self.observer)
        return buffer

    def final_plies(self) -> npt.NDArray[np.int64]:
        """How many plies the games that ended in the last step took, int64[n]."""
        return self._ends.positions[self._end_rows, PLY].astype(np.int64)

    def observe_all(self, buffer: ObservationBuffer) -> None:
        """Fill a buffer of B games with what all of them show now."""

        def work(part: slice) -> None:
            state, rows = self.state.rows(part), buffer.rows(part)
            _set_viewers(state, rows.view)
            rows.fill_arrays(state.positions, self.observer)

        self.engine.share(self.size, work)

    def observe_some(self, games: GameIndices, buffer: ObservationBuffer) -> None:
        """Fill the rows ``games`` of a buffer of B games with what those games show now."""
        state = self.state.rows(games)
        rows = ObservationBuffer.empty(len(games), self.observer)
        _set_viewers(state, rows.view)
        rows.fill_arrays(state.positions, self.observer)
        for key, array in rows.arrays.items():
            buffer.arrays[key][games] = array
        buffer.action_masks[games] = rows.action_masks
        buffer.view.viewers[games] = rows.view.viewers
        buffer.view.legal[games] = rows.view.legal

    def _reply(self, agent: Agent) -> None:
        """Play the agent's plies until the learner is to move in every running game."""
        state = self.state
        indices = np.empty(self.size, np.int64)
        while True:
            count = _find_unanswered(state, self.max_plies, indices)
            if not count:
                return
            games = indices[:count]
            positions, masks = state.positions[games], state.masks[games]
            winners = state.winners[games]
            answer = agent.act(positions.copy(), masks.copy())
            try:
                actions = check_actions(answer, masks, "the opponent")
            except ValueError as error:
                raise RuntimeError(str(error)) from error
            self.engine.step(positions, actions.astype(np.int64), masks, winners)
            state.positions[games] = positions
            state.masks[games] = masks
            state.winners[games] = winners
