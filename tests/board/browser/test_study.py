"""Test reviews, links, set-up by clicks, and the page at every size."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from bao_agents import analyse
from bao_env.board import Board
from tests.board.browser.test_browser import (
    WON,
    Open,
    Shoot,
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


def in_view(page: Page, place: str) -> bool:
    """Return whether the top of something and most of it are on the screen."""
    box = page.locator(place).bounding_box()
    assert box and page.viewport_size
    return box["y"] >= -1 and box["y"] + 0.8 * box["height"] <= page.viewport_size["height"]


def test_a_review_names_the_win_that_was_given_away(open_page: Open, shoot: Shoot) -> None:
    page = open_page()
    losing = analyse(Board.from_text(WON), "alphabeta:2", lines=None).lines[-1].action
    game = Board.from_text(WON, moves=[losing])
    unfold(page, "panel-text")
    page.fill("#transcript", game.transcript())
    page.click("#load")
    see(page, "#moves button").to_have_count(1)
    unfold(page, "panel-study")
    page.click("#review-game")
    see(page, "#review-text").to_have_text(re.compile(r"^Mistakes: South \d, North 0\.$"))
    shoot(page, "review")
    given = page.locator("#mistakes li > button").first
    expect(given).to_contain_text("A proven win given away. (South wins in 13 plies)")
    number = page.inner_text("#moves th")
    expect(given).to_have_text(re.compile(rf"^{number}\. South \S+\?\? lost 100 %\. "))
    see(page, "#moves .mark").to_have_text("??")
    given.click()
    see(page, "#status").to_have_text("Looking back, move 1: South to move")
    see(page, "#board .marks .hint").not_to_have_count(0)
    see(page, "#board .marks .last").not_to_have_count(0)  # the move that was played
    see(page, "#graph .shown").to_have_count(1)
    see(page, "#graph .shown ~ .blunder").to_have_count(1)  # drawn over it
    see(page, "#caption").to_contain_text("Better here: ")
    line = page.locator("#mistakes li > button.move").all()[1:]
    assert len(line) >= 3
    line[0].click()
    see(page, "#status").to_have_text("Looking ahead: North to move")
    after = Board.from_text(WON, moves=[line[0].inner_text()])
    see(page, "[data-pit=A1]").to_have_attribute(
        "aria-label", re.compile(rf"^A1, {after.position.pits(0)[0]} seed")
    )


def test_a_review_says_since_when_the_game_was_lost(open_page: Open, shoot: Shoot) -> None:
    """The analysis is made up here; its numbers stand at the axes of the graph."""
    page = open_page()
    south = [0.5, 0.4, 0.08, 0.04, 0.02, 0.0]
    move = {"seat": 0, "texts": ["7L*", "7<*"], "value": 0.0, "win": None}

    def answer(route: Route) -> None:
        ply = json.loads(route.request.post_data or "")["ply"]
        found = {"ply": ply, "south": south[ply], "mark": "", "line": [], "given_away": False}
        route.fulfill(json=found | {"played": move, "best": move})

    page.route("**/review", answer)
    unfold(page, "panel-text")
    board = Board()
    for _ in south:
        board.push(board.legal_actions[0])
    page.fill("#transcript", board.transcript())
    page.click("#load")
    see(page, "#moves button").to_have_count(len(south))
    unfold(page, "panel-study")
    page.click("#review-game")
    see(page, "#review-text").to_have_text(
        "Mistakes: South 0, North 0. South was lost from move 2 on: the chance stayed below 10 %."
    )
    top, bottom, start, graph = (
        page.locator(place).first.bounding_box()
        for place in (".axes span", ".axes > :nth-child(3)", ".ends span", "#graph")
    )
    assert top and bottom and start and graph
    assert max(top["x"] + top["width"], bottom["x"] + bottom["width"]) <= graph["x"]
    assert top["y"] < graph["y"] + 5 and bottom["y"] > graph["y"] + graph["height"] / 2
    assert start["y"] >= graph["y"] + graph["height"] - 1 and abs(start["x"] - graph["x"]) < 3
    shoot(page, "review-lost")


def test_on_a_phone_the_board_does_not_hide_the_review(open_page: Open, shoot: Shoot) -> None:
    page = open_page(is_mobile=True, **PHONE)
    click_any(page, 0)
    unfold(page, "panel-study")
    page.tap("#review-game")
    see(page, "#review-text").to_contain_text("Mistakes: ")
    board, review = (page.locator(place).bounding_box() for place in ("#board", "#analysis"))
    assert board and review and page.viewport_size
    assert board["y"] >= -1 and review["y"] >= board["y"] + board["height"] - 1
    assert review["y"] < page.viewport_size["height"] - 150
    shoot(page, "review-phone")


def test_the_bar_shows_no_old_number(open_page: Open) -> None:
    """It is faded while it computes, and hidden while the board shows what it does not judge."""
    page = open_page()
    unfold(page, "panel-study")
    page.check("#bar")
    see(page, "#evaluation-text").to_have_text(re.compile(r"^South \d+ %$"))
    held: list[Route] = []
    page.route("**/evaluation", lambda route: held.append(route))
    click_any(page, 0)
    see(page, "#evaluation-text").to_have_text("…")
    see(page, "#evaluation").to_have_class("old")
    page.click("#explain")
    expect(page.locator("#evaluation")).to_be_hidden()
    page.click("#back")
    unfold(page, "panel-text")
    page.click("#edit")
    expect(page.locator("#evaluation")).to_be_hidden()
    page.click("#edit-end")
    see(page, "#evaluation-text").to_have_text("…")
    for route in held:
        route.continue_()
    page.unroute("**/evaluation")
    see(page, "#evaluation-text").to_have_text(re.compile(r"^South \d+ %$"))
    see(page, "#evaluation").not_to_have_class("old")


def test_a_hint_that_compiles_says_so(open_page: Open) -> None:
    page = open_page()
    page.clock.install()
    held: list[Route] = []
    page.route("**/hints", lambda route: held.append(route))
    page.click("#hint")
    see(page, "#hints").to_have_text("Thinking …")
    page.clock.fast_forward(7000)
    see(page, "#hints").to_contain_text("The first use takes up to a minute")
    held[0].continue_()
    expect(page.locator("#hints table")).to_be_visible()


def test_lines_of_moves_do_not_look_like_terms(open_page: Open) -> None:
    """Only a term is underlined; a button that plays or shows a move has a frame."""
    page = open_page()
    page.click("#hint")
    expect(page.locator("#hints table")).to_be_visible()
    look = "(e) => [getComputedStyle(e).textDecorationLine, getComputedStyle(e).borderTopWidth]"
    assert page.locator("#hints .move").first.evaluate(look) == ["none", "1px"]
    assert page.locator("#why .term").first.evaluate(look) == ["underline", "0px"]


def test_links_hold_the_game_in_themselves(open_page: Open) -> None:
    """They open on any server; a wrong link says so."""
    page = open_page(allowed="400")
    click_any(page, 0)
    made, text = moves(page), page.input_value("#position")
    unfold(page, "panel-text")
    for button in ("link-game", "link-position"):
        page.click(f"#{button}")
        content = "transcript" if button == "link-game" else "position"
        see(page, "#link").to_have_value(re.compile(f"{content}="))
        link = page.input_value("#link")
        other = page.context.new_page()
        other.goto(link)
        other.wait_for_selector("body[data-ready]")
        see(other, "#position").to_have_value(text)
        assert moves(other) == (made if button == "link-game" else [])
        assert "#game=" in other.url  # it is a game of this server now
        other.close()
    page.evaluate("location.hash = 'position=rubbish'")
    see(page, "#message").not_to_be_empty()
    assert moves(page) == made


def test_set_up_speaks_of_the_position_made(open_page: Open) -> None:
    """Not of the game's, which is as before when it is closed."""
    page = open_page(allowed="400")
    unfold(page, "panel-text")
    page.click("#edit")
    see(page, "#status").to_have_text("Set up a position")
    for place in ("#why", "#how", "#players", "#game-tools"):
        expect(page.locator(place)).to_be_hidden()
    see(page, ".pit.legal").to_have_count(0)
    expect(page.locator("#edit-play")).to_be_enabled()
    page.click("[data-pit=A1]")
    see(page, "[data-pit=A1]").to_have_attribute("aria-label", "A1, 1 seed")
    expect(page.locator("#edit-play")).to_be_disabled()
    page.click("#edit-end")
    see(page, "#status").to_have_text("South to move")
    see(page, "[data-pit=A1]").to_have_attribute("aria-label", "A1, 0 seeds")
    expect(page.locator("#edit-tools")).to_be_hidden()
    see(page, ".pit.legal").to_have_count(2)


