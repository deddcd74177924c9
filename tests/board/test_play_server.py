"""Test the server of the board: invalid requests, its command line, and the page."""

from __future__ import annotations

import itertools
import json
import random
import re
import runpy
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from starlette.testclient import TestClient

from bao_agents.analysis import analyse
from bao_agents.exact.solved_positions import shipped_won_positions
from bao_agents.play import server
from bao_agents.play.board_parts import LAYOUTS, board_parts
from bao_agents.play.puzzles import (
    PER_LENGTH,
    RATED_LEVELS,
    SEEDS,
    Puzzle,
    choose,
    main,
    puzzles,
    puzzles_file,
    rate,
    write,
)
from bao_agents.play.refused import Refused
from bao_agents.play.roster import LEVELS, Roster
from bao_agents.play.rule_texts import NUMBER, rule_numbers, rule_text
from bao_agents.play.seated_game import Game
from bao_agents.play.server import client_of, create_app, make_server
from bao_agents.play.sessions import Sessions
from bao_agents.search.solver.solver import Solution, solve
from bao_env.board import Board, EventKind
from bao_env.engine.action import pack_action
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move, format_position
from bao_env.render.drawing import COLOUR_NAMES, drawing, ground
from bao_env.render.shapes import Circle, Text
from bao_env.render.svg import svg_shapes
from bao_env.rules_in_words import rules_in_words
from tests.env.test_kernel import random_mixture
from tests.play import HOUSE, ask, start
from tests.positions import OPENING

pytestmark = pytest.mark.usefixtures("patience")

STATIC = server.FOLDER
ROOT = Path(__file__).parents[2]
HOST = "http://127.0.0.1:8017"


# --- what is refused ----------------------------------------------------------------------------


def test_errors_of_the_server_are_answered_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Roster())
    client = TestClient(app, base_url=HOST, raise_server_exceptions=False)
    game, _ = start(client)
    monkeypatch.setattr(Game, "state", lambda self, ply: 1 // 0)
    answer = client.get(game.path)
    assert answer.status_code == 500 and "ZeroDivision" not in answer.text
    assert "the server failed" in answer.json()["error"]
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    with pytest.raises(ZeroDivisionError):  # for the log of the server
        TestClient(app, base_url=HOST).get(game.path)


def test_the_board_answers_under_its_addresses_and_names() -> None:
    """The board answers to numeric addresses, which no other site can have, to the machine's name,
    and to a proxy's name.

    A proxy may have replaced its name in Host, but not in Origin.
    """
    client = TestClient(create_app(Roster(), ["vm"], ["bao.example.org"]))
    for host, origin, status in (
        ("192.168.1.5:8017", "http://192.168.1.5:8017", 200),
        ("[fe80::1]:8017", "http://[fe80::1]:8017", 200),
        ("VM", "http://vm", 200),
        ("bao.example.org", "https://bao.example.org", 200),
        ("127.0.0.1:8017", "https://bao.example.org", 200),
        ("127.0.0.1:8017", "http://127.0.0.1:80", 403),
        ("vm:8017", "http://vm:80", 403),
        ("127.0.0.1:8017", "https://example.org", 403),
        ("example.org", "http://example.org", 403),
        ("127.0.0.1.example.org", "http://127.0.0.1.example.org", 403),
    ):
        answer = client.get("/api/setup", headers={"host": host, "origin": origin})
        assert answer.status_code == status, (host, origin)


def test_a_server_ends_soon_and_reads_short_heads() -> None:
    config = make_server(create_app(Roster())).config
    assert (config.timeout_graceful_shutdown, config.h11_max_incomplete_event_size) == (1, 32768)


def test_sessions_are_limited() -> None:
    """The least recently used session is dropped."""
    sessions = Sessions(4, 3)
    names = [sessions.add(i, "one client")[0] for i in range(3)]
    second, dropped = sessions.add(10, "another")
    assert not dropped

    assert sessions.call(lambda item: item, names[0]) == 0
    name, dropped = sessions.add(
        3, "one client"
    )  # replaces the client's own second one, and says so
    assert dropped
    names.append(name)
    with pytest.raises(Refused, match="does not have this game"):
        sessions.call(lambda item: item, names[1])
    assert sessions.add(11, "a third", second) == (second, False)  # already stored
    assert sessions.call(lambda item: item, second) == 10
    sessions.add(4, "a third")  # replaces the oldest session that nobody has used
    with pytest.raises(Refused, match="does not have this game"):
        sessions.call(lambda item: item, names[2])
    sessions.add(5, "a fourth")
    assert [sessions.call(lambda item: item, name) for name in (names[0], second)] == [0, 10]


def test_a_recently_used_session_is_dropped_only_for_its_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock: Any = SimpleNamespace(monotonic=lambda: clock.seconds)
    monkeypatch.setattr("bao_agents.play.sessions.time", clock)
    clock.seconds = 0.0
    sessions = Sessions(2, 1)
    first, second = (sessions.add(owner, owner)[0] for owner in ("one client", "another"))
    assert [sessions.call(str, name) for name in (first, second)] == ["one client", "another"]
    clock.seconds = 300.0
    with pytest.raises(Refused, match="no room for another game"):
        sessions.add("new", "a third")
    own, dropped = sessions.add("new", "another")
    assert dropped and [sessions.call(str, name) for name in (first, own)] == ["one client", "new"]
    clock.seconds = 600.5
    assert not sessions.add("new", "a third")[1]
    with pytest.raises(Refused, match="does not have this game"):
        sessions.call(str, first)


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["wide", "tall"])
@pytest.mark.parametrize("viewer", [0, 1])
def test_parts_are_those_of_the_drawing(layout: str, viewer: int) -> None:
    """Together with the first seeds of each place, the parts are the circles of the whole
    drawing."""
    position, spots = Board.from_text(HOUSE).position, set()
    parts = board_parts(layout, viewer)
    for hollow in parts["hollows"]:
        seat, pit = hollow["seat"], hollow["pit"]
        if pit is None:
            left, top, width, height = hollow["box"]
            assert left > 0 and left + width < parts["width"]
            assert top > 0 and top + height < parts["height"]
            assert layout == "wide" or width == 8 * parts["pit"]  # as wide as a row
            middle = [left + width / 2, top + height / 2]
            below, beside = [middle[0], top + height + 1], [left + width, middle[1]]
            assert hollow["label"] == (below if layout == "wide" else beside)
        count = position.store[seat] if pit is None else position.pits(seat)[pit]
        spots |= {tuple(spot[:2]) for spot in hollow["spots"][:count]}
    shapes = drawing(position, layout=LAYOUTS[layout], viewer=viewer)
    seeds = [s for s in shapes if isinstance(s, Circle) and s.radius == 5]
    assert spots == {(round(s.x, 1), round(s.y, 1)) for s in seeds} and len(spots) == 64
    names = [s for s in shapes if isinstance(s, Text) and s.text in SEAT_NAMES]
    assert len(names) == 2  # and neither is cut off
    assert all(21 < name.x < LAYOUTS[layout].width - 21 for name in names)


