"""The server of the board: JSON requests, and a page of plain files.

No client is trusted: bodies are small JSON objects, files come from one folder, and it answers only
requests that its own page made to this host.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.play.api import COMPUTED, GETS, POSTS, AsyncHandler, Data, Tables, serving
from agents.play.computing import Asker
from agents.play.geometry import LAYOUTS, board_parts
from agents.play.refused import Refused
from agents.play.roster import Roster
from bao_env.engine.layout import NORTH, SOUTH

FOLDER: Final = Path(__file__).with_name("static")
"""The page and its files."""
_HOST: Final = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
"""A Host header: a name or an address, and perhaps a port."""
MAX_BYTES: Final = 64 * 1024
"""Longest body of a request."""
HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""Sent with every answer: the page runs its own files and nothing else."""


def _endpoint(tables: Tables, handler: AsyncHandler) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler for Starlette."""

    async def endpoint(request: Request) -> Response:
        data = await _body(request) if request.method == "POST" else {}
        return JSONResponse(await handler(tables, data, _asker(request)))

    return endpoint


def _endpoint_while_connected(
    tables: Tables, handler: AsyncHandler
) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler that is cancelled when its client disconnects."""

    async def endpoint(request: Request) -> Response:
        data = await _body(request)
        answer = asyncio.ensure_future(handler(tables, data, _asker(request)))
        left = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientDisconnect
            return JSONResponse(answer.result())
        finally:
            answer.cancel()
            left.cancel()

    return endpoint


def _asker(request: Request) -> Asker:
    """Return who asks: clients are told apart by their addresses, which they cannot choose."""
    address = request.client.host if request.client else ""
    return Asker(address, request.path_params.get("name", ""))


async def _left(request: Request) -> None:
    """Wait until the client disconnects; the body of its request has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _error(request: Request, error: Exception) -> Response:
    """Return any failure as a sentence for the user; the server logs unexpected ones."""
    if isinstance(error, Refused):
        return JSONResponse({"error": error.message}, error.status)
    if isinstance(error, HTTPException):  # from the routes and the static files
        return JSONResponse({"error": "there is nothing here"}, error.status_code)
    if isinstance(error, ClientDisconnect):
        return JSONResponse({"error": "the client has left"}, 400)
    return JSONResponse({"error": "the server made a mistake; its log says which"}, 500)


async def _body(request: Request) -> Data:
    """Return the JSON object of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused("expected content-type application/json", 415)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise Refused(f"too long: expected at most {MAX_BYTES} bytes", 413)
    try:
        data = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused("expected a JSON object") from error
    if not isinstance(data, dict):
        raise Refused("expected a JSON object")
    return data


class Guard:
    """Answers only requests that this host's own page made to it, and sends HEADERS.

    A page of another site can make a browser call 127.0.0.1. It may do so under its own name, which
    the browser then sends as Origin, or under a name that it points at this machine; then Host is
    wrong. Starlette's TrustedHostMiddleware checks only Host, and its answer is not JSON and does
    not name the hosts, but the page shows people what the server answers.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            origin = headers.get("origin", f"http://{host}")
            wrong = None
            if _hostname(host) not in self._hosts:
                wrong = f"unknown host; expected one of {', '.join(sorted(self._hosts))}"
            elif origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
                wrong = "requests from other sites are not answered"
            if wrong:
                await JSONResponse({"error": wrong}, 403)(scope, receive, send_with_headers)
                return
        await self._app(scope, receive, send_with_headers)


def _hostname(host: str) -> str:
    """Return the name in a Host header, in small letters; nothing if it is malformed."""
    found = _HOST.fullmatch(host.lower())
    return found["name"].strip("[]") if found else ""


def create_app(roster: Roster, hosts: Sequence[str] = ()) -> ASGIApp:
    """Make the server as an ASGI application.

    Args:
        roster: the players.
        hosts: the accepted host names, besides localhost and its addresses.
    """
    tables = Tables(roster)
    page = (FOLDER / "index.html").read_bytes()

    async def index(request: Request) -> Response:
        return Response(page, media_type="text/html; charset=utf-8")

    async def parts(request: Request) -> Response:
        layout, viewer = request.path_params["layout"], request.path_params["viewer"]
        if layout not in LAYOUTS or viewer not in ("south", "north"):
            return JSONResponse({"error": "expected wide or tall, south or north"}, 404)
        return JSONResponse(board_parts(layout, SOUTH if viewer == "south" else NORTH))

    posts = {path: _endpoint(tables, serving(what)) for path, what in POSTS.items()}
    posts |= {path: _endpoint_while_connected(tables, what) for path, what in COMPUTED.items()}
    gets = {path: _endpoint(tables, serving(what)) for path, what in GETS.items()}
    routes = [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in gets.items()),
        Route("/api/board/{layout}/{viewer}", parts, methods=["GET"]),
        Route("/", index, methods=["GET"]),
        Mount("/static", StaticFiles(directory=FOLDER)),
    ]
    failures = (Refused, HTTPException, ClientDisconnect, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(failures, _error))
    return Guard(app, ["127.0.0.1", "localhost", "::1", *hosts])
