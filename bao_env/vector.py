"""The game as a Gymnasium vector environment: thousands of games a step, on the batch engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from bao_env.bots import Agent, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import NO_WINNER, Engine, random_actions, random_states, unpack_masks
from bao_env.engine.bits import ONE, ZERO, U
from bao_env.engine.compile import jit
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import META, PLY, WORDS, pack, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.episode import (
    MAX_PLIES,
    check_max_plies,
    check_render_mode,
    masked_space,
    seat_number,
    seat_or_none,
)
from bao_env.notation import parse_position
from bao_env.observation import OBSERVATION_SIZE, observe
from bao_env.render import ascii_board

Observation = dict[str, npt.NDArray[Any]]
Games = npt.NDArray[np.int64]
"""Indices of some of the games."""

_18: Final = U(18)


@jit
def _settle(positions, winners, players, max_plies, rewards, terminated, truncated):
    """Rewards for ``players``, and which games have ended."""
    for i in range(winners.shape[0]):
        won = winners[i] >= 0
        rewards[i] = 0.0
        if won:
            rewards[i] = 1.0 if winners[i] == players[i] else -1.0
        terminated[i] = won
        truncated[i] = not won and positions[i, PLY] >= max_plies


@jit
def _awaited(positions, winners, seats, max_plies, games):
    """Write the games that go on where another seat than ``seats`` is to move; their number."""
    count = 0
    for i in range(winners.shape[0]):
        mover = (positions[i, META] >> _18) & ONE
        if winners[i] < 0 and mover != U(seats[i]) and positions[i, PLY] < max_plies:
            games[count] = i
            count += 1
    return count


@jit
def _viewpoints(positions, masks, seats, players, legal):
    """Whose view is shown and what he may play: the mover's, or, where ``seats`` is 0 or 1, his."""
    for i in range(masks.shape[0]):
        mover = np.int8((positions[i, META] >> _18) & ONE)
        players[i] = mover
        legal[i] = masks[i]
        if seats[i] >= 0:
            players[i] = seats[i]
            if seats[i] != mover:
                legal[i] = ZERO


class _View(NamedTuple):
    """What a step shows of some games."""

    boards: npt.NDArray[Any]
    """Observations, float32 or uint8 [B, 52]."""
    masks: npt.NDArray[np.int8]
    """Legal actions, int8[B, 64]."""
    players: npt.NDArray[np.int8]
    """Whose view it is, int8[B]."""
    legal: npt.NDArray[np.uint64]
    """Legal actions as bits, uint64[B]."""

    def fill(
        self,
        positions: npt.NDArray[np.uint64],
        masks: npt.NDArray[np.uint64],
        seats: npt.NDArray[np.int8],
    ) -> None:
        """Write all four from the engine's arrays; ``seats`` -1 stands for the mover."""
        _viewpoints(positions, masks, seats, self.players, self.legal)
        observe(positions, self.boards, self.players)
        unpack_masks(self.legal, self.masks)


@jit
def _take_rows(view, games, rows):
    """Copy the rows ``games`` of a view into ``rows``, a view of those games alone."""
    for i in range(games.shape[0]):
        g = games[i]
        for k in range(view.boards.shape[1]):
            rows.boards[i, k] = view.boards[g, k]
        for k in range(view.masks.shape[1]):
            rows.masks[i, k] = view.masks[g, k]
        rows.players[i] = view.players[g]
        rows.legal[i] = view.legal[g]


@jit
def _put_rows(rows, games, view):
    """Copy ``rows`` into the rows ``games`` of a view of all games."""
    for i in range(games.shape[0]):
        g = games[i]
        for k in range(view.boards.shape[1]):
            view.boards[g, k] = rows.boards[i, k]
        for k in range(view.masks.shape[1]):
            view.masks[g, k] = rows.masks[i, k]
        view.players[g] = rows.players[i]
        view.legal[g] = rows.legal[i]


class _FollowedEngine(Engine):
    """An engine whose threads, each on its part of the batch, go on with other work."""

    _then: Callable[[slice], None] | None = None

    def step_then(
        self,
        positions: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        masks: npt.NDArray[np.uint64],
        winners: npt.NDArray[np.int8],
        then: Callable[[slice], None],
    ) -> None:
        """:meth:`step`, then ``then(part)``: one start of the threads serves both."""
        self._then = then
        try:
            self.step(positions, actions, masks, winners)
        finally:
            self._then = None

    def share(self, size: int, work: Callable[[slice], None]) -> None:
        """Run ``work(part)`` over a batch, each thread on a part of it."""
        super()._share(size, lambda part, thread: work(part))

    def _share(self, size: int, work: Callable[[slice, int], None]) -> None:
        then = self._then
        if then is None:
            super()._share(size, work)
            return

        def both(part: slice, thread: int) -> None:
            work(part, thread)
            then(part)

        super()._share(size, both)


