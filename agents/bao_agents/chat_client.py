"""Ask a language model at an OpenAI-compatible address, within limits, and log every exchange.

The log is a file of JSON lines. A question that it already answers is not asked again, so a match
that is restarted continues where it stopped. The log also counts the calls and tokens of all
processes that use it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openai

Messages = Sequence[Mapping[str, str]]
"""Messages, each with ``role`` and ``content``, as in the protocol."""

MAX_BYTES = 8 << 20
"""Longest answer of a server."""
MAX_ANSWER = 20_000
"""The number of characters kept from the end of a model's answer."""
LIMITS = {"CALLS": 10_000, "TOKENS": 20_000_000, "CONCURRENCY": 8, "SECONDS": 300}
"""Defaults of the environment variables ``BAO_CHAT_CALLS`` and so on: the most calls and tokens in
the log, calls at the same time, and seconds to wait for an answer."""


class ServerError(Exception):
    """The server did not give a readable answer."""


def _limit(name: str) -> int:
    """Return a limit; raise ValueError unless the environment sets a whole number above 0."""
    text = os.environ.get(f"BAO_CHAT_{name}") or str(LIMITS[name])
    if not text.isdecimal() or not int(text):
        raise ValueError(f"BAO_CHAT_{name}={text[:40]!r}: expected a whole number above 0")
    return int(text)


class ChatLog:
    """The answers of a log file, and what they cost.

    Args:
        path: the file; its folder is created if necessary.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spent = {"CALLS": 0, "TOKENS": 0}
        """Calls in the file, failed ones included, and the tokens that servers counted for them."""
        self.answers: dict[str, str] = {}
        """The answers by the hash of their question."""
        self._read = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            file.seek(max(0, file.tell() - 1))
            if file.read() not in (b"", b"\n"):  # a process was killed while it wrote
                file.write(b"\n")
        self.update()

    def update(self) -> None:
        """Read what this and other processes have appended."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        for line in data.splitlines():
            try:
                exchange = json.loads(line)
            except ValueError:  # half a line
                continue
            self.spent["CALLS"] += 1
            self.spent["TOKENS"] += exchange["tokens"]
            if not exchange["problem"]:
                self.answers[exchange["key"]] = exchange["answer"]

    def add(self, **exchange: object) -> None:
        """Append an exchange in one piece, even if several processes write."""
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(exchange).encode() + b"\n")


class ChatClient:
    """A model at the address of ``OPENAI_BASE_URL``, with the key of ``OPENAI_API_KEY``.

    Args:
        model: its name there.
        fields: further fields of each request, such as ``temperature``.

    Raises:
        ValueError: a limit in the environment is not a number.
        OSError: the log cannot be written.
    """

    def __init__(self, model: str, fields: Mapping[str, Any]) -> None:
        self.model, self.fields = model, dict(fields)
        self.limits = {name: _limit(name) for name in LIMITS}
        name = re.sub(r"[^\w.-]+", "_", model)
        self.log = ChatLog(Path(os.environ.get("BAO_CHAT_LOG") or f"runs/chat/{name}.jsonl"))

    async def __aenter__(self) -> ChatClient:
        """Open connections; they belong to the running event loop."""
        self._turns = asyncio.Semaphore(self.limits["CONCURRENCY"])
        # The client waits and retries; it waits as long as the server asks, up to a minute.
        self._api = openai.AsyncOpenAI(
            api_key=os.environ.get("OPENAI_API_KEY") or "none",  # local servers need none
            timeout=self.limits["SECONDS"],
            max_retries=2,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the connections."""
        await self._api.close()

    async def ask(self, messages: Messages) -> str | None:
        """Return the model's answer; None if the server fails.

        Raises:
            ValueError: a limit is reached, there is no server, or it refuses the request.
        """
        address = str(self._api.base_url)
        question = json.dumps([address, self.model, self.fields, *messages], sort_keys=True)
        key = hashlib.sha256(question.encode()).hexdigest()[:32]
        async with self._turns:
            self.log.update()
            if key in self.log.answers:
                return self.log.answers[key]
            for name, spent in self.log.spent.items():
                if spent >= self.limits[name]:
                    raise self._error(
                        f"the limit BAO_CHAT_{name}={self.limits[name]} is reached in "
                        f"{self.log.path}: raise it and run the same command to continue"
                    )
            answer, tokens, problem = "", 0, ""
            try:
                async with asyncio.timeout(3 * self.limits["SECONDS"]):
                    answer, tokens = await self._call(messages)
            except openai.APIStatusError as error:
                problem = f"status {error.status_code}: {ascii(error.message)[1:200]}"
                if error.status_code < 500 and error.status_code not in (408, 409, 429):
                    raise self._error(problem) from error
            except (ServerError, TimeoutError, openai.APIConnectionError) as error:
                problem = f"{type(error).__name__}: {error}"
                # By name: which HTTP library openai uses depends on its version.
                if type(error.__cause__).__name__ == "ConnectError":
                    raise self._error(f"there is no server at {address}") from error
            self.log.add(
                key=key,
                model=self.model,
                fields=self.fields,
                messages=messages,
                answer=answer,
                problem=problem,
                tokens=tokens,
            )
        return None if problem else answer

    async def _call(self, messages: Messages) -> tuple[str, int]:
        """Return a model's answer and the tokens of the exchange.

        Raises:
            ServerError: the answer is too long, or does not follow the protocol.
        """
        body = bytearray()
        create: Any = self._api.chat.completions.with_streaming_response.create
        async with create(model=self.model, messages=messages, extra_body=self.fields) as response:
            try:
                async for part in response.iter_bytes():
                    body += part
                    if len(body) > MAX_BYTES:
                        raise ServerError(f"an answer of more than {MAX_BYTES} bytes")
            except (ServerError, TimeoutError):
                raise
            except Exception as error:  # from the HTTP library
                raise ServerError(f"the answer was cut off: {type(error).__name__}") from error
        try:
            read = json.loads(body.decode(errors="replace"))
            content = read["choices"][0]["message"].get("content")
            tokens = int((read.get("usage") or {}).get("total_tokens") or 0)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ServerError("an answer that is not a chat completion") from error
        content = content if isinstance(content, str) else ""
        content = content[-MAX_ANSWER:].encode(errors="replace").decode()  # no lone surrogates
        return content, min(max(0, tokens), MAX_BYTES)

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"chat:{self.model}: {problem}")
