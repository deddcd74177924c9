"""Test transcripts, which are games as text: written games are read back, and damaged texts are
refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bao_env.board import Board
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS
from bao_env.game import CUT_SHORT, Outcome, Termination
from bao_env.notation import SPELLINGS, NotationError
from bao_env.notation.game_record import replay, transcribe
from bao_env.notation.transcript import (
    MAX_GAME,
    Transcript,
    Turn,
    format_transcript,
    parse_transcripts,
)
from tests.conftest import Says
from tests.positions import HOUSE_CHOICE, played, some_positions
from tests.rulesets import EVERY_RULESET

GAMES = sorted((Path(__file__).parents[1] / "data" / "games").glob("*.txt"))


def read_one(text: str, file: str = "") -> Transcript:
    """Return the only game of a transcript."""
    [game] = parse_transcripts(text, file)
    return game


# --- what is written is read back -------------------------------------------------------------

NAMES = [
    "Z\u00fcrich",
    "Ba\u0175o",
    "\u092e\u0939\u093e",
    "\u5341",
    "\U0001f330",
    "a\u200db",
    "O'Neil: 2;",
]
REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The Unicode characters that can show a line in another order."""
LOST = r"contains the move line|expected a header line"
texts = st.one_of(
    st.sampled_from(NAMES),
    st.text(
        st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=REORDERING),
        min_size=1,
        max_size=20,
    ),
).filter(lambda text: text == text.strip() and not re.search("[0-9]:", text))
"""Values and comments that a transcript holds."""
heads = st.dictionaries(
    st.sampled_from(["south", "North", "winner", "opening plies", "x-1", "Stra\u00dfe"]),
    st.just("") | texts,
)
moves = st.sampled_from(["7L*", "5R>", "b7R", "A4R**", "8", "5R/3L", "6<*", "8>+"])


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Draw a transcript that can be written, with any moves."""
    first = draw(st.integers(0, 1))
    seats = [(first + turn) % 2 for turn in range(draw(st.integers(0, 6)))]
    turns = tuple(
        Turn(draw(moves), seat, 1 + (first + index) // 2) for index, seat in enumerate(seats)
    )
    numbers = st.sampled_from([turn.number for turn in turns] or [0])
    return Transcript(draw(heads), turns, draw(st.dictionaries(numbers, texts)))


@given(st.lists(transcripts(), max_size=4), st.sampled_from(["", "\n", "\n\n", "\r\n"]))
def test_games_come_back_alone_and_joined(games: list[Transcript], between: str) -> None:
    games_as_text = [format_transcript(game) for game in games]
    assert [read_one(text) for text in games_as_text] == games
    assert parse_transcripts(between.join(games_as_text)) == games
    assert parse_transcripts("\ufeff" + between.join(games_as_text), "games.txt") == games


@pytest.mark.parametrize(
    "wrong", ["\n", "\r", "\t", "\0", "\x85", "\u2028", "\u2029", "\ud800", *REORDERING]
)
def test_what_no_line_holds_is_not_written(wrong: str) -> None:
    text = f"a{wrong}b"
    for game in Transcript({"south": text}), Transcript(comments={0: text}):
        with pytest.raises(NotationError, match="expected one line of text"):
            format_transcript(game)


@given(transcripts().filter(lambda game: game.turns and game.head), st.data())
def test_text_that_lost_line_breaks_is_refused(game: Transcript, data: st.DataObject) -> None:
    """No line before the last move line may be joined to the next one."""
    lines = format_transcript(game).splitlines()
    lost = data.draw(st.integers(len(game.head) - 1, len(lines) - 2))
    lines[lost : lost + 2] = [lines[lost] + data.draw(st.sampled_from(["", " "])) + lines[lost + 1]]
    with pytest.raises(NotationError, match=LOST):
        parse_transcripts("\n".join(lines))


def test_games_without_moves() -> None:
    """Earlier versions wrote such games as a header alone, with an empty line before the next
    game."""
    head = "south: A\nnorth: B\nwinner: North\n"
    assert len(parse_transcripts(f"{head}\n{head}\n{head}1: 7L*;\n")) == 3
    longest = f"note: {'x' * (MAX_GAME - 7)}"  # and a line break
    assert len(parse_transcripts(longest)) == 1
    with pytest.raises(NotationError, match="too long"):
        parse_transcripts(f"{longest}x")


def test_commands_read_large_files_in_utf_8(tmp_path: Path, says: Says) -> None:
    """Only the length of each game is limited."""
    file = tmp_path / "games.txt"
    text = f"south: Z\u00fcrich\nnorth: Ba\u0175o\nnote: {'x' * (MAX_GAME // 2)}\n1: 7L* 5R;\n"
    file.write_text(text * 3, encoding="utf-8-sig")
    assert says(f"replay {file}").count("Z\u00fcrich - Ba\u0175o: 2 moves, all legal") == 3


def test_other_rules_than_those_of_the_header_are_named(tmp_path: Path, says: Says) -> None:
    file = tmp_path / "game.txt"
    file.write_text("ruleset: kibao\n1: 7L* 5R;\n")
    assert "rules:" not in says(f"replay {file} --ruleset kibao")
    assert "\nrules: 'zanzibar', not 'kibao', which " in says(f"replay {file} --ruleset zanzibar")
    file.write_text("ruleset: club\n1: 7L* 5R;\n")  # rules that nobody knows
    assert "rules:" not in says(f"replay {file} --ruleset zanzibar")


# --- winners ----------------------------------------------------------------------------------


def test_the_stated_winner() -> None:
    for stated, winner in (("South", SOUTH), ("NORTH", NORTH), ("Omar", None), ("", None)):
        assert Transcript({"North": "Omar", "winner": stated}).stated_winner() == winner


def test_the_stated_end() -> None:
    for end, moves, winner in (
        ("cut short", "7L* 5R", None),
        ("Illegal action", "7L* 5R", NORTH),
        ("Illegal action", "7L*", SOUTH),
        ("front row empty\nwinner: North", "7L* 5R", NORTH),
    ):
        outcome = Board.from_transcript(f"end: {end}\n1: {moves};\n").outcome()
        assert outcome is not None and outcome.winner == winner


def test_signs_tell_the_spelling() -> None:
    """In the kibao spelling `8>` names the side; in Donkers' it plays the house. Only kibao marks
    a win by `#`."""
    board = "0,0,0,0,8,0,0,1/0,0,0,0,0,0,0,1/1,0,0,0,8,3,1,1/0,0,0,0,0,0,1,1 19,19 SN S -"
    for reply, action in (("5L", 31), ("6<*", 30), ("6>*#", 30)):
        game = read_one(f"position: {board}\n1: 8> {reply};")
        assert replay(game, strict=False).actions[0] == action


@EVERY_RULESET
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_short_games_from_a_position_are_read_back(ruleset: str, spelling: str, seed: int) -> None:
    """Their few moves may have no sign that shows the spelling."""
    rules, rng = RULESETS[ruleset], random.Random(seed)
    starts = [text for text in some_positions(rules, 60, seed) if ":" not in text]
    for start in [HOUSE_CHOICE] * (ruleset == "zanzibar") + starts:
        for action in Board.from_text(start, rules).legal_actions:
            board = Board.from_text(start, rules, [action])
            if board.legal_actions and rng.random() < 0.3:
                board.push(rng.choice(board.legal_actions))
            back = Board.from_transcript(board.transcript(spelling=spelling))
            assert (back, back.move_stack) == (board, board.move_stack)


# --- transcripts ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GAMES, ids=lambda path: path.stem)
def test_recorded_games_replay_and_come_out_again(path: Path) -> None:
    text = path.read_text(encoding="ascii")
    game = read_one(text, str(path))
    record = replay(game)
    copy = transcribe(record)
    assert (copy.turns, copy.comments) == (game.turns, game.comments)
    assert copy.head == {**game.head, "ruleset": "zanzibar", "winner": copy.head["winner"]}
    # Four end in a win; in the others a player resigned with a move still to make.
    assert (record.outcome is None) == (path.stem in ("voogt-3", "voogt-4", "voogt-6"))


LOADED = """\
title: A game
South: Omar
opening plies: 2
winner: South
ruleset: zanzibar
1: 7L* 5R; drawn
2: 6R* 6R*; good
3: 7R*;
"""


def test_a_board_keeps_head_and_comments() -> None:
    """A board keeps them as long as they fit: undoing a move drops a resignation and the comments
    on that move."""
    board = Board.from_transcript(LOADED)
    assert replay(read_one(board.transcript())) == board.record() == replay(read_one(LOADED))
    later = Board.from_transcript(board.transcript({"north": "Ali"}))
    assert later.record().head == {**board.record().head, "north": "Ali"}
    for _ in range(3):
        later.pop()
    later.push("6L*")
    assert later.transcript() == (
        "title: A game\nSouth: Omar\nopening plies: 2\nnorth: Ali\nruleset: zanzibar\n"
        "1: 7L* 5R; drawn\n2: 6L*;\n"
    )
    later.pop()
    later.pop()
    assert later.record().opening_plies == 1
    game = Board.from_transcript("0: ; hello\n")
    for move in ("7L", "5R", "6R"):
        game.push(move)
    assert game.transcript() == "ruleset: zanzibar\n1: 7L* 5R; hello\n2: 6R*;\n"


@EVERY_RULESET
def test_an_end_that_no_move_shows_is_written_and_read(ruleset: str, seed: int) -> None:
    game = played(ruleset, seed)
    game.pop()
    lost = Termination.ILLEGAL_ACTION, Termination.LOST_ON_TIME
    ends = None, CUT_SHORT, *(Outcome(1 - game.turn, reason) for reason in lost)
    for outcome in ends:
        comments = {len(game.move_stack): "c"}
        record = game.record()._replace(outcome=outcome, head={"a": "b"}, comments=comments)
        text = format_transcript(transcribe(record))
        assert replay(read_one(text)) == record
        late = comments | {len(game.move_stack) + 1: "after the end"}
        assert transcribe(record._replace(comments=late)) == transcribe(record)
        board = Board.from_transcript(text)
        assert board.outcome() == outcome and eval(repr(board), {"Board": Board}) == board
        assert Board.from_packed(board.packed, ruleset, outcome) == board
    assert Board.from_transcript(f"result: draw\n{game.transcript()}").outcome() == CUT_SHORT


def test_an_error_has_its_parts() -> None:
    game = GAMES[0].read_text().replace("9: 6R* 5R*;", "9: 6R* 5R;")
    with pytest.raises(NotationError) as caught:
        replay(read_one(game, "omar.txt"))
    error = caught.value
    assert (error.file, error.line, error.number, error.token) == ("omar.txt", 16, 9, "5R")
    assert hash(error) and repr(error) == f"NotationError({error.reason!r})"
    assert list(error.legal) == ["5L*", "5R*"]
    assert replay(read_one(game), strict=False).outcome is not None
