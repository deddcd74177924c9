"""Register the OpenSpiel game ``python_bao`` when this module is imported.

.. code-block:: python

    import pyspiel
    import bao_env.adapters.open_spiel

    game = pyspiel.load_game("python_bao(ruleset=kibao)")
    state = game.new_initial_state()

Parameters: ``ruleset``, a name; ``max_plies``, after which the game is cut short and nobody has
won; and ``observation``, a name (:mod:`bao_env.observation.observer`).

South, player 0, begins under every rule set. There are no chance nodes: neither the first player
nor the opening is random. Actions and observations are those of :class:`bao_env.raw_env`.
OpenSpiel's C++ search does not play games written in Python; its Python search does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import NUM_ACTIONS, actions_of
from bao_env.engine.layout import SOUTH
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.arguments import MAX_PLIES, check_max_plies
from bao_env.envs.single_game import SingleGame
from bao_env.notation.positions import action_to_move
from bao_env.observation.observer import Observer, get_observer

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.open_spiel needs OpenSpiel: pip install open_spiel dm-tree")
    raise

_UNUSED = np.random.default_rng()
"""A generator for a call that requires one; nothing is drawn from it."""
_TYPE = pyspiel.GameType(
    short_name="python_bao",
    long_name="Bao la Kiswahili",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={
        "ruleset": "zanzibar",
        "max_plies": MAX_PLIES,
        "observation": "board",
    },
)


class BaoGame(pyspiel.Game):
    """The game, with its rules in ``ruleset`` and its limit of plies in ``max_plies``.

    Raises:
        ValueError: a parameter is wrong.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params = params or {}
        self.ruleset: Ruleset = get_ruleset(params.get("ruleset", "zanzibar"))
        self.max_plies: int = check_max_plies(params.get("max_plies"))
        self.observer: Observer = get_observer(params.get("observation", "board"), self.ruleset)
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_ACTIONS,
            max_chance_outcomes=0,
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=self.max_plies,
        )
        super().__init__(_TYPE, info, params)

    def new_initial_state(self, state: Any = None) -> BaoState:
        """Return the opening; OpenSpiel's structured ``state`` is not supported.

        Raises:
            ValueError: ``state`` was given.
        """
        if state is not None:
            raise ValueError(
                "new_initial_state(state) is not supported: call it without state and apply actions"
            )
        return BaoState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
        """Return the observer that OpenSpiel takes observations from."""
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return BaoObserver(self.observer)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class BaoState(pyspiel.State):
    """A running game."""

    def __init__(self, game: BaoGame) -> None:
        super().__init__(game)
        self.single_game: SingleGame = SingleGame(game.ruleset, game.max_plies, game.observer)
        self.single_game.start(SOUTH, _UNUSED)

    def current_player(self) -> int:
        """Return 0 for South, 1 for North, or OpenSpiel's number for the end."""
        return pyspiel.PlayerId.TERMINAL if self.single_game.over else self.single_game.mover

    def _legal_actions(self, player: int) -> list[int]:
        return [] if self.single_game.over else actions_of(self.single_game.legal[0])

    def _apply_action(self, action: int) -> None:
        self.single_game.play(self.single_game.check_action(action))
        self.single_game.cut()

    def _action_to_string(self, player: int, action: int) -> str:
        return action_to_move(action)

    def is_terminal(self) -> bool:
        """Return whether the game is over."""
        return self.single_game.over

    def returns(self) -> list[float]:
        """Return +1 for the winner and -1 for the loser; 0 for both if nobody has won."""
        winner = self.single_game.winner
        return [0.0, 0.0] if winner < 0 else [1.0 - 2.0 * winner, 2.0 * winner - 1.0]

    def __str__(self) -> str:
        """Return the position text and, at the end, the result."""
        board = self.single_game.board()
        return f"{board.text()} ({board.outcome()})" if board.outcome() else board.text()


class BaoObserver:
    """Give OpenSpiel what a player sees, by default float32[52], and the position text.

    Args:
        observer: writes the observations.
    """

    def __init__(self, observer: Observer) -> None:
        array = np.zeros(observer.space.shape or (), np.float32)
        self.tensor: npt.NDArray[np.float32] = array.reshape(-1)  # the same memory
        self.dict: dict[str, npt.NDArray[np.float32]] = {"observation": array}

    def set_from(self, state: BaoState, player: int) -> None:
        """Fill :attr:`tensor` with what ``player`` sees."""
        self.tensor[:] = state.single_game.observation(player).ravel()

    def string_from(self, state: BaoState, player: int) -> str:
        """Return the position text, which is the same for both players."""
        return str(state)


pyspiel.register_game(_TYPE, BaoGame)
