"""A language model as a player: ``chat:MODEL``, or ``chat:MODEL?legal=false&temperature=0``.

The model's name may have colons and slashes; the options begin at the last ``?``. ``legal``,
``retries`` and ``max_tokens`` have defaults; every other option is a field of the request. The
model sees one position at a time (:mod:`bao_env.text_game`), without the moves before it. After an
illegal answer it is told the reason and may try again; in the end it forfeits.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import numpy as np

from bao_agents.chat_client import ChatClient, Message
from bao_env import text_game
from bao_env.board import Board
from bao_env.engine.action import actions_of
from bao_env.engine.array_checks import as_batch
from bao_env.engine.position import Actions, Flags, Words, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.notation.positions import NotationError, format_position

RETRIES = 2
"""Further tries after an illegal answer, by default."""
MAX_TOKENS = 4096
"""Longest answer, by default."""


class Answer(NamedTuple):
    """What a model made of a position."""

    action: int | None
    """A legal action; None for a forfeit."""
    illegal: int
    """The tries that named no legal move."""


def parse_name(name: str) -> tuple[str, dict[str, Any]]:
    """Return the model and the options of ``MODEL`` or ``MODEL?key=value&key=value``.

    Values are JSON where they can be, otherwise text. A model whose own name has a question mark
    needs another one at its end.

    Raises:
        ValueError: there is no model, or an option has no value.
    """
    model, mark, query = name.rpartition("?")
    if not mark:
        model, query = query, ""
    if not model:
        raise ValueError(f"chat:{name[:80]}: expected chat:MODEL")
    options: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise ValueError(f"chat:{name[:80]}: expected options as in ?legal=false&x=1") from error
    for key, value in pairs:
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return model, options


class ChatAgent:
    """A player that asks a language model for every move.

    Args:
        name: see :func:`parse_name`.
        ruleset: a :class:`Ruleset` or its name.

    Raises:
        ValueError: the name or a limit of the environment cannot be read.
        OSError: the log cannot be written.
    """

    def __init__(self, name: str, ruleset: str | Ruleset = "zanzibar") -> None:
        model, options = parse_name(name)
        self._legal, self._retries = options.pop("legal", True), options.pop("retries", RETRIES)
        if not isinstance(self._legal, bool) or self._retries not in range(100):
            raise ValueError(f"chat:{name[:80]}: expected legal=true or false, and retries=NUMBER")
        if taken := {"messages", "model", "n", "stream"} & set(options):
            raise ValueError(f"chat:{name[:80]}: {min(taken)} cannot be set")
        if not {"max_tokens", "max_completion_tokens"} & set(options):
            options["max_tokens"] = MAX_TOKENS
        self._rules = get_ruleset(ruleset)
        self._client = ChatClient(model, options)
        self.forfeits: Flags = np.zeros(0, np.bool_)
        """bool[B], the positions of the last call that the model has forfeited."""
        self.tally = {"moves": 0, "illegal tries": 0, "forfeits": 0}
        """What all its answers came to."""

    def act(self, positions: Words, legal: Words) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`.

        Where the model forfeits, the action is the legal one with the lowest number, and
        :attr:`forfeits` tells.

        Raises:
            ValueError: a limit is reached, there is no server, or it refuses the request.
        """
        positions, legal = as_batch(positions, legal)
        asked = np.flatnonzero(legal)
        questions = [self._question(positions[i]) for i in asked]
        rows = dict(zip(questions, asked, strict=True))  # a position that comes twice is asked once
        found = _run(self._answer_all([(text, positions[i]) for text, i in rows.items()]))
        answers = dict(zip(rows, found, strict=True))
        actions, forfeits = np.zeros(len(legal), np.int64), np.zeros(len(legal), np.bool_)
        for i, text in zip(asked, questions, strict=True):
            action, illegal = answers[text]
            forfeits[i] = action is None
            actions[i] = actions_of(legal[i])[0] if action is None else action
            self.tally["moves"] += 1
            self.tally["illegal tries"] += illegal
            self.tally["forfeits"] += action is None
        self.forfeits = forfeits
        return actions

    def _question(self, words: Words) -> str:
        board = Board.from_text(format_position(unpack(words)), self._rules)
        return text_game.prompt(board, legal=self._legal)

    async def _answer_all(self, questions: list[tuple[str, Words]]) -> list[Answer]:
        async with self._client:
            return await asyncio.gather(*(self._answer(*question) for question in questions))

    async def _answer(self, question: str, words: Words) -> Answer:
        """Ask for a move until it is legal, the tries are used up, or the server fails."""
        messages: list[Message] = [
            {"role": "system", "content": text_game.system_prompt(self._rules)},
            {"role": "user", "content": question},
        ]
        for illegal in range(self._retries + 1):
            text = await self._client.ask(messages)
            if text is None:
                return Answer(None, illegal)
            try:
                return Answer(text_game.read_answer(text, words, self._rules), illegal)
            except NotationError as error:
                again = text_game.try_again(str(error.reason))
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": again},
            ]
        return Answer(None, self._retries + 1)


def _run(work: Any) -> Any:
    """Run a coroutine to its end, also where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
