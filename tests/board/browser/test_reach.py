"""Test that everyone can use everything: with keys, a screen reader or touch, and without haste."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Route, expect

from tests.board.browser.test_browser import (
    HOUSE,
    Open,
    click_any,
    moves,
    peoples_turn,
    see,
    set_up,
    sow,
    unfold,
    until,
)

SMALL: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}
"""South captures with A3 or A4, sown from either end."""
FOCUS = "document.activeElement"


def test_skip_to_the_board_keeps_the_game(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUS}.innerText") == "Skip to the board"
    click_any(page, 0)
    before, address = moves(page), page.url
    page.focus(".skip-link")
    page.keyboard.press("Enter")
    assert page.evaluate(f"{FOCUS}.classList.contains('pit')")
    page.wait_for_timeout(500)
    assert moves(page) == before and page.url == address


def test_keys_after_a_mouse_move(open_page: Open) -> None:
    """The keys belong to the page, not to the pit that was clicked."""
    page = open_page()
    sow(page, "A6", "left")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    peoples_turn(page)
    before = moves(page)
    page.keyboard.press("Space")
    page.wait_for_timeout(700)
    assert moves(page) == before
    page.keyboard.press("ArrowLeft")
    see(page, "#status").to_have_text("Looking back, move 1: North to move")


def test_a_red_line_goes_when_a_move_arrives(open_page: Open) -> None:
    page = open_page(allowed="ERR_|Failed to load")
    page.select_option("#seat-1", "alphabeta-ms")
    page.fill("#budget-1", "2000")
    page.click("#new-game [type=submit]")
    words = "Alpha-beta, by time: 2000 milliseconds"
    see(page, "#players").to_have_text(f"South: A person · North: {words} · zanzibar")
    requests: list[Route] = []
    page.route("**/bot", lambda route: requests.append(route))
    sow(page, "A6", "left")
    see(page, "#status").to_have_text("North thinks …")
    page.click("[data-pit=A7]")
    see(page, "#message").to_have_text("It is the bot's turn: wait for it.")
    requests[0].continue_()
    see(page, "#moves button").to_have_count(2)
    see(page, "#message").to_be_empty()
    expect(page.locator("#caption")).to_be_visible()
    peoples_turn(page)
    page.context.set_offline(True)
    page.click("#previous")
    see(page, "#message").to_contain_text("The server is not answering")
    page.context.set_offline(False)
    see(page, "#message").to_be_empty()


def test_the_focus_stays_where_people_are(open_page: Open) -> None:
    page = open_page()
    click_any(page, 0)
    page.locator("#moves button").first.focus()
    page.keyboard.press("Enter")
    see(page, "#status").to_contain_text("Looking back")
    assert page.evaluate(f"{FOCUS}.dataset.move") == moves(page)[0]
    page.focus("#back")
    page.keyboard.press("Enter")
    see(page, "#status").to_have_text("South to move")
    assert page.evaluate(f"{FOCUS}.classList.contains('pit')")
    page.focus("#undo")
    page.keyboard.press("Enter")
    see(page, "#moves button:not(.undone)").to_have_count(0)
    assert page.evaluate(f"{FOCUS}.classList.contains('pit')")


def test_a_new_visitor_is_left_at_the_board(open_page: Open) -> None:
    page = open_page(new=True)
    page.focus("#lesson button >> text=I know Bao")
    page.keyboard.press("Enter")
    see(page, "#lesson").to_be_hidden()
    assert page.evaluate(f"{FOCUS}.classList.contains('pit')")


def test_the_form_draws_who_begins_where_the_rules_do(open_page: Open) -> None:
    page = open_page(new=True)
    see(page, "#first-player").to_have_value("south")
    page.click("#lesson button >> text=Play kujifunza")
    see(page, "#first-player").to_have_value("random")
    rules = quote('{"first_player": "random"}')
    page = open_page(path=f"#ruleset=mine&rules={rules}&position={quote(HOUSE)}")
    see(page, "#players").to_contain_text("mine")
    see(page, "#first-player").to_have_value("random")


def test_pressed_buttons_show_in_forced_colours(open_page: Open) -> None:
    page = open_page(forced_colors="active")
    colour = "(e) => getComputedStyle(e).backgroundColor"
    for pressed, released in (("learn", "play"), ("play", "learn")):
        page.click(f"#tab-{pressed}")
        see(page, f"#tab-{pressed}").to_have_attribute("aria-pressed", "true")
        pressed_colour, released_colour = (
            page.locator(f"#tab-{tab}").evaluate(colour) for tab in (pressed, released)
        )
        assert pressed_colour != released_colour
    click_any(page, 0)
    pressed_colour, released_colour = (
        move.evaluate(colour) for move in page.locator("#moves button").all()
    )
    assert pressed_colour != released_colour  # the current move


def test_set_up_by_touch(open_page: Open) -> None:
    """An illegal position is refused with a visible message, or repaired by tools below the
    board."""
    page = open_page(allowed="400", **SMALL)
    unfold(page, "panel-text")
    page.fill("#position", HOUSE.replace("20,20", "21,20"))
    page.tap("#set-up")
    see(page, "#message").to_contain_text("65")
    expect(page.locator("#message")).to_be_in_viewport(ratio=0.8)
    page.tap("#edit")
    see(page, "#caption").to_have_text("1 seed too many")
    expect(page.locator("#edit-play")).to_be_in_viewport()
    page.tap("label:has(#edit-less)")
    page.tap("[data-pit=A3]")
    see(page, "#caption").to_contain_text("64 seeds")
    page.tap("#edit-play")
    see(page, "#status").to_have_text("South to move")
    see(page, "#position").to_have_value(re.compile(r" 21,20 SN S -$"))
    page.tap("#edit")
    page.tap("#clear")
    see(page, "#position").to_have_value(re.compile(r" 0,0 - S -$"))
    see(page, "#edit-play").to_be_disabled()
    page.tap("#edit-end")
    see(page, "#edit-tools").to_be_hidden()
    see(page, ".pit.legal").not_to_have_count(0)


@pytest.mark.parametrize("width", [360, 320])
def test_long_words_fit_a_narrow_phone(open_page: Open, width: int) -> None:
    page = open_page(**SMALL | {"viewport": {"width": width, "height": 740}}, locale="sw-TZ")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)"
    assert page.eval_on_selector_all(".row button", wide) == []


def test_the_level_follows_the_player(open_page: Open) -> None:
    page = open_page()
    last = "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
    page.select_option("#ruleset", "zanzibar")
    set_up(page, last, north="level greedy")
    click_any(page, 0)
    see(page, "#status").to_contain_text("You won!")
    page.click("#harder")
    see(page, "#players").to_contain_text("North: Easy")
    page.go_back()
    see(page, "#status").to_have_text("You won! South wins: North's front row is empty")
    page.click("#rematch")
    see(page, "#players").to_contain_text("North: A person")
    see(page, "#row-end").to_be_hidden()


@pytest.mark.parametrize("button", ["rematch", "easier", "harder"])
def test_a_learner_plays_again(open_page: Open, button: str) -> None:
    """The game's rules, which the form shows too, draw who begins."""
    page = open_page()
    page.select_option("#ruleset", "kujifunza")
    last = "1,3,5,15,4,1,0,0/3,0,0,1,0,5,2,1/0,7,2,0,0,0,0,0/1,2,1,1,3,3,0,3 0,0 - S -"
    set_up(page, last, north="level greedy")
    click_any(page, 0)
    see(page, "#status").to_contain_text("You won!")
    page.click(f"#{button}")
    see(page, "#row-end").to_be_hidden()
    see(page, "#players").to_contain_text("kujifunza")
    see(page, "#message").to_be_empty()


def test_what_a_blind_player_needs(open_page: Open) -> None:
    """The stores have names, a move says what it won and whose turn it is, and moves can be
    typed."""
    page = open_page(allowed="400")
    expect(page.get_by_role("img", name="South's store: 22 seeds")).to_have_count(1)
    page.keyboard.press("m")
    assert page.evaluate(f"{FOCUS}.id") == "typed"
    page.keyboard.type("9L")
    page.keyboard.press("Enter")
    see(page, "#message").to_contain_text("legal: 6L* 6R* 7L* 7R*")
    page.fill("#typed", "6L*")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    summary = r"^North: 5L, took 1 seed in 1 lap\. South to move\. Namua: .* You must capture\.$"
    see(page, "#live").to_have_text(re.compile(summary))
    expect(page.get_by_role("img", name="South's store: 21 seeds")).to_have_count(1)
    page.click("#new-game [type=submit]")
    see(page, "#live").to_have_text(re.compile(r"^New game\. South to move\. Namua: "))
