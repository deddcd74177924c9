"""The game for Verifiers: a language model plays both seats, or one against a player of ours.

Verifiers finds a taskset by the name of a module, so one of yours has to name the classes::

    from bao_env.adapters.verifiers import BaoEnv, BaoTaskset

    __all__ = ["BaoEnv", "BaoTaskset"]

``docs/verifiers_game.py`` is such a module. A task is a game from a random opening and
its reward the result, or, with ``proven``, one move in a position that is proved to be won and its
reward whether the move keeps the win.
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
from bao_env.bots import Agent, answer_of, get_agent
from bao_env.engine.action import actions_of, mask_of
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import get_ruleset
from bao_env.notation.positions import format_position
from bao_env.text_game import TextGame

try:
    import verifiers.v1 as vf
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.verifiers needs Verifiers: pip install verifiers")
    raise


_CHAT: dict[str, Any] = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
"""An agent that only talks: it runs no code of the model, so this machine will do."""


class BaoData(vf.TaskData):
    """What a game starts from."""

    ruleset: str
    opening_plies: int = 0
    """Random moves before the game."""
    seed: int = 0
    """The seed of those moves and of the opponent."""
    winning: tuple[int, ...] = ()
    """The winning actions of ``position``, if the task is one move in it."""
    position: str = ""


class BaoTask(vf.Task[BaoData]):
    """A game, or one move of it."""


class BaoTasksetConfig(vf.TasksetConfig):
    """Which games are played; set with ``--env.taskset.ruleset`` and so on."""

    ruleset: str = "zanzibar"
    opening_plies: int = 4
    proven: bool = False
    """Ask for one move in each position that comes with the project and is proved to be won."""


class BaoTaskset(vf.Taskset[BaoTask, BaoTasksetConfig]):
    """Games without end, or the positions that are proved to be won."""

    INFINITE = True

    def load(self) -> Iterator[BaoTask]:
        """Yield the tasks.

        Raises:
            ValueError: no positions of these rules are proved to be won.
        """
        return self._positions() if self.config.proven else self._games()

    def _games(self) -> Iterator[BaoTask]:
        name, plies = self.config.ruleset, self.config.opening_plies
        for seed in count():
            data = BaoData(name=f"{name} {seed}", ruleset=name, opening_plies=plies, seed=seed)
            yield BaoTask(data, self.config.task)

    def _positions(self) -> Iterator[BaoTask]:
        name = self.config.ruleset
        shipped = pkgutil.resolve_name("bao_agents.arena.solved_positions:shipped_won_positions")
        won = shipped(get_ruleset(name))
        if won is None:
            raise ValueError(f"no positions of {name} are proved: expected zanzibar or kujifunza")
        won = won[won.choices]
        for i, (words, winning) in enumerate(zip(won.positions, won.winning, strict=True)):
            data = BaoData(
                name=f"{name} won {i}",
                ruleset=name,
                position=format_position(unpack(words)),
                winning=tuple(actions_of(winning)),
            )
            yield BaoTask(data, self.config.task)


class BaoEnvConfig(vf.EnvConfig):
    """Who plays, and how; set with ``--env.opponent`` and so on."""

    south: vf.AgentConfig = vf.AgentConfig(**_CHAT)
    north: vf.AgentConfig = vf.AgentConfig(**_CHAT)
    opponent: str = ""
    """The name of a player of ours; the model then plays South and North in turn. Empty: the model
    plays both seats."""
    legal: bool = True
    """Whether the legal moves are listed."""
    illegal_retries: int = 2
    """Further tries after an answer that names no legal move."""


class BaoEnv(vf.Env[BaoEnvConfig]):
    """A game between two agents, or between an agent and a player of ours."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play a task to its end, and give the rewards; see Verifiers' ``Env``.

        The reward ``result`` is 1 for a win, -1 for a loss and 0 for a draw; ``proven`` is 1 for a
        move that keeps the win, else 0.
        """
        data: BaoData = task.data
        options: dict[str, Any] = {
            "legal": self.config.legal,
            "retries": self.config.illegal_retries,
        }
        if data.winning:
            game = TextGame(Board.from_text(data.position, data.ruleset), **options)
            seats = [game.turn]
        else:
            plies, seed = data.opening_plies, data.seed
            game = TextGame(data.ruleset, opening_plies=plies, seed=seed, **options)
            seats = [data.seed % 2] if self.config.opponent else [0, 1]
        async with AsyncExitStack() as stack:
            talks = {}
            for seat in seats:
                agent = (agents.south, agents.north)[seat]
                rules = vf.Task(vf.TaskData(idx=data.idx, system_prompt=game.system()))
                talks[seat] = await stack.enter_async_context(agent.interaction(rules))
            await self._play(game, talks, data)
        for seat, talk in talks.items():
            if data.winning:
                kept = game.board.move_stack[:1] and game.board.move_stack[0] in data.winning
                talk.trace.record_reward("proven", float(bool(kept)))
            else:
                result = 0.0 if game.winner is None else 1.0 if game.winner == seat else -1.0
                talk.trace.record_reward("result", result)
            talk.trace.record_metric("illegal tries", game.illegal[seat])
            talk.trace.record_metric("forfeit", game.forfeited == seat)
            talk.trace.info["bao"] = {
                "seat": seat,
                "ending": game.ending,
                "game": game.board.transcript(),
            }

    async def _play(self, game: TextGame, talks: dict[int, Any], data: BaoData) -> None:
        """Play a game, or one move if only that is asked for."""
        opponent: Agent | None = None
        if len(talks) == 1 and not data.winning:
            opponent = get_agent(self.config.opponent, data.ruleset, data.seed)
        mistake: str | None = None
        while not game.over and not (data.winning and game.board.move_stack):
            talk = talks.get(game.turn)
            if talk is None:
                assert opponent is not None
                legal = np.array([mask_of(game.board.legal_actions)], np.uint64)
                words = game.board.words[None]
                action = await asyncio.to_thread(answer_of, opponent, words, legal)
                game.play(int(action[0]))
                continue
            segment = await talk.turn(mistake or game.prompt())
            if segment.terminated:
                game.forfeited = game.turn
            else:
                mistake = game.answer(segment.last_reply)


__all__ = ["BaoEnv", "BaoTaskset"]
