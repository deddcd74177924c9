"""Play with a language model: ``chat:MODEL``, or ``chat:MODEL?legal=false&temperature=0``.

The model's name may have colons and slashes; the options begin at the last ``?``. ``legal``,
``retries`` and ``max_tokens`` have defaults; every other option is a field of the request. The
model sees one position at a time (:mod:`bao_env.text_game`), without the moves before it. After an
illegal answer it is told the reason and may try again. After too many it forfeits.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from bao_agents.chat_client import ChatClient
from bao_env.board import Board
from bao_env.engine.array_checks import as_batch
from bao_env.engine.position import Actions, Words, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.notation.positions import NotationError, format_position
from bao_env.text_game import prompt, read_answer, system_prompt, try_again

DEFAULTS = {"legal": True, "retries": 2, "max_tokens": 4096}
"""The options that have defaults: whether the legal moves are listed, further tries after an
illegal answer, and the length of an answer."""


def parse_name(name: str) -> tuple[str, dict[str, Any]]:
    """Return the model and the options of ``MODEL`` or ``MODEL?key=value&key=value``.

    Values are JSON if possible, otherwise strings. A model whose name has a question mark needs
    another one at its end.

    Raises:
        ValueError: there is no model, or an option cannot be used.
    """
    model, _, query = name.rpartition("?") if "?" in name else (name, "", "")
    options: dict[str, Any] = dict(DEFAULTS)
    for key, value in parse_qsl(query, keep_blank_values=True):
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    if "max_completion_tokens" in options:  # the other name of the same limit
        del options["max_tokens"]
    fit = isinstance(options["legal"], bool) and options["retries"] in range(100)
    if not model or not fit or {"messages", "model", "n", "stream"} & set(options):
        raise ValueError(
            f"chat:{name[:80]}: expected chat:MODEL, or options as in "
            "chat:MODEL?legal=false&retries=1&temperature=0; messages, n and stream cannot be set"
        )
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
        self._legal, self._retries = options.pop("legal"), options.pop("retries")
        self._rules = get_ruleset(ruleset)
        self._client = ChatClient(model, options)
        self.forfeits = np.zeros(0, np.bool_)
        """bool[B], the positions of the last call that the model has forfeited."""
        self.tally = {"moves": 0, "illegal tries": 0, "forfeits": 0}
        """Counts of all its answers."""

    def act(self, positions: Words, legal: Words) -> Actions:
        """Choose actions; see :meth:`bao_env.bots.Agent.act`.

        Where the model forfeits, the action is the lowest legal one, and :attr:`forfeits` is set.

        Raises:
            ValueError: a limit is reached, there is no server, or it refuses the request.
        """
        positions, legal = as_batch(positions, legal)
        boards = {}  # by question: a position that occurs twice is asked once
        questions = {}
        for i in np.flatnonzero(legal):
            board = Board.from_text(format_position(unpack(positions[i])), self._rules)
            questions[i] = prompt(board, legal=self._legal)
            boards[questions[i]] = board
        found = dict(zip(boards, _run(self._answer_all(boards)), strict=True))
        actions, self.forfeits = np.zeros(len(legal), np.int64), np.zeros(len(legal), np.bool_)
        for i, question in questions.items():
            action, illegal = found[question]
            self.forfeits[i] = action is None
            actions[i] = boards[question].legal_actions[0] if action is None else action
            for what, count in zip(self.tally, (1, illegal, action is None), strict=True):
                self.tally[what] += count
        return actions

    async def _answer_all(self, boards: dict[str, Board]) -> list[tuple[int | None, int]]:
        async with self._client:
            return await asyncio.gather(*(self._answer(*question) for question in boards.items()))

    async def _answer(self, question: str, board: Board) -> tuple[int | None, int]:
        """Ask for a move until it is legal, the tries are used up, or the server fails.

        Returns:
            the action, None for a forfeit; and the number of tries without a legal move.
        """
        messages = [
            {"role": "system", "content": system_prompt(self._rules)},
            {"role": "user", "content": question},
        ]
        for illegal in range(self._retries + 1):
            answer = await self._client.ask(messages)
            if answer is None:
                return None, illegal
            try:
                return read_answer(answer, board.words, self._rules), illegal
            except NotationError as mistake:
                messages.append({"role": "assistant", "content": answer})
                messages.append({"role": "user", "content": try_again(mistake)})
        return None, self._retries + 1


def _run(work: Any) -> Any:
    """Run a coroutine to its end, even if an event loop is already running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
