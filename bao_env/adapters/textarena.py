"""The game for TextArena: ``Bao-v0``, and ``Bao-v0-kibao`` and so on for the other rule sets.

    import bao_env.adapters.textarena  # registers the games
    import textarena as ta

    env = ta.make("Bao-v0", opening_plies=4)
    env.reset(num_players=2, seed=7)

Player 0 is South. ``-train`` and ``-raw`` after a name mean what they mean in TextArena.
"""

from __future__ import annotations

from typing import Any

from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.text_game import TextGame, say_move

try:
    import textarena as ta
    from textarena.envs.registration import register_with_versions
    from textarena.wrappers import (
        ActionFormattingWrapper,
        GameMessagesAndCurrentBoardObservationWrapper,
        LLMObservationWrapper,
    )
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.textarena needs TextArena: pip install textarena")
    raise


class BaoTextEnv(ta.Env):
    """Bao as an environment of TextArena.

    Args:
        ruleset: a rule set or its name.
        opening_plies: random moves before the game, drawn with the seed of :meth:`reset`.
        legal: whether the legal moves are listed.
        retries: further tries after an answer that names no legal move; then the game is lost.
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
        self._ruleset, self._opening_plies, self._legal = ruleset, opening_plies, legal
        self._retries, self._max_turns = retries, max_turns

    def reset(self, num_players: int, seed: int | None = None) -> None:
        """Begin a game; see TextArena's ``Env``. Without a seed it is 0."""
        self.game = TextGame(
            self._ruleset,
            opening_plies=self._opening_plies,
            seed=seed or 0,
            legal=self._legal,
            history=0,  # TextArena shows the moves
            retries=self._retries,
            max_plies=self._max_turns,
        )
        self.state = ta.TwoPlayerState(
            num_players=num_players, seed=seed, error_allowance=self._retries
        )
        self.state.reset(
            game_state={},
            player_prompt_function=self._prompt,
            role_mapping=dict(enumerate(SEAT_NAMES)),
        )
        self.state.manually_set_current_player_id(self.game.turn)
        self._show()

    def step(self, action: str) -> tuple[bool, ta.Info]:
        """Play the move that an answer names; see TextArena's ``Env``."""
        board, player = self.game.board, self.state.current_player_id
        self.state.add_observation(
            action, ta.ObservationType.PLAYER_ACTION, from_id=player, to_id=player
        )
        words = board.words
        mistake = self.game.answer(action)
        if mistake is not None:
            self.state.set_invalid_move(mistake)
        else:
            move = say_move(words, board.ruleset, board.move_stack[-1])
            text = f"{SEAT_NAMES[player]} plays {move}."
            self.state.add_observation(text, ta.ObservationType.GAME_ACTION_DESCRIPTION)
        if self.game.winner is not None and self.game.forfeited is None:
            self.state.set_winner(self.game.winner, self.game.ending)
        elif self.game.over and self.game.winner is None:
            self.state.set_draw(self.game.ending)
        done: tuple[bool, ta.Info] = self.state.step(rotate_player=False)
        if mistake is None:  # it also forgets the mistakes
            self.state.manually_set_current_player_id(self.game.turn)
        if not self.game.over:
            self._show()
        return done

    def _prompt(self, player_id: int, game_state: dict[str, Any]) -> str:
        return f"You are {SEAT_NAMES[player_id]}.\n\n{self.game.system()}"

    def _show(self) -> None:
        """Show the position to the player to move."""
        self.state.add_observation(
            self.game.prompt(), ta.ObservationType.GAME_BOARD, to_id=self.game.turn
        )


for _name in RULESETS:
    register_with_versions(
        id="Bao-v0" if _name == "zanzibar" else f"Bao-v0-{_name}",
        entry_point="bao_env.adapters.textarena:BaoTextEnv",
        wrappers={
            "default": [LLMObservationWrapper, ActionFormattingWrapper],
            "-train": [GameMessagesAndCurrentBoardObservationWrapper, ActionFormattingWrapper],
        },
        ruleset=_name,
    )
