"""The server of the board: JSON in and out, and a page of plain files.

It trusts no client: bodies are small JSON objects, every value is checked, players come from the
roster, files from one folder, and requests are answered only if they were made to this host by
its own page.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.play.analysis import hints, south_chance
from agents.play.game import Game
from agents.play.geometry import LAYOUTS, board_parts
from agents.play.refused import Refused
from agents.play.roster import HUMAN, LIMITS, Roster
from agents.play.sessions import Sessions
from agents.play.watch import MOST_BOARDS, Watch
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation import NotationError

FOLDER: Final = Path(__file__).parent
EXAMPLE: Final = FOLDER / "donkers-example.txt"
"""Donkers' example game, as a transcript."""
MOST_BYTES: Final = 64 * 1024
"""Longest body of a request."""
MOST_GAMES: Final = 200
MOST_WATCHES: Final = 20
PATIENCE: Final = 60.0
"""Seconds that a player may think before its move is given up."""
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

_log = logging.getLogger("bao_env.play")
Data = dict[str, Any]


@dataclass
class Tables:
    """All that the server keeps."""

    roster: Roster
    games: Sessions[Game] = field(default_factory=lambda: Sessions(MOST_GAMES))
    watches: Sessions[Watch] = field(default_factory=lambda: Sessions(MOST_WATCHES))
    threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(4))
    """Requests that may compute at the same time."""


# --- values of a request ----------------------------------------------------------------------


def _text(data: Data, key: str, default: str | None = None, most: int = 200) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or len(value) > most:
        raise Refused(f"{key}: expected a text of at most {most} characters")
    return value


def _integer(data: Data, key: str, low: int, high: int) -> int:
    value = data.get(key)
    if type(value) is not int or not low <= value <= high:
        raise Refused(f"{key}: expected an integer from {low} to {high}")
    return value


def _pair(data: Data, key: str, roster: Roster) -> tuple[str, str]:
    value = data.get(key)
    if not isinstance(value, list) or len(value) != 2:
        raise Refused(f"{key}: expected a list of two players")
    for player in value:
        if not isinstance(player, str):
            raise Refused(f"{key}: expected the names of two players")
    return roster.check(value[0]), roster.check(value[1])


def _ruleset(data: Data) -> Ruleset:
    name = _text(data, "ruleset", "zanzibar")
    if name not in RULESETS:
        raise Refused(f"unknown rule set {name[:80]!r}; expected one of {', '.join(RULESETS)}")
    return RULESETS[name]


def _board(data: Data) -> Board:
    """The start that a request describes: the opening, a position, or a game already played."""
    try:
        if "transcript" in data:
            text = _text(data, "transcript", most=MOST_BYTES)
            return Board.from_transcript(text, None)
        if "position" in data:
            return Board.from_text(_text(data, "position").strip(), _ruleset(data))
    except (NotationError, ValueError) as error:
        raise Refused(str(error)) from error
    first = _text(data, "first_player", "south")
    if first == "lot":
        first = secrets.choice(("south", "north"))
    if first not in ("south", "north"):
        raise Refused("first_player: expected south, north or lot")
    return Board(_ruleset(data), SOUTH if first == "south" else NORTH)


# --- what can be asked ------------------------------------------------------------------------


def setup(tables: Tables, data: Data, name: str) -> Data:
    """Rule sets, players and limits to choose from."""
    return {
        "rulesets": [
            {"name": rules.name, "first_player": rules.first_player} for rules in RULESETS.values()
        ],
        "checkpoints": tables.roster.checkpoints(),
        "limits": {kind: list(limits) for kind, limits in LIMITS.items()},
        "most_boards": MOST_BOARDS,
    }


def new_game(tables: Tables, data: Data, name: str) -> Data:
    """Start a game; its name and its state."""
    game = Game(_board(data), _pair(data, "seats", tables.roster))
    return {"id": tables.games.add(game), "state": game.state()}


def example(tables: Tables, data: Data, name: str) -> Data:
    """Start a game that is Donkers' example, at its first move."""
    game = Game(Board.from_transcript(EXAMPLE.read_text(encoding="ascii")), (HUMAN, HUMAN))
    game.go_to(0)
    return {"id": tables.games.add(game), "state": game.state()}


