"""What the environments share: the start of an episode, one game ply by ply, and the spaces."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import logger, spaces

from bao_env.board import IllegalMoveError
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import NO_WINNER, unpack_masks
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.layout import NORTH, NUM_SEEDS, SOUTH
from bao_env.engine.position import META, PLY, WORDS, Position, opening, pack, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move, parse_position
from bao_env.observation.board import OBSERVATION_SIZE, SEED_UNIT, observe
from bao_env.render.drawing import drawing
from bao_env.render.raster import Window, rgb_array
from bao_env.render.text import ascii_board

MAX_PLIES: Final = 500
"""Plies after which an environment cuts a game short unless told otherwise; the longest of
100,000 random games took 254."""

_SEATS: Final = {"south": SOUTH, "north": NORTH, SOUTH: SOUTH, NORTH: NORTH}
_18: Final = U(18)


def seat_number(seat: str | int, what: str) -> int:
    """SOUTH or NORTH of ``"south"``, ``"north"`` or the number itself.

    Raises:
        ValueError: it is none of these; the message begins with ``what``.
    """
    found = _SEATS.get(seat) if isinstance(seat, (str, int, np.integer)) else None
    if found is None:
        raise ValueError(f"{what}={seat!r}: expected 'south' or 'north'")
    return found


def seat_or_none(seat: str | int | None, what: str) -> int | None:
    """:func:`seat_number`, with None for None.

    Raises:
        ValueError: see there.
    """
    return None if seat is None else seat_number(seat, what)


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> str | None:
    """``render_mode`` as it is.

    Raises:
        ValueError: it is neither None nor one of the environment's.
    """
    modes = metadata["render_modes"]
    if render_mode is not None and render_mode not in modes:
        raise ValueError(f"render_mode={render_mode!r}: expected None or one of {', '.join(modes)}")
    return render_mode


def check_max_plies(max_plies: int) -> int:
    """``max_plies`` as it is.

    Raises:
        ValueError: it is no integer from 1 up.
    """
    if not isinstance(max_plies, int) or max_plies < 1:
        raise ValueError(f"max_plies={max_plies!r}: expected an integer from 1 up")
    return max_plies


def result_line(position: Position, winner: int, truncated: bool) -> str | None:
    """How a game has ended, or None while it runs."""
    if winner >= 0:
        return f"{SEAT_NAMES[winner]} wins"
    return f"cut short after {position.ply} plies" if truncated else None


def picture(position: Position, winner: int, truncated: bool) -> str:
    """The board in plain characters, with the result below it where there is one."""
    return ascii_board(position, status=result_line(position, winner, truncated))


def draw_first_player(ruleset: Ruleset, rng: np.random.Generator) -> int:
    """The seat that begins by the rule set's own rule; ``rng`` is used for a lot alone."""
    return int(rng.integers(2)) if ruleset.first_player == "lot" else SOUTH


def board_space(dtype: npt.DTypeLike = np.float32) -> spaces.Box:
    """The space of an observation, see :mod:`bao_env.observation`: float32 or uint8 [52].

    Raises:
        ValueError: another dtype.
    """
    kind = np.dtype(dtype)
    if kind == np.uint8:
        return spaces.Box(0, NUM_SEEDS, (OBSERVATION_SIZE,), np.uint8)
    if kind == np.float32:
        return spaces.Box(0.0, NUM_SEEDS / SEED_UNIT, (OBSERVATION_SIZE,), np.float32)
    raise ValueError(f"observation dtype {kind}: expected float32 or uint8")


def masked_space(dtype: npt.DTypeLike = np.float32) -> spaces.Dict:
    """The space of an observation with its mask of legal actions, int8[64]."""
    return spaces.Dict(
        {
            "observation": board_space(dtype),
            "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
        }
    )


@jit
def _look(rules, positions):
    """The mask and the winner (-1 = none) of a game that no capture has ended."""
    mask = legal_mask(rules, positions[0])
    if mask == ZERO:
        return mask, 1 - np.int64((positions[0, META] >> _18) & ONE)
    return mask, np.int64(NO_WINNER)


@jit
def _advance(rules, positions, masks, action):
    """Play a legal action; returns the new mask, the winner and the seat that is to move."""
    mover = np.int64((positions[0, META] >> _18) & ONE)
    result = play(rules, positions[0], U(action))
    mask = ZERO
    if result == ZERO:
        mask, winner = _look(rules, positions)
    else:
        winner = mover if result == ONE else 1 - mover
    masks[0] = mask
    return mask, winner, np.int64((positions[0, META] >> _18) & ONE)