def test_set_up_by_clicks(open_page: Open, shoot: Shoot) -> None:
    page = open_page()
    before = page.input_value("#position")
    unfold(page, "panel-text")
    page.click("#edit")
    page.click("[data-pit=A5]", button="right")
    see(page, "#caption").to_have_text("Seeds still to place: 1")
    page.click("[data-pit=A1]")
    page.select_option("#edit-mover", "1")
    shoot(page, "set-up")
    page.click("#edit-play")
    see(page, "#status").to_have_text("North to move")
    expected = before.replace("0,0,0,0,6", "1,0,0,0,5", 1).replace(" S -", " N -")
    see(page, "#position").to_have_value(expected)


@pytest.mark.parametrize("size", [PHONE, LANDSCAPE], ids=["portrait", "landscape"])
def test_on_a_phone_the_board_stays_in_view(
    open_page: Open, shoot: Shoot, size: dict[str, Any]
) -> None:
    """It stays in view while a move is explained, at the start, and with hints; in landscape the
    board is large."""
    page = open_page(is_mobile=True, **size)
    narrow: Any = {"width": 360, "height": 740} if size is PHONE else size["viewport"]
    page.set_viewport_size(narrow)
    assert page.evaluate("document.documentElement.scrollWidth") <= narrow["width"]
    pit = page.locator("[data-pit=A6]").bounding_box()
    assert pit and pit["width"] > (36 if size is PHONE else 42)
    page.set_viewport_size(size["viewport"])
    page.locator("#new-game [type=submit]").scroll_into_view_if_needed()
    page.tap("#new-game [type=submit]")
    until(page, "document.getElementById('status').textContent == 'South to move'")
    page.wait_for_timeout(300)
    assert in_view(page, "#board")
    page.tap("[data-pit=A6]")
    see(page, ".arrows .left").to_be_visible()
    shoot(page, "phone-arrows")
    page.tap(".arrows .right")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    assert moves(page)[0] == "6R*"
    at_rest(page)
    unfold(page, "panel-study")
    page.tap("#explain")
    see(page, "#story").to_be_visible()
    at_rest(page)
    for _ in range(2):
        page.tap("#step-on")
        at_rest(page)
    assert in_view(page, "#board")
    see(page, "#events li.now").to_be_in_viewport()
    shoot(page, f"story-{'portrait' if size is PHONE else 'landscape'}")
    page.set_viewport_size(narrow)
    assert page.evaluate("document.documentElement.scrollWidth") <= narrow["width"]


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE["viewport"]])
def test_the_board_does_not_jump_for_a_longer_heading(
    open_page: Open, size: dict[str, int]
) -> None:
    """Not when people look back, and not at the end of a game."""
    page = open_page(viewport=size)
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
    see(page, "#status").to_have_text("South wins: the front row is empty")
    assert abs(page.evaluate(top) - before) < 1


