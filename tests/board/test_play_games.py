"""Test the server of the board: games, hints and the evaluation bar."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any, NoReturn

import numpy as np
import pytest
from starlette.testclient import TestClient

from bao_agents.analysis import Analysis, Line, Reviewed
from bao_agents.play.analysis import REVIEW_PLAYER, hints, review, south_chance
from bao_agents.play.refused import Refused
from bao_agents.play.roster import Roster
from bao_agents.play.seated_game import (
    Game,
    event_values,
    hand_way,
    move_texts,
    position_values,
)
from bao_agents.search.solver.solver import Solution
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from tests.play import HOUSE, Table, ask, start
from tests.positions import OPENING, TAKASIA, WAITING

pytestmark = pytest.mark.usefixtures("patience")


# --- a game -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULESETS)
def test_game_shows_what_a_board_shows(client: TestClient, name: str) -> None:
    """In random play, every state, event and legal move is the engine's."""
    game, state = start(client, ruleset=name, first_player="south")
    board = Board(name)
    rng = np.random.default_rng(7)
    for ply in range(60):
        assert state["text"] == board.text() and state["ply"] == ply
        assert [option["action"] for option in state["legal"]] == board.legal_actions
        assert state["counts"] == [list(board.position.pits(seat)) for seat in (0, 1)]
        if not state["legal"]:
            outcome = board.outcome()
            assert outcome is not None and outcome.winner is not None
            assert state["outcome"]["winner"] == outcome.winner
            over = {"south": 1 - outcome.winner, "proven": True, "win": None}
            assert game("evaluation") == over
            break
        action = int(rng.choice(board.legal_actions))
        events = [event_values(event, board.ruleset) for event in board.trace(action)]
        expected = json.loads(json.dumps(events))
        answer = game("play", action=action, ply=ply)
        board.push(action)
        state = answer["state"]
        assert answer["events"] == expected and expected[-1]["counts"] == state["counts"]
    assert state["ply"] > 5
    last = game("events", ply=state["ply"] - 1)
    assert last["events"] == expected and last["state"]["ply"] == state["ply"] - 1


def play_on(game: Table, state: dict[str, Any], plies: int) -> dict[str, Any]:
    """Play some legal actions; return the last state."""
    for ply in range(state["ply"], state["ply"] + plies):
        action = state["legal"][ply % len(state["legal"])]["action"]
        state = game("play", action=action, ply=ply)["state"]
    return state


def test_undo_and_redo(client: TestClient) -> None:
    game, state = start(client)
    texts = [state["text"]]
    for _ in range(8):
        state = play_on(game, state, 1)
        texts.append(state["text"])
    for ply in (5, 0, 8, 3):
        state = game("goto", ply=ply)["state"]
        assert (state["text"], state["ply"], state["length"]) == (texts[ply], ply, 8)
    look = game("look", ply=5)["state"]
    assert (look["text"], look["ply"], look["current_ply"]) == (texts[5], 5, 3)
    state = play_on(game, game("goto", ply=3)["state"], 1)
    assert (
        state["length"] == state["ply"] == 4
    )  # the moves taken back become a line beside the game
    [line] = state["lines"]
    assert line["ply"] == 4 and len(line["moves"]) == 4  # the same move was made again
    state = game("line", index=0)["state"]
    assert (state["length"], state["ply"]) == (8, 4)
    assert game("goto", ply=8)["state"]["text"] == texts[8]
    game("goto", ply=0)
    second = game("look", ply=0)["state"]["legal"][1]
    state = game("play", action=second["action"], ply=0)["state"]
    assert [line["ply"] for line in state["lines"]] == [0] and state["length"] == 1
    game("line", index=0)
    legal = game("goto", ply=2)["state"]["legal"]
    state = game("play", action=legal[3 % len(legal)]["action"], ply=2)["state"]
    assert [line["ply"] for line in state["lines"]] == [2, 0]  # the latest first
    assert "the game has 2 side lines" in game("line", 400, index=2)["error"]
    state = game("line", index=1)["state"]
    assert [line["ply"] for line in state["lines"]] == [0, 0] and state["length"] == 1
    assert len(state["lines"][0]["moves"]) == 3
    game("line", index=1)
    game("goto", ply=4)
    for request in ("play", "why", "choice"):  # two clicks, or two pages of one game
        values = {"action": 28} if request == "play" else {"pit": 7, "direction": 0}
        assert "load it again" in game(request, 409, ply=3, **values)["error"]


