"""The game as a Gymnasium environment: one learner against an opponent that plays by itself."""

from __future__ import annotations

from typing import Any, SupportsIndex

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from bao_env.bots import Opponent, answer_of, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.position import Flags
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.arguments import (
    MAX_PLIES,
    Infos,
    Options,
    check_illegal,
    check_options,
    check_render_mode,
    seat_or_none,
)
from bao_env.envs.openings import MAX_DRAWS, OpeningPlies
from bao_env.envs.single_game import SingleGame, SingleGameEnv
from bao_env.observation.observer import Observer, get_observer, masked_space
from bao_env.render.raster import Window

Observation = Any
"""A value of the environment's ``observation_space``."""


class BaoEnv(SingleGameEnv, gymnasium.Env[Any, Any]):
    """Bao la Kiswahili for one learner; each step is the learner's ply and the opponent's answers.

    **Actions.** ``Discrete(64)``, ``pit * 4 + direction * 2 + house``: pits 0..7 are the learner's
    front row, 8..15 the back row, both from the learner's left; direction 0 = left, 1 = right;
    house 1 = play the house. The mask says which of them are legal.

    **Observation.** A dict of fresh arrays, the board from the learner's own side:

    * ``"observation"``: float32[52] from 0 to 8, in units of eight seeds
      (:mod:`bao_env.observation.board`). ``observation=`` chooses another kind
      (:mod:`bao_env.observation.observer`).
    * ``"action_mask"``: int8[64], 1 = legal; all zero if the learner is not to move, which happens
      only at the end.

    With ``flat=True``, observations are the plain array, without the mask. The mask is also in
    ``info["action_mask"]``, and :meth:`action_masks` returns it as bool[64]; ``info["player"]`` is
    the learner's seat, 0 = South, 1 = North. At the end ``info["winner"]`` is the seat that won, -1
    if the game was cut short, and ``info["plies"]`` the length of the game.

    **Openings.** A game opens with up to eight random plies of both players (``opening_plies``).
    Most bots are deterministic: from one opening, a learner could beat them by memorising one line
    of play.

    **Turns.** In rule set ``dutch`` a capture may wait for its side. Then the learner acts again,
    and the opponent has not moved between the two steps.

    **Rewards.** +1 when the learner wins, -1 when they lose, else 0.

    **End.** Terminated when the game is won: a front row is empty, or the player to move has no
    legal move. Truncated after 500 plies (``max_plies``, both players' plies together).

    **Illegal actions** lose: -1, terminated, ``info["illegal"]`` is True. Gymnasium's checkers play
    actions without the mask, so this is the default here. With ``illegal="raise"``, the default of
    the other environments, they raise :class:`bao_env.IllegalMoveError` and change nothing.

    **Reset options.** ``{"seat": "north"}``, ``{"first_player": "north"}`` and
    ``{"position": text}`` (a position text, :mod:`bao_env.notation`) hold for that episode only.

    **Version history.** v0: first version.

    Args:
        opponent: ``"random"``, ``"greedy"`` or any other player by name, such as
            ``"alphabeta:2"``; an object with ``act(positions, legal)`` (:class:`bao_env.Agent`), or
            a function that does the same. ``reset(seed=...)`` seeds named players; others have
            their own randomness.
        ruleset: a :class:`bao_env.Ruleset` or its name.
        observation: ``"board"``, ``"captures"``, ``"replies"``, ``"planes"``,
            ``"planes+replies"``, or an :class:`bao_env.Observer` of your own.
        dtype: ``np.float32`` or ``np.uint8``, for observations by name.
        flat: return the observation without the dict around it.
        opening_plies: random legal plies before the first observation of a game: a number, or the
            lowest and the highest, by default (0, 8). They never end the game.
        first_player: ``"south"``, ``"north"``, or None for the rule set's own rule: South, or
            by lot.
        seat: the learner's, ``"south"`` or ``"north"``; None draws it at each reset.
        max_plies: plies after which a game is cut short.
        illegal: what an illegal action does, ``"lose"`` or ``"raise"``.
        render_mode: with ``"ansi"`` :meth:`render` returns the board as text, with ``"rgb_array"``
            as an image, uint8[406, 820, 3]; with ``"human"`` a window shows it after each reset and
            step, at most two a second (``metadata["render_fps"]``). The last two need pygame:
            ``pip install 'bao_env[render]'``.

    Raises:
        ValueError: an argument is wrong; the message says what was expected.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": ["human", "ansi", "rgb_array"],
        "render_fps": 2,
    }

    def __init__(
        self,
        opponent: Opponent = "random",
        *,
        ruleset: str | Ruleset = "zanzibar",
        observation: str | Observer = "board",
        dtype: npt.DTypeLike = np.float32,
        flat: bool = False,
        opening_plies: OpeningPlies | None = None,
        first_player: str | int | None = None,
        seat: str | int | None = None,
        max_plies: int = MAX_PLIES,
        illegal: str = "lose",
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata)
        self.ruleset = get_ruleset(ruleset)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.observer = get_observer(observation, self.ruleset, dtype)
        """Writes the observations."""
        space = self.observer.space
        self.observation_space = space if flat else masked_space(space)
        self._flat = flat
        self._illegal = check_illegal(illegal)
        self._fixed_seat = seat_or_none(seat, "seat")
        self._first_player = seat_or_none(first_player, "first_player")
        self.opponent = opponent
        """The argument."""
        self._agent = get_agent(opponent, self.ruleset)
        self._seeded = False
        self._seat = 0
        self._game = SingleGame(
            self.ruleset, max_plies, self.observer, opening_plies, against_an_opponent=True
        )
        self._window = Window("Bao")

    @property
    def seat(self) -> int:
        """The learner's seat in this episode, SOUTH (0) or NORTH (1)."""
        return self._seat

    def action_masks(self) -> Flags:
        """Return the learner's legal actions, a fresh bool[64]; MaskablePPO calls this."""
        return self._game.action_mask(self._seat).view(np.bool_)

    def reset(
        self, *, seed: int | None = None, options: Options | None = None
    ) -> tuple[Observation, Infos]:
        """Start an episode; if the opponent begins, they have already moved.

        Raises:
            TypeError: ``options`` is not a dict.
            ValueError: an option is wrong, or the episode ends before the learner can act.
        """
        options = check_options(options, "seat", "first_player", "position")
        game = self._game
        start = game.read_options(options, self._first_player)
        seat = seat_or_none(options.get("seat"), "seat")
        if seat is None:
            seat = self._fixed_seat
        with game.guard:
            super().reset(seed=seed)
            rng = self.np_random
            if seed is not None or not self._seeded:
                self._seeded = True
                self._agent = get_agent(self.opponent, self.ruleset, int(rng.integers(2**63)))
            self._seat = int(rng.integers(2)) if seat is None else seat
            for _ in range(1 if isinstance(start, tuple) else MAX_DRAWS):
                game.start(start, rng)
                self._reply()
                if not game.over:
                    break
            else:
                raise ValueError(
                    "the episode is over before the learner's first action: the opponent has won, "
                    f"or max_plies={game.max_plies} is too small"
                )
            if self.render_mode == "human":
                self.render()
            return self._observation(), self._info()

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, Infos]:
        """Play the learner's action and the opponent's answer.

        Raises:
            ResetNeeded: the episode is over or has not begun, or an exception interrupted the last
                step.
            IllegalMoveError: the action is illegal, and ``illegal="raise"``; nothing has changed.
            TypeError: the action is not an integer; nothing has changed.
            RuntimeError: the opponent's answer is not a legal action; the episode needs a reset.
        """
        game = self._game
        game.guard.check()
        if game.over:
            raise ResetNeeded("the episode is over: call reset()")
        legal = game.read(action, self._illegal)
        with game.guard:
            game.play(legal)
            self._reply()
            reward = 0.0
            if game.winner >= 0:
                reward = 1.0 if game.winner == self._seat else -1.0
            if self.render_mode == "human":
                self.render()
            info = self._info() if legal is not None else self._info() | {"illegal": True}
            return self._observation(), reward, game.winner >= 0, game.truncated, info

    def _reply(self) -> None:
        """Play the opponent's plies, until the learner is to move or the game is over."""
        game = self._game
        while game.mover != self._seat and not game.over:
            [action] = answer_of(self._agent, game.positions, game.legal)
            game.play(int(action))

    def _observation(self) -> Observation:
        board = self._game.observation(self._seat)
        if self._flat:
            return board
        return {"observation": board, "action_mask": self._game.action_mask(self._seat)}

    def _info(self) -> Infos:
        game = self._game
        info = {"action_mask": game.action_mask(self._seat), "player": self._seat}
        return info | {"winner": game.winner, "plies": game.plies} if game.over else info