class BaoVectorEnv(VectorEnv[Observation, npt.NDArray[Any], npt.NDArray[Any]]):
    """Many games of Bao la Kiswahili side by side, in self-play or against an opponent.

    **Actions.** One a game, integers [B], coded as in :class:`bao_env.BaoEnv`. All of
    ``Discrete(64)``, but only those that the masks allow: :meth:`sample_legal_actions` draws some.

    **Observation.** A dict, always of the player who is to act next, from his own side:

    * ``"observation"``: float32[B, 52] from 0 to 8, or, with
      ``observation_dtype=np.uint8``, uint8[B, 52] from 0 to 64 (faster);
      :mod:`bao_env.observation` lists the numbers.
    * ``"action_mask"``: int8[B, 64], 1 = legal. It is ``infos["action_mask"]`` too (the same
      array), and :meth:`action_masks` gives it as bool.

    ``infos["player"]``, int8[B], is the seat of that player, 0 = South, 1 = North.

    **Self-play** (``opponent=None``). Each action is for whoever is to move, and the reward is for
    the player who *has just acted*. The observation that comes with it is the *next* mover's. That
    is mostly his opponent, so a value bootstrapped from it changes its sign,
    ``target = reward - discount * value(observation)``; but in rule set ``dutch`` the same player
    may act again, and then it does not: compare ``infos["player"]`` before and after the step.

    **Against an opponent.** Each step is the learner's ply and all that the opponent answers, as
    in :class:`bao_env.BaoEnv`; rewards and observations are the learner's. His seat is drawn
    for each game unless given.

    **Rewards.** float64[B]: +1 for a win and -1 for a loss, on the last ply, else 0.

    **End.** Terminated when the game is won; truncated after 500 plies (``max_plies``, both
    players' plies together) with reward 0. How the next game begins, ``autoreset_mode`` says, as in
    Gymnasium:

    * ``SAME_STEP`` (default): in the same step. ``infos["final_obs"]`` (objects [B]) and
      ``infos["final_info"]`` hold the end, where ``infos["_final_obs"]`` is True.
    * ``NEXT_STEP``: in the next step, which ignores that game's action; reward 0.
    * ``DISABLED``: by ``reset(options={"reset_mask": bool[B]})``; a step before that is an error.

    **Illegal actions** raise a ValueError that names the game and its legal actions; nothing has
    changed then.

    **Reset options.** ``"seat"``, ``"first_player"`` and ``"position"`` as in
    :class:`bao_env.BaoEnv`, one for all games or a sequence of B; they hold for the games that this
    reset begins. ``"reset_mask"``, bool[B], resets only some games. Other keys are ignored.

    **Version history.** v0: first version.

    Args:
        num_envs: number of games, B.
        ruleset: a :class:`bao_env.Ruleset` or the name of one.
        opponent: None, ``"random"``, ``"greedy"``, or an object with ``act(positions, masks)``
            (:class:`bao_env.bots.Agent`); it is asked for all games that wait for it at once.
        max_plies: plies after which a game is cut short.
        threads: how many threads share the work; the games do not depend on it.
        autoreset_mode: an :class:`gymnasium.vector.AutoresetMode` or its value.
        copy: hand out fresh arrays. False reuses two sets of observation arrays in turn: what a
            step returns is overwritten by the second step or reset after it.
        observation_dtype: ``np.float32`` or ``np.uint8``.
        first_player: ``"south"``, ``"north"``, or None for the rule set's own rule: South, or by
            lot.
        seat: the learner's, ``"south"`` or ``"north"``; None draws it for each game.
        render_mode: None or ``"ansi"``: :meth:`render` returns the boards as text.
        max_episode_steps: ignored; ``gymnasium.make_vec`` may pass it on. Use ``max_plies``.

    Raises:
        ValueError: an argument is wrong; the message says what was expected.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": ["ansi"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        ruleset: str | Ruleset = "zanzibar",
        opponent: str | Agent | None = None,
        max_plies: int = MAX_PLIES,
        threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        observation_dtype: npt.DTypeLike = np.float32,
        first_player: str | int | None = None,
        seat: str | int | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        super().__init__()
        if num_envs < 1:
            raise ValueError(f"num_envs={num_envs}: expected at least 1")
        if seat is not None and opponent is None:
            raise ValueError("seat: there is a learner's seat only against an opponent")
        self.num_envs = num_envs
        self.max_plies = check_max_plies(max_plies)
        self.render_mode = check_render_mode(render_mode, self.metadata)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.copy = copy
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.single_observation_space = masked_space(observation_dtype)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._dtype = np.dtype(observation_dtype)

        self._engine = _FollowedEngine(ruleset, threads)
        self.ruleset = self._engine.ruleset
        openings = [self._engine.opening(seat) for seat in (SOUTH, NORTH)]
        self._openings = np.array([words for words, _ in openings])
        self._opening_masks = np.array([mask for _, mask in openings])
        self._first_player = seat_or_none(first_player, "first_player")
        self._fixed_seat = seat_or_none(seat, "seat")
        self._opponent = opponent
        self._agent = None if opponent is None else get_agent(opponent, self.ruleset)

        self._positions = np.zeros((num_envs, WORDS), np.uint64)
        self._masks = np.zeros(num_envs, np.uint64)
        self._winners = np.full(num_envs, NO_WINNER, np.int8)
        self._seats = np.full(num_envs, -1, np.int8)
        """The learner's; -1 in self-play."""
        self._over = np.zeros(num_envs, np.bool_)
        """Ended games that wait for their reset (NEXT_STEP, DISABLED)."""
        self._sampler = np.zeros(num_envs, np.uint64)
        self._started = False
        self._views: list[_View] = []
        self._view = self._arrays(num_envs)
        """What was shown last. Its boards and masks may be in other hands."""
        self._view.legal.fill(0)

    # --- what the games look like ---------------------------------------------------------------

    @property
    def positions(self) -> npt.NDArray[np.uint64]:
        """The packed positions, uint64[B, 6], a copy: what bots act on."""
        return self._positions.copy()

    @property
    def masks(self) -> npt.NDArray[np.uint64]:
        """The masks as last shown, uint64[B], a copy: bit a = action a."""
        return self._view.legal.copy()

    @property
    def seats(self) -> npt.NDArray[np.int8]:
        """The learner's seats, int8[B], a copy; of no meaning in self-play."""
        return self._seats.copy()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions, a fresh bool[B, 64]."""
        masks = np.empty((self.num_envs, NUM_ACTIONS), np.bool_)
        unpack_masks(self._view.legal, masks)
        return masks

    def sample_legal_actions(self) -> npt.NDArray[np.int64]:
        """Uniformly random legal actions, int64[B], 0 where a game is over.

        They come from generators of their own, one a game, which ``reset(seed=...)`` seeds.
        """
        actions = np.empty(self.num_envs, np.int64)
        random_actions(self._view.legal, self._sampler, actions)
        return actions

    def render(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The boards as texts, one a game; None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(ascii_board(unpack(words)) for words in self._positions)

    # --- reset and step -------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin new games: all of them, or those of ``options["reset_mask"]``.

        ``seed`` seeds the learner's seats, the lots, the random bot and
        :meth:`sample_legal_actions`.

        Raises:
            ValueError: an option is wrong, or a game ends before the learner can act.
        """
        super().reset(seed=seed)
        options = options or {}
        games = self._masked_games(options.get("reset_mask"))
        if seed is not None or not self._started:
            sequences = np.random.SeedSequence(int(self.np_random.integers(2**63))).spawn(2)
            self._sampler = random_states(self.num_envs, sequences[0])
            if self._opponent is not None:
                bot_seed = int(sequences[1].generate_state(1, np.uint64)[0])
                self._agent = get_agent(self._opponent, self.ruleset, bot_seed)
        self._begin(games, options)
        self._started = True
        self._view = view = self._next_view()
        self._engine.share(self.num_envs, lambda part: self._look(part, view))
        return self._shown({})

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[
        Observation,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Play one action in every game.

        Raises:
            ResetNeeded: nothing was reset yet, or (DISABLED) a game that is over was not.
            ValueError: an action is illegal, or ``actions`` are not B integers; nothing has
                changed then.
        """
        if not self._started:
            raise ResetNeeded("call reset() before step()")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise ValueError(
                f"actions: expected {self.num_envs} integers, not {chosen.dtype}{chosen.shape}"
            )
        acted, view = self._view.players, self._next_view()
        rewards = np.empty(self.num_envs, np.float64)
        terminated = np.empty(self.num_envs, np.bool_)
        truncated = np.empty(self.num_envs, np.bool_)

        def settle(part: slice) -> None:
            _settle(
                self._positions[part],
                self._winners[part],
                acted[part],
                self.max_plies,
                rewards[part],
                terminated[part],
                truncated[part],
            )
            self._look(part, view)

        waiting = np.flatnonzero(self._over)
        self._play(chosen.astype(np.int64), waiting, settle)
        over = terminated | truncated
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            ended = np.flatnonzero(over)
            if len(ended):
                infos = self._final(ended, over, view)
                self._begin(ended, {})
                self._look_again(ended, view)
        elif len(waiting):
            for ends in (rewards, terminated, truncated, over):
                ends[waiting] = 0
            self._over = over
            self._begin(waiting, {})
            self._look_again(waiting, view)
        else:
            self._over = over
        self._view = view
        observation, infos = self._shown(infos)
        return observation, rewards, terminated, truncated, infos

    def _play(
        self, actions: npt.NDArray[np.int64], waiting: Games, then: Callable[[slice], None]
    ) -> None:
        """Play the actions, except in the games that wait for their reset, and the answers."""
        if len(waiting) and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"games {waiting[:16].tolist()} are over: "
                "reset(options={'reset_mask': ...}) begins them anew"
            )
        arguments = self._positions, actions, self._masks, self._winners
        masks = self._masks[waiting]
        self._masks[waiting] = 0  # the engine leaves these games alone
        try:
            if self._agent is None:
                self._engine.step_then(*arguments, then)
                return
            self._engine.step(*arguments)
        except ValueError:
            self._masks[waiting] = masks
            raise
        self._reply()
        self._engine.share(self.num_envs, then)

    def _reply(self) -> None:
        """The opponent's plies, until in every game that goes on the learner is to move."""
        if self._agent is None:
            return
        indices = np.empty(self.num_envs, np.int64)
        while True:
            count = _awaited(self._positions, self._winners, self._seats, self.max_plies, indices)
            if not count:
                return
            games = indices[:count]
            positions, masks = self._positions[games], self._masks[games]
            winners = self._winners[games]
            actions = np.asarray(self._agent.act(positions.copy(), masks.copy()))
            try:
                self._engine.step(positions, actions.astype(np.int64), masks, winners)
            except ValueError as error:
                raise RuntimeError(f"the opponent's {error}") from error
            self._positions[games] = positions
            self._masks[games] = masks
            self._winners[games] = winners

    # --- the beginning of games -----------------------------------------------------------------

    def _masked_games(self, mask: Any) -> Games:
        """The games that a reset is to begin."""
        if mask is None:
            return np.arange(self.num_envs)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask']: expected a bool array, not {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"options['reset_mask']: expected bool[{self.num_envs}] with a True in it, "
                f"not {mask.sum()} True of {mask.shape}"
            )
        if not self._started and not mask.all():
            raise ResetNeeded("the first reset must reset all games")
        return np.flatnonzero(mask)

    def _begin(self, games: Games, options: dict[str, Any]) -> None:
        """Begin ``games`` anew, the opponent's first plies included."""
        size = len(games)
        texts = self._each(options, "position", str)
        firsts = self._each(options, "first_player", lambda s: seat_number(s, "first_player"))
        seats = self._each(options, "seat", lambda s: seat_number(s, "seat"))
        if texts is not None and firsts is not None:
            raise ValueError("options: a position says itself who is to move; drop first_player")
        if seats is not None and self._agent is None:
            raise ValueError("options['seat']: there is a learner's seat only against an opponent")

        if seats is not None:
            self._seats[games] = np.array(seats, np.int8)[games]
        elif self._fixed_seat is not None:
            self._seats[games] = self._fixed_seat
        elif self._agent is not None:
            self._seats[games] = self.np_random.integers(2, size=size)
        if texts is not None:
            positions, masks = self._parsed([texts[game] for game in games])
        else:
            if firsts is not None:
                starts = np.array(firsts)[games]
            elif self._first_player is not None:
                starts = np.full(size, self._first_player)
            elif self.ruleset.first_player == "lot":
                starts = self.np_random.integers(2, size=size)
            else:
                starts = np.full(size, SOUTH)
            positions, masks = self._openings[starts], self._opening_masks[starts]
        self._positions[games] = positions
        self._masks[games] = masks
        self._winners[games] = NO_WINNER
        self._over[games] = False
        self._reply()
        if self._agent is not None:
            ended = (self._winners[games] >= 0) | (self._positions[games, PLY] >= self.max_plies)
            if ended.any():
                raise ValueError(
                    f"game {games[ended.argmax()]} is over before the learner's first action: the "
                    f"opponent has won, or max_plies={self.max_plies} is too small"
                )

    def _each(self, options: dict[str, Any], key: str, read: Callable[[Any], Any]) -> Any:
        """B values of an option that is one for all or a sequence of B; None without it."""
        value = options.get(key)
        if value is None:
            return None
        if isinstance(value, (str, int, np.integer)):
            return [read(value)] * self.num_envs
        if len(value) != self.num_envs:
            raise ValueError(
                f"options[{key!r}]: expected one value or {self.num_envs}, not {len(value)}"
            )
        return [read(item) for item in value]

    def _parsed(self, texts: list[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The positions of position texts, and their masks."""
        positions = np.zeros((len(texts), WORDS), np.uint64)
        for text, words in zip(texts, positions, strict=True):
            pack(parse_position(text, self.ruleset), words)
        masks = np.zeros(len(texts), np.uint64)
        winners = np.empty(len(texts), np.int8)
        self._engine.legal_masks(positions, masks, winners)
        if (winners >= 0).any():
            text = texts[int(winners.argmax())]
            raise ValueError(f"position: the game is over, the mover has no legal move: {text}")
        return positions, masks

    # --- what a step returns --------------------------------------------------------------------

    def _arrays(self, size: int) -> _View:
        """A fresh view for ``size`` games."""
        return _View(
            np.empty((size, OBSERVATION_SIZE), self._dtype),
            np.empty((size, NUM_ACTIONS), np.int8),
            np.empty(size, np.int8),
            np.empty(size, np.uint64),
        )

    def _next_view(self) -> _View:
        """A view of all games to write to; without ``copy``, the older of two sets of arrays."""
        if self.copy:
            return self._arrays(self.num_envs)
        if len(self._views) < 2:
            self._views.append(self._arrays(self.num_envs))
            return self._views[-1]
        return self._views[self._view is self._views[0]]

    def _look(self, part: slice, view: _View) -> None:
        """Write what a run of games shows into its rows of a view."""
        rows = _View(*(array[part] for array in view))
        rows.fill(self._positions[part], self._masks[part], self._seats[part])

    def _look_again(self, games: Games, view: _View) -> None:
        """Write what some games show into their rows of a view."""
        rows = self._arrays(len(games))
        rows.fill(self._positions[games], self._masks[games], self._seats[games])
        _put_rows(rows, games, view)

    def _shown(self, infos: dict[str, Any]) -> tuple[Observation, dict[str, Any]]:
        """The view as an observation, and ``infos`` with what goes with it."""
        view = self._view
        infos["action_mask"] = view.masks
        infos["_action_mask"] = np.ones(self.num_envs, np.bool_)
        infos["player"] = view.players.copy()
        infos["_player"] = np.ones(self.num_envs, np.bool_)
        return {"observation": view.boards, "action_mask": view.masks}, infos

    def _final(self, games: Games, over: npt.NDArray[np.bool_], view: _View) -> dict[str, Any]:
        """The infos on the end of ``games``, in Gymnasium's form."""
        ends = self._arrays(len(games))
        _take_rows(view, games, ends)
        final_obs = np.empty(self.num_envs, object)  # filled with None
        final_obs[games] = [
            {"observation": board, "action_mask": mask}
            for board, mask in zip(ends.boards, ends.masks, strict=True)
        ]
        masks = np.zeros((self.num_envs, NUM_ACTIONS), np.int8)
        left = np.flatnonzero(ends.legal)  # in a game that is won nothing is legal
        masks[games[left]] = ends.masks[left]
        players = np.zeros(self.num_envs, np.int8)
        players[games] = ends.players
        return {
            "final_obs": final_obs,
            "_final_obs": over,
            "final_info": {
                "action_mask": masks,
                "_action_mask": over.copy(),
                "player": players,
                "_player": over.copy(),
            },
            "_final_info": over.copy(),
        }
