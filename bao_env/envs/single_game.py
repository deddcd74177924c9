"""Play one game from start to end, for the environments with a single game."""

from __future__ import annotations

import copy
import operator
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import logger

from bao_env.board import Board
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import (
    NO_WINNER,
    PLY,
    WORDS,
    Flags,
    Legal,
    PackedPositions,
    Position,
    turn_of,
    unpack,
)
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.sampling import RandomStates, draw_actions, random_states
from bao_env.envs.arguments import Infos, Options, seat_or_none
from bao_env.envs.guard import Guard
from bao_env.envs.openings import OpeningPlies, Openings, check_opening_plies
from bao_env.game import CUT_SHORT, Outcome, Termination, make_move
from bao_env.observation.arrays import take_rows
from bao_env.observation.observer import Observer, make_observations
from bao_env.render.raster import Window, rgb_array

_SHARED = {"ruleset", "observer", "possible_agents"} | {
    f"{kind}_space{plural}" for kind in ("observation", "action") for plural in ("", "s")
}
"""Names of the attributes that copies of an environment share, because they never change."""
_NONE_LEGAL = np.zeros(1, np.uint64)

Start: TypeAlias = tuple[PackedPositions, Legal] | int | None
"""Where a game begins: a position, uint64[1, 6], with its legal actions, uint64[1]; or the
seat that begins at the opening position, where None means the rule set's own rule."""


def warn_of_no_render_mode(metadata: dict[str, Any]) -> None:
    """Warn that an environment cannot render, because it was made without a mode."""
    modes = ", ".join(metadata["render_modes"])
    logger.warn(f"render() needs a render_mode: make the environment with one of {modes}")


def _copy_of(rng: np.random.Generator) -> np.random.Generator:
    """Return a copy of a generator; copy.deepcopy takes six times as long."""
    bits = rng.bit_generator
    copied = type(bits)(bits.seed_seq)  # type: ignore[arg-type]
    copied.state = bits.state
    return np.random.Generator(copied)


class SingleGame:
    """One game, for an environment that plays one at a time.

    A running game can be pickled and deep-copied, because all its attributes can.

    Args:
        ruleset: the rules.
        max_plies: plies after which the game is cut short.
        observer: writes the observations.
        opening_plies: see :func:`bao_env.envs.openings.check_opening_plies`.
        against_an_opponent: see the same function.

    Raises:
        ValueError: ``opening_plies`` are wrong.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        max_plies: int,
        observer: Observer,
        opening_plies: OpeningPlies | None = None,
        *,
        against_an_opponent: bool = False,
    ) -> None:
        self.max_plies = max_plies
        self.ruleset = ruleset
        plies = check_opening_plies(
            opening_plies, max_plies, against_an_opponent=against_an_opponent
        )
        self.openings: Openings = Openings(ruleset, plies)
        """Where games begin."""
        self._observer = observer
        self.positions: PackedPositions = np.zeros((1, WORDS), np.uint64)
        """The packed position as a batch of one, uint64[1, 6]; changes in place."""
        self.legal: Legal = np.zeros(1, np.uint64)
        """The legal actions as a batch of one, uint64[1]; 0 once somebody has won."""
        self.mover: int = SOUTH
        """The seat to move."""
        self.outcome: Outcome | None = None
        """How the game ended; None while it runs."""
        self.actions: list[int] = []
        """The actions played since the start."""
        self._start = self.positions[0]
        self.guard: Guard = Guard()
        """Code that changes the game runs in a ``with`` block of this guard."""
        self._viewers = (np.array([SOUTH], np.int8), np.array([NORTH], np.int8))

    def __deepcopy__(self, memo: dict[int, Any]) -> SingleGame:
        """Return a copy of the game, which shares the rules, the openings and the observer."""
        game = copy.copy(self)
        game.positions, game.legal = self.positions.copy(), self.legal.copy()
        game.actions = list(self.actions)
        game.guard = copy.copy(self.guard)
        return game

    @property
    def plies(self) -> int:
        """Plies played so far, random ones at the opening included."""
        return int(self.positions[0, PLY])

    @property
    def over(self) -> bool:
        """Whether the game has ended, won or cut short."""
        return self.outcome is not None

    @property
    def winner(self) -> int:
        """The seat that has won, or -1."""
        outcome = self.outcome
        return NO_WINNER if outcome is None or outcome.winner is None else outcome.winner

    @property
    def truncated(self) -> bool:
        """Whether the game was cut short."""
        return self.outcome is not None and self.outcome.winner is None

    def board(self) -> Board:
        """Return the game as a board, with its actions since the start."""
        board = Board.from_packed(self._start, self.ruleset)
        for action in self.actions:
            board.push(action)
        board.end(self.outcome)
        return board

    def end_info(self) -> Infos:
        """Return the infos about the end of the game: its winner and its length in plies."""
        return {"winner": self.winner, "plies": self.plies}

    def read_options(self, options: Options, first_player: int | None) -> Start:
        """Return where a game begins, given an environment's arguments and its reset options.

        Args:
            options: ``"first_player"`` overrides the argument for this game; ``"position"`` is a
                position text at which the game starts. They have been checked by
                :func:`bao_env.envs.arguments.check_options`.
            first_player: the seat that begins, or None for the rule set's own rule.

        Raises:
            ValueError: an option is wrong.
        """
        text = options.get("position")
        if text is not None:
            return self.openings.from_texts([text])
        seat = seat_or_none(options.get("first_player"), "first_player")
        return first_player if seat is None else seat

    def start(self, start: Start, rng: np.random.Generator) -> None:
        """Begin a game.

        Args:
            start: what :meth:`read_options` returned.
            rng: the generator for who begins and for the opening plies, if they are random.
        """
        if isinstance(start, tuple):
            self.positions, self.legal = (array.copy() for array in start)
        else:
            self.positions, self.legal = self.openings.draw(1, rng, start)
        self.mover, self.outcome = turn_of(self.positions[0]), None
        self._start, self.actions = self.positions[0].copy(), []

    def check_action(self, action: Any, illegal: str = "raise") -> int | None:
        """Return an action as an int, or None if it is illegal and an illegal action loses.

        Args:
            action: an integer of any type.
            illegal: what an illegal action does: ``"raise"`` or ``"lose"``.

        Raises:
            IllegalMoveError: the action is illegal, and ``illegal="raise"``, or it is not in 0..63;
                the message names the legal actions.
            TypeError: the action is not an integer.
        """
        is_integer = not isinstance(action, bool)
        try:
            number = operator.index(action)
        except TypeError:
            is_integer = False
        if not is_integer:
            raise TypeError(f"action {action!r}: expected an integer from 0 to 63")
        in_space = 0 <= number < NUM_ACTIONS
        if in_space and int(self.legal[0]) >> number & 1:
            return number
        if illegal == "raise" or not in_space:
            self.board().parse_move(number)  # raises, and names the rule
        return None

    def play(self, action: int | None) -> None:
        """Play a legal action, or end the game as a loss of the player to move.

        Args:
            action: what :meth:`check_action` returned; None means an illegal action.
        """
        if action is None:
            self.outcome = Outcome(1 - self.mover, Termination.ILLEGAL_ACTION)
            self.legal[0] = 0
            return
        position = self.positions[0]
        self.legal[0], self.outcome = make_move(position, self.ruleset, action)
        self.actions.append(action)
        self.mover = turn_of(position)

    def cut(self) -> None:
        """Cut the game short if it has reached ``max_plies``; :attr:`legal` does not change."""
        if self.outcome is None and self.positions.item(PLY) >= self.max_plies:
            self.outcome = CUT_SHORT

    def observation(self, seat: int) -> Any:
        """Return what a seat sees, as fresh arrays of the observer."""
        legal = self.legal if seat == self.mover else _NONE_LEGAL
        viewers = self._viewers[seat]
        return take_rows(make_observations(self._observer, self.positions, legal, viewers), 0)

    def action_mask(self, seat: int) -> npt.NDArray[np.int8]:
        """Return a seat's action mask, a fresh int8[64]: all zero if it is not to move."""
        if seat != self.mover:
            return np.zeros(NUM_ACTIONS, np.int8)
        mask = np.empty(NUM_ACTIONS, np.int8)
        unpack_masks(self.legal, mask[None])
        return mask


