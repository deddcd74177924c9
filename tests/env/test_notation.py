"""Test positions, action names, moves and transcripts as text, and the command line."""

from __future__ import annotations

import random
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bao_agents
from bao_agents.cli.animation import write_image
from bao_env.board import Board
from bao_env.engine.position import to_packed
from bao_env.engine.ruleset import RULESETS
from bao_env.game import legal_actions
from bao_env.notation import (
    NotationError,
    action_to_move,
    format_position,
    move_to_action,
    parse_position,
)
from bao_env.notation.game_record import replay
from bao_env.notation.moves import SPELLINGS, format_move, may_start, read_move
from bao_env.notation.transcript import format_transcript, parse_transcripts
from tests.conftest import Fails, Says
from tests.positions import (
    ENDLESS,
    HOUSE_CHOICE,
    OPENING,
    TAKASIA,
    random_games,
    some_positions,
)
from tests.rulesets import EVERY_RULESET

DATA = Path(__file__).parents[1] / "data"
GAMES = sorted((DATA / "games").glob("*.txt"))
EXAMPLE = Path(bao_agents.__file__).parent / "play" / "static" / "donkers-example.txt"
ZANZIBAR = RULESETS["zanzibar"]

near_moves = st.text("ABab12345678LR<>+*#/ 9-", max_size=12)
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
damaged_games = st.builds(
    lambda path, at, new: path.read_text()[:at] + new + path.read_text()[at + 1 :],
    st.sampled_from(GAMES),
    st.integers(0, 600),
    st.text(max_size=3),
)


# --- invalid texts ----------------------------------------------------------------------------


def check_action(text: str) -> None:
    assert action_to_move(move_to_action(text)) == text


def check_position(text: str, name: str) -> None:
    position = parse_position(text, RULESETS[name])
    assert parse_position(format_position(position), RULESETS[name]) == position


def check_move(text: str, position: str, spelling: str | None, strict: bool) -> None:
    packed = to_packed(parse_position(position, ZANZIBAR))
    action = read_move(text, packed, ZANZIBAR, spelling=spelling, strict=strict)
    assert action in legal_actions(packed, ZANZIBAR)


def check_transcript(text: str) -> None:
    for game in parse_transcripts(text):
        assert parse_transcripts(format_transcript(game)) == [game]
        replay(game)


any_text = st.text(max_size=60)
READERS: dict[str, tuple[Any, ...]] = {
    "action": (check_action, any_text | near_moves),
    "position": (check_position, any_text | near_positions, st.sampled_from([*RULESETS])),
    "move": (
        check_move,
        any_text | near_moves,
        st.sampled_from([OPENING, HOUSE_CHOICE, TAKASIA]),
        st.sampled_from([None, *SPELLINGS]),
        st.booleans(),
    ),
    "transcript": (check_transcript, any_text | near_transcripts | damaged_games),
}


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=300)
@given(data=st.data())
def test_readers_raise_only_notation_errors(reader: str, data: st.DataObject) -> None:
    check, *arguments = READERS[reader]
    drawn = [data.draw(argument) for argument in arguments]
    try:
        check(*drawn)
    except NotationError as error:
        assert str(error).isascii() and len(str(error)) < 2000


# --- positions --------------------------------------------------------------------------------


@EVERY_RULESET
def test_positions_come_back(ruleset: str, seed: int) -> None:
    texts, rng = some_positions(RULESETS[ruleset], 300, seed), random.Random(seed)
    assert ruleset != "dutch" or any(":" in text for text in texts)  # a capture waits
    for text in texts:
        around = rng.choice(("{}", '"{}"', "'{}'", "\u201c{}\u201d", "\ufeff{}\n", " {}\t"))
        head = rng.choice(("", "position: ", "Position:"))
        space = rng.choice((" ", "  ", "\t", "\u00a0"))
        for spelled in (text, text.lower(), around.format(head + text.replace(" ", space))):
            assert format_position(parse_position(spelled, RULESETS[ruleset])) == text


# --- actions and moves ------------------------------------------------------------------------


