"""Answer the requests of the board with functions that take their values and return plain values.

The types of all values are checked before a function is called; the function checks the rest.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bao_agents.exact.solved_positions import SolvedPositions, shipped_won_positions
from bao_agents.play import analysis
from bao_agents.play.computing import Computing
from bao_agents.play.geometry import board_parts
from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN, Roster
from bao_agents.play.seated_game import Data, Game, Ply
from bao_agents.play.sessions import Sessions
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import NotationError, format_position
from bao_env.notation.transcript import Transcript, format_rules

MAX_GAMES = 1000
MAX_GAMES_OF_CLIENT = 50
"""Games of one client; a page begins a dropped game anew from its transcript."""
BOT_TIMEOUT = 120.0
"""Seconds after which the server gives up on a bot's move, a hint or an evaluation.

Few take long, but the first of its kind compiles for up to a minute on a slow machine."""
PUZZLE_PLIES = 21
"""The longest win in a puzzle, in plies; one-ply wins are not used."""
PUZZLE_BOT = "solver:300ms"
"""Who plays the other seat in a puzzle."""

Players = Annotated[list[str], Field(min_length=2, max_length=2)]
"""The names of the players South and North."""
Name = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{16}$")]
"""The name of a game, as Sessions makes them."""
Work = Callable[[], Data]
"""Work that takes long, and returns an answer."""
Begun = tuple[Game, Data]
"""A new game, and what else to answer."""


@dataclass
class Lobby:
    """The state of the server, and the requests that do not belong to one game."""

    roster: Roster
    games: Sessions = field(default_factory=lambda: Sessions(MAX_GAMES, MAX_GAMES_OF_CLIENT))
    computing: Computing = field(default_factory=Computing)

    @property
    def threads(self) -> int | None:
        """The threads of an analysis: all cores (None) for one visitor, one if there are others."""
        return None if len(self.games.owners) <= 1 else 1

    def setup(self) -> Data:
        """Return the rule sets, players and evaluators to choose from, and the first choice.

        ``puzzles`` names the rule sets that have puzzles, those with the easiest first.
        """
        solved = {name: puzzles(rules) for name, rules in self.roster.rulesets.items()}
        shortest = {name: int(wins.plies[0]) for name, wins in solved.items() if wins}
        return {
            "rulesets": [
                {
                    "name": rules.name,
                    "rules": format_rules(rules).get("rules"),
                    "first_player": "south" if rules.first_player == "south" else "random",
                }
                for rules in self.roster.rulesets.values()
            ],
            "puzzles": sorted(shortest, key=shortest.__getitem__),
            "players": self.roster.choices(),
            "levels": self.roster.levels(),
            "evaluators": analysis.evaluators(self.roster),
        }

    @check_types
    def board_parts(
        self,
        layout: Literal["wide", "tall"],
        viewer: Literal["south", "north"],
        pits: Literal["house", "round"],
    ) -> Data:
        """Return the drawing of the board in parts, as one of the players sees it."""
        return board_parts(layout, SOUTH if viewer == "south" else NORTH, pits == "house")

    @check_types
    def new_game(
        self,
        seats: Players,
        ruleset: str = "zanzibar",
        rules: str | None = None,
        first_player: Literal["south", "north", "random"] | None = None,
        position: str | None = None,
        transcript: str | None = None,
        name: Name | None = None,
    ) -> Begun:
        """Begin a game from an opening, a position or a transcript.

        Args:
            seats: the players.
            ruleset: the name of the rules.
            rules: their switches, as in the head of a transcript, if the name is not one of the
                server's.
            first_player: who begins; None leaves it to the rules. Either may draw a player.
            position: the position text to begin from.
            transcript: the game to continue, which brings its own rules.
            name: the name of a game which the server has lost. If another page of the game was
                faster, the game that it began is returned.
        """
        try:
            if transcript is not None:
                board = Board.from_transcript(transcript)
            elif position is not None:
                board = Board.from_text(position, self._ruleset(ruleset, rules))
            else:
                board = open_board(self._ruleset(ruleset, rules), first_player)
        except NotationError as error:  # people see the position that they set up
            raise Refused(str(error) if position is None else error.reason) from error
        except ValueError as error:
            raise Refused(str(error)) from error
        return Game(board, self._checked(seats, board.ruleset)), {}

    @check_types
    def puzzle(self, ruleset: str = "zanzibar", number: Annotated[int, Field(ge=1)] = 1) -> Begun:
        """Begin a game from a position that few moves win, in so many plies.

        The solver plays the other seat and resists as long as it can. Puzzles are numbered from 1,
        the easiest.
        """
        rules = self._ruleset(ruleset)
        solved = puzzles(rules)
        if solved is None:
            raise Refused(f"no puzzles for {ruleset}: choose zanzibar or kujifunza")
        if number > len(solved):
            raise Refused(f"puzzle {number}: expected 1 to {len(solved)}", 404)
        board = Board.from_text(format_position(unpack(solved.positions[number - 1])), rules)
        seats = [PUZZLE_BOT, PUZZLE_BOT]
        seats[board.turn] = HUMAN
        game = Game(board, self._checked(seats, rules))
        return game, {"count": len(solved), "plies": int(solved.plies[number - 1])}

    def keep(self, game: Game, client: str, name: str | None) -> Data:
        """Keep a game, or find the one that another page has begun; return its name and state."""
        new_name, dropped = self.games.add(game, client, name)
        answer = self.games.call(Game.show, new_name) if name else game.show()
        return {"id": new_name, "dropped": dropped, **answer}

    @check_types
    def take_seats(self, name: str, seats: Players) -> Data:
        """Change who plays a game; return its state."""
        rules = self.games.call(Game.board, name).ruleset
        return self.games.call(Game.take_seats, name, self._checked(seats, rules))

    @check_types
    def hints(self, name: str, evaluator: str = analysis.SEARCH, ply: int | None = None) -> Work:
        """Evaluate each move with a search or a checkpoint, at the current position or at a ply."""
        board = self.games.call(Game.board, name, ply)
        return partial(analysis.hints, board, evaluator, self.roster, self.threads)

    @check_types
    def evaluation(
        self, name: str, evaluator: str = analysis.SEARCH, ply: int | None = None
    ) -> Work:
        """Find South's chance, for the evaluation bar, by the search or checkpoint of hints."""
        board = self.games.call(Game.board, name, ply)
        return partial(analysis.south_chance, board, evaluator, self.roster, self.threads)

    @check_types
    def review(self, name: str, ply: Ply) -> Work:
        """Analyse the move made at a ply; see :func:`bao_agents.play.analysis.review`."""
        return partial(analysis.review, self.games.call(Game.board, name, ply + 1), self.threads)

    def _checked(self, players: list[str], rules: Ruleset) -> tuple[str, str]:
        first, second = (self.roster.check(player, rules) for player in players)
        return first, second

    def _ruleset(self, name: str, switches: str | None = None) -> Ruleset:
        if switches is not None:
            return Board.from_transcript(Transcript({"ruleset": name, "rules": switches})).ruleset
        rulesets = self.roster.rulesets
        if name not in rulesets:
            raise Refused(f"unknown rule set {name[:80]!r}; expected one of {', '.join(rulesets)}")
        return rulesets[name]


