"""Play the game as a PettingZoo environment: two agents that move one at a time."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import Seat
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.arguments import (
    Illegal,
    Infos,
    Options,
    check_illegal,
    check_max_plies,
    check_options,
    check_seed,
    seat_or_none,
)
from bao_env.envs.openings import OpeningPlies
from bao_env.envs.single_game import SingleGame, SingleGameEnv
from bao_env.observation.observer import Observer, get_observer, masked_space
from bao_env.render.raster import Window, check_render_mode

Observation = dict[str, npt.NDArray[Any]]


def env(**kwargs: Any) -> AECEnv[str, Observation, int]:
    """Return :class:`raw_env` in PettingZoo's usual wrappers; the arguments are the same.

    The wrappers raise errors for actions out of bounds and calls in the wrong order. They slow the
    environment down a lot.
    """
    wrapped = wrappers.AssertOutOfBoundsWrapper(raw_env(**kwargs))
    return wrappers.OrderEnforcingWrapper(wrapped)


class raw_env(SingleGameEnv, AECEnv[str, Observation, int]):
    """Bao la Kiswahili for two agents, ``player_0`` (South) and ``player_1`` (North).

    It follows the contract of all environments (:mod:`bao_env.envs`), with these differences:

    **Turns.** ``agent_selection`` is the agent that acts next by the rules; in rule set ``dutch``
    the same agent may act again. :meth:`observe` works for either agent at any time; the mask of
    the agent that is not to act is all zero.

    **Rewards.** When an agent plays illegally, it gets -1 and the other agent gets 0.

    **End.** Both agents terminate, or are truncated, on the same ply.

    >>> import bao_env
    >>> env = bao_env.raw_env()
    >>> env.reset(seed=1)
    >>> for agent in env.agent_iter():
    ...     observation, reward, terminated, truncated, info = env.last()
    ...     over = terminated or truncated
    ...     env.step(None if over else env.sample_legal_actions())
    >>> info["winner"], info["plies"]
    (0, 55)

    Args:
        ruleset, observation, dtype, first_player, max_plies, illegal, render_mode: see
            :class:`bao_env.BaoEnv`.
        opening_plies: random legal plies before the first observation of a game, a number or the
            lowest and the highest; they never end the game.

    Raises:
        ValueError: an argument is wrong; the message says what was expected.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - PettingZoo declares it so
        "name": "bao_v0",
        "render_modes": ["human", "ansi", "rgb_array"],
        "render_fps": 2,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        *,
        ruleset: str | Ruleset = "zanzibar",
        observation: str | Observer = "board",
        dtype: npt.DTypeLike = np.float32,
        opening_plies: OpeningPlies = 0,
        first_player: Seat | None = None,
        max_plies: int | None = None,
        illegal: Illegal = "lose",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.render_mode: str | None = check_render_mode(render_mode, self.metadata["render_modes"])
        self.ruleset: Ruleset = get_ruleset(ruleset)
        self.possible_agents: list[str] = ["player_0", "player_1"]
        self.agents: list[str] = list(self.possible_agents)
        self.observer: Observer = get_observer(observation, self.ruleset, dtype)
        """Writes the observations."""
        self.observation_spaces: dict[str, spaces.Dict] = {
            agent: masked_space(self.observer.space) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, spaces.Discrete[np.int64]] = {
            agent: spaces.Discrete(NUM_ACTIONS) for agent in self.possible_agents
        }
        self._first_player = seat_or_none(first_player, "first_player")
        plies = check_max_plies(max_plies)
        self._game = SingleGame(self.ruleset, plies, self.observer, opening_plies)
        self.state_space: spaces.Space[Any] = self.observer.space
        self._illegal_policy = check_illegal(illegal)
        self._window = Window()
        self._np_random: np.random.Generator | None = None

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations; always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the space of an agent's actions; always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Options | None = None) -> None:
        """Start a game.

        ``seed`` seeds :meth:`sample_legal_actions`, and who begins and the opening plies, if they
        are random.

        Raises:
            TypeError: ``options`` is not a dict.
            ValueError: an option is wrong.
            gymnasium.error.Error: the seed is wrong.
        """
        if options == {"options": 1}:  # PettingZoo's api_test sends it
            options = None
        options = check_options(options, "first_player", "position")
        check_seed(seed)
        game = self._game
        start = game.read_options(options, self._first_player)
        with game.guard:
            if seed is not None or self._np_random is None:
                self._np_random, _ = seeding.np_random(seed)
                self._seed_sampler(self._np_random)
            game.start(start, self._np_random)
            agents = list(self.possible_agents)
            self.agents = agents
            self.rewards: dict[str, float] = dict.fromkeys(agents, 0.0)
            self._cumulative_rewards = dict.fromkeys(agents, 0.0)
            self.terminations: dict[str, bool] = dict.fromkeys(agents, False)
            self.truncations: dict[str, bool] = dict.fromkeys(agents, False)
            self.infos: dict[str, Infos] = {agent: {} for agent in agents}
            self.agent_selection: str = agents[game.mover]
            self._skip_agent_selection: str | None = None
            if self.render_mode == "human":
                self.render()

    @property
    def _viewer(self) -> int:
        return self._game.mover

    def observe(self, agent: str) -> Observation:
        """Return what an agent sees now, a value of its :meth:`observation_space`."""
        seat = self.possible_agents.index(agent)
        game = self._game
        return {"observation": game.observation(seat), "action_mask": game.action_mask(seat)}

    def state(self) -> Any:
        """Return the whole position, as the agent to act sees it."""
        return self._game.observation(self._game.mover)

    def step(self, action: SupportsIndex | None) -> None:
        """Play an action of ``agent_selection``, or accept None once that agent is done.

        Raises:
            IllegalMoveError: the action is illegal, and ``illegal="raise"``, or it is not in 0..63;
                nothing has changed.
            ResetNeeded: the game has not begun, or an exception interrupted the last step.
            TypeError: the action is not an integer.
            ValueError: the agent is done.
        """
        game = self._game
        game.guard.check()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        played = game.check_action(action, self._illegal_policy)
        with game.guard:
            game.play(played)
            game.cut()
            self._cumulative_rewards[agent] = 0.0
            self._clear_rewards()
            agents = self.possible_agents
            self.agent_selection = agents[game.mover]
            if game.over:
                end_info = game.end_info()
                self.infos = {agent: dict(end_info) for agent in agents}
                if game.truncated:
                    self.truncations = dict.fromkeys(agents, True)
                else:
                    self.terminations = dict.fromkeys(agents, True)
                    self.rewards = dict.fromkeys(agents, -1.0)
                    self.rewards[agents[game.winner]] = 0.0 if played is None else 1.0
                    self._accumulate_rewards()
                if played is None:
                    self.infos[agent]["illegal"] = True
            if self.render_mode == "human":
                self.render()