def test_the_latest_side_lines_are_kept(client: TestClient) -> None:
    game, state = start(client)
    play_on(game, state, 8)
    numbers_and_lengths = []
    for number in range(7):
        legal = game("goto", ply=0)["state"]["legal"]
        state = game("play", action=legal[(number + 1) % 4]["action"], ply=0)["state"]
        lengths = [len(line["moves"]) for line in state["lines"]]
        numbers_and_lengths.append((len(lengths), max(lengths)))
    # The page shows six moves of the first line, which is dropped when there are five others.
    assert numbers_and_lengths == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (5, 1), (5, 1)]


def test_transcripts_go_round(client: TestClient) -> None:
    game, state = start(client, ruleset="dutch")
    state = play_on(game, state, 30)
    assert state["ruleset"] == "dutch" and state["ply"] == 30
    for text in state["transcripts"]:
        loaded = start(client, transcript=f"\ufeff{text}")[
            1
        ]  # some editors begin files with this mark
        assert loaded | {"version": state["version"]} == state


def test_a_restarted_game_has_the_moves_of_all_its_pages(client: TestClient) -> None:
    """A page that has missed the last moves may be the first to restart the game."""
    game, state = start(client)
    texts = [play_on(game, state, 2)["transcripts"][0]]
    texts.append(play_on(game, game.state(), 4)["transcripts"][0])
    different = play_on(*start(client, transcript=texts[0]), 1)
    name = "0123456789abcdef"
    for text, plies in (
        (texts[0], 2),
        (texts[1], 6),
        (texts[0], 6),
        (different["transcripts"][0], 6),
    ):
        assert start(client, transcript=text, name=name)[1]["ply"] == plies
    assert start(client, transcript=texts[0], name=name)[1]["transcripts"][0] == texts[1]
    own_name = game.path.rpartition("/")[2]
    assert start(client, transcript=texts[0], name=own_name)[0].path == game.path


def test_the_rules_say_who_begins(client: TestClient) -> None:
    """Either seat begins if the rules draw who begins, or if the request asks for it."""
    for ruleset, first_player, movers in (
        ("zanzibar", None, {0}),
        ("zanzibar", "north", {1}),
        ("zanzibar", "random", {0, 1}),
        ("kujifunza", None, {0, 1}),
    ):
        values = {"ruleset": ruleset, "first_player": first_player}
        assert {start(client, **values)[1]["mover"] for _ in range(20)} == movers


def test_rules_travel_as_data(client: TestClient) -> None:
    """A game with custom rules sends its switches, so that another game can begin under the same
    rules."""
    rules = RULESETS["zanzibar"].replace(house_min=8)
    board = Board(rules)
    state = start(client, transcript=board.transcript())[1]
    for position in (None, state["text"]):
        named = {"ruleset": state["ruleset"], "rules": state["rules"], "position": position}
        second = start(client, **named)[1]
        assert [option["action"] for option in second["legal"]] == board.legal_actions
        assert second["transcripts"] == state["transcripts"]
    assert start(client)[1]["rules"] is None


def test_rules_with_very_long_moves_are_refused(client: TestClient) -> None:
    """Whoever looks for legal moves tries a move that never ends up to the limit."""
    for limit, status in ((10_000, 200), (10_001, 400)):
        rules = RULESETS["zanzibar"].replace(sow_limit=limit)
        switches = {"ruleset": rules.name, "rules": json.dumps({"sow_limit": limit})}
        for values in (
            switches,
            {**switches, "position": Board(rules).text()},
            {"transcript": Board(rules).transcript()},
        ):
            answer = ask(client, "/api/games", status, seats=["human", "human"], **values)
            assert answer.get("error", "") == (
                "" if status == 200 else "rules: sow_limit=10001: expected at most 10000"
            )


def test_a_game_keeps_its_head(client: TestClient) -> None:
    """A person keeps the name from the loaded game; a bot has its own name."""
    head = "title: Third round\nSouth: A. Player\nnorth: B\nopening plies: 1\n"
    game, state = start(client, transcript=f"{head}1: 7L* 5R; a comment\n")
    assert state["names"] == ["A. Player", "B"] and state["opening_plies"] == 1
    for text in state["transcripts"]:
        assert text.startswith(head) and "5R; a comment" in text.replace(">", "R")
    state = game("seats", seats=["human", "greedy"])["state"]
    assert state["names"] == ["A. Player", "greedy"]
    assert "north: greedy\n" in state["transcripts"][0]


