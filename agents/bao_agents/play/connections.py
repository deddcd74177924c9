"""Close connections of clients that send an incomplete request, or none, in time.

uvicorn closes a connection that is idle after an answer, but not one that never sends a whole
request, and it accepts connections until no file can be opened.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS = 10.0
"""Time for a whole request to arrive, from its first byte or from the new connection."""
ANSWER_SECONDS = 600.0
"""Time to answer it and send the answer: slow bots on many boards need minutes."""
END_SECONDS = 0.5
"""Time to answer it after the server has been told to end."""
BACKLOG = 16
"""Connections that are accepted together, before the excess ones are closed."""
_QUEUE = 512
"""Connections that the system keeps until they are accepted."""
_MAX_CONNECTIONS = 256
_OTHER_FILES = 100
"""Files for everything else: checkpoints, the page, and connections not yet closed."""


def max_connections() -> int:
    """Return the most connections, given the files that this process may open."""
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(8, min(_MAX_CONNECTIONS, files - _OTHER_FILES))


class TimedProtocol(H11Protocol):
    """Limit the time of each request and the number of connections in uvicorn's protocol.

    If there are too many connections, the one that has been idle longest is closed.
    """

    limit = max_connections()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arriving = True
        """Whether a whole request has yet to arrive."""
        self._since = 0.0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._end_in(READ_SECONDS)
        if len(self.connections) > self.limit:
            others = [one for one in self.connections if isinstance(one, TimedProtocol)]
            idle = min(others, key=lambda one: (one._is_answered_now(), one._since))
            self.connections.discard(idle)  # at once: more may come before it is closed
            idle.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; the time runs from the first part."""
        super().data_received(data)
        arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not (arriving and self._arriving):
            self._end_in(READ_SECONDS if arriving else ANSWER_SECONDS)
        self._arriving = arriving

    def shutdown(self) -> None:
        """End soon, with or without an answer, because the server ends."""
        super().shutdown()
        self._end_in(END_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _is_answered_now(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _end_in(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_QUEUE)  # asyncio has shortened the queue to BACKLOG


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server that drops clients in time, while it runs and when it ends."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        backlog=BACKLOG,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,  # for what is left after END_SECONDS
        h11_max_incomplete_event_size=32 * 1024,
    )
    return _Server(config)
