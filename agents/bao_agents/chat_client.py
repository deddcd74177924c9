"""Ask a language model at an OpenAI-compatible address, within limits, and log every exchange.

The log is a file of JSON lines. A question that it has an answer to is not asked again, so a match
that is started anew goes on where it stopped. It also counts the calls and tokens of all processes
that use it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openai

from bao_agents.progress import Progress

Message = Mapping[str, str]
"""``role`` and ``content``, as the protocol has them."""

ATTEMPTS = 3
"""Calls for one answer, if the server fails."""
PAUSE = 1.0
"""Seconds before the second attempt; doubled before the next."""
LONGEST_PAUSE = 60.0
"""Seconds that a server may ask to wait."""
MAX_BYTES = 8 << 20
"""Longest answer of a server."""
MAX_ANSWER = 20_000
"""Characters that are kept of a model's answer, its last ones."""


class ServerError(Exception):
    """The server gave no answer that can be read; the next attempt may succeed."""


def limit(name: str, default: float, kind: type[int] | type[float] = int) -> Any:
    """Return a limit of the environment variable ``BAO_CHAT_`` and ``name``, a positive number.

    Raises:
        ValueError: it is not such a number.
    """
    text = os.environ.get(f"BAO_CHAT_{name}", "")
    try:
        number = kind(text or default)
    except ValueError:
        number = kind(0)
    if not 0 < number < math.inf:
        raise ValueError(f"BAO_CHAT_{name}={text[:40]!r}: expected a number above 0")
    return number


class ChatLog:
    """The answers of a log file, and what they cost.

    Args:
        path: the file; its folder is made if necessary.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls = 0
        """Calls in the file, failed ones included."""
        self.tokens = 0
        """Tokens that the servers have counted for them."""
        self._answers: dict[str, str] = {}
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
                key, answer, tokens = (exchange[name] for name in ("key", "answer", "tokens"))
            except (ValueError, TypeError, KeyError):
                continue
            self.calls += 1
            self.tokens += tokens
            if answer is not None:
                self._answers[key] = answer

    def find(self, key: str) -> str | None:
        """Return the answer to a question; None if there is none."""
        return self._answers.get(key)

    def add(self, exchange: Mapping[str, Any]) -> None:
        """Append an exchange, in one piece even if several processes write."""
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(exchange).encode() + b"\n")
        self.update()


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
        self.address = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        self._seconds = limit("SECONDS", 300.0, float)
        self._concurrency = limit("CONCURRENCY", 8)
        self._most_calls, self._most_tokens = limit("CALLS", 10_000), limit("TOKENS", 20_000_000)
        name = re.sub(r"[^\w.-]+", "_", model)
        self.log = ChatLog(Path(os.environ.get("BAO_CHAT_LOG") or f"runs/chat/{name}.jsonl"))
        self._turns = asyncio.Semaphore(self._concurrency)
        self._api: openai.AsyncOpenAI | None = None

    async def __aenter__(self) -> ChatClient:
        """Open connections; they belong to the running event loop."""
        self._turns = asyncio.Semaphore(self._concurrency)
        self._api = openai.AsyncOpenAI(
            base_url=self.address,
            api_key=os.environ.get("OPENAI_API_KEY") or "none",  # local servers need none
            timeout=self._seconds,
            max_retries=0,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the connections."""
        assert self._api is not None
        await self._api.close()

    async def ask(self, messages: Sequence[Message]) -> str | None:
        """Return the model's answer; None if the server fails on every attempt.

        Raises:
            ValueError: a limit is reached, there is no server, or it refuses the request.
        """
        question = json.dumps([self.address, self.model, self.fields, *messages], sort_keys=True)
        key = hashlib.sha256(question.encode()).hexdigest()[:32]
        async with self._turns:
            for attempt in range(ATTEMPTS):
                self.log.update()
                known = self.log.find(key)
                if known is not None:
                    return known
                self._check_limits()
                answer, tokens, problem, begun, pause = None, 0, "", time.time(), 0.0
                try:
                    async with asyncio.timeout(self._seconds):
                        answer, tokens = await self._call(messages)
                except TimeoutError:
                    problem = f"no answer in {self._seconds:g} seconds"
                except openai.APIStatusError as error:
                    problem, pause = self._status(error)
                except ServerError as error:
                    problem = str(error)
                except openai.APIConnectionError as error:
                    cause = type(error.__cause__).__name__
                    problem = f"no connection to {self.address}: {cause}"
                    # By name: which HTTP library openai uses depends on its version.
                    if cause == "ConnectError" and attempt == ATTEMPTS - 1:
                        raise self._error(problem) from error
                self.log.add(
                    {
                        "key": key,
                        "model": self.model,
                        "fields": self.fields,
                        "messages": list(messages),
                        "answer": answer,
                        "problem": problem,
                        "tokens": tokens,
                        "seconds": round(time.time() - begun, 3),
                        "time": round(begun),
                    }
                )
                if answer is not None:
                    return answer
                if attempt < ATTEMPTS - 1:
                    await asyncio.sleep(max(pause, PAUSE * 2**attempt))
        Progress.write(f"chat:{self.model}: {problem}")
        return None

    async def _call(self, messages: Sequence[Message]) -> tuple[str, int]:
        """Return a model's answer and the tokens of the exchange.

        Raises:
            ServerError: the answer is too long, or not what the protocol says.
        """
        assert self._api is not None
        body = bytearray()
        create = self._api.chat.completions.with_streaming_response.create
        request: Any = {"model": self.model, "messages": list(messages)}
        async with create(**request, extra_body=self.fields) as response:
            try:
                async for part in response.iter_bytes():
                    body += part
                    if len(body) > MAX_BYTES:
                        raise ServerError(f"an answer of more than {MAX_BYTES} bytes")
            except (ServerError, TimeoutError):
                raise
            except Exception as error:  # of the HTTP library, which is not ours to name
                raise ServerError(f"the answer broke off: {type(error).__name__}") from error
        try:
            read = json.loads(body.decode(errors="replace"))
            content = read["choices"][0]["message"].get("content")
            tokens = (read.get("usage") or {}).get("total_tokens")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ServerError("an answer that is not a chat completion") from error
        content = content if isinstance(content, str) else ""
        content = content[-MAX_ANSWER:].encode(errors="replace").decode()  # no lone surrogates
        return content, tokens if isinstance(tokens, int) and 0 <= tokens < 1 << 32 else 0

    def _status(self, error: openai.APIStatusError) -> tuple[str, float]:
        """Return the problem that a status means, and the pause that the server asks for.

        Raises:
            ValueError: another attempt would get the same status.
        """
        problem = f"status {error.status_code}: {ascii(error.message)[1:200]}"
        if error.status_code not in (408, 409, 429) and error.status_code < 500:
            raise self._error(problem) from error
        try:
            pause = float(error.response.headers.get("retry-after", ""))
        except ValueError:
            pause = 0.0
        return problem, min(pause, LONGEST_PAUSE) if pause > 0 else 0.0

    def _check_limits(self) -> None:
        """Raise ValueError if another call would exceed a limit."""
        for name, spent, most in (
            ("CALLS", self.log.calls, self._most_calls),
            ("TOKENS", self.log.tokens, self._most_tokens),
        ):
            if spent >= most:
                raise self._error(
                    f"the limit BAO_CHAT_{name}={most} is reached in {self.log.path}: with a "
                    "higher one the same command asks nothing twice"
                )

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"chat:{self.model}: {problem}")