def open_board(rules: Ruleset, first_player: str | None) -> Board:
    """Return the opening of some rules; None or ``random`` draws a first player if they do."""
    begins = first_player or rules.first_player
    drawn = random.choice([SOUTH, NORTH])
    return Board(rules, {"south": SOUTH, "north": NORTH}.get(begins, drawn))


@cache
def puzzles(rules: Ruleset) -> SolvedPositions | None:
    """Return the shipped positions that are puzzles, the easiest first; None if there are none.

    One move wins, or at most a third of them. A puzzle is harder the longer the win is, and then
    the smaller the share of winning moves.
    """
    solved = shipped_won_positions(rules)
    if solved is None:
        return None
    wins, moves = (
        np.array([int(actions).bit_count() for actions in sets])
        for sets in (solved.winning, solved.legal)
    )
    few = (moves >= 3) & ((wins == 1) | (3 * wins <= moves))
    fits = np.flatnonzero(few & (solved.plies > 1) & (solved.plies <= PUZZLE_PLIES))
    return solved[fits[np.lexsort((-(wins / moves)[fits], solved.plies[fits]))]]


Handler = Callable[[Lobby, str, Data], Awaitable[Data]]
"""A function that answers the request of a client from its values, which may name a game."""


def quick(function: Callable[..., Data]) -> Handler:
    """Call a function that takes little time."""

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        return await lobby.computing.briefly(partial(function, lobby, **values), client)

    return answer