def test_buttons_do_not_move_while_seeds_do(open_page: Open) -> None:
    page = open_page(speed=4)
    top = "document.getElementById(id).getBoundingClientRect().y"
    where = f"JSON.stringify(['undo', 'hint', 'next'].map((id) => {top}))"
    before = page.evaluate(where)
    sow(page, "A6", "left")
    seen = set()
    while len(moves(page)) < 2:
        seen.add(page.evaluate(where))
        page.wait_for_timeout(40)
    assert seen == {before}


def test_the_list_has_columns_gains_and_a_summary(open_page: Open) -> None:
    page = open_page()
    sow(page, "A7", "left")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    at_rest(page)
    cells = page.locator("#moves tr").first.locator("td")
    assert [cell.inner_text() for cell in cells.all()] == ["7L*", "5L+1"]
    see(page, "#caption").to_have_text("North: 5L, took 1 seed in 1 lap")
    see(page, "#moves-table thead").to_have_text(re.compile("South.*North", re.S))
    see(page, "#legend").to_contain_text("* takasa")
    page.select_option("#spelling", label="kibao")
    assert "spelling: kibao" in transcript(page) and moves(page) == ["7<*", "5<"]


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


def test_the_end_offers_a_rematch(open_page: Open, shoot: Shoot) -> None:
    page = open_page()
    last = "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
    set_up(page, last, north="greedy")
    click_any(page, 0)
    see(page, "#status").to_have_text("You won! South wins: the front row is empty")
    shoot(page, "you-won")
    page.click("#rematch")
    see(page, "#players").to_contain_text("North: A person")
    see(page, "#row-end").to_be_hidden()