@pytest.mark.parametrize(
    ("path", "arguments"),
    [("tall/north/round", ("tall", 1, False)), ("wide/south/house", ("wide", 0, True))],
)
def test_a_page_asks_for_its_drawing(
    client: TestClient, path: str, arguments: tuple[str, int, bool]
) -> None:
    """Only rules with houses have two square pits. Round pits have round marks; arrows point to two
    sides."""
    layout, viewer, house = arguments
    parts = client.get(f"/api/board/{path}").json()
    assert parts == json.loads(json.dumps(board_parts(layout, viewer, house)))
    assert parts["ground"] == svg_shapes(ground(LAYOUTS[layout], viewer, house=house))
    assert sum(hollow["owned"] is not None for hollow in parts["hollows"]) == 2 * house
    for mark in parts["marks"].values():
        assert "<circle" in mark["round"] and "<circle" not in mark["square"]
        assert "<rect" in mark["square"]
        left, right = (
            re.findall(r"(-?[\d.]+),(-?[\d.]+)", mark[side]) for side in ("left", "right")
        )
        assert [(-float(x), y) for x, y in left] == [(float(x), y) for x, y in right]


PAGE = (STATIC / "index.html").read_text(encoding="utf-8")
ENGLISH, SWAHILI = (
    json.loads((STATIC / f"{language}.json").read_text(encoding="utf-8"))
    for language in ("en", "sw")
)
"""The texts of the page."""


