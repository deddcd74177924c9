"""Play thousands of games per step as a Gymnasium vector environment, on the batch engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from bao_env.board import Board
from bao_env.bots import Opponent, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.argument_checks import MAX_COUNT, as_actions, as_integer
from bao_env.engine.layout import Seat
from bao_env.engine.masks import check_in_space, check_legal, illegal_games, unpack_masks
from bao_env.engine.position import (
    PLY,
    Actions,
    Flags,
    Legal,
    PackedPositions,
    Seats,
)
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.sampling import draw_actions, random_states
from bao_env.envs.afterstates import Afterstates, list_afterstates
from bao_env.envs.arguments import (
    Illegal,
    Infos,
    Options,
    check_autoreset_mode,
    check_illegal,
    check_max_plies,
    check_options,
    check_seat,
    check_seed,
    seat_or_none,
)
from bao_env.envs.batch_pictures import BatchPictures
from bao_env.envs.game_batch import GameBatch, GameIndices, ObservationBuffer
from bao_env.envs.guard import Guard
from bao_env.envs.openings import MAX_DRAWS, OpeningPlies, Openings, check_opening_plies
from bao_env.envs.single_game import warn_of_no_render_mode
from bao_env.observation.arrays import Arrays, take_rows
from bao_env.observation.observer import Observer, get_observer, masked_space
from bao_env.render.raster import check_render_mode
from bao_env.self_play import OpponentPool

Observation = Any
"""A value of the environment's ``observation_space``, with a row for each game."""


