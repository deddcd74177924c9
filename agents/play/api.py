"""The requests of the board, with plain values in and out.

Every value of a request is checked, here or by the function that takes it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio.to_thread

from agents.play import analysis
from agents.play.computing import Asker, Computing
from agents.play.refused import Refused
from agents.play.roster import HUMAN, Roster
from agents.play.rule_texts import ruleset_text
from agents.play.seated_game import Game
from agents.play.sessions import Sessions
from agents.play.watch import MAX_BOARDS, Turn, Watch
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import NotationError

EXAMPLE: Final = Path(__file__).with_name("donkers-example.txt")
"""Donkers' example game, as a transcript."""
MAX_TEXT: Final = 60_000
"""Longest transcript, in characters."""
MAX_GAMES: Final = 200
MAX_WATCHES: Final = 20
BOT_TIMEOUT: Final = 120.0
"""Seconds after which the server gives up on a bot's move, a hint or an evaluation.

Few take long, but the first of its kind compiles, which takes a minute on a slow machine."""
FIRST_BOTS: Final = ("greedy", "alphabeta:4")
"""The players first offered for watching; the first of them also against a person."""

Data = dict[str, Any]
T = TypeVar("T")


@dataclass
class Tables:
    """The state of the server."""

    roster: Roster
    games: Sessions[Game] = field(default_factory=lambda: Sessions(MAX_GAMES))
    watches: Sessions[Watch] = field(default_factory=lambda: Sessions(MAX_WATCHES))
    computing: Computing = field(default_factory=Computing)
    """Runs long computations; other requests run in their own threads and never wait for it."""


Handler = Callable[[Tables, Data, str], Data]
"""Answers a request; takes the tables, the values sent, and the name of a game or a watch."""
AsyncHandler = Callable[[Tables, Data, Asker], Awaitable[Data]]
"""The same, for whoever asks."""


def serving(handler: Handler) -> AsyncHandler:
    """Run a handler in another thread, so the server keeps answering."""

    async def answer(tables: Tables, data: Data, asker: Asker) -> Data:
        return await anyio.to_thread.run_sync(handler, tables, data, asker.game)

    return answer


def computing(handler: Handler) -> AsyncHandler:
    """Run a handler that computes; it takes its turn with others."""

    async def answer(tables: Tables, data: Data, asker: Asker) -> Data:
        return await _compute(tables, asker, partial(handler, tables, data, asker.game))

    return answer


async def _compute(tables: Tables, asker: Asker, work: Callable[[], T]) -> T:
    return await tables.computing.run(asker, work, BOT_TIMEOUT)


# --- values of a request ----------------------------------------------------------------------


def _text(data: Data, key: str, default: str | None = None, max_length: int = 200) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or len(value) > max_length:
        raise Refused(f"{key}: expected a text of at most {max_length} characters")
    return value.removeprefix("\ufeff")  # a byte order mark, which some editors put before a text


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


def _ruleset(data: Data, roster: Roster) -> Ruleset:
    name = _text(data, "ruleset", "zanzibar")
    rulesets = roster.rulesets
    if name not in rulesets:
        raise Refused(f"unknown rule set {name[:80]!r}; expected one of {', '.join(rulesets)}")
    return rulesets[name]


def _board(data: Data, roster: Roster) -> Board:
    """Return the board that a request describes: an opening, a position, or a transcript."""
    try:
        if "transcript" in data:
            text = _text(data, "transcript", max_length=MAX_TEXT)
            return Board.from_transcript(text, None)
        if "position" in data:
            return Board.from_text(_text(data, "position").strip(), _ruleset(data, roster))
    except (NotationError, ValueError) as error:
        raise Refused(str(error)) from error
    first = _text(data, "first_player", "south")
    if first == "lot":
        first = secrets.choice(("south", "north"))
    if first not in ("south", "north"):
        raise Refused("first_player: expected south, north or lot")
    return Board(_ruleset(data, roster), SOUTH if first == "south" else NORTH)


# --- the requests -----------------------------------------------------------------------------


def setup(tables: Tables, data: Data, name: str) -> Data:
    """Return the rule sets, players and evaluators to choose from, and the first choice."""
    return {
        "rulesets": [
            {
                "name": rules.name,
                "first_player": rules.first_player,
                "words": ruleset_text(rules.name),
            }
            for rules in tables.roster.rulesets.values()
        ],
        "players": tables.roster.choices(),
        "evaluators": analysis.evaluators(tables.roster),
        "first_seats": (HUMAN, next(iter(tables.roster.further), FIRST_BOTS[0])),
        "first_bots": FIRST_BOTS,
        "max_boards": MAX_BOARDS,
    }


def new_game(tables: Tables, data: Data, name: str) -> Data:
    """Start a game; returns its name and its state."""
    game = Game(_board(data, tables.roster), _pair(data, "seats", tables.roster))
    return {"id": tables.games.add(game), "state": game.state()}


def example(tables: Tables, data: Data, name: str) -> Data:
    """Start Donkers' example game, at its first move."""
    game = Game(Board.from_transcript(EXAMPLE.read_text(encoding="ascii")), (HUMAN, HUMAN))
    game.go_to(0)
    return {"id": tables.games.add(game), "state": game.state()}


def show_game(tables: Tables, data: Data, name: str) -> Data:
    """Return the state of a game."""
    with tables.games.use(name) as game:
        return {"state": game.state()}


def play(tables: Tables, data: Data, name: str) -> Data:
    """Play an action; returns its events and the state after it."""
    action, ply = _integer(data, "action", 0, 63), _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        return {"events": game.play(action, ply), "state": game.state()}