def test_the_style_sheet_has_the_colours_of_the_pictures() -> None:
    """Each colour is a variable of that name, with rules for the fills and outlines that the board
    has."""
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    variables = dict(re.findall(r"--([\w-]+): (#\w+);", style[style.index("Those of the board") :]))
    for colour, name in COLOUR_NAMES.items():
        if name not in ("paper", "shadow", "status"):  # these colours are set by the page
            assert variables[name] == colour, name
    parts = json.dumps([board_parts(layout) for layout in LAYOUTS])
    for name in set(re.findall(r"bao-[\w-]+", parts)):
        kind = "stroke" if name.endswith("-line") else "fill"
        variable = name.removeprefix("bao-").removesuffix("-line")
        assert f".{name} {{ {kind}: var(--{variable}); }}" in style, name
    rules = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    rules = rules[rules.index("* { box-sizing") :]
    assert re.findall(r"#[0-9a-f]{3,8}\b(?=[^{}]*})", rules) == []  # all colours are in one place


def test_all_rules_have_texts_and_swahili_has_words(thorough: bool) -> None:
    """Events, and the reasons why a move is illegal, have texts."""
    assert {f"event {kind.value}" for kind in EventKind} <= SWAHILI.keys()
    rng = np.random.default_rng(1)
    reasons, rules = set(), set()
    for name in RULESETS:
        for _ in range(4 if thorough else 2):
            game = Game(Board(name), ("human", "human"))
            while (legal := game.board().legal_actions) and game.ply < 60:
                for pit, direction in itertools.product(range(16), range(2)):
                    why = game.why_not(pit, direction, game.ply)
                    actions = {pack_action(pit, direction, house) for house in (0, 1)}
                    assert (why["words"] == "") == bool(actions & set(legal))
                    if why["words"] and not why["words"].endswith(" is empty"):
                        reasons.add(f"reason {why['rule']}")
                        rules.add(why["rule"])
                played = game.play(int(rng.choice(legal)), game.ply)
                rules |= {event["rule"] for event in played["events"]}
    assert len(reasons) > 6 and reasons <= SWAHILI.keys()
    assert len(rules) > 20 and rule_text("Donkers 9.9", Ruleset()) == ""
    for rule in rules - {""}:
        text = rule_text(rule, Ruleset())
        assert text and "**" not in text and "<!--" not in text
        # as static/texts.js looks them up
        key = f"rule {rule.split(',')[0]}"
        assert {key, key.rstrip("abc")} & SWAHILI.keys(), rule


def test_both_languages_have_the_same_words() -> None:
    extra = SWAHILI.keys() - ENGLISH.keys()  # the server has the English ones
    assert all(key.startswith(("event ", "reason ", "rule ")) for key in extra - {"rules"})
    for key, text in ENGLISH.items():
        if isinstance(text, str):
            fields, translated = (
                set(re.findall(r"{(\w+)}", words)) for words in (text, SWAHILI[key])
            )
            assert fields == translated, key
        else:
            assert len(text) == len(SWAHILI[key])
    assert set(re.findall('data-text="([^"]+)"', PAGE)) <= ENGLISH.keys()


RING = "A1 A2 A3 A4 A5 A6 A7 A8 B8 B7 B6 B5 B4 B3 B2 B1"


def test_swahili_tells_every_rule() -> None:
    """Each sentence of the rules in words has a translation, whatever the switches."""
    patterns = [
        re.compile(re.sub(r"\\{\w+\\}", "(.+)", re.escape(pattern))) for pattern in SWAHILI["rules"]
    ]
    rng = random.Random(1)
    for rules in (*RULESETS.values(), *(random_mixture(rng) for _ in range(100))):
        for line in rules_in_words(rules).splitlines()[:-1]:
            for sentence in re.split(r"(?<=\.) ", line):
                is_told = any(pattern.fullmatch(sentence) for pattern in patterns)
                assert is_told or sentence in ("", RING), sentence


def test_texts_of_rules_have_the_numbers_of_the_game(client: TestClient) -> None:
    """In malawi a house needs ten seeds, not six; other rules limit captures and sowings."""
    game, state = start(client, ruleset="malawi")
    why = game("why", pit=4, direction=0, ply=0)
    assert "10 seeds or more" in why["words"] and "with 10 or more seeds" in why["rule_text"]
    assert "10 seeds or more" in game("rules")["text"]
    own = Ruleset("own", house_min=9, capture_limit=12, sow_limit=500)
    texts = [rule_text(f"Donkers {rule}", own) for rule in ("1.5a", "2.4", "2.5", "3.3")]
    for text, number in zip(texts, ("500", "9", "9", "12"), strict=True):
        assert re.search(rf"\b{number} (or more )?seeds", text), text
    assert state["rule_numbers"].keys() == rule_numbers(own).keys()
    for text in (*texts, *(text for key, text in SWAHILI.items() if key.startswith("rule "))):
        assert not re.search(r"\b(six|sita|15|1000|sow_limit)\b(?!})", text), text


