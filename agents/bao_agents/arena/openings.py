"""Draw the openings of a match: different random legal move sequences, none of which ends the game.

A match starts from positions that the players did not choose. But many random positions are won for
one side: each player then wins one game of the pair, whatever their strength. So a search drops the
openings that it finds unbalanced. ``bao match`` skips this search if no player searches, to save
the time to compile it. Openings can also come from a file, chosen for example by a longer search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bao_agents.arena.games import GAME_OVER
from bao_agents.evaluators.tables import SCALE
from bao_agents.support.array_types import Uint8Array
from bao_env.board import Board
from bao_env.engine.argument_checks import MAX_COUNT, as_integer
from bao_env.engine.batch import Engine
from bao_env.engine.layout import SOUTH
from bao_env.engine.position import Flags, Legal, PackedPositions, Seats, mirrored, to_packed
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.engine.sampling import random_actions, random_states
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.files import read_text
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import NotationError, parse_position

OPENING_PLIES = 8
"""Default length of an opening."""
BALANCE = 1.0
"""The largest advantage, in logits of winning, that a search may see for a side in an opening."""
ANY_BALANCE = 100.0
"""As the largest advantage, this leaves out no opening, not even one that is proven to be won."""
BALANCED = Path(__file__).with_name("balanced") / "zanzibar.tsv"
"""Balanced openings of zanzibar; ``docs/known.md`` says how they were chosen."""
_SEARCH_DEPTH = 6
_SEARCHED = 256
"""Number of openings searched at once; small, so that a match of a few pairs need not wait long."""
_ROUNDS = 64
_GAMES_A_ROUND = 4096


@dataclass(frozen=True)
class MatchOpenings:
    """Openings and the positions after them."""

    positions: PackedPositions
    """uint64[N, 6], the positions after the openings."""
    actions: Uint8Array
    """uint8[N, plies], the actions of the openings; 255 after the last action of a shorter one."""
    starting_seats: Seats
    """int8[N], the seat that moves first."""

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, part: slice | npt.NDArray[np.integer]) -> MatchOpenings:
        return MatchOpenings(self.positions[part], self.actions[part], self.starting_seats[part])


def draw_openings(
    ruleset: str | Ruleset,
    count: int,
    plies: int,
    seed: int,
    balance: float | None = BALANCE,
) -> MatchOpenings:
    """Draw random legal openings that lead to ``count`` different positions.

    South moves first, even if the rules let either player move first: a pair plays each opening
    from both seats anyway. If the rules have no house, mirror images count as the same position.

    Args:
        ruleset: the rules.
        count: number of openings.
        plies: actions in each; an opening that ends the game is replaced.
        seed: the same seed gives the same openings; a smaller ``count`` gives the first of them.
        balance: drop openings whose value by alpha-beta of depth 6 exceeds this for either side,
            in logits; None or :data:`ANY_BALANCE` keeps all.

    Raises:
        ValueError: ``balance`` is below 0, ``count`` or ``plies`` is out of range or not an
            integer, or there are too few different openings of this length.
    """
    count = as_integer(count, "pairs", 1, MAX_COUNT)
    plies = as_integer(plies, "opening_plies", 0, MAX_OPENING_PLIES)
    if balance is not None and not 0.0 <= balance < math.inf:
        raise ValueError(f"balance={balance}: expected a number of logits, 0 or more")
    engine = Engine(ruleset)
    is_balanced = _balance_test(engine.ruleset, balance)
    drawn: list[PackedPositions] = []
    drawn_actions: list[Uint8Array] = []
    different = 0
    for positions, legal, actions in _random_openings(engine, plies, seed):
        different += len(positions)
        for low in range(0, len(positions), _SEARCHED):
            if len(drawn) >= count:
                break
            part = slice(low, low + _SEARCHED)
            balanced = is_balanced(positions[part], legal[part])
            drawn += [*positions[part][balanced]]
            drawn_actions += [*actions[part][balanced]]
        if len(drawn) >= count:
            return MatchOpenings(
                np.array(drawn[:count]),
                np.array(drawn_actions[:count]),
                np.full(count, SOUTH, np.int8),
            )
    openings_in_words = f"{different} different opening{'s' if different != 1 else ''}"
    length = f"{plies} {'plies' if plies != 1 else 'ply'}"
    uneven, remedy = "", ""
    if len(drawn) < different:
        uneven = (
            f", of which a search finds {len(drawn)} balanced for both sides "
            f"(balance={balance:g}, in logits)"
        )
        remedy = f"allow less balanced openings (--balance {ANY_BALANCE:g} allows all), or "
    raise ValueError(
        f"rule set {engine.ruleset.name!r} has only {openings_in_words} of {length}{uneven}, but "
        f"{count} are needed: {remedy}ask for longer openings or fewer games"
    )


def _random_openings(
    engine: Engine, plies: int, seed: int
) -> Iterator[tuple[PackedPositions, Legal, Uint8Array]]:
    """Draw random openings in rounds; leave out those that end the game or repeat a position.

    Yields:
        the positions after N openings, uint64[N, 6], all different from each other and from those
        of earlier rounds; their legal actions, uint64[N]; and the openings' actions,
        uint8[N, plies].
    """
    sequence = np.random.SeedSequence(seed)
    keys_drawn: set[bytes] = set()
    for _ in range(_ROUNDS):
        positions, legal, winners = engine.new_games(_GAMES_A_ROUND)
        rng = random_states(_GAMES_A_ROUND, sequence.spawn(1)[0])
        played = np.empty((_GAMES_A_ROUND, plies), np.uint8)
        actions = np.empty(_GAMES_A_ROUND, np.int64)
        for ply in range(plies):
            random_actions(legal, rng, actions)
            played[:, ply] = actions
            engine.step(positions, actions, legal, winners)
        keys = _game_keys(positions, engine.ruleset)
        new_games: list[int] = []
        for game in np.flatnonzero(winners < 0).tolist():
            if keys[game] not in keys_drawn:
                keys_drawn.add(keys[game])
                new_games.append(game)
        yield positions[new_games], legal[new_games], played[new_games]


def _balance_test(
    ruleset: Ruleset, balance: float | None
) -> Callable[[PackedPositions, Legal], Flags]:
    """Return a function that says which positions a search finds balanced, bool[N].

    Args:
        ruleset: the rules.
        balance: the largest advantage of a side, in logits; None or :data:`ANY_BALANCE` for any.
    """
    if balance is None or balance >= ANY_BALANCE:
        return lambda positions, legal: np.ones(len(legal), np.bool_)
    from bao_agents.search.alphabeta.player import AlphaBetaAgent  # slow to import
    from bao_agents.search.limits import Limit

    search, largest = AlphaBetaAgent(ruleset, Limit(plies=_SEARCH_DEPTH)), balance * SCALE
    return lambda positions, legal: np.abs(search.values(positions, legal)) <= largest


def _game_keys(positions: PackedPositions, ruleset: Ruleset) -> list[bytes]:
    """Return a key for each position: positions with the same key lead to the same games.

    Args:
        positions: uint64[N, 6].
        ruleset: the rules.
    """
    views = [positions] if ruleset.house else [positions, mirrored(positions)]
    return [min(row.tobytes() for row in rows) for rows in zip(*views, strict=True)]


def play_opening(
    positions: PackedPositions, actions: Uint8Array, engine: Engine
) -> Iterator[tuple[PackedPositions, Legal]]:
    """Yield the positions of some games before each ply, and then the final positions.

    Args:
        positions: uint64[G, 6], the starts; not changed.
        actions: uint8[G, plies], legal actions, :data:`GAME_OVER` after the end of a game.
        engine: the rules.

    Yields:
        positions uint64[G, 6] and legal actions uint64[G], 0 where a game has ended; both arrays
        change in place at the next ply.
    """
    positions = positions.copy()
    legal = np.empty(len(positions), np.uint64)
    winners = np.empty(len(positions), np.int8)
    engine.find_legal(positions, legal, winners)
    for ply_actions in actions.T:
        legal[ply_actions == GAME_OVER] = 0
        yield positions, legal
        engine.step(positions, ply_actions, legal, winners)
    yield positions, legal


def write_openings(openings: MatchOpenings) -> tuple[str, ...]:
    """Return each opening as text: the first seat, ``south`` or ``north``, and the actions."""
    return tuple(
        " ".join([SEAT_NAMES[int(first)].lower(), *map(str, actions)])
        for first, actions in zip(openings.starting_seats, openings.actions.tolist(), strict=True)
    )


def parse_openings(texts: Sequence[str], ruleset: Ruleset) -> MatchOpenings:
    """Return the openings that :func:`write_openings` wrote.

    Raises:
        ValueError: an opening is not legal, ends the game, or differs in length.
        OverflowError: an action is too large.
    """
    engine = Engine(ruleset)
    seats = [name.lower() for name in SEAT_NAMES]
    words = [text.split() for text in texts]
    for number, line in enumerate(words, 1):
        if len(line) != len(words[0]) or line[:1] not in ([seat] for seat in seats):
            raise ValueError(
                f"opening {number}: expected south or north, then as many actions as in the other "
                "openings"
            )
    starting_seats = np.array([seats.index(line[0]) for line in words], np.int8)
    actions = np.array([[int(word) for word in line[1:]] for line in words], np.uint8)
    starts = np.array([engine.opening(int(seat))[0] for seat in starting_seats])
    *_, (positions, legal) = play_opening(starts, actions, engine)
    if (legal == 0).any():
        raise ValueError(
            "an opening ends the game: expected openings after which a player can move"
        )
    return MatchOpenings(positions, actions, starting_seats)


def read_openings(file: str | Path, ruleset: str | Ruleset, count: int, seed: int) -> MatchOpenings:
    """Draw random openings from a file.

    Each line holds a position, the moves that lead to it from the start, and optionally more
    fields, separated by tabs. South moves first. Empty lines and lines that begin with ``#`` are
    skipped. So are lines that repeat a position or, if the rules have no house, its mirror image,
    because the same games again would add no evidence.

    Args:
        file: the file, in UTF-8; ``"balanced"`` means the shipped file for zanzibar.
        ruleset: the rules.
        count: number of openings.
        seed: the same seed draws the same openings; a smaller ``count`` draws the first of them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8, or has fewer different openings; or the moves of a drawn
            line do not lead to its position under these rules, or end the game. The message then
            names the line.
    """
    ruleset = get_ruleset(ruleset)
    path = BALANCED if file == "balanced" else Path(file)
    lines_by_position: dict[bytes, tuple[str, str]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            key = line.strip().partition("\t")[0].strip().encode()
            if not ruleset.house:
                with suppress(NotationError):  # a bad line raises below, if it is drawn
                    position = to_packed(parse_position(key.decode(), ruleset))
                    [key] = _game_keys(position[np.newaxis], ruleset)
            lines_by_position.setdefault(key, (line, f"{file}, line {number}"))
    lines = list(lines_by_position.values())
    if len(lines) < count:
        raise ValueError(
            f"{file} has only {len(lines)} different openings, but {count} are needed: ask for "
            "fewer"
        )
    order = np.random.default_rng(seed).permutation(len(lines))[:count]
    boards = [_follow(line, where, ruleset) for line, where in (lines[i] for i in order)]
    plies = zip_longest(*(board.move_stack for board in boards), fillvalue=GAME_OVER)
    return MatchOpenings(
        np.array([board.packed for board in boards]),
        np.array([*plies], np.uint8).T.copy(),
        np.full(count, SOUTH, np.int8),
    )


def _follow(line: str, where: str, ruleset: Ruleset) -> Board:
    """Return the board after the moves of a line; ``where`` names the line in error messages."""
    text, tab, fields = line.strip().partition("\t")
    if not tab:
        raise ValueError(
            f"{where}: {text!r:.120}: expected a position, a tab and the moves that lead there"
        )
    board = Board(ruleset)
    try:
        for move in fields.partition("\t")[0].split():
            board.push(move)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if board.text() != text.strip():
        raise ValueError(
            f"{where}: the moves lead to {board.text()}, not to the position {text!r:.120}"
        )
    if board.is_game_over():
        raise ValueError(
            f"{where}: the opening ends the game: expected one after which a player can move"
        )
    return board