def test_house_choice(client: TestClient) -> None:
    game, state = start(client, position=HOUSE)
    options = [o for o in state["legal"] if o["pit"] == 7 and o["direction"] == 1]
    assert [option["house"] for option in options] == [0, 1]
    shared = game("choice", pit=7, direction=1, ply=0)["events"]
    alone, before = start(
        client, position=HOUSE.replace("0,0,1,", "0,0,0,", 1).replace("20,", "21,")
    )
    assert [option["action"] for option in before["legal"]] == [30, 31]
    assert len(alone("choice", pit=7, direction=1, ply=0)["events"]) == len(shared)
    for option, kind in zip(options, ("house stop", "house played"), strict=True):
        played = game("play", action=option["action"], ply=0)["events"]
        assert played[: len(shared)] == shared
        assert played[len(shared)]["kind"] == kind
        game("goto", ply=0)


def test_the_state_is_all_that_the_page_shows(client: TestClient) -> None:
    """In namua, a direction chooses the kichwa from which captured seeds are sown inwards."""
    game, state = start(client, position=HOUSE)
    from_left = {"start": 0, "way": 1, "choice": "end"}
    from_right = {"start": 7, "way": 0, "choice": "end"}
    legal = [
        {"action": 8, "pit": 2, "direction": 0, "house": 0, **from_left},
        {"action": 10, "pit": 2, "direction": 1, "house": 0, **from_right},
        {"action": 30, "pit": 7, "direction": 1, "house": 0, **from_right},
        {"action": 31, "pit": 7, "direction": 1, "house": 1, **from_right},
    ]
    head = f"south: human\nnorth: human\nruleset: zanzibar\nposition: {HOUSE}\n"
    expected: dict[str, Any] = {
        "ply": 0,
        "mover": 0,
        "counts": [
            [0, 0, 1, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1],
            [1, 0, 0, 0, 7, 2, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1],
        ],
        "store": [20, 20],
        "owns_house": [True, True],
        "last": None,
        "barred": None,
        "pending": None,
        "version": state["version"],
        "current_ply": 0,
        "must": "capture",
        "ruleset": "zanzibar",
        "rules": None,
        "seats": ["human", "human"],
        "names": ["human", "human"],
        "house": True,
        "rule_numbers": {"capture_limit": 15, "house_min": 6, "sow_limit": 1000},
        "has_store": True,
        "opening_plies": 0,
        "length": 0,
        "text": HOUSE,
        "stage": "namua",
        "outcome": None,
        "legal": legal,
        "moves": [],
        "lines": [],
        "transcripts": [f"{head}0: ;\n", f"{head}spelling: kibao\n0: ;\n"],
    }
    assert state == expected
    played = game("play", action=31, ply=0)
    state = played["state"]
    [move] = state["moves"]
    assert [words["kind"] for words in move.pop("mentioned")] == ["house played", "house lost"]
    summary = {"seat": 0, "texts": ["8>", "8+"], "joined": False, "seeds": 1, "laps": 3}
    after = "1,1,2,1,0,1,1,0/1,1,1,1,0,0,1,1/0,0,0,0,7,2,0,1/0,0,0,0,0,0,1,1 19,20 N N -"
    south = [int(count) for count in after[:31].replace("/", ",").split(",")]
    changed = {
        "ply": 1,
        "mover": 1,
        "counts": [south, [0, *expected["counts"][1][1:]]],
        "store": [19, 20],
        "owns_house": [False, True],
        "last": {"seat": 0, **legal[3]},
        "version": expected["version"] + 1,
        "current_ply": 1,
        "length": 1,
        "text": after,
        "moves": [summary],
        "transcripts": [f"{head}1: 8>;\n", f"{head}spelling: kibao\n1: 8+;\n"],
    }
    assert {key: state[key] for key in state if key != "legal"} == {
        key: value for key, value in (expected | changed).items() if key != "legal"
    }
    state = play_on(game, state, 1)
    assert [move["joined"] for move in state["moves"]] == [False, False]
    assert abs(state["version"] - 1000 * time.time()) < 600_000  # a number for JavaScript
    fresh, learner, late, waiting = (
        start(client, **settings)[1]
        for settings in (
            {},
            {"ruleset": "kujifunza"},
            {"position": TAKASIA},
            {"ruleset": "dutch", "position": WAITING},
        )
    )
    assert [fresh["must"], waiting["must"]] == ["takasa", "side"]
    assert {option["choice"] for option in waiting["legal"]} == {"end"}
    capture = start(client, position=LAST_CAPTURE)[1]
    for state in (fresh, late, capture):
        assert {option["choice"] for option in state["legal"]} == {"way"}
    assert [late["has_store"], learner["has_store"]] == [True, False]


LAST_CAPTURE = "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
"""The stores are empty, and South captures North's last seed of the front row."""


