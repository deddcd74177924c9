"""Play the game in Verifiers: a language model plays both seats, or one against our player.

Verifiers finds a taskset by the name of a module, so your module has to name the classes::

    from bao_env.adapters.verifiers import BaoEnv, BaoTaskset

    __all__ = ["BaoEnv", "BaoTaskset"]

``docs/verifiers_game.py`` is such a module. A task is a game from a random opening, and its reward
is the result. With ``proven``, a task is one move in a position that is proved to be won, and its
reward is whether the move keeps the win.
"""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import numpy as np

from bao_env.board import Board
from bao_env.bots import answer_of, get_agent
from bao_env.engine.action import actions_of, mask_of
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import get_ruleset
from bao_env.notation.positions import format_position
from bao_env.text_game import TextGame, random_board

try:
    import verifiers.v1 as vf
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.verifiers needs Verifiers: pip install verifiers")
    raise

MAX_PLIES = 1000
"""A game that reaches this length is a draw."""
_CHAT: dict[str, Any] = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
"""An agent that only talks. It runs no code of the model, so it needs no sandbox."""


class BaoData(vf.TaskData):
    """Where a game starts."""

    ruleset: str
    position: str
    """The position text."""
    winning: tuple[int, ...] = ()
    """The actions that keep a proved win, if the task is one move."""


class BaoTasksetConfig(vf.TasksetConfig):
    """Which games are played; set with ``--env.taskset.ruleset`` and so on."""

    ruleset: str = "zanzibar"
    opening_plies: int = 4
    """Random moves before a game."""
    proven: bool = False
    """Ask for one move in each position that comes with the project and is proved to be won."""


class BaoTaskset(vf.Taskset[vf.Task[BaoData], BaoTasksetConfig]):
    """An endless series of games, or the positions that are proved to be won."""

    INFINITE = True

    def load(self) -> Iterator[Any]:
        """Yield the tasks.

        Raises:
            ValueError: no positions of these rules are proved to be won.
        """
        for position, winning in self._proven() if self.config.proven else self._openings():
            data = BaoData(ruleset=self.config.ruleset, position=position, winning=winning)
            yield vf.Task[BaoData](data, self.config.task)

    def _openings(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for seed in count():
            yield random_board(self.config.ruleset, self.config.opening_plies, seed).text(), ()

    def _proven(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        name = self.config.ruleset
        shipped = pkgutil.resolve_name("bao_agents.arena.solved_positions:shipped_won_positions")
        won = shipped(get_ruleset(name))
        if won is None:
            raise ValueError(f"no positions of {name} are proved: expected zanzibar or kujifunza")
        won = won[won.choices]
        for words, winning in zip(won.positions, won.winning, strict=True):
            yield format_position(unpack(words)), tuple(actions_of(winning))


class BaoEnvConfig(vf.EnvConfig):
    """Who plays, and how; set with ``--env.opponent`` and so on."""

    south: vf.AgentConfig = vf.AgentConfig(**_CHAT)
    north: vf.AgentConfig = vf.AgentConfig(**_CHAT)
    opponent: str = ""
    """The name of one of our players; the model then alternates between South and North. Empty: the
    model plays both seats."""
    legal: bool = True
    """Whether the legal moves are listed."""
    illegal_retries: int = 2
    """Further tries after an answer without a legal move."""


class BaoEnv(vf.Env[BaoEnvConfig]):
    """Play a game between two agents, or between an agent and one of our players."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play a task to its end, and give the rewards; see Verifiers' ``Env``.

        The reward ``result`` is 1 for a win, -1 for a loss and 0 for a draw; ``proven`` is 1 for a
        move that keeps the win, else 0.
        """
        data, config = task.data, self.config
        board = Board.from_text(data.position, data.ruleset)
        game = TextGame(board, legal=config.legal, retries=config.illegal_retries)
        seats = [0, 1]
        if config.opponent or data.winning:
            seats = [board.turn if data.winning else data.idx % 2]
        rules = vf.Task(vf.TaskData(idx=data.idx, system_prompt=game.system()))
        async with AsyncExitStack() as stack:
            talks = {
                seat: await stack.enter_async_context(
                    (agents.south, agents.north)[seat].interaction(rules)
                )
                for seat in seats
            }
            await self._play(game, talks, 1 if data.winning else MAX_PLIES)
        for seat, talk in talks.items():
            if data.winning:
                kept = game.board.move_stack[:1] and game.board.move_stack[0] in data.winning
                talk.trace.record_reward("proven", float(bool(kept)))
            else:
                result = {None: 0.0, seat: 1.0}.get(game.winner, -1.0)
                talk.trace.record_reward("result", result)
            talk.trace.record_metric("illegal tries", game.illegal[seat])
            talk.trace.info["bao"] = {
                "seat": seat,
                "ending": game.ending,
                "game": game.board.transcript(),
            }

    async def _play(self, game: TextGame, talks: dict[int, Any], plies: int) -> None:
        """Play a game until it ends or has ``plies`` plies."""
        board = game.board
        opponent = get_agent(self.config.opponent or "random", board.ruleset)
        asked = None
        while not game.ending and board.ply < plies:
            if board.turn not in talks:
                legal = np.array([mask_of(board.legal_actions)], np.uint64)
                move = await asyncio.to_thread(answer_of, opponent, board.words[None], legal)
                game.play(int(move[0]))
                continue
            segment = await talks[board.turn].turn(asked or game.prompt())
            if segment.terminated:
                game.forfeit()
            else:
                asked = game.answer(segment.last_reply)


__all__ = ["BaoEnv", "BaoTaskset"]