@EVERY_RULESET
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_moves_come_back(ruleset: str, spelling: str, seed: int) -> None:
    rules, rng = RULESETS[ruleset], random.Random(seed)
    for start in [HOUSE_CHOICE] * (ruleset == "zanzibar") + [*islice(random_games(rng, rules), 80)]:
        packed = to_packed(parse_position(start, rules))
        actions = legal_actions(packed, rules)
        texts = [format_move(packed, rules, action, spelling) for action in actions]
        assert len({*texts}) == len(texts)
        for text, action in zip(texts, actions, strict=True):
            bare = text.rstrip("*")
            typed = "".join(rng.choice((c, c.lower(), c.upper(), f" {c}")) for c in bare)
            for name in (spelling, None):
                assert read_move(text, packed, rules, spelling=name) == action
                assert read_move(typed, packed, rules, spelling=name, strict=False) == action
            if bare == text:
                with pytest.raises(NotationError, match="written without a star"):
                    read_move(f"{typed}*", packed, rules, spelling=spelling, strict=False)
            with pytest.raises(ValueError, match="unknown spelling 'runes'; expected donkers or"):
                read_move(text, packed, rules, spelling="runes")


def test_a_kibao_move_may_say_that_it_wins() -> None:
    winning = "1,0,6,0,3,1,4,2/0,8,1,6,8,3,4,3/1,0,0,0,0,1,0,0/5,1,2,1,0,1,0,2 0,0 - S -"
    packed = to_packed(parse_position(winning, ZANZIBAR))
    assert read_move("A7<#", packed, ZANZIBAR) == move_to_action("A7L")
    assert read_move("a7 < #", packed, ZANZIBAR, strict=False) == move_to_action("A7L")
    with pytest.raises(NotationError, match="not a move"):
        read_move("A7L#", packed, ZANZIBAR)
    with pytest.raises(NotationError, match="does not win"):
        read_move("6<*#", to_packed(parse_position(OPENING, ZANZIBAR)), ZANZIBAR)

    rules = RULESETS["kujifunza"]  # the mover may empty their own front row, and loses
    losing = "2,0,0,0,0,0,0,0/4,0,2,2,2,2,2,2/6,6,6,6,6,6,6,4/0,0,0,0,0,0,0,0 0,0 - S -"
    packed = to_packed(parse_position(losing, rules))
    assert read_move("A1<*", packed, rules) == move_to_action("A1L")
    with pytest.raises(NotationError, match="does not win"):
        read_move("A1<*#", packed, rules)


def test_where_a_move_may_start() -> None:
    packed = to_packed(parse_position(OPENING, ZANZIBAR))
    assert [a for a in range(64) if may_start(packed, ZANZIBAR, a)] == [*range(20, 28)]


def test_takasia_of_the_dutch_rules_is_named() -> None:
    start = "0,0,0,0,0,1,3,5/1,2,8,1,0,1,3,0/1,0,6,5,6,0,1,6/1,3,1,0,1,3,1,4 0,0 - N -"
    packed = to_packed(parse_position(start, RULESETS["dutch"]))
    with pytest.raises(NotationError, match="takasia: a3 is the only hole"):
        read_move("a3L*", packed, RULESETS["dutch"])


# --- the command line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (
            f"replay {GAMES[0]}",
            [
                "de Voogt 1995, game 1: 35 moves, all legal",
                "position: 1,8,1,2,3,5,5,0/3,1,4,1,5,1,2,1/0,0,0,0,0,0,0,0/1,2,2,1,3,2,1,0 4,5",
                "result: South wins: front row empty",
            ],
        ),
        (
            f"replay {EXAMPLE} start",
            ["result: unfinished; the header says: North", f"position: {OPENING}", "legal: A6L ("],
        ),
        (
            "replay start --move 7L*",
            ["4. A4 was empty: the move ends (Donkers 1.5)", "position: 0,0,0,1,7,3,0,0/"],
        ),
        (f"replay '{ENDLESS}' --move A1R", ["the move has not ended: illegal (Donkers 1.5a)"]),
        (f"replay '{TAKASIA}'", ["takasia bars A2", "A6L (A6L*)"]),
        (f"replay 'position: {TAKASIA}'", [f"position: {TAKASIA}"]),
    ],
)
def test_commands_print(line: str, printed: list[str], says: Says) -> None:
    out = says(line)
    assert all(text in out for text in printed), out