class SingleGameEnv:
    """Give the environments with a single game access to this game, and rendering."""

    metadata: dict[str, Any]
    render_mode: str | None
    _game: SingleGame
    _window: Window

    _sampler: RandomStates = np.zeros(1, np.uint64)
    """The state of the generator of :meth:`sample_legal_actions`, uint64[1]."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent copy, which shares the rules, the observer and the spaces."""
        env = type(self).__new__(type(self))
        memo[id(self)] = env
        for name, value in vars(self).items():
            if isinstance(value, np.random.Generator):
                value = _copy_of(value)
            elif name not in _SHARED:
                value = copy.deepcopy(value, memo)
            vars(env)[name] = value
        return env

    @property
    def _viewer(self) -> int:
        """The seat whose observation is returned."""
        raise NotImplementedError

    @property
    def position(self) -> Position:
        """The position in plain Python.

        Raises:
            ResetNeeded: no game has begun.
        """
        self._game.guard.check_begun()
        return unpack(self._game.positions[0])

    @property
    def board(self) -> Board:
        """The game since its start as a :class:`bao_env.Board`, a copy.

        Raises:
            ResetNeeded: no game has begun.
        """
        self._game.guard.check_begun()
        return self._game.board()

    def action_masks(self) -> Flags:
        """Return the legal actions of the player to act, a fresh bool[64]; MaskablePPO calls this.

        They are all False at the end of the game.
        """
        return self._game.action_mask(self._viewer).view(np.bool_)

    def sample_legal_actions(self) -> int:
        """Draw a uniformly random legal action, 0 if there is none.

        The draws use their own generator, which ``reset(seed=...)`` seeds.
        """
        game, action = self._game, np.empty(1, np.int64)
        legal = game.legal if self._viewer == game.mover else _NONE_LEGAL
        draw_actions(legal, self._sampler, action)
        return int(action[0])

    def _seed_sampler(self, rng: np.random.Generator) -> None:
        self._sampler = random_states(1, int(rng.integers(2**63)))

    @property
    def positions(self) -> PackedPositions:
        """The packed position as a batch of one, uint64[1, 6], a copy: what bots act on."""
        return self._game.positions.copy()

    @property
    def legal(self) -> Legal:
        """A copy of the legal actions of :attr:`positions`, uint64[1]."""
        return self._game.legal.copy()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text or as a fresh uint8[406, 820, 3], or show it in a window.

        Pictures mark the hole of the last action.

        Raises:
            DependencyNotInstalled: pygame is missing, and the mode needs it.
            ResetNeeded: no game has begun.
        """
        if self.render_mode is None:
            warn_of_no_render_mode(self.metadata)
            return None
        if self.render_mode == "ansi":
            return str(self.board)
        if self.render_mode == "rgb_array":
            return rgb_array(self.board.shapes())
        self._window.show(self.board.shapes(), self.metadata["render_fps"])
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()