def go_to(tables: Tables, data: Data, name: str) -> Data:
    """Undo or redo to a ply; returns the state there."""
    ply = _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        game.go_to(ply)
        return {"state": game.state()}


def take_seats(tables: Tables, data: Data, name: str) -> Data:
    """Change who plays; returns the state."""
    seats = _pair(data, "seats", tables.roster)
    with tables.games.use(name) as game:
        game.seats = seats
        return {"state": game.state()}


def events(tables: Tables, data: Data, name: str) -> Data:
    """Return the events of a move of the list."""
    ply = _integer(data, "ply", 0, 10_000)
    with tables.games.use(name) as game:
        return {"events": game.events(ply)}


def choice(tables: Tables, data: Data, name: str) -> Data:
    """Return the events of a move up to its house choice."""
    pit, direction = _integer(data, "pit", 0, 15), _integer(data, "direction", 0, 1)
    with tables.games.use(name) as game:
        return {"events": game.choice(pit, direction)}


def why_not(tables: Tables, data: Data, name: str) -> Data:
    """Return the rule that forbids a pit and a direction."""
    pit, direction = _integer(data, "pit", 0, 15), _integer(data, "direction", 0, 1)
    with tables.games.use(name) as game:
        return dict(game.why_not(pit, direction))


def transcript(tables: Tables, data: Data, name: str) -> Data:
    """Return the game as text."""
    spelling = _text(data, "spelling", "donkers")
    with tables.games.use(name) as game:
        try:
            return {"transcript": game.transcript(spelling)}
        except NotationError as error:
            raise Refused(str(error)) from error


def hints(tables: Tables, data: Data, name: str) -> Data:
    """Evaluate each move with a search or a checkpoint."""
    evaluator = _text(data, "evaluator", analysis.SEARCH)
    with tables.games.use(name) as game:
        board, ply = game.board(), game.ply
    return {"ply": ply, **analysis.hints(board, evaluator, tables.roster)}


def evaluation(tables: Tables, data: Data, name: str) -> Data:
    """Return South's chance, for the evaluation bar."""
    with tables.games.use(name) as game:
        board, ply = game.board(), game.ply
    return {"ply": ply, **analysis.south_chance(board)}


def new_watch(tables: Tables, data: Data, name: str) -> Data:
    """Start games between two players."""
    players = _pair(data, "players", tables.roster)
    boards = _integer(data, "boards", 1, MAX_BOARDS)
    ruleset, seed = _ruleset(data, tables.roster), secrets.randbelow(1 << 30)
    watch = Watch(ruleset, players, boards, tables.roster, seed)
    return {"id": tables.watches.add(watch), "state": watch.state()}


async def step_watch(tables: Tables, data: Data, asker: Asker) -> Data:
    """Play one ply on every board.

    Each board takes its turn with other clients' work. No board changes until all have an answer.
    """

    def look() -> list[Turn]:
        with tables.watches.use(asker.game) as watch:
            return watch.turns()

    turns = await anyio.to_thread.run_sync(look)
    actions = [
        await _compute(tables, asker, partial(tables.roster.act, turn.player, turn.board))
        for turn in turns
    ]

    def move() -> Data:
        with tables.watches.use(asker.game) as watch:
            watch.play(turns, actions)
            return {"state": watch.state()}

    return await anyio.to_thread.run_sync(move)


async def bot_move(tables: Tables, data: Data, asker: Asker) -> Data:
    """Let the bot whose turn it is move; returns the events and the state after them.

    The game changes only when the bot has answered: a bot that fails, or takes longer than
    BOT_TIMEOUT, leaves it as it was.
    """
    ply = _integer(data, "ply", 0, 10_000)

    def look() -> tuple[Board, str]:
        with tables.games.use(asker.game) as game:
            if ply != game.ply:
                raise Refused(f"the game is at ply {game.ply}, not {ply}: look again", 409)
            return game.board(), game.player

    board, player = await anyio.to_thread.run_sync(look)
    if board.outcome() is not None:
        raise Refused("the game is over")
    if player == HUMAN:
        raise Refused(f"{SEAT_NAMES[board.turn]} is played by a person")
    action = await _compute(tables, asker, partial(tables.roster.act, player, board))

    def move() -> Data:
        with tables.games.use(asker.game) as game:
            if game.board() != board:
                raise Refused("the game has gone on without this bot: look again", 409)
            return {"events": game.play(action, ply), "state": game.state()}

    return await anyio.to_thread.run_sync(move)


GAME: Final = "/api/games/{name}"
POSTS: Final[dict[str, Handler]] = {
    "/api/games": new_game,
    "/api/example": example,
    f"{GAME}/play": play,
    f"{GAME}/goto": go_to,
    f"{GAME}/seats": take_seats,
    f"{GAME}/events": events,
    f"{GAME}/choice": choice,
    f"{GAME}/why": why_not,
    f"{GAME}/transcript": transcript,
}
"""Paths that take a JSON object, with their handlers."""
COMPUTED: Final[dict[str, AsyncHandler]] = {
    f"{GAME}/bot": bot_move,
    f"{GAME}/hints": computing(hints),
    f"{GAME}/evaluation": computing(evaluation),
    "/api/watches": computing(new_watch),
    "/api/watches/{name}/step": step_watch,
}
"""Those whose answer takes long, so that it is dropped when its client leaves."""
GETS: Final[dict[str, Handler]] = {"/api/setup": setup, GAME: show_game}
"""Paths that are only read, with their handlers."""