def show_game(tables: Tables, data: Data, name: str) -> Data:
    """The state of a game."""
    with tables.games.use(name) as game:
        return {"state": game.state()}


def play(tables: Tables, data: Data, name: str) -> Data:
    """Play an action; its events and the state after it."""
    action, ply = _integer(data, "action", 0, 63), _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        return {"events": game.play(action, ply), "state": game.state()}


def go_to(tables: Tables, data: Data, name: str) -> Data:
    """Undo or redo to a ply; the state there."""
    ply = _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        game.go_to(ply)
        return {"state": game.state()}


def take_seats(tables: Tables, data: Data, name: str) -> Data:
    """Change who plays; the state."""
    seats = _pair(data, "seats", tables.roster)
    with tables.games.use(name) as game:
        game.seats = seats
        return {"state": game.state()}


def events(tables: Tables, data: Data, name: str) -> Data:
    """The events of a move of the list."""
    ply = _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        return {"events": game.events(ply)}


def choice(tables: Tables, data: Data, name: str) -> Data:
    """The events of a move up to its house choice."""
    pit, direction = _integer(data, "pit", 0, 15), _integer(data, "direction", 0, 1)
    with tables.games.use(name) as game:
        return {"events": game.choice(pit, direction)}


def why_not(tables: Tables, data: Data, name: str) -> Data:
    """The rule that forbids a pit and a direction."""
    pit, direction = _integer(data, "pit", 0, 15), _integer(data, "direction", 0, 1)
    with tables.games.use(name) as game:
        return dict(game.why_not(pit, direction))


def transcript(tables: Tables, data: Data, name: str) -> Data:
    """The game as text."""
    spelling = _text(data, "spelling", "donkers")
    with tables.games.use(name) as game:
        try:
            return {"transcript": game.transcript(spelling)}
        except NotationError as error:
            raise Refused(str(error)) from error


def judge(tables: Tables, data: Data, name: str) -> Data:
    """What a search or a checkpoint thinks of the position."""
    who = _text(data, "judge", "alphabeta")
    with tables.games.use(name) as game:
        board, ply = game.board(), game.ply
    return {"ply": ply, **hints(board, who, tables.roster)}


def evaluate(tables: Tables, data: Data, name: str) -> Data:
    """South's chance, for the evaluation bar."""
    with tables.games.use(name) as game:
        board, ply = game.board(), game.ply
    return {"ply": ply, **south_chance(board)}


def new_watch(tables: Tables, data: Data, name: str) -> Data:
    """Start games between two players."""
    players = _pair(data, "players", tables.roster)
    boards = _integer(data, "boards", 1, MOST_BOARDS)
    watch = Watch(_ruleset(data), players, boards, tables.roster, secrets.randbelow(1 << 30))
    return {"id": tables.watches.add(watch), "state": watch.state()}


def step_watch(tables: Tables, data: Data, name: str) -> Data:
    """Play one ply on every board."""
    with tables.watches.use(name) as watch:
        watch.step()
        return {"state": watch.state()}


async def bot_move(tables: Tables, data: Data, name: str) -> Data:
    """Let the bot whose turn it is move; its events and the state after them.

    The game changes only once the bot has answered, so one that fails, or takes longer than
    PATIENCE, leaves it as it was.
    """
    ply = _integer(data, "ply", 0, 10_000)

    def look() -> tuple[Board, str]:
        with tables.games.use(name) as game:
            if ply != game.ply:
                raise Refused(f"the game is at ply {game.ply}, not {ply}: look again", 409)
            return game.board(), game.player

    board, player = await anyio.to_thread.run_sync(look)
    if board.outcome() is not None:
        raise Refused("the game is over")
    if player == HUMAN:
        raise Refused(f"{SEAT_NAMES[board.turn]} is played by a person")
    chosen: list[int] = []
    with anyio.move_on_after(PATIENCE):
        chosen = await anyio.to_thread.run_sync(
            tables.roster.act,
            player,
            board.ruleset,
            [board],
            limiter=tables.threads,
            abandon_on_cancel=True,
        )
    if not chosen:
        raise Refused(f"{player} took longer than {PATIENCE:.0f} seconds: choose another", 504)
    return await anyio.to_thread.run_sync(play, tables, {"action": chosen[0], "ply": ply}, name)


# --- the way in and out -----------------------------------------------------------------------

