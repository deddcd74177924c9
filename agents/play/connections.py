"""Close connections of clients that send an incomplete request, or none, in time.

uvicorn closes a connection that is idle after an answer, but not one that never sends a whole
request, and it accepts connections until no file can be opened.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS: Final = 10.0
"""In which a whole request must arrive, counted from its first byte or the new connection."""
ANSWER_SECONDS: Final = 600.0
"""In which it must be answered, and the answer taken: slow bots on many boards need minutes."""
END_SECONDS: Final = 0.5
"""In which it must be answered once the server has been told to end."""
BACKLOG: Final = 16
"""Connections that are accepted at once, before those too many are closed."""
_QUEUE: Final = 512
"""Connections that the system keeps until they are accepted."""
_MAX_CONNECTIONS: Final = 256
_OTHER_FILES: Final = 100
"""Files for everything else: checkpoints, the page, and connections not yet closed."""


def max_connections() -> int:
    """Connections that may be open at once, with the files that this process may open."""
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(8, min(_MAX_CONNECTIONS, files - _OTHER_FILES))


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with a time for each request, and a number of connections.

    When there are too many, the one that has sent no request for longest is closed.
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
        """Take a part of a request; the time runs from its first."""
        super().data_received(data)
        arriving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not (arriving and self._arriving):
            self._end_in(READ_SECONDS if arriving else ANSWER_SECONDS)
        self._arriving = arriving

    def shutdown(self) -> None:
        """End soon, whatever is being answered, for the server ends."""
        super().shutdown()
        self._end_in(END_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time."""
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
            listener.listen(_QUEUE)  # asyncio has made the queue as short as BACKLOG


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server that waits for no client for ever, and whose end waits for none."""
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
