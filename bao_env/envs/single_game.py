"""One game from start to end: what the environments of a single game step."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bao_env.board import IllegalMoveError
from bao_env.engine.action import NUM_ACTIONS, actions_of
from bao_env.engine.batch import unpack_masks
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit, jit_inline
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import (
    META,
    NO_WINNER,
    PLY,
    WORDS,
    Position,
    mover_of,
    pack,
    unpack,
)
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.arguments import check_max_plies, check_start, seat_number
from bao_env.envs.openings import OpeningPlies, Openings, check_opening_plies
from bao_env.envs.render_modes import result_line
from bao_env.notation.positions import action_to_move, parse_position
from bao_env.observation.kinds import Observer


@jit_inline
def _mover(positions):
    """The seat to move."""
    return np.int64(mover_of(positions[0, META]))


@jit
def _mask_and_winner(rules, positions):
    """The legal mask and the winner, or -1, of a game that no capture has ended."""
    mask = legal_mask(rules, positions[0])
    if mask == ZERO:  # Donkers 1.2, 1.5a: no legal move
        return mask, 1 - _mover(positions)
    return mask, np.int64(NO_WINNER)


@jit
def _play(rules, positions, masks, action):
    """Play a legal action; ``positions`` uint64[1, 6] and ``masks`` uint64[1] change in place.

    Returns the new mask, the winner or -1, and the seat to move.
    """
    mover = _mover(positions)
    result = play(rules, positions[0], U(action))
    mask = ZERO
    if result == ZERO:
        mask, winner = _mask_and_winner(rules, positions)
    else:
        winner = mover if result == ONE else 1 - mover
    masks[0] = mask
    return mask, winner, _mover(positions)


_NO_MASKS: Final = np.zeros(1, np.uint64)


class SingleGame:
    """One game, for an environment that plays one at a time.

    All its attributes are plain, so pickle and deepcopy keep a running game.

    Args:
        ruleset: the rules.
        max_plies: plies after which the game is cut short.
        observer: what is seen of it.
        opening_plies: see :func:`bao_env.envs.openings.check_opening_plies`.
        against_an_opponent: the same.

    Raises:
        ValueError: ``max_plies`` is not an integer of at least 1, or ``opening_plies`` are wrong.
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
        self.ruleset = ruleset
        self.max_plies = check_max_plies(max_plies)
        plies = check_opening_plies(
            opening_plies, max_plies, against_an_opponent=against_an_opponent
        )
        self.openings = Openings(ruleset, plies)
        """Where games begin."""
        self._observer = observer
        self.positions = np.zeros((1, WORDS), np.uint64)
        """The packed position as a batch of one, uint64[1, 6]; changes in place."""
        self.masks = np.zeros(1, np.uint64)
        """The legal actions as a batch of one, uint64[1]; 0 once somebody has won."""
        self.mask = 0
        """:attr:`masks` as an integer: bit a = action a."""
        self.mover = SOUTH
        """The seat to move."""
        self.winner = NO_WINNER
        """The seat that has won, or -1."""
        self.truncated = False
        """Whether the game was cut short."""
        self._rules = ruleset.kernel_rules()
        self.plies = 0
        """Played so far, random ones at the opening included."""
        self._viewers = (np.array([SOUTH], np.int8), np.array([NORTH], np.int8))

    @property
    def over(self) -> bool:
        """Whether the game has ended, won or cut short."""
        return self.winner >= 0 or self.truncated

    @property
    def position(self) -> Position:
        """The position in plain Python."""
        return unpack(self.positions[0])

    @property
    def result_line(self) -> str | None:
        """How the game ended, in words; None while it runs."""
        return result_line(self.position, self.winner, self.truncated)

    def start(self, position: Position) -> None:
        """Begin a game at ``position``; plies count from 0.

        Raises:
            ValueError: the player to move has no legal move; the old game stays.
        """
        positions = np.zeros((1, WORDS), np.uint64)
        pack(position, positions[0])
        positions[0, PLY] = 0
        mask, winner = _mask_and_winner(self._rules, positions)
        if winner >= 0:
            raise ValueError("position: the game is over there, as the mover has no legal move")
        self._begin(positions, np.array([mask], np.uint64))

    def _begin(self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]) -> None:
        """Begin a game at a batch of one."""
        self.positions, self.masks = positions, masks
        self.mask, self.mover = int(masks[0]), int(_mover(positions))
        self.winner, self.truncated, self.plies = NO_WINNER, False, int(positions[0, PLY])

    def start_by_options(
        self,
        first_player: int | None,
        options: dict[str, Any],
        rng: np.random.Generator,
    ) -> None:
        """Begin a game by an environment's arguments and its reset options.

        Args:
            first_player: the seat that begins, or None for the rule set's own rule.
            options: ``"first_player"`` overrides it for this game; ``"position"``, a position
                text, starts there; other keys are ignored.
            rng: draws the lot, if the rules want one, and random plies; nothing else.

        Raises:
            ValueError: an option is wrong; the old game stays.
        """
        check_start(options)
        text = options.get("position")
        if text is not None:
            self.start(parse_position(text, self.ruleset))
            return
        wanted = options.get("first_player")
        if wanted is not None:
            first_player = seat_number(wanted, "first_player")
        self._begin(*self.openings.draw(1, rng, first_player))

    def is_legal(self, action: int) -> bool:
        """Whether ``action`` may be played now."""
        return 0 <= action < NUM_ACTIONS and bool(self.mask >> action & 1)

    def play(self, action: Any) -> None:
        """Play an action, an integer of any type.

        Raises:
            IllegalMoveError: it is illegal; the message names the legal actions, and nothing has
                changed.
            TypeError: it is not an integer.
        """
        action = operator.index(action)
        if not self.is_legal(action):
            raise IllegalMoveError(self._why_illegal(action))
        self.mask, self.winner, self.mover = _play(self._rules, self.positions, self.masks, action)
        self.plies += 1
        self.truncated = self.plies >= self.max_plies and self.winner < 0

    def forfeit(self) -> None:
        """End the game as a loss of the player to move."""
        self.winner = 1 - self.mover
        self.mask = 0
        self.masks[0] = 0

    def _why_illegal(self, action: int) -> str:
        name = f" ({action_to_move(action)})" if 0 <= action < NUM_ACTIONS else ""
        legal = actions_of(self.mask)
        named = ", ".join(f"{a} ({action_to_move(a)})" for a in legal)
        return f"action {action}{name} is illegal here; legal: {named or 'none, the game is over'}"

    def observation(self, seat: int, over: bool = False) -> Any:
        """What a seat sees, as fresh arrays of the observer's kind.

        Args:
            seat: whose view it is.
            over: whether the game has ended in a way that the board does not show.
        """
        arrays = self._observer.empty(1)
        masks = self.masks if seat == self.mover and not over else _NO_MASKS
        self._observer.fill(self.positions, masks, self._viewers[seat], arrays)
        return self._observer.value({key: array[0] for key, array in arrays.items()})

    def action_mask(self, seat: int) -> npt.NDArray[np.int8]:
        """What a seat may play, as a fresh int8[64]: all zero if it is not to move."""
        if seat != self.mover:
            return np.zeros(NUM_ACTIONS, np.int8)
        mask = np.empty(NUM_ACTIONS, np.int8)
        unpack_masks(self.masks, mask[None])
        return mask