def test_a_move_is_shown_before_it_is_made(client: TestClient) -> None:
    """The events are those of the board, without the boards after them."""
    board, (game, state) = Board.from_text(HOUSE), start(client, position=HOUSE)
    values = [{**option, "events": board.trace(option["action"])} for option in state["legal"][2:]]
    for move in values:
        keys = ("kind", "seat", "seeds", "names", "words", "pits", "at")
        events = [event_values(event, board.ruleset) for event in move["events"]]
        move["events"] = [{key: event[key] for key in keys} for event in events]
    assert game("preview", pit=7, ply=0)["moves"] == json.loads(json.dumps(values))
    for viewer in (0, 1):
        assert game("picture", ply=0, viewer=viewer)["svg"] == board.svg(viewer=viewer)


def test_illegal_move_names_its_rule(client: TestClient) -> None:
    game, _ = start(client)
    why = game("why", pit=4, direction=0, ply=0)
    assert why["rule"] == "Donkers 2.4b" and "must not start from a house" in why["words"]
    assert why["rule_text"].startswith("2.4 Takasa.")
    for position in (OPENING, HOUSE):
        game, state = start(client, position=position)
        legal = {(option["pit"], option["direction"]) for option in state["legal"]}
        for pit, direction in itertools.product(range(16), range(2)):
            words = game("why", pit=pit, direction=direction, ply=0)["words"]
            assert (words == "") == ((pit, direction) in legal)


def test_a_person_resigns(client: TestClient) -> None:
    """The transcript names the winner, and is read as a resigned game; another move continues
    it."""
    game, state = start(client, seats=["human", "greedy"])
    state = game("play", action=state["legal"][0]["action"], ply=0)["state"]
    assert "only a person" in game("resign", 400, seat=1, ply=1)["error"]
    state = game("resign", seat=0, ply=1)["state"]
    assert state["outcome"] == {"winner": 1, "how": "resigned"} and state["legal"] == []
    assert state["names"] == ["human", "greedy"]
    assert "the game is over" in game("bot", 400, ply=1)["error"]
    text = state["transcripts"][0].replace("winner", "Winner")
    loaded, reloaded = start(client, transcript=text)
    assert reloaded["outcome"] == state["outcome"] and reloaded["transcripts"][0] == text
    state = loaded("goto", ply=0)["state"]
    assert state["outcome"] is None and "winner" not in state["transcripts"][0]
    state = loaded("play", action=state["legal"][1]["action"], ply=0)["state"]
    assert state["outcome"] is None and "winner" not in state["transcripts"][0]


def test_undone_moves_outlive_a_resignation(client: TestClient) -> None:
    game, state = start(client)
    moves = play_on(game, state, 3)["moves"]
    game("goto", ply=1)
    state = game("resign", seat=0, ply=1)["state"]
    assert len(state["moves"]) == 1 and [line["ply"] for line in state["lines"]] == [1]
    assert game("line", index=0)["state"]["moves"] == moves


def test_game_that_is_too_long_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bao_agents.play.seated_game.MAX_BOARD_PLIES", 1)
    board = Board()
    board.push(board.legal_actions[0])
    game = Game(board, ("human", "human"))
    assert game.read()
    with pytest.raises(Refused, match="at most 1 plies"):
        game.play(board.legal_actions[0], 1)
    board.push(board.legal_actions[0])
    with pytest.raises(Refused, match="2 moves: expected at most 1"):
        Game(board, ("human", "human"))


def test_work_for_visitors_keeps_to_its_nodes_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    noted_settings = list[Any]()

    def note(*arguments: Any, **settings: Any) -> NoReturn:
        noted_settings.append(settings)
        raise Refused("noted")

    for name in ("analyse", "review_move"):
        monkeypatch.setattr(f"bao_agents.play.analysis.{name}", note)
    game = Board.from_text(WAITING, "dutch")
    game.push(game.legal_actions[0])
    for work in (hints, south_chance):
        with pytest.raises(Refused, match="noted"):
            work(game, "alphabeta", Roster(), 3)
    with pytest.raises(Refused, match="noted"):
        review(game, 3)
    assert noted_settings == [{"lines": None, "threads": 3}] * 2 + [
        {"proof_nodes": 100_000, "threads": 3}
    ]