def begins(function: Callable[..., Begun]) -> Handler:
    """Call a function that begins a game; return the name and the state of the game."""

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        newcomer = client not in lobby.games.owners
        briefly = partial(lobby.computing.briefly, client=client, newcomer=newcomer)
        game, further = await briefly(partial(function, lobby, **values))
        while not await briefly(game.read):
            pass
        return further | await briefly(partial(lobby.keep, game, client, values.get("name")))

    return answer


def shared(handler: Handler) -> Handler:
    """Give equal requests one answer, as long as the game does not change."""

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        version = lobby.games.call(lambda game: game.version, values["name"])
        key = handler, version, repr(sorted(values.items()))
        return await lobby.computing.run_once(key, lambda: handler(lobby, client, values))

    return answer


def computed(function: Callable[..., Work]) -> Handler:
    """Do the work that a function returns."""

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        work = await lobby.computing.briefly(partial(function, lobby, **values), client)
        return await lobby.computing.run(work, BOT_TIMEOUT, values["name"], client)

    return shared(answer)


def of_game(method: Callable[..., Data]) -> Handler:
    """Call a method of the game that has the name."""
    return quick(lambda lobby, /, name, **values: lobby.games.call(method, name, **values))


@shared
async def bot(lobby: Lobby, client: str, values: Data) -> Data:
    """Let a bot play a ply of a game.

    A bot that fails, or takes longer than BOT_TIMEOUT, leaves the game as it was.
    """
    call, name = lobby.games.call, values.pop("name")
    board, player, game = call(Game.turn, name, **values)
    work = partial(lobby.roster.act, player, board, game)
    action = await lobby.computing.run(work, BOT_TIMEOUT, name, client)
    advance = partial(call, Game.advance, name, board=board, action=action)
    return await lobby.computing.briefly(advance, client)


GAME = "/api/games/{name}"
POSTS: dict[str, Handler] = {
    "/api/games": begins(Lobby.new_game),
    "/api/puzzles": begins(Lobby.puzzle),
    f"{GAME}/play": of_game(Game.play),
    f"{GAME}/move": of_game(Game.play_text),
    f"{GAME}/line": of_game(Game.take_line),
    f"{GAME}/resign": of_game(Game.resign),
    f"{GAME}/goto": of_game(Game.go_to),
    f"{GAME}/look": of_game(Game.show),
    f"{GAME}/seats": quick(Lobby.take_seats),
    f"{GAME}/events": of_game(Game.events),
    f"{GAME}/choice": of_game(Game.choice),
    f"{GAME}/preview": of_game(Game.preview),
    f"{GAME}/picture": of_game(Game.picture),
    f"{GAME}/rules": of_game(Game.rules),
    f"{GAME}/why": of_game(Game.why_not),
    f"{GAME}/bot": bot,
    f"{GAME}/hints": computed(Lobby.hints),
    f"{GAME}/evaluation": computed(Lobby.evaluation),
    f"{GAME}/review": computed(Lobby.review),
}
"""Paths that take a JSON object, with their handlers."""
GETS: dict[str, Handler] = {
    "/api/setup": quick(Lobby.setup),
    "/api/board/{layout}/{viewer}/{pits}": quick(Lobby.board_parts),
    GAME: of_game(Game.show),
}
"""Paths without values, with their handlers."""