def test_replay_prints_all_of_a_position_a_move_and_a_game(
    tmp_path: Path, says: Says, fails: Fails
) -> None:
    start, after = Board(), Board.from_text("start", moves=["7L*"])
    legal = "legal: A6L (6L*) A6R (6R*) A7L (7L*) A7R (7R*)\n"
    position = f"{start}\nposition: {OPENING}\n{legal}"
    assert says("replay start start") == f"{position}\n{position}"
    events = [f"{number:4}. {event}\n" for number, event in enumerate(start.trace("7L*"), 1)]
    board_after = f"{after}\nposition: {after.text()}\n"
    assert says("replay start --move 7L*") == f"{start}\n{''.join(events)}{board_after}"
    assert "no files" in fails("replay start start --move 7L*")
    learner = Board("kujifunza")
    for option in ("", f"--move {learner.legal_moves[0]}"):
        shown_first = says(f"replay start --ruleset kujifunza {option}")
        assert shown_first.startswith(f"{learner}\n")
    file, games = tmp_path / "games", list[str]()
    for head, name in (("", "game"), ("south: A\n", "A"), ("south: A\nnorth: B\ntitle: T\n", "T")):
        for winner in ("", "winner: Omar\n"):
            file.write_text(f"{file.read_text() if games else ''}{head}{winner}1: 7L*;\n")
            says_winner = winner and "; the header says: Omar"
            result = f"result: unfinished{says_winner}\n"
            games.append(f"{name}: 1 move, all legal\n{board_after}{result}")
    assert says(f"replay {file}") == "\n".join(games)
    file.write_text("1: 7L;\n")  # without its star
    assert "7L" in fails(f"replay {file}")
    assert "1 move, all legal" in says(f"replay {file} --any-stars")


def test_replay_names_rules_that_the_head_does_not_say(tmp_path: Path, says: Says) -> None:
    file, rules, stated = tmp_path / "game.txt", RULESETS["zanzibar"], RULESETS["kibao"]
    line = f"\nrules: {rules.contrast(stated)}, which the header says\n"
    for head, option, is_other in (
        ("ruleset: kibao\n", "--ruleset zanzibar", True),
        ("ruleset: kibao\n", "", False),
        ("ruleset: no such rules\n", "--ruleset zanzibar", False),
        ("", "--ruleset zanzibar", False),
    ):
        file.write_text(f"{head}1: 7L*;\n")
        out = says(f"replay {file} {option}")
        assert (line in out, "header says" in out) == (is_other, is_other)


def test_replay_prints_an_end_that_only_the_head_says(tmp_path: Path, says: Says) -> None:
    file = tmp_path / "game.txt"
    for end in ("cut short", "illegal action"):
        file.write_text(f"end: {end}\n1: 7L*;\n")
        outcome = Board.from_transcript(file.read_text()).outcome()
        assert f"result: {outcome}\n" in says(f"replay {file}") and end in str(outcome)


@pytest.mark.parametrize("line", [f"replay '{TAKASIA}'", f"replay {EXAMPLE}"])
@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<svg "), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_commands_write_pictures(
    line: str, kind: str, start: bytes, tmp_path: Path, says: Says, fails: Fails
) -> None:
    picture = tmp_path / f"board.{kind}"
    out = says(f"{line} --{kind} {picture}")
    content = picture.read_bytes()
    assert content.startswith(start)
    assert out.endswith(f"\n{picture}: {len(content) / 1e6:.2f} MB\n")
    is_position = TAKASIA in line  # only a position shows its legal moves
    board = Board.from_text(TAKASIA) if is_position else Board.from_transcript(EXAMPLE.read_text())
    if kind == "png":
        write_image(tmp_path / "other.png", board.shapes(legal=is_position))
        assert content == (tmp_path / "other.png").read_bytes()
        assert int.from_bytes(content[16:20]) == 3 * 820  # sharp enough for print
    if kind == "pdf":  # 300 dots an inch
        assert re.search(rb"/MediaBox \[ ?0 0 590\.4\d* ", content)
    if kind == "svg":
        assert content.decode() == board.svg(legal=is_position)
    assert f"expected a file name that ends in .{kind}" in fails(
        f"{line} --{kind} {tmp_path}/board.txt"
    )