class BaoVectorEnv(VectorEnv[Observation, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many games of Bao la Kiswahili side by side, against an opponent or in self-play.

    It follows the contract of all environments (:mod:`bao_env.envs`). Arrays have one row per game:
    B actions and rewards, ``"observation"`` float32[B, 52], ``"action_mask"`` int8[B, 64] and
    ``infos["seat"]`` int8[B]. ``infos["action_mask"]`` is a copy of the mask. ``infos["winner"]``,
    ``infos["plies"]`` and ``infos["illegal"]`` are valid where ``infos["_winner"]`` and so on are
    True.

    **The next game** begins as ``autoreset_mode`` says, as in Gymnasium:

    * ``NEXT_STEP`` (default): in the next step, which ignores that game's action; reward 0. Until
      then the mask of a game that was won is all zero. A learner that sets illegal actions to
      -inf gets NaN there: use a large negative number and leave that step out, or use
      ``SAME_STEP``.
    * ``SAME_STEP``: in the same step. ``infos["final_obs"]`` (objects [B]) and
      ``infos["final_info"]`` hold the last observation and infos of the ended games, where
      ``infos["_final_obs"]`` is True. Gymnasium's wrappers that change observations do not support
      this mode. ``infos["seat"]`` and :attr:`seats` already belong to the next game, so count wins
      by ``reward > 0``.
    * ``DISABLED``: by ``reset(options={"reset_mask": bool[B]})``; a step before that is an error.

    **Reset options** apply to every game that the reset begins: all games, or those where
    ``"reset_mask"``, bool[B], is True.

    **In self-play** the sum of a game's rewards, which loggers call its return, adds up the rewards
    of both players. It says nothing about their strength; ``"winner"`` and ``"plies"`` tell who won
    and how soon. For algorithms that support only one learner, :class:`bao_env.OpponentPool` is an
    opponent made of past policies.

    One call of the opponent answers all games in which it is to move.

    >>> import bao_env
    >>> envs = bao_env.BaoVectorEnv(1024, "greedy", autoreset_mode="SameStep")
    >>> observations, infos = envs.reset(seed=1)
    >>> wins = games = 0
    >>> for _ in range(50):
    ...     actions = envs.sample_legal_actions()  # int64[1024]
    ...     observations, rewards, terminated, truncated, infos = envs.step(actions)
    ...     wins += (rewards > 0).sum()
    ...     games += (terminated | truncated).sum()
    >>> observations["observation"].shape, infos["action_mask"].shape
    ((1024, 52), (1024, 64))
    >>> bool(wins < games / 4)                # random moves seldom beat greedy
    True

    Args:
        num_envs: number of games, B.
        opponent, ruleset, observation, dtype, flat: see :class:`bao_env.BaoEnv`.
        opening_plies, first_player, seat, max_plies, illegal: see :class:`bao_env.BaoEnv`.
        autoreset_mode: an :class:`gymnasium.vector.AutoresetMode`, its name or its value.
        threads: number of threads that share the work; the games do not depend on it.
        render_mode: ``"ansi"`` or ``"rgb_array"``, as in :class:`bao_env.BaoEnv`.

    Raises:
        ValueError: an argument is wrong; the message says what was expected.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        num_envs = as_integer(num_envs, "num_envs", 1, MAX_COUNT)
        self.num_envs: int = num_envs
        self.max_plies: int = check_max_plies(max_plies)
        self.steps: npt.NDArray[np.int64] = np.zeros(num_envs, np.int64)
        """int64[B], the number of steps played in each game."""
        self.render_mode: str | None = check_render_mode(render_mode, self.metadata["render_modes"])
        self.autoreset_mode: AutoresetMode = check_autoreset_mode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_action_space: spaces.Discrete[np.int64] = spaces.Discrete(NUM_ACTIONS)
        self.ruleset: Ruleset = get_ruleset(ruleset)
        self.observer: Observer = get_observer(observation, self.ruleset, dtype)
        """Writes the observations."""
        space = self.observer.space
        self.single_observation_space: spaces.Space[Any] = space if flat else masked_space(space)
        self.action_space: spaces.Space[Any] = batch_space(self.single_action_space, num_envs)
        self.observation_space: spaces.Space[Any] = batch_space(
            self.single_observation_space, num_envs
        )

        self._batch = GameBatch(self.ruleset, num_envs, self.max_plies, threads, self.observer)
        self._pictures = None if render_mode is None else BatchPictures(self._batch, render_mode)
        self.opponent = opponent
        """The opponent as given: a name, an agent, a function or None."""
        if opponent is not None:
            self._batch.agent = get_agent(opponent, self.ruleset, threads=threads)
        plies = check_opening_plies(
            opening_plies, self.max_plies, against_an_opponent=opponent is not None
        )
        self._openings = Openings(self.ruleset, plies)
        self._illegal_policy = check_illegal(illegal)
        self._first_player = seat_or_none(first_player, "first_player")
        self._fixed_seat = check_seat(seat, opponent)
        self._flat = flat
        self._awaiting_reset = np.zeros(num_envs, np.bool_)
        """Ended games that wait for their reset (NEXT_STEP, DISABLED)."""
        self._sampler = np.zeros(num_envs, np.uint64)
        """Generator states of :meth:`sample_legal_actions`, uint64[B]."""
        self.guard: Guard = Guard()
        """Asks for a reset after an interruption."""
        self._seeded = False
        self._last_view = ObservationBuffer.empty(num_envs, self.observer)
        """The last observation. The caller has its observations and masks, and may have changed
        them; ``viewers`` and ``legal`` are private."""
        self._last_view.legal.fill(0)

    # --- the games as they stand ----------------------------------------------------------------

    @property
    def positions(self) -> PackedPositions:
        """The packed positions, uint64[B, 6], a copy: what bots act on."""
        return self._batch.state.positions.copy()

    @property
    def legal(self) -> Legal:
        """The legal actions that the last observation shows, uint64[B], a copy."""
        return self._last_view.legal.copy()

    @property
    def seats(self) -> Seats:
        """The learner's seats, int8[B], a copy; all -1 in self-play."""
        return self._batch.state.learner_seats.copy()

    def action_masks(self) -> Flags:
        """Return the legal actions that the last observation shows, a fresh bool[B, 64]."""
        masks = np.empty((self.num_envs, NUM_ACTIONS), np.bool_)
        unpack_masks(self._last_view.legal, masks)
        return masks

    def sample_legal_actions(self) -> Actions:
        """Draw uniformly random legal actions, int64[B], 0 where there is none.

        Each game has its own generator for these draws, which ``reset(seed=...)`` seeds.
        """
        actions = np.empty(self.num_envs, np.int64)
        draw_actions(self._last_view.legal, self._sampler, actions)
        return actions

    def board(self, game: int) -> Board:
        """Return a game's current position as a :class:`bao_env.Board`, without earlier moves.

        Raises:
            ResetNeeded: no game has begun.
        """
        self.guard.check_begun()
        batch = self._batch
        return Board.from_packed(batch.state.positions[game], self.ruleset, batch.outcome(game))

    def afterstates(self) -> Afterstates:
        """Return the position after each legal action, seen by the player who moves next.

        This is for methods that learn the value of positions. The value of an action is its entry
        in ``results`` if that is not 0, else its entry in ``signs`` times the value of its
        observation.
        """
        batch = self._batch
        return list_afterstates(
            batch.engine, self.observer, batch.state.positions, self._last_view.legal
        )

    def render(self) -> tuple[Any, ...] | None:
        """Return the boards as strings or images, one per game; None without a render mode.

        Pictures mark the hole of the last action.

        Raises:
            DependencyNotInstalled: pygame is missing, and the mode needs it.
            ResetNeeded: no game has begun.
        """
        if self._pictures is None:
            warn_of_no_render_mode(self.metadata)
            return None
        self.guard.check_begun()
        return tuple(map(self._pictures.draw, range(self.num_envs)))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method such as ``action_masks`` and return its result, an item for each game.

        Code that is written for Gymnasium's own vector environments uses this.
        """
        results = getattr(self, name)(*args, **kwargs)
        return (None,) * self.num_envs if results is None else tuple(results)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute, which all games share, once for each game; see :meth:`call`."""
        return (getattr(self, name),) * self.num_envs

    # --- reset and step -------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | None = None,
        options: Options | None = None,
    ) -> tuple[Observation, Infos]:
        """Begin new games: all of them, or those of ``options["reset_mask"]``.

        ``seed`` seeds the learner's seats, who begins, the opening plies, the random bot and
        :meth:`sample_legal_actions`.

        Raises:
            ResetNeeded: the first reset, or the first after an interruption, would begin only some
                games.
            TypeError: ``options`` is not a dict, or the mask is not a bool array.
            ValueError: an option is wrong, or a game ends before the learner can act.
            gymnasium.error.Error: the seed is wrong.
        """
        options = check_options(options, "seat", "first_player", "position", "reset_mask")
        check_seed(seed)
        games = self._masked_games(options.get("reset_mask"))
        seat = check_seat(options.get("seat"), self.opponent)
        first_player = seat_or_none(options.get("first_player"), "first_player")
        start = self._read_positions(options.get("position"), games)
        with self.guard:
            super().reset(seed=seed)
            if seed is not None or not self._seeded:
                self._seed_players()
            self._begin(games, seat, first_player, start)
            self._awaiting_reset[games] = False
            buffer = ObservationBuffer.empty(self.num_envs, self.observer)
            self._batch.observe_again(games, self._last_view, buffer)
            self._last_view = buffer
            return self._observation_and_infos({})

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[
        Observation,
        npt.NDArray[np.float64],
        Flags,
        Flags,
        Infos,
    ]:
        """Play one action in every game.

        Raises:
            ResetNeeded: reset() was never called; an exception interrupted the last step or reset;
                or a game is over and was not reset (DISABLED).
            IllegalMoveError: an action is illegal, and ``illegal="raise"``, or it is not in 0..63;
                nothing has changed. In a game that is over, any integer is accepted.
            TypeError, ValueError: ``actions`` are not B integers; nothing has changed.
            RuntimeError: the opponent's answer is not legal; the games need a reset.
        """
        self.guard.check()
        waiting = self._awaiting_reset.nonzero()[0]
        if len(waiting) and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"games {waiting[:16].tolist()} are over: "
                "restart them with reset(options={'reset_mask': ...})"
            )
        batch = self._batch
        actions = as_actions(actions, self.num_envs, "actions")
        losing = illegal_games(actions, batch.state.legal)
        if len(losing):
            check = check_legal if self._illegal_policy == "raise" else check_in_space
            check(actions, batch.state.legal)
        with self.guard:
            return self._step(actions, losing, waiting)

    def _step(
        self, actions: Actions, losing: GameIndices, waiting: GameIndices
    ) -> tuple[Observation, npt.NDArray[np.float64], Flags, Flags, Infos]:
        """Play one step of every game, with actions that have been checked.

        Args:
            actions: int64[B].
            losing: indices of the games that are lost by an illegal action.
            waiting: indices of the games that ended in the previous step and restart in this one
                (NEXT_STEP).
        """
        batch, buffer = self._batch, ObservationBuffer.empty(self.num_envs, self.observer)
        infos: Infos = {}
        if len(losing):
            batch.forfeit(losing)
            flags = np.zeros(self.num_envs, np.bool_)
            flags[losing] = True
            infos |= _where(flags, illegal=flags)
        result = batch.step(actions, self._last_view.viewers, buffer)
        self.steps += 1
        if len(waiting):
            for array in result:
                array[waiting] = 0
        ended = result.terminated | result.truncated
        games = ended.nonzero()[0]
        if len(games):
            plies = (batch.state.positions[:, PLY] * ended).astype(np.int64)
            infos |= _where(ended, winner=batch.state.winners * ended, plies=plies)
            if isinstance(batch.agent, OpponentPool):
                infos |= _where(ended, opponent=batch.agent.playing.number * ended)
        self._last_view = buffer
        if self.autoreset_mode is AutoresetMode.SAME_STEP:  # ended games restart now
            if len(games):
                infos = self._final_infos(games, ended, infos)
                self._restart(games)
        else:  # in the next step (NEXT_STEP) or by reset() (DISABLED)
            if len(waiting):
                self._restart(waiting)
            self._awaiting_reset = ended
        observation, infos = self._observation_and_infos(infos)
        return observation, *result, infos

    # --- the beginning of games -----------------------------------------------------------------

    def _restart(self, games: GameIndices) -> None:
        """Restart some games, and observe them."""
        self._begin(games)
        self._batch.observe_some(games, self._last_view)

    def _masked_games(self, mask: Any) -> GameIndices:
        """Return the games that a reset begins: those of its ``reset_mask``, or all for None."""
        if mask is None:
            return np.arange(self.num_envs)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask']: expected a bool array, not {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"options['reset_mask']: expected bool[{self.num_envs}] with at least one "
                f"True, not bool{list(mask.shape)} with {mask.sum()} True"
            )
        if not self.guard.ready and not mask.all():
            raise ResetNeeded(
                "reset_mask must be True for all games at the first reset and after an interruption"
            )
        return np.flatnonzero(mask)

    def _read_positions(
        self, position: Any, games: GameIndices
    ) -> tuple[PackedPositions, Legal] | None:
        """Return the positions at which n games begin, from the reset option ``"position"``.

        Args:
            position: the option: one position text for all games, B of them, or None.
            games: int64[n].

        Returns:
            positions, uint64[n, 6], and their legal actions, uint64[n]; None without the option.
        """
        if position is None:
            return None
        several = isinstance(position, (list, tuple, np.ndarray))
        texts = list(position) if several else [position] * self.num_envs
        if len(texts) != self.num_envs:
            raise ValueError(
                f"options['position']: expected one text, or a list of {self.num_envs} texts, not "
                f"of {len(texts)}"
            )
        return self._openings.from_texts([texts[game] for game in games])

    def _begin(
        self,
        games: GameIndices,
        seat: int | None = None,
        first_player: int | None = None,
        start: tuple[PackedPositions, Legal] | None = None,
    ) -> None:
        """Begin games, and draw what the arguments leave open.

        Args:
            games: int64[n].
            seat: the learner's seat; None means the environment's argument, or else a random seat
                for each game.
            first_player: the seat that begins; None means the environment's argument, or else the
                rule set's own rule.
            start: positions, uint64[n, 6], and their legal actions, uint64[n]; None draws openings.

        Raises:
            ValueError: in some game, the opponent wins before the learner can act, from ``start``
                or from every opening drawn.
        """
        self.steps[games] = 0
        if self.opponent is not None:
            seats: Any = self._fixed_seat if seat is None else seat
            if seats is None:
                seats = self.np_random.integers(2, size=len(games), dtype=np.int8)
            self._batch.state.learner_seats[games] = seats
        if first_player is None:
            first_player = self._first_player
        for _ in range(MAX_DRAWS if start is None else 1):
            drawn = start or self._openings.draw(len(games), self.np_random, first_player)
            if self._pictures is not None:
                self._pictures.begin(games)
            over = self._batch.begin(games, *drawn)
            if not over.any():
                return
            games = games[over]
        raise ValueError(
            f"game {games[0]} is over before the learner's first action: the opponent has won"
        )

    def _seed_players(self) -> None:
        """Seed :meth:`sample_legal_actions` and the opponent."""
        sequences = np.random.SeedSequence(int(self.np_random.integers(2**63))).spawn(2)
        self._sampler = random_states(self.num_envs, sequences[0])
        if self.opponent is not None and getattr(self._batch.agent, "seeded", True):
            seed = int(sequences[1].generate_state(1, np.uint64)[0])
            threads = self._batch.engine.threads
            self._batch.agent = get_agent(self.opponent, self.ruleset, seed, threads)
        self._seeded = True

    # --- what a step returns --------------------------------------------------------------------

    def _value(self, arrays: Arrays, action_masks: npt.NDArray[np.int8]) -> Observation:
        """Return observations in the structure of the observation space."""
        return arrays if self._flat else {"observation": arrays, "action_mask": action_masks}

    def _observation_and_infos(self, infos: Infos) -> tuple[Observation, Infos]:
        """Return the observation, and ``infos`` with the masks and seats that go with it."""
        view = self._last_view
        everywhere = np.ones(self.num_envs, np.bool_)
        view_infos = {"action_mask": view.action_masks.copy(), "seat": view.viewers.copy()}
        return self._value(view.arrays, view.action_masks), infos | _where(everywhere, **view_infos)

    def _final_infos(self, games: GameIndices, ended: Flags, infos: Infos) -> Infos:
        """Return the infos ``final_obs`` and ``final_info`` of ended games (SAME_STEP).

        ``final_info`` contains ``infos``, and the last action masks and seats.
        """
        view = self._last_view
        final_obs = np.empty(self.num_envs, object)  # filled with None
        arrays, masks = take_rows(view.arrays, games), view.action_masks[games]
        for row, game in enumerate(games.tolist()):
            final_obs[game] = self._value(take_rows(arrays, row), masks[row])
        action_masks = np.zeros((self.num_envs, NUM_ACTIONS), np.int8)
        action_masks[games] = masks
        view_infos = _where(ended, action_mask=action_masks, seat=view.viewers * ended)
        return _where(ended, final_obs=final_obs, final_info=infos | view_infos)


def _where(games: Flags, **infos: Any) -> Infos:
    """Return infos and, for each key, a mask ``_key``, bool[B]: True for games with this info."""
    return infos | {f"_{key}": games.copy() for key in infos}


def make_vec(num_envs: int = 1, **arguments: Any) -> BaoVectorEnv:
    """Make the environment for ``gymnasium.make_vec``.

    Args:
        num_envs: number of games.
        arguments: other arguments of :class:`BaoVectorEnv`.

    Raises:
        ValueError: an argument is wrong, or is Gymnasium's own ``max_episode_steps``.
    """
    if "max_episode_steps" in arguments:
        raise ValueError(
            "max_episode_steps would limit only the learner's steps: give max_plies, which limits "
            "the plies of both players"
        )
    return BaoVectorEnv(num_envs, **arguments)
