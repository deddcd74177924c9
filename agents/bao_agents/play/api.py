"""Answer the requests of the board with functions that take their values and return plain values.

The types of all values are checked before a function is called; the function checks the rest.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from bao_agents.arena.solved_positions import shipped_won_positions
from bao_agents.play import analysis
from bao_agents.play.computing import Computing
from bao_agents.play.geometry import LAYOUTS, board_parts
from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN, Roster
from bao_agents.play.rule_texts import ruleset_text
from bao_agents.play.seated_game import Game
from bao_agents.play.sessions import Sessions
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import format_position

EXAMPLE = Path(__file__).with_name("donkers-example.txt")
"""Donkers' example game, as a transcript."""
MAX_GAMES = 200
BOT_TIMEOUT = 120.0
"""Seconds after which the server gives up on a bot's move, a hint or an evaluation.

Few take long, but the first of its kind compiles for up to a minute on a slow machine."""
FIRST_BOT = "greedy"
"""The player first offered against a person."""
PUZZLE_PLIES = 9
"""The longest win in a puzzle, in plies; one-ply wins are not used."""
PUZZLE_BOT = "solver:300ms"
_BYTE_ORDER_MARK = "\ufeff"
"""A mark that some editors put at the start of a file."""

Data = dict[str, Any]
Players = Annotated[list[str], Field(min_length=2, max_length=2)]
"""The names of the players South and North."""
T = TypeVar("T")


@dataclass
class Tables:
    """The state of the server, and the requests that do not belong to one game."""

    roster: Roster
    games: Sessions[Game] = field(default_factory=lambda: Sessions(MAX_GAMES))
    _computing: Computing = field(default_factory=Computing)

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of work that may take long."""
        return await self._computing.run(work, BOT_TIMEOUT)

    @check_types
    def setup(self) -> Data:
        """Return the rule sets, players and evaluators to choose from, and the first choice."""
        return {
            "rulesets": [
                {
                    "name": rules.name,
                    "first_player": rules.first_player,
                    "words": ruleset_text(rules.name),
                }
                for rules in self.roster.rulesets.values()
            ],
            "players": self.roster.choices(),
            "levels": self.roster.levels(),
            "evaluators": analysis.evaluators(self.roster),
            "first_seats": (HUMAN, next(iter(self.roster.further), FIRST_BOT)),
        }

    @check_types
    def board_parts(self, layout: str, viewer: str) -> Data:
        """Return the drawing of the board in parts, as one of the players sees it."""
        seats = {"south": SOUTH, "north": NORTH}
        if layout not in LAYOUTS or viewer not in seats:
            raise Refused("expected wide or tall, south or north", 404)
        return board_parts(layout, seats[viewer])

    @check_types
    def new_game(
        self,
        seats: Players,
        ruleset: str = "zanzibar",
        first_player: Literal["south", "north", "lot"] = "south",
        position: str | None = None,
        transcript: str | None = None,
    ) -> Data:
        """Start a game from an opening, a position or a transcript; return its name and state."""
        try:
            if transcript is not None:
                board = Board.from_transcript(transcript.removeprefix(_BYTE_ORDER_MARK))
            elif position is not None:
                text = position.removeprefix(_BYTE_ORDER_MARK).strip()
                board = Board.from_text(text, self._ruleset(ruleset))
            else:
                first = {"south": SOUTH, "north": NORTH, "lot": secrets.randbelow(2)}
                board = Board(self._ruleset(ruleset), first[first_player])
        except ValueError as error:
            raise Refused(str(error)) from error
        game = Game(board, self._checked(seats, board.ruleset))
        return {"id": self.games.add(game), **game.show()}

    @check_types
    def example(self) -> Data:
        """Start Donkers' example game; return its name and state."""
        return self.new_game([HUMAN, HUMAN], transcript=EXAMPLE.read_text(encoding="ascii"))

    @check_types
    def puzzle(self, ruleset: str = "zanzibar") -> Data:
        """Start a game from a position that its mover can win; return it, with the plies.

        The solver plays the other seat and resists as long as it can.
        """
        rules = self._ruleset(ruleset)
        known = shipped_won_positions(rules)
        if known is None:
            raise Refused(f"no puzzles for {ruleset}: choose zanzibar or kujifunza")
        fits = np.flatnonzero(
            (known.winning != known.masks) & (known.plies > 1) & (known.plies <= PUZZLE_PLIES)
        )
        chosen = secrets.choice(fits.tolist())
        position = format_position(unpack(known.positions[chosen]))
        game = Game(Board.from_text(position, rules), (HUMAN, HUMAN))
        seats = (HUMAN, PUZZLE_BOT) if game.board().turn == SOUTH else (PUZZLE_BOT, HUMAN)
        game.take_seats(self._checked(list(seats), rules))
        return {"id": self.games.add(game), "plies": int(known.plies[chosen]), **game.show()}

    @check_types
    def take_seats(self, name: str, seats: Players) -> Data:
        """Change who plays a game; return its state."""
        rules = self.games.call(Game.board, name).ruleset
        return self.games.call(Game.take_seats, name, self._checked(seats, rules))

    @check_types
    def hints(self, name: str, evaluator: str = analysis.SEARCH, ply: int | None = None) -> Data:
        """Evaluate each move with a search or a checkpoint, at the current position or at a ply."""
        return analysis.hints(self.games.call(Game.board, name, ply), evaluator, self.roster)

    @check_types
    def evaluation(self, name: str, ply: int | None = None) -> Data:
        """Return South's chance, for the evaluation bar."""
        board = self.games.call(Game.board, name, ply)
        return {"ply": len(board.move_stack), **analysis.south_chance(board)}

    @check_types
    def review(self, name: str, ply: int) -> Data:
        """Analyse the move made at a ply; see :func:`bao_agents.play.analysis.review`."""
        board = self.games.call(Game.board, name, ply + 1)
        if ply < 0:
            raise Refused(f"ply {ply}: expected 0 or more")
        return analysis.review(board, ply)

    def _checked(self, players: list[str], rules: Ruleset) -> tuple[str, str]:
        first, second = (self.roster.check(player, rules) for player in players)
        return first, second

    def _ruleset(self, name: str) -> Ruleset:
        rulesets = self.roster.rulesets
        if name not in rulesets:
            raise Refused(f"unknown rule set {name[:80]!r}; expected one of {', '.join(rulesets)}")
        return rulesets[name]


