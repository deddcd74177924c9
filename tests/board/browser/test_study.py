"""Test reviews, links, set-up by clicks, and the page at every size."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Request, Route, expect

from bao_agents import analyse
from bao_env.board import Board
from tests.board.browser.test_browser import (
    WON,
    Open,
    at_rest,
    click_any,
    moves,
    see,
    set_up,
    sow,
    transcript,
    unfold,
    until,
)

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LANDSCAPE: dict[str, Any] = {"viewport": {"width": 844, "height": 390}, "has_touch": True}


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_a_review_names_the_win_that_was_given_away(open_page: Open, size: dict[str, Any]) -> None:
    """The answers are beside the board, where people look."""
    page = open_page(**size)
    losing = analyse(Board.from_text(WON), "alphabeta:2", lines=None).lines[-1].action
    game = Board.from_text(WON, moves=[losing])
    unfold(page, "panel-text")
    page.fill("#transcript", game.transcript())
    page.click("#load")
    see(page, "#moves button").to_have_count(1)
    unfold(page, "panel-study")
    page.click("#review-game")
    see(page, "#review-text").to_have_text(re.compile(r"^Mistakes: South \d, North 0\.$"))
    mistake = page.locator("#mistakes li > button").first
    expect(mistake).to_contain_text("That threw a proven win away. (South wins in 13 plies)")
    expect(mistake).to_have_text(re.compile(r"^\d+\. South \S+\?\? lost 100%\. "))
    see(page, "#moves .mark").to_have_text("??")
    if size:
        mistake.click()
    else:
        mistake.focus()
        page.keyboard.press("Enter")
    see(page, "#status").to_have_text("Looking back, move 1: South to move")
    assert size or page.evaluate("document.activeElement.closest('#mistakes')")
    see(page, "#board .marks .hint").not_to_have_count(0)
    see(page, "#board .marks .last").not_to_have_count(0)  # the move that was played
    see(page, "#graph .shown").to_have_count(1)
    see(page, "#graph .shown ~ .blunder").to_have_count(1)  # the blunder is drawn over it
    see(page, "#caption").to_contain_text("Better here: ")
    for selector in ("#board", "#caption"):
        see(page, selector).to_be_in_viewport(ratio=0.95)
    see(page, "#mistakes").to_contain_text(re.compile(r"Better: \d+\. "))
    line = page.locator("#mistakes li > button.move").all()[1:]
    assert len(line) >= 3
    line[0].click()
    see(page, "#status").to_have_text("Looking ahead: North to move")


def test_a_review_says_since_when_the_game_was_lost(open_page: Open) -> None:
    """The analysis is invented here; its numbers stand at the axes of the graph."""
    page = open_page()
    south = [0.5, 0.4, 0.08, 0.04, 0.02, 0.0]
    move = {"seat": 0, "texts": ["7L*", "7<*"], "value": 0.0, "win": None}

    def answer(route: Route) -> None:
        ply = json.loads(route.request.post_data or "")["ply"]
        analysis = {"ply": ply, "south": south[ply], "mark": "", "line": [], "given_away": False}
        route.fulfill(json=analysis | {"played": move, "best": move})

    page.route("**/review", answer)
    for turn in range(len(south) // 2):
        click_any(page, turn)
    unfold(page, "panel-study")
    page.click("#review-game")
    see(page, "#review-text").to_have_text(
        "Mistakes: South 0, North 0. From move 2 on, South was lost: the chance of winning stayed "
        "below 10%."
    )


def test_a_loaded_game_keeps_its_head(open_page: Open) -> None:
    """The game's players stand on the page and in the file, and moves that no player chose are not
    judged."""
    page = open_page()
    game = Board()
    for _ in range(3):
        game.push(game.legal_actions[0])
    text = game.transcript({"title": "Third round", "south": "A. Player", "opening plies": "2"})
    unfold(page, "panel-text")
    page.fill("#transcript", text)
    page.click("#load")
    see(page, "#players").to_contain_text("South: A. Player")
    saved = transcript(page)
    assert Board.from_transcript(saved).move_stack == game.move_stack
    assert saved.startswith("title: Third round\nsouth: A. Player\nopening plies: 2\n")
    reviewed: list[int] = []

    def note(request: Request) -> None:
        if request.url.endswith("/review"):
            reviewed.append(request.post_data_json["ply"])

    page.on("request", note)
    unfold(page, "panel-study")
    page.click("#review-game")
    see(page, "#review-text").to_have_text(
        "Mistakes: South 0, North 0. The first 2 plies were drawn at random and are not judged."
    )
    assert reviewed == [2]


def test_the_editor_keeps_what_the_last_move_left(open_page: Open) -> None:
    """The editor keeps a barred pit until a pit is clicked, and then says that the bar is
    dropped."""
    page = open_page()
    barred = "0,0,0,0,0,0,0,1/1,3,2,0,4,0,2,1/2,6,1,8,2,1,5,0/1,7,0,2,8,4,1,2 0,0 - N A1"
    set_up(page, barred)
    page.click("#edit")
    see(page, "#caption").to_contain_text("64 seeds")
    see(page, "#board .marks .barred").to_have_count(1)
    page.click("#edit-play")
    see(page, "#status").to_have_text("North to move")
    see(page, "#position").to_have_value(barred)
    page.click("#edit")
    page.click("[data-pit=B1]")
    see(page, "#caption").to_contain_text("This change removes what the last move left")
    see(page, "#position").to_have_value(re.compile("- N -$"))


def test_the_bar_shows_no_old_number(open_page: Open) -> None:
    """The evaluation bar is faded while the bot computes, and hidden while the board shows another
    position."""
    page = open_page()
    unfold(page, "panel-study")
    page.check("#bar")
    see(page, "#evaluation-text").to_have_text(re.compile(r"^South \d+%$"))
    requests: list[Route] = []
    page.route("**/evaluation", lambda route: requests.append(route))
    click_any(page, 0)
    see(page, "#evaluation-text").to_have_text("…")
    see(page, "#evaluation").to_have_class("old")
    page.click("#explain")
    expect(page.locator("#evaluation")).to_be_hidden()
    page.click("#back")
    see(page, "#evaluation-text").to_have_text("…")
    for route in requests:
        route.continue_()
    page.unroute("**/evaluation")
    see(page, "#evaluation-text").to_have_text(re.compile(r"^South \d+%$"))
    see(page, "#evaluation").not_to_have_class("old")


def test_links_hold_the_game_in_themselves(open_page: Open) -> None:
    """Links open on any server; the page says if a link is wrong."""
    page = open_page(allowed="400")
    click_any(page, 0)
    before, text = moves(page), page.input_value("#position")
    unfold(page, "panel-text")
    for button in ("link-game", "link-position"):
        page.click(f"#{button}")
        content = "transcript" if button == "link-game" else "position"
        see(page, "#link").to_have_value(re.compile(f"{content}="))
        link = page.input_value("#link")
        friend = page.context.new_page()
        friend.goto(link)
        friend.wait_for_selector("body[data-ready]")
        see(friend, "#position").to_have_value(text)
        assert moves(friend) == (before if button == "link-game" else [])
        assert "#game=" in friend.url  # the game now belongs to this server
        assert friend.url.partition("&")[0] != page.url.partition("&")[0]  # and is the friend's own
        friend.close()
    page.evaluate("location.hash = 'position=rubbish'")
    see(page, "#message").not_to_be_empty()
    assert moves(page) == before


@pytest.mark.parametrize("size", [PHONE, LANDSCAPE], ids=["portrait", "landscape"])
def test_on_a_phone_the_board_stays_in_view(open_page: Open, size: dict[str, Any]) -> None:
    """The board stays in view at the start, and while a move is explained."""
    page = open_page(is_mobile=True, **size)
    page.tap("#new-game [type=submit]")
    until(page, "document.getElementById('status').textContent == 'South to move'")
    page.wait_for_timeout(300)
    expect(page.locator("#board")).to_be_in_viewport(ratio=0.8)
    click_any(page, 0)
    at_rest(page)
    unfold(page, "panel-study")
    page.tap("#explain")
    see(page, "#story").to_be_visible()
    at_rest(page)
    for _ in range(2):
        page.tap("#step-on")
        at_rest(page)
    expect(page.locator("#board")).to_be_in_viewport(ratio=0.8)
    see(page, "#events li.now").to_be_in_viewport()


def test_the_board_does_not_jump_for_a_longer_heading(open_page: Open) -> None:
    """The board stays in place when people look back, and at the end of a game."""
    page = open_page(**PHONE)
    top = "scrollTo(0, 0), document.getElementById('board').getBoundingClientRect().y"
    before = page.evaluate(top)
    click_any(page, 0)
    page.click("#previous")
    see(page, "#status").to_contain_text("Looking back, move 1: North to move")
    assert abs(page.evaluate(top) - before) < 1
    last = "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
    set_up(page, last)
    before = page.evaluate(top)
    click_any(page, 0)
    see(page, "#status").to_have_text("South wins: North's front row is empty")
    assert abs(page.evaluate(top) - before) < 1


def test_buttons_do_not_move_while_seeds_do(open_page: Open) -> None:
    page = open_page(speed=4)
    top = "document.getElementById(id).getBoundingClientRect().y"
    where = f"JSON.stringify(['undo', 'hint', 'next'].map((id) => {top}))"
    before = page.evaluate(where)
    sow(page, "A6", "left")
    positions = set()
    while len(moves(page)) < 2:
        positions.add(page.evaluate(where))
        page.wait_for_timeout(40)
    assert positions == {before}


def test_the_list_has_columns_gains_and_a_summary(open_page: Open) -> None:
    page = open_page()
    sow(page, "A7", "left")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    at_rest(page)
    cells = page.locator("#moves tr").first.locator("td")
    assert [cell.inner_text() for cell in cells.all()] == ["7L*", "5L+1"]
    see(page, "#caption").to_have_text("North: 5L, took 1 seed in 1 lap")
    see(page, "#moves-table thead").to_have_text(re.compile("South.*North", re.DOTALL))
    see(page, "#legend").to_contain_text("* takasa")


def test_keys_of_the_page(open_page: Open) -> None:
    page = open_page()
    click_any(page, 0)
    page.evaluate("document.activeElement.blur()")
    south = "document.querySelector('[data-pit=A1]').getBoundingClientRect().y"
    lower = page.evaluate(south)
    page.keyboard.press("f")
    until(page, f"{south} < {lower}")
    page.keyboard.press("h")
    expect(page.locator("#hints table")).to_be_visible()
    see(page, "#board .marks .hint").not_to_have_count(0)
    page.keyboard.press("u")
    see(page, "#moves button:not(.undone)").to_have_count(0)


def test_mistakes_become_puzzles(open_page: Open) -> None:
    """After a review the page asks for a better move at each mistake, and leads back to the
    game."""
    page = open_page()
    legal = Board.from_text(WON)
    opinions = analyse(legal, "alphabeta:2", lines=None).lines
    best, worst = legal.move_text(opinions[0].action), legal.move_text(opinions[-1].action)
    unfold(page, "panel-text")
    page.fill("#transcript", Board.from_text(WON, moves=[opinions[-1].action]).transcript())
    page.click("#load")
    see(page, "#moves button").to_have_count(1)
    game = page.url
    unfold(page, "panel-study")
    page.click("#review-game")
    page.click("#learn-mistakes")
    see(page, "#lesson h2").to_have_text("Mistake 1 of 1: move 1 of South")
    for move, words in (
        (worst, "That loses 100%, too."),
        (best, "Good: that is as good as the best move."),
    ):
        see(page, "#lesson p").to_have_text(
            f"{worst} was played here and lost 100%. Find a better move."
        )
        page.fill("#typed", move)
        page.keyboard.press("Enter")
        see(page, "#lesson p").to_have_text(words)
        page.click("#lesson button.main")
    see(page, "#lesson").to_be_hidden()
    until(page, f"location.href == {game!r}")
    assert moves(page) == [worst]


def test_a_person_resigns(open_page: Open) -> None:
    page = open_page()
    see(page, "#resign").to_be_disabled()
    click_any(page, 0)
    expect(page).to_have_title("Your turn · Bao")
    page.click("#resign")
    see(page, "#status").to_have_text("You lost. North wins: South resigned")
    see(page, ".pit.legal").to_have_count(0)
    assert "winner: North" in transcript(page)
    page.click("#undo")
    see(page, "#status").to_have_text("South to move")


def test_a_slow_server_is_told(open_page: Open) -> None:
    page = open_page()
    requests: list[Route] = []
    page.route("**/play", lambda route: requests.append(route))
    sow(page, "A6", "left")
    see(page, "#status").to_have_text("The move is on its way …")
    requests[0].continue_()
    see(page, "#moves button").to_have_count(2)
    see(page, "#status").to_have_text("South to move")


def test_hints_are_in_sight(open_page: Open) -> None:
    page = open_page(viewport={"width": 1366, "height": 660})
    for panel in ("panel-study", "panel-text", "panel-help"):  # now longer than the window
        unfold(page, panel)
    page.click("#hint")
    expect(page.locator("#hints table")).to_be_in_viewport(ratio=1)


def test_a_line_that_was_left_comes_back(open_page: Open) -> None:
    page = open_page()
    page.select_option("#seat-1", "human")
    page.click("#new-game [type=submit]")
    see(page, "#players").to_contain_text("North: A person")
    sow(page, "A6", "left")
    see(page, "#status").to_have_text("North to move")
    see(page, "#lines button").to_have_count(0)
    page.click("#undo")
    see(page, "#status").to_have_text("South to move")
    sow(page, "A7", "left")
    see(page, "#lines button").to_have_text("1. 6L*")
    at_rest(page)
    page.click("#lines button")
    see(page, "#moves .undone").to_have_attribute("data-move", "6L*")
    see(page, "#lines button").to_have_text("1. 7L*")
    page.click("#redo")
    for move in ("6L", "6R"):
        see(page, "#status").to_have_text("North to move")
        page.fill("#typed", move)
        page.keyboard.press("Enter")
        see(page, f"#moves [data-move='{move}']").to_have_count(1)
        at_rest(page)
        page.click("#undo")
    expect(page.locator("#lines button").first).to_have_text("1. … 6L")