def test_a_review_is_of_the_move_at_a_ply(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are South's, whoever moved. A line has eight moves."""
    game, state = start(client)
    play_on(game, state, 3)
    board = Board.from_transcript(game.state()["transcripts"][0])
    played, after, unknown = board.pop(), board.copy(), Solution(None, None, False, (), 0)
    while len(after.move_stack) < 12:
        after.push(after.legal_actions[-1])
    moves, win = tuple(after.move_stack[2:]), Solution(1, 9, True, (), 7)

    def review_move(board: Board, ply: int, player: str, **limits: Any) -> Reviewed:
        assert (len(board.move_stack), ply, player) == (3, 2, REVIEW_PLAYER)
        lines = [Line(moves[0], 0.5, unknown, None, moves), Line(played, -1.0, win, None, ())]
        return Reviewed(ply, 0, lines[1], Analysis(0.5, unknown, (*lines,)))

    monkeypatch.setattr("bao_agents.play.analysis.review_move", review_move)
    answer = game("review", ply=2)
    assert [answer[name] for name in ("ply", "south", "mark", "given_away")] == [
        2,
        0.75,
        "??",
        False,
    ]
    for name, action, value, proof in (
        ("played", played, 0.0, {"winner": 1, "plies": 9, "exact": True}),
        ("best", moves[0], 0.75, None),
    ):
        values = {**move_texts(board, action), **hand_way(board, action)}
        assert answer[name] == values | {"value": value, "probability": None, "win": proof}
    for move, action in zip(answer["line"], moves[:8], strict=True):
        texts = move_texts(board, action)
        board.push(action)
        assert move == texts | {"after": json.loads(json.dumps(position_values(board)))}


# --- hints and evaluation -----------------------------------------------------------------------


@pytest.mark.parametrize("evaluator", ["alphabeta", "zanzibar"])
def test_hints(client: TestClient, evaluator: str) -> None:
    """Hints list all legal moves, the best one first, with a line that can be played."""
    game, state = start(client)
    open_game = game("evaluation", evaluator=evaluator)
    assert 0.3 < open_game["south"] < 0.7 and not open_game["proven"] and open_game["win"] is None
    answer = game("hints", evaluator=evaluator)
    assert {m["action"] for m in answer["moves"]} == {o["action"] for o in state["legal"]}
    chances = [move["probability"] for move in answer["moves"]]
    assert chances == [None] * 4 or sum(chances) == pytest.approx(1, abs=1e-3)
    assert (chances[0] is None) == (evaluator == "alphabeta")
    assert answer["line"][0]["texts"] == answer["moves"][0]["texts"]
    board = Board()
    for move in answer["line"]:
        assert move["seat"] == board.turn
        board.push(move["texts"][0])


@pytest.mark.parametrize("ruleset", ["kibao", "kujifunza"])
def test_the_bar_and_the_hints_agree(client: TestClient, ruleset: str) -> None:
    """Both show the same analysis, and the best move has the proof of the position."""
    game, state = start(client, ruleset=ruleset, first_player="south")
    for _ in range(3):
        bar, answer = game("evaluation"), game("hints")
        best = answer["moves"][0]
        assert (best["value"], best["win"]) == (bar["south"], bar["win"])
        assert answer["win"] == bar["win"]
        state = play_on(game, state, 6)


WON = "1,1,0,5,7,0,4,8/3,0,2,0,2,0,5,1/1,1,2,1,2,0,3,1/0,2,0,2,0,2,1,3 2,2 - S -"
"""South wins in 13 plies with three of eight moves, and loses with the others."""


def test_nobody_has_won_a_game_that_was_cut_short(client: TestClient) -> None:
    game, state = start(client, transcript="end: cut short\n1: 7L*;")
    assert state["outcome"] == {"winner": None, "how": "cut short"}
    assert game("evaluation") == {"south": 0.5, "proven": False, "win": None}


def test_hints_and_evaluation_of_a_proven_win(client: TestClient) -> None:
    """Both say who wins and in how many plies, even after moves and after going back."""
    game, _ = start(client, position=WON)
    win = {"winner": 0, "plies": 13, "exact": True}
    answer = game("hints", evaluator="alphabeta")
    moves = answer["moves"]
    assert answer["win"] == moves[0]["win"] == win
    results = [(move["win"]["winner"], move["value"]) for move in moves]
    assert results == [(0, 1.0)] * 3 + [(1, 0.0)] * 5
    game("play", action=moves[-1]["action"], ply=0)
    after = game("evaluation")
    assert (after["south"], after["win"]["winner"]) == (0, 1)
    game("goto", ply=0)
    assert game("evaluation") == {"south": 1.0, "proven": True, "win": win}
    network = game("hints", evaluator="zanzibar")
    assert network["win"] == win and network["moves"][0]["value"] == 1
    assert 0 < network["moves"][0]["probability"] < 1  # the network's opinion is still shown
