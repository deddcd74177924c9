"""Answer the requests of the page.

Each function takes the values of a request and returns plain values. The types of the values are
checked before a function runs; the function checks the rest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from bao_agents.play import analysis
from bao_agents.play.board_parts import board_parts
from bao_agents.play.computing import Computing
from bao_agents.play.puzzles import puzzles
from bao_agents.play.refused import Refused, check_types
from bao_agents.play.roster import HUMAN, Roster
from bao_agents.play.seated_game import Data, Game, Ply, compile_moves
from bao_agents.play.sessions import Sessions
from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.game_record import format_rules, parse_rules
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import iterate_transcripts

MAX_GAMES = 1000
MAX_GAMES_OF_CLIENT = 50
"""The most games kept for one client; a page restarts a dropped game from its transcript."""
MAX_SOW_LIMIT = 10_000
"""The largest ``sow_limit`` of rules that a client brings. Each time the server looks for legal
moves, a move that never ends is followed up to this limit."""
BOT_TIMEOUT = 120.0
"""Seconds after which the server gives up on a bot's move, a hint or an evaluation.

Few requests take long, but the first of each kind has to compile: up to a minute on a slow
machine."""
PUZZLE_BOT = "solver:300ms"
"""The player of the other seat in a puzzle."""

Players = Annotated[list[str], Field(min_length=2, max_length=2)]
"""The names of the players South and North."""
Name = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{16}$")]
"""The name of a game, in the form that :class:`Sessions` gives it."""
Work = Callable[[], Data]
"""A function that takes long, and returns the answer."""
Begun = tuple[Game, Data]
"""A new game, and further values of the answer."""


@dataclass
class Lobby:
    """The state of the server, and the requests that do not belong to one game."""

    roster: Roster
    games: Sessions = field(default_factory=lambda: Sessions(MAX_GAMES, MAX_GAMES_OF_CLIENT))
    computing: Computing = field(default_factory=Computing)

    @property
    def threads(self) -> int | None:
        """Threads for an analysis: 1 if there are several visitors, else None (all cores)."""
        return None if len(self.games.owners) <= 1 else 1

    def setup(self) -> Data:
        """Return what the page offers: rule sets, puzzles, players, levels and evaluators.

        ``puzzles`` names the rule sets that have puzzles, the one with the easiest puzzle first.
        """
        shipped = {name: puzzles(rules) for name, rules in self.roster.rulesets.items()}
        easiest = {
            name: (listed[0].plies, -listed[0].levels) for name, listed in shipped.items() if listed
        }
        return {
            "rulesets": [
                {
                    "name": rules.name,
                    "rules": format_rules(rules).get("rules"),
                    "first_player": "south" if rules.first_player == "south" else "random",
                }
                for rules in self.roster.rulesets.values()
            ],
            "puzzles": sorted(easiest, key=easiest.__getitem__),
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
        """Return the parts of the drawing of the board, as one of the players sees it."""
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
        """Start a game from an opening, a position or a transcript.

        Args:
            seats: the players.
            ruleset: the name of the rules.
            rules: the switches of the rules, as in the header of a transcript; needed if the server
                does not know ``ruleset``.
            first_player: who begins; ``random`` draws a player. None leaves it to the rules, which
                may also draw one.
            position: the text of a position to start from.
            transcript: the transcript of a game to continue; it states its own rules.
            name: the name of a game that the server has lost. If another page has already restarted
                that game, the answer shows it instead of a new one.
        """
        try:
            if transcript is not None:
                for game in islice(iterate_transcripts(transcript), 1):
                    self._check_rules(parse_rules(game.head))
                board = Board.from_transcript(transcript)
            elif position is not None:
                board = Board.from_text(position, self._ruleset(ruleset, rules))
            else:
                board = open_board(self._ruleset(ruleset, rules), first_player)
        except NotationError as error:  # the page already shows a position that was set up
            raise Refused(str(error) if position is None else error.reason) from error
        except ValueError as error:
            raise Refused(str(error)) from error
        return Game(board, self._checked(seats, board.ruleset)), {}

    @check_types
    def puzzle(self, ruleset: str = "zanzibar", number: Annotated[int, Field(ge=1)] = 1) -> Begun:
        """Start a puzzle: a position in which only a few of the moves win.

        The solver plays the other seat and holds out for as long as it can. Puzzles are numbered
        from 1, easiest first. The second value returned gives the number of puzzles, the length of
        the win in plies, and the ``rating``: how many ``levels`` have tried the puzzle, and how
        many of them ``solved`` it. The rating is None if none has tried.
        """
        rules = self._ruleset(ruleset)
        shipped = puzzles(rules)
        if not shipped:
            raise Refused(f"there are no puzzles for {ruleset}: choose zanzibar or kujifunza")
        if number > len(shipped):
            raise Refused(f"puzzle {number}: expected a number from 1 to {len(shipped)}", 404)
        puzzle = shipped[number - 1]
        board = Board.from_text(puzzle.position, rules)
        seats = [PUZZLE_BOT, PUZZLE_BOT]
        seats[board.turn] = HUMAN
        game = Game(board, self._checked(seats, rules))
        rating = {"solved": puzzle.levels, "levels": len(puzzle.solved)}
        return game, {
            "count": len(shipped),
            "plies": puzzle.plies,
            "rating": rating if puzzle.solved else None,
        }

    def keep(self, game: Game, client: str, name: str | None) -> Data:
        """Keep a new game; return its name and state.

        If ``name`` is the name of a kept game, which another page has restarted, return that game's
        state instead, with the moves that only the new game has.
        """
        new_name, dropped = self.games.add(game, client, name)
        answer = self.games.call(Game.catch_up, new_name, game)
        return {"id": new_name, "dropped": dropped, **answer}

    @check_types
    def take_seats(self, name: str, seats: Players) -> Data:
        """Change the players of a game; return its state."""
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
        """Evaluate South's chance of winning, for the evaluation bar; arguments as for hints."""
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
            return self._check_rules(parse_rules({"ruleset": name, "rules": switches}))
        rulesets = self.roster.rulesets
        if name not in rulesets:
            raise Refused(f"unknown rule set {name[:80]!r}; expected one of {', '.join(rulesets)}")
        return rulesets[name]

    def _check_rules(self, rules: Ruleset) -> Ruleset:
        """Return the rules that a client brings, if looking for legal moves takes little time."""
        if rules.sow_limit > MAX_SOW_LIMIT and rules not in self.roster.rulesets.values():
            raise Refused(f"rules: sow_limit={rules.sow_limit}: expected at most {MAX_SOW_LIMIT}")
        return rules