def test_numbers_in_texts_are_those_of_zanzibar() -> None:
    """Pages mark a number with the name of its switch; lessons and words leave a field for it."""
    words, zanzibar = {"six": 6}, Ruleset()
    for page, count in (("bao_env/RULES.md", 4), ("docs/how-bao-is-played.md", 5)):
        marked = NUMBER.findall((ROOT / page).read_text(encoding="utf-8"))
        assert len(marked) == count, page
        for number, switch in marked:
            value = words.get(number) or int(number.replace(",", ""))
            assert value == getattr(zanzibar, switch), (page, number, switch)
    lessons = (STATIC / "lessons.json").read_text(encoding="utf-8")
    for text in (lessons, *(str(text) for text in SWAHILI.values())):
        assert set(re.findall(r"{([a-z]+_[a-z_]+)}", text)) <= rule_numbers(zanzibar).keys()
    assert "{house_min}" in lessons


def test_swahili_has_one_word_for_a_ply_a_move_and_a_stage() -> None:
    """A ply, a move and a stage were all called ``hatua`` once."""
    terms = SWAHILI["terms"]
    texts = {
        "zamu": [SWAHILI["one_ply"], SWAHILI["plies"]],
        "hatua": [SWAHILI["moves"], SWAHILI["hint_move"], SWAHILI["graph_move"]],
        "awamu": [terms["namua"].partition(":")[0], terms["mtaji"].partition(":")[0]],
    }
    for word in texts:
        for name, sentences in texts.items():
            assert all((word in text.lower()) == (word == name) for text in sentences), word


def test_swahili_words_of_the_game_are_not_used_in_their_plain_sense() -> None:
    """The page makes each of them a button that explains it, as ``Endelea`` for Continue was."""
    terms = re.compile(r"(?i)\b(endelea|kujifunza|mtaji|namua|takasa|takasia)\b")
    lessons = json.loads((STATIC / "lessons.json").read_text(encoding="utf-8"))
    pairs = [(lesson["en"][key], text) for lesson in lessons for key, text in lesson["sw"].items()]
    pairs += [(ENGLISH[key], text) for key, text in SWAHILI.items() if key in ENGLISH]
    for english, swahili in (pair for pair in pairs if isinstance(pair[0], str)):
        swahili_terms, english_terms = (
            set(terms.findall(text.casefold())) for text in (swahili, english)
        )
        assert swahili_terms <= english_terms, swahili


def test_lessons_are_what_the_engine_says() -> None:
    """Exactly the moves that reach a lesson's goal show its event, except in the lesson on the best
    capture."""
    lessons = json.loads((STATIC / "lessons.json").read_text(encoding="utf-8"))
    for lesson in lessons:
        board = Board.from_text(lesson["position"])
        seeds_of: dict[str, int] = {}
        for move in board.legal_moves:
            events = [event for event in board.trace(move) if event.kind.value == lesson["shows"]]
            if events:
                seeds_of[board.move_text(move)] = sum(event.seeds for event in events)
        if set(lesson["goal"]) != seeds_of.keys():
            assert lesson["goal"] == [max(seeds_of, key=seeds_of.__getitem__)]
        assert lesson["en"].keys() == lesson["sw"].keys() >= {"title", "text", "done"}


def test_the_first_lessons_are_enough_for_kujifunza() -> None:
    """Everything that happens in random games of kujifunza also happens in the accepted moves of
    these lessons."""
    lessons = json.loads((STATIC / "lessons.json").read_text(encoding="utf-8"))
    count = 1 + [lesson.get("opens") for lesson in lessons].index("kujifunza")
    taught: set[EventKind] = set()
    for lesson in lessons[:count]:
        board = Board.from_text(lesson["position"])
        for move in lesson["goal"]:
            taught |= {event.kind for event in board.trace(move)}
    rng = np.random.default_rng(1)
    happened: Counter[EventKind] = Counter()
    for _ in range(20):
        board = Board("kujifunza")
        while board.legal_actions:
            action = int(rng.choice(board.legal_actions))
            happened.update({event.kind for event in board.trace(action)})
            board.push(action)
    assert count == 3 and len(happened) > 4
    assert happened.keys() - taught <= {EventKind.NO_LEGAL_MOVE}, happened


DRAWN = 0.15
"""A difference of values that says nothing: half of a mistake (bao_agents.analysis)."""


