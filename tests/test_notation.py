"""Texts in and out: positions, action names, move texts, transcripts and the command line."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bao_env.__main__ import main as command_line
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import Words, opening, packed_opening, unpack
from bao_env.engine.ruleset import RULESETS, get_ruleset
from bao_env.game import legal_actions, packed, play, stuck
from bao_env.notation import (
    NotationError,
    action_to_move,
    format_position,
    move_to_action,
    parse_position,
)
from bao_env.notation.moves import SPELLINGS, format_move, read_move, stars, why_illegal
from bao_env.notation.transcript import (
    MAX_TEXT,
    Transcript,
    Turn,
    format_transcript,
    parse_transcripts,
    replay,
    transcribe,
)
from tests.positions import ENDLESS, HOUSE_CHOICE, OPENING, TAKASIA, WAITING

DATA = Path(__file__).parent / "data"
GAMES = sorted((DATA / "games").glob("*.txt"))
EXAMPLE = DATA.parent.parent / "agents" / "play" / "donkers-example.txt"
ZANZIBAR = RULESETS["zanzibar"]

any_text = st.text(max_size=60)
near_moves = st.text("ABab12345678LR<>+*/ 9-", max_size=12)
near_positions = st.text("0123456789,/ SNsnabAB-:", max_size=120)
near_transcripts = st.lists(
    st.one_of(
        st.sampled_from(
            ["south: A", "winner: north", "ruleset: dutch", "ruleset: chess", "", "1: - 7L*;"]
            + ["first player: North", f"position: {OPENING}", "1: 7L* 5R;", "2: 6R* 6R*; well"]
            + ["1: 7<* 5>;", "1: 7L*", "1: ;", "2: 7L* 5R/3L;", "spelling: kibao", "1: 6L*/7L;"]
        ),
        st.text(max_size=30),
    ),
    max_size=8,
).map("\n".join)


def read_one(text: str, file: str = "") -> Transcript:
    """The only game of a text."""
    [game] = parse_transcripts(text, file)
    return game


def random_game(name: str, seed: int, first_player: int = SOUTH) -> tuple[list[Words], list[int]]:
    """The positions before each action of a random game to its end, and the actions."""
    ruleset = get_ruleset(name)
    rng = random.Random(seed)
    words = packed_opening(ruleset, first_player)
    before: list[Words] = []
    actions: list[int] = []
    outcome = stuck(words, ruleset)
    while outcome is None:
        action = rng.choice(legal_actions(words, ruleset))
        before.append(words.copy())
        actions.append(action)
        outcome = play(words, ruleset, action)
    return before, actions


# --- positions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULESETS)
def test_positions_of_random_games_come_back(name: str) -> None:
    ruleset = RULESETS[name]
    for seed in range(5):
        for words in random_game(name, seed)[0]:
            position = unpack(words)
            text = format_position(position)
            read = parse_position(text, ruleset)
            assert format_position(read) == text
            assert packed(read)[:5].tolist() == words[:5].tolist()


def test_the_opening_reads_as_the_rules_page_writes_it() -> None:
    assert format_position(opening(ZANZIBAR)) == OPENING
    assert parse_position(OPENING, ZANZIBAR) == opening(ZANZIBAR)
    assert parse_position(OPENING.lower(), ZANZIBAR) == opening(ZANZIBAR)
    for text, name in ((TAKASIA, "zanzibar"), (WAITING, "dutch")):
        for either_case in (text, text.lower()):
            assert format_position(parse_position(either_case, RULESETS[name])) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "fields"),
        ("x" * 400, "at most"),
        (OPENING.replace(" S ", " \u0405 "), "ASCII"),
        (OPENING + "\n", "one line"),
        (OPENING.replace("/", "|"), "rows"),
        (OPENING.replace("6,2,2,0/", "6,2,2/", 1), "row A: 7 counts"),
        (OPENING.replace("6,", "06,", 1), "'06' is not a count"),
        (OPENING.replace("6,", "-6,", 1), "'-6' is not a count"),
        (OPENING.replace("6,", "999999999999,", 1), "not a count"),
        (OPENING.replace("22,22", "22"), "the stores"),
        (OPENING.replace("22,22", "22,21"), "63 seeds"),
        (OPENING.replace("SN", "NS"), "house owners"),
        (OPENING.replace(" S ", " W "), "mover 'W'"),
        (OPENING[:-1] + "A9", "barred hole"),
        (OPENING[:-1] + "B1", "barred hole"),
        (OPENING[:-1] + "A3", "mtaji only"),
        (OPENING + " A3", "waiting capture"),
        (OPENING + " A3:12345678", "waiting capture"),
        (OPENING + " A3:17", "has no choice of side"),
        (OPENING.replace("6,2,2,0/", "0,0,0,0/", 1).replace("22,22", "32,22"), "over"),
    ],
)
def test_bad_positions_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(NotationError, match=re.escape(complaint)):
        parse_position(text, ZANZIBAR)


@settings(max_examples=300, deadline=None)
@given(st.one_of(any_text, near_positions), st.sampled_from(sorted(RULESETS)))
def test_position_reader_only_raises_its_own_error(text: str, name: str) -> None:
    try:
        position = parse_position(text, RULESETS[name])
    except NotationError as error:
        assert str(error).isascii()
    else:
        assert parse_position(format_position(position), RULESETS[name]) == position


# --- actions and moves ------------------------------------------------------------------------


def test_canonical_names_are_the_actions() -> None:
    names = [action_to_move(action) for action in range(64)]
    assert names[20] == "A6L" and names[19] == "A5R>" and names[63] == "B8R>"
    assert [move_to_action(name) for name in names] == list(range(64))
    for action in (-1, 64):
        with pytest.raises(ValueError, match="0 to 63"):
            action_to_move(action)


@settings(max_examples=200, deadline=None)
@given(st.one_of(any_text, near_moves))
def test_canonical_reader_only_raises_its_own_error(text: str) -> None:
    try:
        assert action_to_move(move_to_action(text)) == text
    except NotationError as error:
        assert str(error).isascii()


@pytest.mark.parametrize("name", RULESETS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_legal_move_text_comes_back(name: str, spelling: str) -> None:
    ruleset = RULESETS[name]
    for seed in range(4):
        for words in random_game(name, seed)[0]:
            texts = {}
            for action in legal_actions(words, ruleset):
                text = format_move(words, ruleset, action, spelling)
                assert read_move(text, words, ruleset, spelling=spelling) == action
                texts[text] = action
                bare = text.rstrip("*")
                assert read_move(bare, words, ruleset, spelling=spelling, strict=False) == action
            assert len(texts) == len(legal_actions(words, ruleset))


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(any_text, near_moves),
    st.sampled_from([OPENING, HOUSE_CHOICE, TAKASIA]),
    st.sampled_from([None, *SPELLINGS]),
    st.booleans(),
)
@example("8>", HOUSE_CHOICE, None, True)
def test_move_reader_only_raises_its_own_error(
    text: str, position: str, spelling: str | None, strict: bool
) -> None:
    words = packed(parse_position(position, ZANZIBAR))
    try:
        action = read_move(text, words, ZANZIBAR, spelling=spelling, strict=strict)
    except NotationError as error:
        assert str(error).isascii() and len(str(error)) < 2000
    else:
        assert action in legal_actions(words, ZANZIBAR)


def test_only_the_sign_for_right_and_house_can_be_ambiguous() -> None:
    words = packed(parse_position(HOUSE_CHOICE, ZANZIBAR))
    assert read_move("8", words, ZANZIBAR) == move_to_action("A8R")
    assert read_move("8>", words, ZANZIBAR, spelling="donkers") == move_to_action("A8R>")
    assert read_move("8>", words, ZANZIBAR, spelling="kibao") == move_to_action("A8R")
    assert read_move("8+", words, ZANZIBAR) == move_to_action("A8R>")
    assert read_move("8R>", words, ZANZIBAR) == move_to_action("A8R>")
    assert read_move("8>+", words, ZANZIBAR) == move_to_action("A8R>")
    with pytest.raises(
        NotationError, match=r"A8R> \(donkers\) or A8R \(kibao\); name the spelling"
    ):
        read_move("8>", words, ZANZIBAR)
    # No house is in reach of the opening, so there > can only mean right.
    assert read_move("7>*", packed_opening(ZANZIBAR), ZANZIBAR) == move_to_action("A7R")


@pytest.mark.parametrize(
    ("position", "move", "complaint"),
    [
        (OPENING, "7L", "bars no hole: one star"),
        (OPENING, "7L**", "bars no hole: one star"),
        (OPENING, "7*", "needs a direction, L or R"),
        (OPENING, "a7L*", "row a is North's, but South is to move"),
        (OPENING, "5L*", "Donkers 2.4b"),
        (OPENING, "8L*", "A8 is empty"),
        (OPENING, "B1L*", "starts in the front row"),
        (OPENING, "7L>*", "no house"),
        (OPENING, "O-O", "not a move"),
        (HOUSE_CHOICE, "8*", "captures: no star"),
        (HOUSE_CHOICE, "8L", "side is forced"),
        (HOUSE_CHOICE, "3R", "must be made"),
        (TAKASIA, "6L*", "needs its row letter"),
        (TAKASIA, "A2L*", "takasia bars A2"),
        (TAKASIA, "A5R*", "one seed only (Donkers 3.3)"),
        (TAKASIA, "B1L*", "starts in the front row if it can"),
        (ENDLESS, "A1R*", "more than 1000 seeds (Donkers 1.5a)"),
    ],
)
def test_wrong_moves_say_what_is_wrong(position: str, move: str, complaint: str) -> None:
    words = packed(parse_position(position, ZANZIBAR))
    with pytest.raises(NotationError, match=re.escape(complaint)) as caught:
        read_move(move, words, ZANZIBAR)
    legal = [format_move(words, ZANZIBAR, action) for action in legal_actions(words, ZANZIBAR)]
    assert list(caught.value.legal) == legal
    assert caught.value.token == move


def test_a_forced_direction_may_also_be_written() -> None:
    words = packed(parse_position(HOUSE_CHOICE, ZANZIBAR))
    assert read_move("8R", words, ZANZIBAR) == read_move("a8", words, ZANZIBAR) == 30


def test_every_illegal_action_has_a_reason() -> None:
    for name, ruleset in RULESETS.items():
        for words in random_game(name, 3)[0]:
            legal = legal_actions(words, ruleset)
            for action in set(range(64)) - set(legal):
                assert why_illegal(words, ruleset, action)


# --- transcripts ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GAMES, ids=lambda path: path.stem)
def test_recorded_games_replay_and_come_out_again(path: Path) -> None:
    text = path.read_text(encoding="ascii")
    (game,) = parse_transcripts(text, str(path))
    played = replay(game)
    again = transcribe(played.start, played.actions, played.ruleset, head=game.head)
    assert format_transcript(again) == text
    assert again == game
    # They end in a win under the rules or, with a move still to make, in a resignation.
    if played.outcome is not None:
        assert played.outcome.winner == game.stated_winner()
    in_kibao = transcribe(played.start, played.actions, played.ruleset, spelling="kibao")
    (read,) = parse_transcripts(format_transcript(in_kibao))
    assert replay(read).actions == played.actions
    assert not set("LR") & {sign for turn in read.turns for sign in turn.text}


def test_seven_games_are_there() -> None:
    assert len(GAMES) == 7
    ends = [replay(read_one(path.read_text())).outcome is not None for path in GAMES]
    assert sum(ends) == 4


def test_every_star_and_direction_of_the_example_game() -> None:
    (game,) = parse_transcripts(EXAMPLE.read_text(encoding="ascii"))
    assert game.comments == {12: "END IN THE HOUSE", 23: "(b7L in Voogt!)", 26: "A resigns"}
    assert game.get("TAKASIA") == "yes" and game.stated_winner() == NORTH
    words = packed_opening(ZANZIBAR)
    for turn in game.turns:
        action = read_move(turn.text, words, ZANZIBAR, spelling="donkers")
        assert format_move(words, ZANZIBAR, action) == turn.text
        due = stars(words, ZANZIBAR, action)
        bare = turn.text.rstrip("*")
        assert turn.text == bare + due
        for wrong in {"", "*", "**"} - {due}:
            with pytest.raises(NotationError, match="star"):
                read_move(bare + wrong, words, ZANZIBAR, spelling="donkers")
        if bare.isdigit() and len(bare) == 1:  # the forced direction may be named, not another
            right = action_to_move(action)[2]
            other = "L" if right == "R" else "R"
            assert read_move(bare + right, words, ZANZIBAR) == action
            with pytest.raises(NotationError, match="side is forced"):
                read_move(bare + other, words, ZANZIBAR)
        play(words, ZANZIBAR, action)
    (again,) = parse_transcripts(format_transcript(game))
    assert again == game


def test_a_takasia_has_two_stars() -> None:
    texts = [turn.text for path in GAMES for turn in parse_transcripts(path.read_text())[0].turns]
    assert [text for text in texts if text.endswith("**")] == ["A4R**", "B6R**", "A7R**", "b2L**"]


def test_several_games_in_one_file() -> None:
    text = "\n".join(path.read_text() for path in GAMES)
    games = parse_transcripts(text, "all")
    assert [game.get("title") for game in games] == [
        parse_transcripts(path.read_text())[0].get("title") for path in GAMES
    ]
    for game in games:
        line = text.split("\n")[game.turns[0].line - 1]
        assert line.startswith(f"1: {game.turns[0].text} ")


@pytest.mark.parametrize("name", RULESETS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_random_games_come_back(name: str, spelling: str) -> None:
    ruleset = RULESETS[name]
    slashes = 0
    for seed in range(6):
        first_player = seed % 2
        _, actions = random_game(name, seed, first_player)
        head = {"ruleset": name, "first player": ("South", "North")[first_player]}
        start = opening(ruleset, first_player)
        game = transcribe(start, actions, ruleset, spelling=spelling, head=head)
        text = format_transcript(game)
        assert ("\n1: - " in text) == (first_player == NORTH)
        (read,) = parse_transcripts(text)
        assert read == game
        played = replay(read, spelling=spelling)
        assert list(played.actions) == actions
        assert played.outcome is not None
        slashes += text.count("/")
    assert (slashes > 0) == (ruleset.capture_side == "free")


def test_a_game_from_a_position_and_a_waiting_capture() -> None:
    text = f"ruleset: dutch\nposition: {WAITING}\n1: - 3L;\n"
    (game,) = parse_transcripts(text)
    played = replay(game)
    assert format_position(played.start) == WAITING
    assert [action_to_move(action) for action in played.actions] == ["A3L"]
    assert format_transcript(game) == text


def test_the_winner_may_be_named_by_player() -> None:
    for value, seat in (
        ("Omar", SOUTH),
        ("north", NORTH),
        ("N", NORTH),
        ("South wins", SOUTH),
        ("nobody", None),
        ("", None),
    ):
        head = {"South": "Omar", "north": "Shamte", "Result": value}
        assert Transcript(head).stated_winner() == seat


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("south Omar", 1, "expected a head line"),
        ("a: 1\nA: 2", 2, "twice"),
        ("1: 7L* 5R", 1, "expected a move line"),
        ("1: 7L* 5R;\n3: 6R* 6R*;", 2, "move number 3; expected 2"),
        ("99999: 7L*;", 1, "expected a move line"),
        ("1: 7L* 5R 6L;", 1, "3 moves"),
        ("1: ;", 1, "0 moves"),
        ("1: -;", 1, "no move after"),
        ("1: 7L*;\n2: 6R* 6R*;", 2, "lacks North's part"),
        ("1: 7L* 5R;\n\n2: 6R* 6R;", 3, "one star"),
        ("1: 7L* 5R;\n2: - 6R*;", 2, "not a move"),
        ("1: - 7L*;", 1, "South is to move"),
        ("first player: North\n1: 7L* 5R;", 2, "North is to move"),
        ("1: 7L*/5R;", 1, "nothing can follow"),
        ("south: \u00d6mar", 1, "not printable ASCII"),
        ("1: 7L* 5R; \x00", 1, "not printable ASCII"),
        ("a: " + "x" * 9000, 1, "8192"),
        ("\n".join(f"k{i}: v" for i in range(101)), 101, "at most 100 lines"),
        ("ruleset: chess\n1: 7L*;", None, "unknown rule set 'chess'"),
        ("spelling: runes\n1: 7L*;", None, "unknown spelling"),
        ("first player: East\n1: 7L*;", None, "expected South or North"),
        (f"first player: North\nposition: {OPENING}\n1: 7L*;", None, "not the mover"),
        ("position: 1,2\n1: 7L*;", None, "fields"),
        ("x" * (MAX_TEXT + 1), None, "too long"),
    ],
)
def test_bad_transcripts_name_the_place(text: str, line: int | None, complaint: str) -> None:
    with pytest.raises(NotationError, match=re.escape(complaint)) as caught:
        for game in parse_transcripts(text, "game.txt"):
            replay(game)
    assert caught.value.file == "game.txt"
    assert caught.value.line == line
    assert str(caught.value).startswith("game.txt, " if line else "game.txt")


def test_an_error_says_everything() -> None:
    game = GAMES[0].read_text().replace("9: 6R* 5R*;", "9: 6R* 5R;")
    with pytest.raises(NotationError) as caught:
        replay(read_one(game, "omar.txt"))
    assert str(caught.value) == (
        "omar.txt, line 16, move 9, '5R': the move is a takasa that bars no hole: one star "
        "(Donkers part 5); legal: 5L* 5R*"
    )
    assert replay(read_one(game), strict=False).outcome is not None


def test_the_head_must_agree_with_the_end() -> None:
    text = GAMES[0].read_text()
    with pytest.raises(NotationError, match="another winner"):
        replay(read_one(text.replace("winner: South", "winner: North")))
    with pytest.raises(NotationError, match="the game is over: South wins"):
        replay(read_one(text.replace("18: 4R;", "18: 4R 5L;")))


def test_dutch_turns_are_joined_and_closed() -> None:
    _, actions = random_game("dutch", 1)
    ruleset = RULESETS["dutch"]
    text = format_transcript(transcribe(opening(ruleset), actions, ruleset))
    joined = next(token for token in text.split() if "/" in token).rstrip(";")
    alone = joined.partition("/")[0]
    for wrong, complaint in (
        (alone, "still waits for its side; '/' joins it to the turn before"),
        (joined + "/3L", "nothing can follow the '/'"),
    ):
        with pytest.raises(NotationError, match=re.escape(complaint)):
            replay(read_one(text.replace(joined, wrong, 1)), ruleset)


def test_what_would_not_read_back_is_not_written() -> None:
    turns = (Turn("7L*", SOUTH, 1), Turn("5R", NORTH, 1))
    assert format_transcript(Transcript({"a": "b"}, turns, {1: "c"})) == "a: b\n1: 7L* 5R; c\n"
    for game in (
        Transcript({"a": "b\nc: d"}, turns),
        Transcript({"a:": "b"}, turns),
        Transcript({}, turns, {1: "one\ntwo"}),
        Transcript({}, turns, {7: "no such move"}),
        Transcript({}, (Turn("7L* 5R", SOUTH, 1),)),
        Transcript({}, turns[::-1]),
    ):
        with pytest.raises(NotationError):
            format_transcript(game)


@settings(max_examples=300, deadline=None)
@given(st.one_of(near_transcripts, st.text(max_size=200)))
def test_transcript_reader_only_raises_its_own_error(text: str) -> None:
    try:
        games = parse_transcripts(text)
        for game in games:
            assert parse_transcripts(format_transcript(game)) == [game]
            replay(game)
    except NotationError as error:
        assert str(error).isascii()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_games_only_raise_the_reader_s_own_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(GAMES)).read_text()
    at = data.draw(st.integers(0, len(text) - 1))
    with_what = data.draw(st.text(max_size=3))
    try:
        for game in parse_transcripts(text[:at] + with_what + text[at + 1 :]):
            replay(game)
    except NotationError as error:
        assert str(error)


# --- the command line -------------------------------------------------------------------------


def test_replay_prints_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["replay", str(GAMES[0])]) == 0
    out = capsys.readouterr().out
    assert "de Voogt 1995, game 1: 35 moves, all legal" in out
    assert (
        "position: 1,8,1,2,3,5,5,0/3,1,4,1,5,1,2,1/0,0,0,0,0,0,0,0/1,2,2,1,3,2,1,0 4,5 - N -" in out
    )
    assert "result: South wins: front row empty" in out
    assert command_line(["replay", str(EXAMPLE)]) == 0
    assert "result: unfinished; the head says: North" in capsys.readouterr().out


def test_explain_tells_each_event_with_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["explain", OPENING, "7L*"]) == 0
    out = capsys.readouterr().out
    assert "1. South puts a seed from the store into A7 (Donkers 2.2)" in out
    assert "3. South sows 3 seeds: A6 A5 A4 (Donkers 1.3)" in out
    assert "position: 0,0,0,1,7,3,0,0/" in out
    assert command_line(["explain", ENDLESS, "A1R"]) == 0
    out = capsys.readouterr().out
    assert "no end: the move is illegal (Donkers 1.5a)" in out and "position:" not in out


def test_show_prints_board_and_moves(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "board.svg"
    assert command_line(["show", TAKASIA, "--svg", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "takasia bars A2" in out and "A6L (A6L*)" in out
    assert picture.read_text().startswith("<svg ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nonsense"],
        ["explain", OPENING, "5L"],
        ["replay", "no such file"],
        ["replay", __file__],
        ["replay", str(DATA)],
    ],
)
def test_errors_go_to_stderr(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(arguments) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and printed.out == ""


def test_bytes_that_are_no_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "game.txt"
    file.write_bytes(b"a: b\nc: \xff\n")
    assert command_line(["replay", str(file)]) == 1
    assert "line 2: the byte 0xff is not ASCII" in capsys.readouterr().err
    file.write_bytes(b"")
    assert command_line(["replay", str(file)]) == 1
    assert "no game" in capsys.readouterr().err


def test_the_module_runs_as_a_command() -> None:
    command = [sys.executable, "-m", "bao_env", "replay", str(DATA / "none.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.strip().endswith("none.txt: No such file or directory")


def test_a_byte_order_mark_is_no_reason_to_refuse_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = format_position(opening(RULESETS["zanzibar"]))
    assert parse_position("\ufeff" + text, RULESETS["zanzibar"]) == opening(RULESETS["zanzibar"])
    game = "South: Omar\nNorth: Majaliwa\n1: 6L* 5L;\n"
    assert parse_transcripts("\ufeff" + game) == parse_transcripts(game)
    with pytest.raises(ValueError):
        parse_position("\ufeff\ufeff" + text, RULESETS["zanzibar"])
    file = tmp_path / "game.txt"
    file.write_text(game, encoding="utf-8-sig")
    assert command_line(["replay", str(file)]) == 0
    assert "error" not in capsys.readouterr().err