def open_board(rules: Ruleset, first_player: str | None) -> Board:
    """Return a board at the opening of some rules.

    Args:
        rules: the rules.
        first_player: ``south``, ``north``, or ``random`` to draw one; None leaves it to the rules,
            which may also draw one.
    """
    begins = first_player or rules.first_player
    drawn = random.choice([SOUTH, NORTH])
    return Board(rules, {"south": SOUTH, "north": NORTH}.get(begins, drawn))


Handler = Callable[[Lobby, str, Data], Awaitable[Data]]
"""A function that answers a client's request, given the request's values."""


def quick(function: Callable[..., Data]) -> Handler:
    """Return a handler that calls a quick function."""

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        return await lobby.computing.briefly(partial(function, lobby, **values), client)

    return answer


def begins(function: Callable[..., Begun]) -> Handler:
    """Return a handler that calls a function to start a game.

    The handler answers with the name and the state of the game. If games still have to be compiled,
    it waits for that in a thread, so that the server can go on with other requests.
    """

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        compiling = partial(asyncio.to_thread, compile_moves)
        await lobby.computing.run_once(compile_moves, compiling)
        newcomer = client not in lobby.games.owners
        briefly = partial(lobby.computing.briefly, client=client, newcomer=newcomer)
        game, further = await briefly(partial(function, lobby, **values))
        while not await briefly(game.read):
            pass
        return further | await briefly(partial(lobby.keep, game, client, values.get("name")))

    return answer


def shared(handler: Handler) -> Handler:
    """Return a handler that computes one answer for all equal requests that wait for it.

    Requests are equal if they have the same values and the game has not changed between them.
    """

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        version = lobby.games.call(lambda game: game.version, values["name"])
        key = handler, version, repr(sorted(values.items()))
        return await lobby.computing.run_once(key, lambda: handler(lobby, client, values))

    return answer


def sharing_answers(function: Callable[..., Work]) -> Handler:
    """Return a handler that does the work that a function returns, once for all equal requests.

    A thread does the work.
    """

    async def answer(lobby: Lobby, client: str, values: Data) -> Data:
        work = await lobby.computing.briefly(partial(function, lobby, **values), client)
        return await lobby.computing.run(work, BOT_TIMEOUT, values["name"], client)

    return shared(answer)


def of_game(method: Callable[..., Data]) -> Handler:
    """Return a handler that calls a method of the game that the request names."""
    return quick(lambda lobby, /, name, **values: lobby.games.call(method, name, **values))


@shared
async def bot(lobby: Lobby, client: str, values: Data) -> Data:
    """Let a bot play one ply of a game.

    If the bot fails or takes longer than BOT_TIMEOUT, the game stays as it was.
    """
    call, name = lobby.games.call, values.pop("name")
    board, player, game = call(Game.turn, name, **values)
    work = partial(lobby.roster.act, player, board, game)
    action = await lobby.computing.run(work, BOT_TIMEOUT, name, client)
    advance = partial(call, Game.advance, name, board=board, player=player, action=action)
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
    f"{GAME}/hints": sharing_answers(Lobby.hints),
    f"{GAME}/evaluation": sharing_answers(Lobby.evaluation),
    f"{GAME}/review": sharing_answers(Lobby.review),
}
"""Paths that take a JSON object, with their handlers."""
GETS: dict[str, Handler] = {
    "/api/setup": quick(Lobby.setup),
    "/api/board/{layout}/{viewer}/{pits}": quick(Lobby.board_parts),
    GAME: of_game(Game.show),
}
"""Paths that take no body, with their handlers."""
