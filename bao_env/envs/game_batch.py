"""Many games at once, from their start to their end: what the vector environment steps.

Arrays: ``positions`` uint64[B, 6], ``masks`` uint64[B], ``winners`` int8[B] as in
:mod:`bao_env.engine.batch`; ``games`` int64[n] are indices of some of the B games; a *part* is
the slice of the batch on which one thread works.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.bots import Agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import NO_WINNER, Engine, unpack_masks
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, PLY, WORDS
from bao_env.engine.ruleset import Ruleset
from bao_env.observation.board import OBSERVATION_SIZE, observe

Games = npt.NDArray[np.int64]

_18: Final = U(18)


@jit_inline
def _mover(positions, g):
    """The seat that is to move in game g."""
    return np.int8((positions[g, META] >> _18) & ONE)


@jit_inline
def _look(positions, masks, seats, players, legal, g):
    """Write who sees game g and what he may play: the mover, or the learner if there is one."""
    players[g] = _mover(positions, g)
    legal[g] = masks[g]
    if seats[g] >= 0 and seats[g] != players[g]:
        players[g] = seats[g]
        legal[g] = ZERO


@jit
def _look_all(positions, masks, seats, players, legal):
    for g in range(masks.shape[0]):
        _look(positions, masks, seats, players, legal, g)


@jit
def _settle(
    positions,
    masks,
    winners,
    seats,
    starts,
    openings,
    opening_masks,
    restarts,
    max_plies,
    low,
    acted,
    rewards,
    terminated,
    truncated,
    players,
    legal,
    end_games,
    end_positions,
    end_players,
    end_legal,
):
    """What a ply has brought to every game of a part; returns how many have ended.

    Those are written, as they stand, to the first rows of ``end_*``, and begin anew at once if
    ``restarts``. The part begins at game ``low``.
    """
    count = 0
    for g in range(masks.shape[0]):
        won = winners[g] >= 0
        cut = not won and positions[g, PLY] >= max_plies
        rewards[g] = 0.0
        if won:
            rewards[g] = 1.0 if winners[g] == acted[g] else -1.0
        terminated[g] = won
        truncated[g] = cut
        _look(positions, masks, seats, players, legal, g)
        if not (won or cut):
            continue
        end_games[count] = low + g
        end_players[count] = players[g]
        end_legal[count] = legal[g]
        for word in range(WORDS):
            end_positions[count, word] = positions[g, word]
        count += 1
        if restarts:
            for word in range(WORDS):
                positions[g, word] = openings[starts[g], word]
            masks[g] = opening_masks[starts[g]]
            winners[g] = NO_WINNER
            _look(positions, masks, seats, players, legal, g)
    return count


@jit
def _awaited(positions, winners, seats, max_plies, games):
    """Write the games that go on where another seat than ``seats`` is to move; their number."""
    count = 0
    for g in range(winners.shape[0]):
        if winners[g] < 0 and _mover(positions, g) != seats[g] and positions[g, PLY] < max_plies:
            games[count] = g
            count += 1
    return count


class View(NamedTuple):
    """What some games show."""

    boards: npt.NDArray[Any]
    """Observations, float32 or uint8 [n, 52]."""
    masks: npt.NDArray[np.int8]
    """Legal actions, int8[n, 64]."""
    players: npt.NDArray[np.int8]
    """Whose view it is, int8[n]."""
    legal: npt.NDArray[np.uint64]
    """Legal actions as bits, uint64[n]."""

    @classmethod
    def empty(cls, size: int, dtype: npt.DTypeLike) -> View:
        """Fresh arrays for ``size`` games, boards of the dtype, to be filled."""
        return cls(
            np.empty((size, OBSERVATION_SIZE), dtype),
            np.empty((size, NUM_ACTIONS), np.int8),
            np.empty(size, np.int8),
            np.empty(size, np.uint64),
        )

    def rows(self, part: slice) -> View:
        """Some rows, not copied."""
        return View(self.boards[part], self.masks[part], self.players[part], self.legal[part])

    def paint(self, positions: npt.NDArray[np.uint64]) -> None:
        """Write boards and masks, as players and legal bits say."""
        observe(positions, self.boards, self.players)
        unpack_masks(self.legal, self.masks)


class Result(NamedTuple):
    """What a step has brought, one row a game."""

    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]


class _Ends(NamedTuple):
    """How games stood when they ended, one row each."""

    games: Games
    positions: npt.NDArray[np.uint64]
    players: npt.NDArray[np.int8]
    legal: npt.NDArray[np.uint64]


class Episodes:
    """B games that run side by side, in self-play or against an agent.

    Args:
        ruleset: a :class:`Ruleset` or the name of one.
        size: number of games, B.
        max_plies: plies after which a game is cut short.
        threads: how many threads share the work; the games do not depend on it.
        restarts: in self-play, begin an ended game anew at once.
    """

    def __init__(
        self, ruleset: str | Ruleset, size: int, max_plies: int, threads: int, restarts: bool
    ) -> None:
        self.engine = Engine(ruleset, threads)
        self.ruleset = self.engine.ruleset
        self.size = size
        self.max_plies = max_plies
        self.restarts = restarts
        self.agent: Agent | None = None
        """Who plays against the learner; None is self-play."""
        self.positions = np.zeros((size, WORDS), np.uint64)
        self.masks = np.zeros(size, np.uint64)
        self.winners = np.full(size, NO_WINNER, np.int8)
        self.seats = np.full(size, -1, np.int8)
        """The learner's; -1 in self-play."""
        self.starts = np.full(size, SOUTH, np.int8)
        """Who will begin the next game."""
        openings = [self.engine.opening(seat) for seat in (SOUTH, NORTH)]
        self._openings = np.array([words for words, _ in openings])
        self._opening_masks = np.array([mask for _, mask in openings])
        self._ends = _Ends(
            np.empty(size, np.int64),
            np.empty((size, WORDS), np.uint64),
            np.empty(size, np.int8),
            np.empty(size, np.uint64),
        )
        self._end_rows = np.zeros(0, np.int64)
        """The rows of ``_ends`` that the last step has filled: the first ones of each part."""

    def begin(
        self,
        games: Games,
        positions: npt.NDArray[np.uint64] | None = None,
        masks: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        """Begin ``games`` anew, the agent's first plies included.

        Args:
            games: which.
            positions: uint64[n, 6] to begin at; None: the opening, as :attr:`starts` says.
            masks: uint64[n], the legal actions of ``positions``.

        Raises:
            ValueError: a game ends before the learner can act.
        """
        if positions is None or masks is None:
            starts = self.starts[games]
            positions, masks = self._openings[starts], self._opening_masks[starts]
        self.positions[games] = positions
        self.masks[games] = masks
        self.winners[games] = NO_WINNER
        if self.agent is None:
            return
        self._reply()
        over = (self.winners[games] >= 0) | (self.positions[games, PLY] >= self.max_plies)
        if over.any():
            raise ValueError(
                f"game {games[over.argmax()]} is over before the learner's first action: the "
                f"opponent has won, or max_plies={self.max_plies} is too small"
            )

    def step(
        self,
        actions: npt.NDArray[np.int64],
        idle: Games,
        acted: npt.NDArray[np.int8],
        view: View,
    ) -> tuple[Result, Games]:
        """Play one action in every game but the ``idle`` ones, and the agent's answers.

        Args:
            actions: int64[B].
            idle: games that stay as they are; what is returned about them means nothing.
            acted: int8[B], for whom the rewards are.
            view: is filled with what the games show now.

        Returns the result, and the games that have ended; :meth:`ends` shows them.

        Raises:
            ValueError: an action is illegal; nothing has changed then.
        """
        size = self.size
        result = Result(np.empty(size), np.empty(size, np.bool_), np.empty(size, np.bool_))
        ends = self._ends
        ended: list[Games] = []

        def settle(part: slice) -> None:
            count = _settle(
                self.positions[part],
                self.masks[part],
                self.winners[part],
                self.seats[part],
                self.starts[part],
                self._openings,
                self._opening_masks,
                self.restarts and self.agent is None,
                self.max_plies,
                part.start,
                acted[part],
                result.rewards[part],
                result.terminated[part],
                result.truncated[part],
                view.players[part],
                view.legal[part],
                ends.games[part],
                ends.positions[part],
                ends.players[part],
                ends.legal[part],
            )
            ended.append(np.arange(part.start, part.start + count))
            view.rows(part).paint(self.positions[part])

        arguments = self.positions, actions, self.masks, self.winners
        held = self.masks[idle]
        self.masks[idle] = 0  # the engine leaves these games alone
        try:
            if self.agent is None:
                self.engine.step(*arguments, on_part_done=settle)
            else:
                self.engine.step(*arguments)
        except ValueError:
            self.masks[idle] = held
            raise
        if self.agent is not None:
            self._reply()
            self.engine.share(size, settle)
        self._end_rows = np.sort(np.concatenate(ended))
        return result, ends.games[self._end_rows]

    def ends(self, dtype: npt.DTypeLike) -> View:
        """What the games that ended in the last step showed at their end."""
        rows, ends = self._end_rows, self._ends
        view = View.empty(len(rows), dtype)
        view = view._replace(players=ends.players[rows], legal=ends.legal[rows])
        view.paint(ends.positions[rows])
        return view

    def show(self, view: View) -> None:
        """Fill a view with what all games show."""

        def work(part: slice) -> None:
            rows = view.rows(part)
            positions = self.positions[part]
            _look_all(positions, self.masks[part], self.seats[part], rows.players, rows.legal)
            rows.paint(positions)

        self.engine.share(self.size, work)

    def show_again(self, games: Games, view: View) -> None:
        """Fill the rows ``games`` of a view of all games."""
        positions = self.positions[games]
        rows = View.empty(len(games), view.boards.dtype)
        _look_all(positions, self.masks[games], self.seats[games], rows.players, rows.legal)
        rows.paint(positions)
        view.boards[games] = rows.boards
        view.masks[games] = rows.masks
        view.players[games] = rows.players
        view.legal[games] = rows.legal

    def _reply(self) -> None:
        """The agent's plies, until in every game that goes on the learner is to move."""
        assert self.agent is not None
        indices = np.empty(self.size, np.int64)
        while True:
            count = _awaited(self.positions, self.winners, self.seats, self.max_plies, indices)
            if not count:
                return
            games = indices[:count]
            positions, masks = self.positions[games], self.masks[games]
            winners = self.winners[games]
            actions = np.asarray(self.agent.act(positions.copy(), masks.copy()))
            try:
                self.engine.step(positions, actions.astype(np.int64), masks, winners)
            except ValueError as error:
                raise RuntimeError(f"the opponent's {error}") from error
            self.positions[games] = positions
            self.masks[games] = masks
            self.winners[games] = winners