def taught() -> dict[str, tuple[str, list[str]]]:
    """Return the positions of the lessons and of the page How Bao is played, with their moves."""
    lessons = json.loads((STATIC / "lessons.json").read_text(encoding="utf-8"))
    examples = {
        f"lesson {i}": (lesson["position"], lesson["goal"]) for i, lesson in enumerate(lessons, 1)
    }
    page = (ROOT / "docs" / "how-bao-is-played.md").read_text(encoding="utf-8")
    for name, position, move in re.findall(r"<!-- move (\S+) (.+) (\S+) -->", page):
        if move != "none":
            examples[name] = position, [move]
    return examples


@pytest.mark.parametrize("name", taught())
def test_what_is_taught_is_right(name: str) -> None:
    """No accepted move is lost, one is as good as the best, and no other move wins sooner."""
    position, moves = taught()[name]
    board = Board.from_text(position)
    goal = [board.parse_move(move) for move in moves]
    analysis = analyse(board, "alphabeta:200000n", lines=None, proof_nodes=400_000)
    accepted = [line for line in analysis.lines if line.action in goal]
    assert all(line.proof.winner != 1 - board.turn for line in accepted)
    best = max(line.score for line in analysis.lines)
    assert max(line.score for line in accepted) >= best - DRAWN
    if analysis.proof.winner == board.turn:
        assert analysis.proof.plies in {line.proof.plies for line in accepted}


@pytest.mark.parametrize("ruleset", ["zanzibar", "kujifunza"])
def test_few_moves_solve_a_puzzle(client: TestClient, ruleset: str, thorough: bool) -> None:
    """The solver proves that few moves win. Puzzles are ordered by the length of their shortest
    win, then by the number of levels that solve them."""
    shipped = puzzles(RULESETS[ruleset])
    order = [(puzzle.plies, -puzzle.levels) for puzzle in shipped]
    assert client.get("/api/setup").json()["puzzles"] == ["kujifunza", "zanzibar"]
    assert order == sorted(order) and {3, 5, 7, 9, 11} < {plies for plies, _ in order}
    answers = [ask(client, "/api/puzzles", ruleset=ruleset, number=n) for n in (1, len(shipped))]
    texts = [answer["state"]["text"] for answer in answers]
    assert texts == [puzzle.position for puzzle in (shipped[0], shipped[-1])]
    assert ask(client, "/api/puzzles", ruleset=ruleset)["state"]["text"] == texts[0]
    for number in range(1, len(shipped) + 1, 1 if thorough else 9):
        answer = ask(client, "/api/puzzles", ruleset=ruleset, number=number)
        board, puzzle = Board.from_text(answer["state"]["text"], ruleset), shipped[number - 1]
        assert solve(board, shortest=True)[:3] == (board.turn, answer["plies"], True)
        rating = {"solved": puzzle.levels, "levels": len(RATED_LEVELS)}
        assert answer["rating"] == (rating if puzzle.solved else None)
        wins = []
        for action in board.legal_actions:
            after = board.copy()
            after.push(action)
            if solve(after).winner == board.turn:
                wins.append(action_to_move(action))
        assert tuple(wins) == puzzle.winning and 3 * len(wins) <= len(board.legal_actions)
    ask(client, "/api/puzzles", 404, ruleset=ruleset, number=len(shipped) + 1)


def test_the_rules_with_the_easiest_puzzle_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first puzzle counts: its plies, then the levels that solve it."""
    tries = {
        "zanzibar": [(3, 2), (9, 0)],
        "kujifunza": [(3, 1), (3, 8)],
        "malawi": [(2, 0), (3, 8)],
    }

    def some(rules: Ruleset) -> tuple[Puzzle, ...]:
        return tuple(Puzzle("", n, (), (1.0,) * levels) for n, levels in tries.get(rules.name, ()))

    monkeypatch.setattr("bao_agents.play.api.puzzles", some)
    client = TestClient(create_app(Roster()), base_url=HOST)
    assert client.get("/api/setup").json()["puzzles"] == ["malawi", "zanzibar", "kujifunza"]


@pytest.mark.parametrize(
    ("winning", "plies", "answer", "is_chosen"),
    [
        (0b101, 3, (3, True), True),  # two of six moves win
        (0b10101, 3, (3, True), False),
        (0, 3, (3, True), False),
        (0b101, 2, (2, True), False),
        (0b101, 21, (21, True), True),
        (0b101, 22, (22, True), False),
        (0b101, 7, (5, True), False),
        (0b101, 7, (7, False), False),
    ],
)
def test_a_puzzle_has_few_winning_moves_and_a_win_of_a_known_length(
    winning: int,
    plies: int,
    answer: tuple[int, bool],
    is_chosen: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A position is chosen once. Further files add at most six puzzles of a length."""
    rules, won = RULESETS["kujifunza"], shipped_won_positions(RULESETS["kujifunza"])
    assert won is not None
    won = replace(
        won[:9],
        legal=np.full(9, 0b10101010101, np.uint64),
        winning=np.full(9, winning, np.uint64),
        plies=np.full(9, plies, np.int16),
    )
    solver = MagicMock()
    solver.return_value.solve.return_value = Solution(0, *answer, (), 0)
    monkeypatch.setattr("bao_agents.play.puzzles.Solver", solver)
    texts = [format_position(unpack(position)) for position in won.positions]
    expected = [Puzzle(text, plies, ("A1L", "A1R")) for text in texts]
    assert [*choose(won)] == expected * is_chosen
    assert [*choose(won[:2], [won, won])] == expected[:PER_LENGTH] * is_chosen
    assert [*choose(won, [won[:1]])] == expected * is_chosen
    solver.assert_called_with(rules, nodes=2_000_000)
    if solver.return_value.solve.called:
        assert solver.return_value.solve.call_args.kwargs == {"shortest": True}