Handler = Callable[[Tables, Data], Awaitable[Data]]
"""A function that answers a request from its values, which may name a game."""


def quick(function: Callable[..., Data]) -> Handler:
    """Run a function in another thread, to its end even if the client disconnects."""

    async def answer(tables: Tables, values: Data) -> Data:
        return await asyncio.shield(run_in_threadpool(partial(function, tables, **values)))

    return answer


def computed(function: Callable[..., Data]) -> Handler:
    """Run a function that computes for a long time."""

    async def answer(tables: Tables, values: Data) -> Data:
        return await tables.compute(partial(function, tables, **values))

    return answer


def of_game(method: Callable[..., Data]) -> Handler:
    """Call a method of the game that has the name."""
    return quick(lambda tables, /, name, **values: tables.games.call(method, name, **values))


async def bot(tables: Tables, values: Data) -> Data:
    """Let a bot play a ply of a game.

    A bot that fails, or takes longer than BOT_TIMEOUT, leaves the game as it was.
    """
    name = values.pop("name")
    board, player = await run_in_threadpool(partial(tables.games.call, Game.turn, name, **values))
    action = await tables.compute(partial(tables.roster.act, player, board))
    advance = partial(tables.games.call, Game.advance, name, board=board, action=action)
    return await asyncio.shield(run_in_threadpool(advance))


GAME = "/api/games/{name}"
POSTS: dict[str, Handler] = {
    "/api/games": quick(Tables.new_game),
    "/api/example": quick(Tables.example),
    "/api/puzzles": quick(Tables.puzzle),
    f"{GAME}/play": of_game(Game.play),
    f"{GAME}/goto": of_game(Game.go_to),
    f"{GAME}/look": of_game(Game.look),
    f"{GAME}/seats": quick(Tables.take_seats),
    f"{GAME}/events": of_game(Game.events),
    f"{GAME}/choice": of_game(Game.choice),
    f"{GAME}/why": of_game(Game.why_not),
    f"{GAME}/transcript": of_game(Game.transcript),
    f"{GAME}/bot": bot,
    f"{GAME}/hints": computed(Tables.hints),
    f"{GAME}/evaluation": computed(Tables.evaluation),
    f"{GAME}/review": computed(Tables.review),
}
"""Paths that take a JSON object, with their handlers."""
GETS: dict[str, Handler] = {
    "/api/setup": quick(Tables.setup),
    "/api/board/{layout}/{viewer}": quick(Tables.board_parts),
    GAME: of_game(Game.show),
}
"""Paths without values, with their handlers."""
