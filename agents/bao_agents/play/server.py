"""Serve the board: JSON requests, and a page of plain files.

It serves a person and their network. Bodies are small JSON objects, files come from one folder, and
it answers only requests that its own page makes to this host. No single address can block the
others, with open connections or with many in a row. Only a proxy can stop a flood from many
addresses.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path

import h11
import uvicorn
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bao_agents.play.api import GETS, POSTS, Handler, Lobby
from bao_agents.play.computing import Allowance
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.seated_game import Data

FOLDER = Path(__file__).with_name("static")
"""The folder of the page and its files."""
MAX_BYTES = 64 * 1024
"""The size of the largest request body, in bytes."""
MAX_CONNECTIONS = 128
"""The most open connections of one address; further ones are closed at once. A proxy has one
address for all visitors, so the proxy itself has to limit their connections."""
CONNECTION_SECONDS = 0.003
"""Seconds charged for a connection. Connections of a client over its allowance are read later."""
REQUEST_SECONDS = 10
"""Seconds that the body of a request may take to arrive."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
    "connection": "close",
}
"""The headers of every answer. They let the page run only its own files. A connection carries one
request, so that requests sent ahead cannot fill the memory."""


def client_of(scope: Scope) -> str:
    """Return the address that a request counts for: for IPv6, its /64 network."""
    address = str((scope["client"] or ("",))[0])
    try:
        number = ip_address(address)
    except ValueError:
        return address
    if number.version == 4:
        return address
    return str(number.ipv4_mapped or ip_network((int(number) >> 64 << 64, 64)))


def _route(lobby: Lobby, path: str, handler: Handler, method: str) -> Route:
    """Return the route of a request; its values come from the path and the body."""

    async def endpoint(request: Request) -> Response:
        values = await _body(request) if method == "POST" else {}
        answer = handler(lobby, client_of(request.scope), values | request.path_params)
        return JSONResponse(await _while_connected(request, answer))

    return Route(path, endpoint, methods=[method])


async def _while_connected(request: Request, work: Awaitable[Data]) -> Data:
    """Return the answer to a request that has been read; cancel it if the client disconnects."""

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer, left = asyncio.ensure_future(work), asyncio.ensure_future(leave())
    try:
        await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise ClientDisconnect
    except asyncio.CancelledError as error:
        raise Refused("the server is shutting down", 503) from error
    finally:
        answer.cancel()
        left.cancel()


async def _error(request: Request, error: Exception) -> Response:
    """Return the answer to a failure: a sentence for the user. Unexpected failures are logged."""
    words, status = "the server failed; its log says why", 500
    if isinstance(error, Refused):
        words, status = error.message, error.status
    elif isinstance(error, ValidationError):
        first = error.errors()[0]
        words, status = f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400
    elif isinstance(error, HTTPException):  # from the routes and the static files
        words, status = "there is nothing here", error.status_code
    return JSONResponse({"error": words}, status)


async def _body(request: Request) -> Data:
    """Return the JSON object of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].lower()
    if kind != "application/json":
        raise Refused("expected content-type application/json", 415)
    body = b""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise Refused(
                        f"the request is too long: expected at most {MAX_BYTES} bytes", 413
                    )
    except TimeoutError as error:
        raise Refused("the request took too long to arrive", 408) from error
    try:
        data = from_json(body or b"{}")
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise Refused("expected a JSON object")
    return data


class Guard:
    """Answer only requests that this host's own page makes to it; add HEADERS.

    A page of another site can make a browser send requests to this machine. The browser then sends
    the name of that site as Origin. If the site points a name of its own at this machine, Host has
    that name. So Host must be a numeric address or a known name. Origin must be the same as Host,
    or have the name of a proxy, which may have replaced the name in Host.

    Starlette's TrustedHostMiddleware is not enough: it checks only Host, and its answer is not JSON
    and does not list the known names, which the page has to show people.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], proxies: Sequence[str]) -> None:
        self._app = app
        self._proxies = [name.lower() for name in proxies]
        self._hosts = ["localhost", *(name.lower() for name in hosts), *self._proxies]
        self.connections: Allowance = Allowance()
        """The allowance for the connections of each address."""

    def _refusal(self, host: str, origin: str | None) -> str | None:
        """Return why a request with these headers is not answered; None if it is."""
        name = _name_of(host)
        if name is None or not (name in self._hosts or _is_address(name)):
            return (
                f"unknown host: expected an IP address or one of {', '.join(self._hosts)}; "
                "bao play --name HOST adds a name"
            )
        scheme, _, source = (origin or f"http://{host}").lower().partition("://")
        is_own = source == host.lower() or _name_of(source) in self._proxies
        if scheme in ("http", "https") and is_own:
            return None
        return "requests from other sites are not answered; bao play --name HOST adds a name"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] == "http":
            headers = Headers(scope=scope)
            refusal = self._refusal(headers.get("host", ""), headers.get("origin"))
            app = JSONResponse({"error": refusal}, 403) if refusal else self._app
            await app(scope, receive, send_with_headers)


def _name_of(host: str) -> str | None:
    """Return a host without its port and brackets, in lower case; None if it is not valid."""
    match = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::[0-9]{1,5})?", host.lower())
    return match and (match[1] or match[2])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def create_app(roster: Roster, hosts: Sequence[str] = (), proxies: Sequence[str] = ()) -> ASGIApp:
    """Make the server, as an ASGI application.

    Args:
        roster: the players.
        hosts: the accepted names of this machine, besides localhost and numeric addresses.
        proxies: the host names of the proxies that serve the board.
    """
    lobby = Lobby(roster)

    routes = [
        *(_route(lobby, path, handler, "POST") for path, handler in POSTS.items()),
        *(_route(lobby, path, handler, "GET") for path, handler in GETS.items()),
        Route("/", lambda request: FileResponse(FOLDER / "index.html")),
        Mount("/static", StaticFiles(directory=FOLDER)),
    ]
    failures = (Refused, ValidationError, HTTPException, ClientDisconnect, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(failures, _error))
    return Guard(app, hosts, proxies)


class _Protocol(H11Protocol):
    """uvicorn's protocol, with limits for each address.

    Connections beyond MAX_CONNECTIONS are closed before anything is read. If an address has opened
    many connections recently, its next ones are read with a delay.

    A connection that sends more after its request is also closed: uvicorn alone would send a second
    answer within the first, which fails and fills the log.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.visitor = client_of({"client": self.client})
        count = sum(connection.visitor == self.visitor for connection in self.connections)  # type: ignore[union-attr]
        if self.config.forwarded_allow_ips:
            return
        if count > MAX_CONNECTIONS:
            transport.abort()
        elif wait := self.config.app.connections.use(self.visitor, CONNECTION_SECONDS):  # type: ignore[union-attr]
            # asyncio of Python 3.11.2 begins to read after this method, even if it is paused.
            self.loop.call_soon(transport.pause_reading)
            self.loop.call_later(wait, transport.resume_reading)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state is h11.SEND_BODY:
            self.transport.abort()
        else:
            super().send_400_response(msg)


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server that trusts the header X-Forwarded-For only from a known proxy.

    The proxy's address is in uvicorn's environment variable FORWARDED_ALLOW_IPS.
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return uvicorn.Server(config)
