"""The game as a Gymnasium vector environment: thousands of games a step, on the batch engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from bao_env.bots import Agent, get_agent
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import random_actions, random_states, unpack_masks
from bao_env.engine.layout import SOUTH
from bao_env.engine.position import WORDS, pack, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.game_batch import Episodes, Games, View
from bao_env.envs.single_game import (
    MAX_PLIES,
    check_max_plies,
    check_render_mode,
    masked_space,
    picture,
    seat_number,
    seat_or_none,
)
from bao_env.notation.positions import parse_position

Observation = dict[str, npt.NDArray[Any]]


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

        restarts = self.autoreset_mode is AutoresetMode.SAME_STEP
        self._games = Episodes(ruleset, num_envs, self.max_plies, threads, restarts)
        self.ruleset = self._games.ruleset
        self._opponent = opponent
        if opponent is not None:
            self._games.agent = get_agent(opponent, self.ruleset)
        self._first_player = seat_or_none(first_player, "first_player")
        self._fixed_seat = seat_or_none(seat, "seat")
        self._dtype = np.dtype(observation_dtype)
        self._over = np.zeros(num_envs, np.bool_)
        """Ended games that wait for their reset (NEXT_STEP, DISABLED)."""
        self._sampler = np.zeros(num_envs, np.uint64)
        self._started = False
        self._views: list[View] = []
        self._view = View.empty(num_envs, self._dtype)
        """What was shown last. Its boards and masks are in other hands."""
        self._view.legal.fill(0)

    # --- what the games look like ---------------------------------------------------------------

    @property
    def positions(self) -> npt.NDArray[np.uint64]:
        """The packed positions, uint64[B, 6], a copy: what bots act on."""
        return self._games.positions.copy()

    @property
    def masks(self) -> npt.NDArray[np.uint64]:
        """The legal actions as last shown, uint64[B], a copy: bit a = action a."""
        return self._view.legal.copy()

    @property
    def seats(self) -> npt.NDArray[np.int8]:
        """The learner's seats, int8[B], a copy; all -1 in self-play."""
        return self._games.seats.copy()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """The legal actions as last shown, a fresh bool[B, 64]."""
        masks = np.empty((self.num_envs, NUM_ACTIONS), np.bool_)
        unpack_masks(self._view.legal, masks)
        return masks

    def sample_legal_actions(self) -> npt.NDArray[np.int64]:
        """Uniformly random legal actions, int64[B], 0 where there is none.

        They come from generators of their own, one a game, which ``reset(seed=...)`` seeds.
        """
        actions = np.empty(self.num_envs, np.int64)
        random_actions(self._view.legal, self._sampler, actions)
        return actions

    def render(self) -> tuple[str, ...] | None:
        """The boards as texts, one a game; None without a render mode."""
        if self.render_mode is None:
            return None
        games = zip(self._games.positions, self._games.winners, self._over, strict=True)
        return tuple(
            picture(unpack(words), int(winner), bool(over)) for words, winner, over in games
        )

    # --- reset and step -------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin new games: all of them, or those of ``options["reset_mask"]``.

        ``seed`` seeds the learner's seats, the lots, the random bot and
        :meth:`sample_legal_actions`.

        Raises:
            ResetNeeded: the first reset is to begin some games only.
            TypeError: the mask is no bool array.
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
                self._games.agent = get_agent(self._opponent, self.ruleset, bot_seed)
        self._begin_by_options(games, options)
        self._started = True
        self._over[games] = False
        self._view = self._next_view()
        self._games.show(self._view)
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
        waiting = np.flatnonzero(self._over)
        if len(waiting) and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"games {waiting[:16].tolist()} are over: "
                "reset(options={'reset_mask': ...}) begins them anew"
            )
        games, view = self._games, self._next_view()
        result, ended = games.step(chosen.astype(np.int64), waiting, self._view.players, view)
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            if len(ended):
                infos = self._final(ended)
                if self._opponent is None:  # they have begun anew already
                    self._draw_starts(ended)
                else:
                    self._begin(ended)
                    games.show_again(ended, view)
        else:
            for array in result:
                array[waiting] = 0
            self._over = result.terminated | result.truncated
            if len(waiting):
                self._begin(waiting)
                games.show_again(waiting, view)
        self._view = view
        observation, infos = self._shown(infos)
        return observation, *result, infos

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

    def _begin(
        self,
        games: Games,
        seats: npt.NDArray[np.int8] | None = None,
        start: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]] | None = None,
    ) -> None:
        """Begin games anew, by themselves or at positions with their masks."""
        if seats is not None:
            self._games.seats[games] = seats
        elif self._fixed_seat is not None:
            self._games.seats[games] = self._fixed_seat
        elif self._opponent is not None:
            self._games.seats[games] = self.np_random.integers(2, size=len(games))
        self._games.begin(games, *(start or ()))
        self._draw_starts(games)

    def _draw_starts(self, games: Games) -> None:
        """Decide who will begin the next game."""
        if self._first_player is not None:
            self._games.starts[games] = self._first_player
        elif self.ruleset.first_player == "lot":
            self._games.starts[games] = self.np_random.integers(2, size=len(games))
        else:
            self._games.starts[games] = SOUTH

    def _begin_by_options(self, games: Games, options: dict[str, Any]) -> None:
        """Begin games as a reset's options want it."""
        texts = self._each(options, "position", str)
        firsts = self._each(options, "first_player", lambda s: seat_number(s, "first_player"))
        seats = self._each(options, "seat", lambda s: seat_number(s, "seat"))
        if texts is not None and firsts is not None:
            raise ValueError("options: a position says itself who is to move; drop first_player")
        if seats is not None and self._opponent is None:
            raise ValueError("options['seat']: there is a learner's seat only against an opponent")
        start = None if texts is None else self._parsed([texts[game] for game in games])
        self._draw_starts(games)
        if firsts is not None:
            self._games.starts[games] = np.array(firsts)[games]
        self._begin(games, None if seats is None else np.array(seats, np.int8)[games], start)

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
        parsed = {text: parse_position(text, self.ruleset) for text in set(texts)}
        positions = np.zeros((len(texts), WORDS), np.uint64)
        for text, words in zip(texts, positions, strict=True):
            pack(parsed[text], words)
        masks, winners = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.int8)
        self._games.engine.legal_masks(positions, masks, winners)
        for game in np.flatnonzero(winners >= 0)[:1]:
            raise ValueError(
                f"position: the game is over there, for the mover has no legal move: {texts[game]}"
            )
        return positions, masks

    # --- what a step returns --------------------------------------------------------------------

    def _next_view(self) -> View:
        """A view of all games to write to; without ``copy``, the older of two sets of arrays."""
        if self.copy:
            return View.empty(self.num_envs, self._dtype)
        if len(self._views) < 2:
            self._views.append(View.empty(self.num_envs, self._dtype))
            return self._views[-1]
        return self._views[self._view is self._views[0]]

    def _shown(self, infos: dict[str, Any]) -> tuple[Observation, dict[str, Any]]:
        """The view as an observation, and ``infos`` with what goes with it."""
        view = self._view
        infos["action_mask"] = view.masks
        infos["_action_mask"] = np.ones(self.num_envs, np.bool_)
        infos["player"] = view.players.copy()
        infos["_player"] = np.ones(self.num_envs, np.bool_)
        return {"observation": view.boards, "action_mask": view.masks}, infos

    def _final(self, games: Games) -> dict[str, Any]:
        """The infos on the end of ``games``, in Gymnasium's form."""
        ends = self._games.ends(self._dtype)
        final_obs = np.empty(self.num_envs, object)  # filled with None
        final_obs[games] = [
            {"observation": board, "action_mask": mask}
            for board, mask in zip(ends.boards, ends.masks, strict=True)
        ]
        over = np.zeros(self.num_envs, np.bool_)
        over[games] = True
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
