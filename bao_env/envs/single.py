"""Play the game as a Gymnasium environment: one game, against an opponent or in self-play."""

from __future__ import annotations

from typing import Any, SupportsIndex

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from bao_env.bots import Opponent, get_agent, opponent_actions
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import SOUTH, Seat
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.arguments import (
    Illegal,
    Infos,
    Options,
    check_illegal,
    check_max_plies,
    check_options,
    check_seat,
    check_seed,
    seat_or_none,
)
from bao_env.envs.openings import MAX_DRAWS, OpeningPlies
from bao_env.envs.single_game import SingleGame, SingleGameEnv
from bao_env.observation.observer import Observer, get_observer, masked_space
from bao_env.render.raster import Window, check_render_mode
from bao_env.self_play import OpponentPool

Observation = Any
"""A value of the environment's ``observation_space``."""


class BaoEnv(SingleGameEnv, gymnasium.Env[Any, Any]):
    """Play Bao la Kiswahili as one learner against an opponent, or in self-play.

    :mod:`bao_env.envs` describes actions, observations, rewards, the end of a game and the options
    of a reset, which are the same in all environments.

    >>> import bao_env
    >>> env = bao_env.BaoEnv("greedy")
    >>> observation, info = env.reset(seed=1)
    >>> over = False
    >>> while not over:
    ...     action = env.sample_legal_actions()  # your policy, of observation and its action_mask
    ...     observation, reward, terminated, truncated, info = env.step(action)
    ...     over = terminated or truncated
    >>> reward, info["plies"]
    (-1.0, 41)

    Args:
        opponent: the name of a player such as ``"greedy"`` or ``"alphabeta:2"``, an object with
            ``act(positions, legal)`` (:class:`bao_env.Agent`), or a function that does the same;
            None for self-play. ``reset(seed=...)`` seeds players given by name; others have
            their own randomness.
        ruleset: a :class:`bao_env.Ruleset` or its name.
        observation: a name of :data:`bao_env.observation.observer.OBSERVATIONS`, or an
            :class:`bao_env.Observer` that you write.
        dtype: ``np.float32``, or ``np.uint8`` for counts of seeds, which is faster. An observer
            that you write has its own dtype.
        flat: return the observation without the dict around it.
        opening_plies: random legal plies before the first observation of a game, a number or the
            lowest and the highest; they never end the game. None means 0 to 8 against an opponent,
            and none in self-play.
        first_player: who begins, ``"south"`` or ``"north"``; None for the rule set's own rule:
            South, or a random seat.
        seat: the learner's seat, ``"south"`` or ``"north"``; None draws it at each reset.
        max_plies: plies after which a game is cut short, at the learner's next turn; None means
            500.
        illegal: what an illegal action does: ``"lose"`` or ``"raise"``.
        render_mode: with ``"ansi"`` :meth:`render` returns the board in characters, with
            ``"rgb_array"`` as an image, uint8[406, 820, 3]; with ``"human"`` a window shows it
            after each reset and step, at most twice a second. The last two need pygame:
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
        opponent: Opponent | None = "random",
        *,
        ruleset: str | Ruleset = "zanzibar",
        observation: str | Observer = "board",
        dtype: npt.DTypeLike = np.float32,
        flat: bool = False,
        opening_plies: OpeningPlies | None = None,
        first_player: Seat | None = None,
        seat: Seat | None = None,
        max_plies: int | None = None,
        illegal: Illegal = "lose",
        render_mode: str | None = None,
    ) -> None:
        self.render_mode: str | None = check_render_mode(render_mode, self.metadata["render_modes"])
        self.ruleset: Ruleset = get_ruleset(ruleset)
        self.action_space: spaces.Discrete[np.int64] = spaces.Discrete(NUM_ACTIONS)
        self.observer: Observer = get_observer(observation, self.ruleset, dtype)
        """Writes the observations."""
        space = self.observer.space
        self.observation_space: spaces.Space[Any] = space if flat else masked_space(space)
        self._flat = flat
        self._illegal_policy = check_illegal(illegal)
        self._fixed_seat = check_seat(seat, opponent)
        self._first_player = seat_or_none(first_player, "first_player")
        self.opponent = opponent
        """The opponent as given: a name, an agent, a function or None."""
        self._agent = None if opponent is None else get_agent(opponent, self.ruleset)
        self._seeded = False
        self._seat = SOUTH
        self._game = SingleGame(
            self.ruleset,
            check_max_plies(max_plies),
            self.observer,
            opening_plies,
            against_an_opponent=opponent is not None,
        )
        self._window = Window()

    @property
    def seat(self) -> int:
        """The seat whose observation is returned, SOUTH (0) or NORTH (1): the learner's seat or, in
        self-play, the seat of the player to act."""
        return self._game.mover if self._agent is None else self._seat

    @property
    def _viewer(self) -> int:
        return self.seat

    def reset(
        self, *, seed: int | None = None, options: Options | None = None
    ) -> tuple[Observation, Infos]:
        """Start an episode. If the opponent moves first, its move has already been played.

        Raises:
            TypeError: ``options`` is not a dict.
            ValueError: an option is wrong, or the episode ends before the learner can act.
            gymnasium.error.Error: the seed is wrong.
        """
        options = check_options(options, "seat", "first_player", "position")
        check_seed(seed)
        game = self._game
        start = game.read_options(options, self._first_player)
        seat = check_seat(options.get("seat"), self.opponent)
        if seat is None:
            seat = self._fixed_seat
        with game.guard:
            super().reset(seed=seed)
            rng = self.np_random
            if seed is not None or not self._seeded:
                self._seeded = True
                self._seed_sampler(rng)
                if self.opponent is not None and getattr(self._agent, "seeded", True):
                    self._agent = get_agent(self.opponent, self.ruleset, int(rng.integers(2**63)))
            self._seat = int(rng.integers(2)) if seat is None else seat
            for _ in range(1 if isinstance(start, tuple) else MAX_DRAWS):
                game.start(start, rng)
                self._reply()
                if not game.over:
                    break
            else:
                raise ValueError(
                    "the episode is over before the learner's first action: the opponent has won"
                )
            if self.render_mode == "human":
                self.render()
            return self._observation_and_info()

    def step(self, action: SupportsIndex) -> tuple[Observation, float, bool, bool, Infos]:
        """Play an action and the opponent's answers.

        Raises:
            ResetNeeded: the episode is over or has not begun, or an exception interrupted the last
                step or reset.
            IllegalMoveError: the action is illegal, and ``illegal="raise"``, or it is not in 0..63;
                nothing has changed.
            TypeError: the action is not an integer; nothing has changed.
            RuntimeError: the opponent's answer is not a legal action; the episode needs a reset.
        """
        game = self._game
        game.guard.check()
        if game.over:
            raise ResetNeeded("the episode is over: call reset()")
        played = game.check_action(action, self._illegal_policy)
        with game.guard:
            actor = game.mover
            game.play(played)
            self._reply()
            game.cut()
            winner, reward = game.winner, 0.0
            if winner >= 0:
                reward = 1.0 if winner == actor else -1.0
            if self.render_mode == "human":
                self.render()
            observation, info = self._observation_and_info()
            if played is None:
                info["illegal"] = True
            return observation, reward, winner >= 0, game.truncated, info

    def _reply(self) -> None:
        """Play the opponent's plies, until the learner is to move or the game is over."""
        game, agent = self._game, self._agent
        while agent is not None and game.mover != self._seat and not game.over:
            [action] = opponent_actions(agent, game.positions, game.legal)
            game.play(int(action))

    def _observation_and_info(self) -> tuple[Observation, Infos]:
        """Return the observation and the infos of the game's current state."""
        game, seat = self._game, self.seat
        board, mask = game.observation(seat), game.action_mask(seat)
        info: Infos = {"action_mask": mask, "seat": seat}
        if game.over:
            info |= game.end_info()
            if isinstance(self._agent, OpponentPool):
                info["opponent"] = self._agent.playing.number
        return board if self._flat else {"observation": board, "action_mask": mask.copy()}, info