class Episode:
    """One game from its start to its end, for an environment that plays one at a time.

    It has nothing but plain attributes, so that pickle and deepcopy keep a running game.

    Args:
        ruleset: the rules.
        max_plies: plies after which the game is cut short.
    """

    def __init__(self, ruleset: Ruleset, max_plies: int) -> None:
        self.ruleset = ruleset
        self.max_plies = check_max_plies(max_plies)
        self.positions = np.zeros((1, WORDS), np.uint64)
        """The packed position as a batch of one, uint64[1, 6]; changes in place."""
        self.masks = np.zeros(1, np.uint64)
        """The legal actions as a batch of one, uint64[1]; 0 once somebody has won."""
        self.mask = 0
        """The same as an integer: bit a = action a."""
        self.mover = SOUTH
        """The seat that is to move."""
        self.winner = NO_WINNER
        """The seat that has won, or -1."""
        self.truncated = False
        """Whether the game was cut short."""
        self._rules = ruleset.kernel_rules()
        self._plies = 0
        self._viewers = (np.array([SOUTH], np.int8), np.array([NORTH], np.int8))

    @property
    def over(self) -> bool:
        """Whether the game has ended, one way or the other."""
        return self.winner >= 0 or self.truncated

    @property
    def position(self) -> Position:
        """The position in plain Python."""
        return unpack(self.positions[0])

    def start(self, position: Position) -> None:
        """Begin a game at ``position``, its plies counted from 0.

        Raises:
            ValueError: the player to move has no legal move; the old game stays.
        """
        positions = np.zeros((1, WORDS), np.uint64)
        pack(position, positions[0])
        positions[0, PLY] = 0
        mask, winner = _look(self._rules, positions)
        if winner >= 0:
            raise ValueError("position: the game is over there, for the mover has no legal move")
        self.positions = positions
        self.masks = np.array([mask], np.uint64)
        self.mask, self.mover = int(mask), position.mover
        self.winner, self.truncated, self._plies = NO_WINNER, False, 0

    def start_by(
        self,
        first_player: int | None,
        options: dict[str, Any],
        rng: np.random.Generator,
    ) -> None:
        """Begin a game as an environment's arguments and its reset options want it.

        Args:
            first_player: the seat that begins, or None for the rule set's own rule.
            options: ``"first_player"`` overrides it for this game, ``"position"``, a position
                text, starts elsewhere; other keys are left alone.
            rng: draws the lot, where the rules want one.

        Raises:
            ValueError: an option is wrong; the old game stays.
        """
        text = options.get("position")
        wanted = options.get("first_player")
        if text is not None:
            if wanted is not None:
                raise ValueError(
                    "options: a position says itself who is to move; drop first_player"
                )
            self.start(parse_position(text, self.ruleset))
            return
        if wanted is not None:
            first_player = seat_number(wanted, "first_player")
        if first_player is None:
            first_player = draw_first_player(self.ruleset, rng)
        self.start(opening(self.ruleset, first_player))

    def is_legal(self, action: int) -> bool:
        """Whether ``action`` may be played now."""
        return 0 <= action < NUM_ACTIONS and bool(self.mask >> action & 1)

    def play(self, action: Any) -> None:
        """Play an action, an integer of whatever type.

        Raises:
            IllegalMoveError: it is illegal; the message names the legal ones, and nothing has
                changed.
            TypeError: it is no integer.
        """
        action = operator.index(action)
        if not self.is_legal(action):
            raise IllegalMoveError(self._why_illegal(action))
        self.mask, self.winner, self.mover = _advance(
            self._rules, self.positions, self.masks, action
        )
        self._plies += 1
        self.truncated = self._plies >= self.max_plies and self.winner < 0

    def forfeit(self) -> None:
        """End the game as a loss of the player to move."""
        self.winner = 1 - self.mover
        self.mask = 0
        self.masks[0] = 0

    def _why_illegal(self, action: int) -> str:
        name = f" ({action_to_move(action)})" if 0 <= action < NUM_ACTIONS else ""
        legal = [a for a in range(NUM_ACTIONS) if self.mask >> a & 1]
        named = ", ".join(f"{a} ({action_to_move(a)})" for a in legal)
        return f"action {action}{name} is illegal here; legal: {named or 'none, the game is over'}"

    def observation(self, seat: int) -> npt.NDArray[np.float32]:
        """What a seat sees, as a fresh float32[52]."""
        numbers = np.empty(OBSERVATION_SIZE, np.float32)
        observe(self.positions, numbers[None], self._viewers[seat])
        return numbers

    def action_mask(self, seat: int) -> npt.NDArray[np.int8]:
        """What a seat may play, as a fresh int8[64]: all zero if it is not to move."""
        if seat != self.mover:
            return np.zeros(NUM_ACTIONS, np.int8)
        mask = np.empty(NUM_ACTIONS, np.int8)
        unpack_masks(self.masks, mask[None])
        return mask

    def render(
        self, mode: str | None, metadata: dict[str, Any], window: Window
    ) -> str | npt.NDArray[np.uint8] | None:
        """The game as an environment's ``render()`` hands it out, with the result after the end.

        Args:
            mode: the environment's render mode. ``"ansi"``: the board in plain characters;
                ``"rgb_array"``: an image, uint8[406, 820, 3]; ``"human"``: None, after drawing it
                in ``window``; None: None, after a warning.
            metadata: the environment's, for its modes and frames a second.
            window: where ``"human"`` draws.

        Raises:
            DependencyNotInstalled: pygame is missing, and the mode needs it.
        """
        if mode is None:
            modes = ", ".join(metadata["render_modes"])
            logger.warn(f"render() without a render_mode: make the environment with one of {modes}")
            return None
        position = self.position
        if mode == "ansi":
            return picture(position, self.winner, self.truncated)
        shapes = drawing(position, status=result_line(position, self.winner, self.truncated))
        if mode == "rgb_array":
            return rgb_array(shapes)
        window.show(shapes, metadata["render_fps"])
        return None