Handler = Callable[[Tables, Data, str], Data]
AsyncHandler = Callable[[Tables, Data, str], Awaitable[Data]]


def _answer(tables: Tables, handler: Handler | None, slow: AsyncHandler | None = None) -> Any:
    """A handler as a Starlette endpoint."""

    async def endpoint(request: Request) -> Response:
        try:
            data = await _body(request) if request.method == "POST" else {}
            name = request.path_params.get("name", "")
            if slow is not None:
                found = await slow(tables, data, name)
            else:
                assert handler is not None
                found = await anyio.to_thread.run_sync(
                    handler, tables, data, name, limiter=tables.threads
                )
            return JSONResponse(found)
        except Refused as refused:
            return JSONResponse({"error": refused.message}, refused.status)
        except ClientDisconnect:
            return JSONResponse({"error": "the client has left"}, 400)
        except Exception:
            _log.exception("%s %s", request.method, request.url.path)
            return JSONResponse({"error": "the server made a mistake; its log says which"}, 500)

    return endpoint


async def _body(request: Request) -> Data:
    """The JSON object of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise Refused("expected content-type application/json", 415)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused(f"too long: expected at most {MOST_BYTES} bytes", 413)
    try:
        data = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused("expected a JSON object") from error
    if not isinstance(data, dict):
        raise Refused("expected a JSON object")
    return data


class Guard:
    """Answers only what was asked of this host by its own page, and sends HEADERS.

    A page of another site may make a browser call 127.0.0.1, under its own name (the browser
    says so in Origin) or under a name of its own that it points there (then Host is wrong).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        if scope["type"] == "http":
            headers = {key.lower(): value.decode("latin-1") for key, value in scope["headers"]}
            host = headers.get(b"host", "")
            origin = headers.get(b"origin")
            wrong = None
            if _hostname(f"//{host}") not in self._hosts:
                wrong = f"unknown host; expected one of {', '.join(sorted(self._hosts))}"
            elif origin is not None and urlsplit(origin).netloc.lower() != host.lower():
                wrong = "requests of other sites are not answered"
            if wrong:
                await JSONResponse({"error": wrong}, 403)(scope, receive, send_with_headers)
                return
        await self._app(scope, receive, send_with_headers)


def _hostname(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def create_app(roster: Roster, hosts: Sequence[str] = ()) -> ASGIApp:
    """The server as an ASGI application.

    Args:
        roster: who may play.
        hosts: names under which it may be called, beside those of this machine alone.
    """
    tables = Tables(roster)
    page = (FOLDER / "static" / "index.html").read_bytes()

    async def index(request: Request) -> Response:
        return Response(page, media_type="text/html; charset=utf-8")

    async def parts(request: Request) -> Response:
        layout, viewer = request.path_params["layout"], request.path_params["viewer"]
        if layout not in LAYOUTS or viewer not in ("south", "north"):
            return JSONResponse({"error": "expected wide or tall, south or north"}, 404)
        return JSONResponse(board_parts(layout, SOUTH if viewer == "south" else NORTH))

    game = "/api/games/{name}"
    posts: dict[str, Handler] = {
        "/api/games": new_game,
        "/api/example": example,
        f"{game}/play": play,
        f"{game}/goto": go_to,
        f"{game}/seats": take_seats,
        f"{game}/events": events,
        f"{game}/choice": choice,
        f"{game}/why": why_not,
        f"{game}/transcript": transcript,
        f"{game}/hints": judge,
        f"{game}/evaluation": evaluate,
        "/api/watches": new_watch,
        "/api/watches/{name}/step": step_watch,
    }
    routes = [Route(path, _answer(tables, what), methods=["POST"]) for path, what in posts.items()]
    routes += [
        Route(f"{game}/bot", _answer(tables, None, bot_move), methods=["POST"]),
        Route("/api/setup", _answer(tables, setup), methods=["GET"]),
        Route("/api/board/{layout}/{viewer}", parts, methods=["GET"]),
        Route(game, _answer(tables, show_game), methods=["GET"]),
        Route("/", index, methods=["GET"]),
    ]
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=FOLDER / "static"))],
        exception_handlers={404: _nothing, 405: _nothing},
    )
    return Guard(app, ["127.0.0.1", "localhost", "::1", *hosts])


async def _nothing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return JSONResponse({"error": "there is nothing here"}, status)