def test_the_file_of_puzzles_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only new puzzles are rated."""
    rules = RULESETS["kujifunza"]
    shipped, won = puzzles(rules), shipped_won_positions(rules)
    assert won is not None
    content, rated = puzzles_file(rules).read_bytes(), list[Puzzle]()
    monkeypatch.setattr("bao_agents.play.puzzles._FOLDER", tmp_path)
    write(sorted(shipped, key=lambda puzzle: (-puzzle.plies, puzzle.levels)), rules)
    assert puzzles_file(rules).read_bytes() == content
    new = Puzzle(OPENING, 2, ("A6L", "A6R"))

    def rate_new(puzzle: Puzzle, rules: Ruleset) -> tuple[float, ...]:
        rated.append(puzzle)
        return (0.5, 0.25)

    def note(*positions: Any) -> list[Puzzle]:
        assert [len(positions[0]), *map(len, positions[1])] == [len(won)] * 2
        return [*(puzzle._replace(solved=()) for puzzle in shipped[:3]), new]

    monkeypatch.setattr("bao_agents.play.puzzles.choose", note)
    monkeypatch.setattr("bao_agents.play.puzzles.rate", rate_new)
    main("kujifunza", "kujifunza")
    rated_new = new._replace(solved=(0.5, 0.25))
    assert rated == [new] and rated_new.levels == 1
    assert puzzles.__wrapped__(rules) == (rated_new, *shipped[:3])
    monkeypatch.setattr(sys, "argv", ["puzzles.py", "kibau"])
    monkeypatch.delitem(sys.modules, main.__module__)
    with pytest.raises(KeyError, match="kibau"):
        runpy.run_module(main.__module__, run_name="__main__")


@pytest.mark.parametrize("ruleset", ["zanzibar", "kujifunza"])
def test_levels_solve_the_puzzles_as_rated(ruleset: str, thorough: bool) -> None:
    """A sample is played again; the columns are those of the levels, whose tries are whole."""
    rules = RULESETS[ruleset]
    rated = [puzzle for puzzle in puzzles(rules) if puzzle.solved]
    head = puzzles_file(rules).read_text(encoding="ascii").splitlines()[0].split("\t")
    assert head[3:] == [LEVELS[level] for level in RATED_LEVELS]
    assert all(SEEDS * share == int(SEEDS * share) for p in rated for share in p.solved)
    for puzzle in rated[5 :: 8 if thorough else 60]:
        assert rate(puzzle, rules) == puzzle.solved
    totals = [sum(puzzle.solved[level] for puzzle in rated) for level in (0, 2, -1)]
    assert totals == sorted(totals)  # of random moves, one ply and ten plies


def test_a_client_of_ipv6_is_a_network() -> None:
    network, neighbour = "2001:db8:1:2::1", "2001:db8:1:3::1"
    of = [
        client_of({"client": (address, 1)}) for address in (network, network[:-1] + "9", neighbour)
    ]
    assert of == [f"2001:db8:1:{number}::/64" for number in (2, 2, 3)]
    assert client_of({"client": ("fd00:0:0:1::5", 1)}) == "fd00:0:0:1::/64"
    assert client_of({"client": None}) == ""
    assert client_of({"client": ("::ffff:10.0.0.1", 1)}) == "10.0.0.1"
