"""Register the game with TextArena as ``Bao-v0``.

    import bao_env.adapters.textarena  # registers the game
    import textarena as ta

    env = ta.make("Bao-v0", ruleset="kibao", opening_plies=4)
    env.reset(num_players=2, seed=7)

Player 0 is South. ``Bao-v0-train`` and ``Bao-v0-raw`` show what these endings mean in TextArena.
"""

from __future__ import annotations

from bao_env.engine.ruleset import Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.text_game import TextGame, random_board

try:
    import textarena as ta
    from textarena.envs.registration import register_with_versions
    from textarena.wrappers import (
        GameMessagesAndCurrentBoardObservationWrapper,
        LLMObservationWrapper,
    )
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.textarena needs TextArena: pip install textarena")
    raise


class BaoTextEnv(ta.Env):
    """Play Bao as an environment of TextArena.

    Args:
        ruleset: a rule set or its name.
        opening_plies: random moves before the game, drawn with the seed of :meth:`reset`.
        legal: whether the legal moves are listed.
        retries: further tries after an answer without a legal move; then the game is lost.
        max_turns: the game is a draw at this length.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        opening_plies: int = 0,
        legal: bool = True,
        retries: int = 2,
        max_turns: int = 1000,
    ) -> None:
        self._opening = ruleset, opening_plies
        self._legal, self._retries, self._max_turns = legal, retries, max_turns

    def reset(self, num_players: int, seed: int | None = None) -> None:
        """Begin a game; see TextArena's ``Env``. Without a seed it is 0."""
        board = random_board(*self._opening, seed or 0)
        # TextArena shows the moves itself.
        self.game = TextGame(board, legal=self._legal, history=0, retries=self._retries)
        self.state = ta.TwoPlayerState(
            num_players=num_players, seed=seed, error_allowance=self._retries
        )
        self.state.reset(
            player_prompt_function=lambda player_id, game_state: (
                f"You are {SEAT_NAMES[player_id]}.\n\n{self.game.system()}"
            ),
            role_mapping=dict(enumerate(SEAT_NAMES)),
        )
        self._show()

    def step(self, action: str) -> tuple[bool, ta.Info]:
        """Play the move that an answer names; see TextArena's ``Env``."""
        state, game, types = self.state, self.game, ta.ObservationType
        player = state.current_player_id
        state.add_observation(action, types.PLAYER_ACTION, from_id=player, to_id=player)
        mistake = game.answer(action)
        if mistake is not None:
            state.set_invalid_move(mistake)
        else:
            state.add_observation(game.moves[-1], types.GAME_ACTION_DESCRIPTION)
            if game.winner is not None:
                state.set_winner(game.winner, game.ending)
            elif len(game.moves) >= self._max_turns:
                state.set_draw(f"{self._max_turns} moves")
        done: tuple[bool, ta.Info] = state.step(rotate_player=False)
        if not state.done:
            self._show()
        return done

    def _show(self) -> None:
        """Show the position to the player to move."""
        turn = self.game.board.turn
        if turn != self.state.current_player_id:  # setting it forgets the mistakes
            self.state.manually_set_current_player_id(turn)
        self.state.add_observation(self.game.prompt(), ta.ObservationType.GAME_BOARD, to_id=turn)


register_with_versions(
    id="Bao-v0",
    entry_point="bao_env.adapters.textarena:BaoTextEnv",
    wrappers={
        "default": [LLMObservationWrapper],
        "-train": [GameMessagesAndCurrentBoardObservationWrapper],
    },
)
