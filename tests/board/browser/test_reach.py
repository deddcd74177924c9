"""Test that everyone reaches everything: by keys, by ear, by touch, and in time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.board.browser.conftest import CHROMIUM
from tests.board.browser.test_browser import (
    HOUSE,
    Open,
    Shoot,
    at_rest,
    click_any,
    moves,
    peoples_turn,
    see,
    set_up,
    sow,
    unfold,
    until,
)
from tests.board.browser.test_learning import TAKASIA, play
from tests.board.browser.test_study import in_view

SMALL: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}
CAPTURE = "0,0,1,1,0,0,3,0/0,0,1,1,1,1,1,1/0,0,0,2,9,5,2,1/0,0,0,0,0,0,0,0 17,17 N S -"
"""South captures with A3 or A4, sown from either end."""
FOCUS = "document.activeElement"


def test_skip_to_the_board_keeps_the_game(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUS}.innerText") == "Skip to the board"
    click_any(page, 0)
    made, address = moves(page), page.url
    page.focus(".skip-link")
    page.keyboard.press("Enter")
    assert page.evaluate(f"{FOCUS}.classList.contains('pit')")
    page.wait_for_timeout(500)
    assert moves(page) == made and page.url == address
    page.evaluate("location.hash = 'board'")  # nor does a fragment that names no game
    page.wait_for_timeout(500)
    assert moves(page) == made


def test_an_arrow_is_the_way_the_hand_goes(open_page: Open, shoot: Shoot) -> None:
    """In a capture of namua it stands at the end of the row, and the words say so."""
    page = open_page()
    see(page, "#how").to_contain_text("the way the hand goes")
    set_up(page, CAPTURE)
    see(page, "#how").to_contain_text("the end of your front row")
    see(page, "#board .way").to_have_count(0)
    label = page.get_attribute("[data-pit=A3]", "aria-label")
    assert label == "A3, 1 seed, captures, sown from A1 or A8"
    page.click("[data-pit=A3]")
    see(page, "#caption").to_have_text("A3: from A1 or A8?")
    shoot(page, "ends")
    for side, pit, glyph, sign in (("left", "A1", "▶", -1), ("right", "A8", "◀", 1)):
        arrow = page.locator(f".arrows .{side}")
        expect(arrow).to_have_text(glyph)
        assert arrow.get_attribute("aria-label") == f"Capture with A3, sow from {pit}"
        places = arrow.bounding_box(), page.locator(f"[data-pit={pit}]").bounding_box()
        middles = [box["x"] + box["width"] / 2 for box in places if box]
        assert (middles[0] - middles[1]) * sign > 20  # outside the row
    page.click(".arrows .left")
    see(page, "#moves button").to_have_count(1)
    assert moves(page) == ["3L"]
    see(page, "#caption").to_contain_text("South: 3L, took 5 seeds")


def test_keys_after_a_mouse_move(open_page: Open) -> None:
    """They belong to the page, not to the pit that was clicked."""
    page = open_page()
    sow(page, "A6", "left")
    until(page, "document.querySelectorAll('#moves button').length == 2")
    peoples_turn(page)
    made = moves(page)
    page.keyboard.press("Space")
    page.wait_for_timeout(700)
    assert moves(page) == made
    page.keyboard.press("ArrowLeft")
    see(page, "#status").to_have_text("Looking back, move 1: North to move")


def test_a_red_line_goes_when_a_move_arrives(open_page: Open) -> None:
    page = open_page(allowed="ERR_|Failed to load")
    page.select_option("#seat-1", "alphabeta-ms")
    page.fill("#budget-1", "2000")
    page.click("#new-game [type=submit]")
    see(page, "#players").to_contain_text("Alpha-beta, by time: 2000 milliseconds")
    sow(page, "A6", "left")
    see(page, "#status").to_have_text("North thinks …")
    page.click("[data-pit=A7]")
    see(page, "#message").to_have_text("It is the bot's turn: wait for it.")
    see(page, "#moves button").to_have_count(2)
    see(page, "#message").to_be_empty()
    expect(page.locator("#caption")).to_be_visible()
    peoples_turn(page)
    page.context.set_offline(True)
    page.click("#previous")
    see(page, "#message").to_contain_text("The server is not answering")
    page.context.set_offline(False)
    see(page, "#message").to_be_empty()


def test_a_hint_keeps_the_other_marks(open_page: Open) -> None:
    page = open_page()
    set_up(page, TAKASIA)
    play(page, TAKASIA, "A5L**")
    see(page, "#board .marks .barred").to_have_count(1)
    page.click("#hint")
    expect(page.locator("#hints table")).to_be_visible()
    see(page, "#board .marks .hint").not_to_have_count(0)
    see(page, "#board .marks .barred").to_have_count(1)
    see(page, "#board .marks .last").not_to_have_count(0)


def test_a_best_line_is_ahead(open_page: Open) -> None:
    page = open_page()
    page.click("#hint")
    page.locator("#hints p button").first.click()
    see(page, "#status").to_have_text("Looking ahead: North to move")


def test_no_punctuation_begins_a_line(open_page: Open) -> None:
    page = open_page(**SMALL)
    split = page.evaluate(
        """[...document.querySelectorAll('.term')]
        .filter((e) => /^[^\\s\\p{L}\\d(]/u.test(e.nextSibling?.textContent ?? '')
            && getComputedStyle(e.parentElement).whiteSpace !== 'nowrap').length"""
    )
    assert page.locator(".term").count() > 3 and split == 0


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


def test_text_follows_the_browser_s_size(browser: Browser, address: str, shoot: Shoot) -> None:
    settings = ["--blink-settings=defaultFontSize=32"]
    larger = browser.browser_type.launch(executable_path=CHROMIUM, args=settings)
    page = larger.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    for place in ("#undo", "#why", "#panel-new label", "#typed", "#seat-0"):
        size = page.locator(place).first.evaluate("(e) => getComputedStyle(e).fontSize")
        assert size == "32px", place
    shoot(page, "font-32")
    larger.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_boxes_to_type_in_are_of_one_kind(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.select_option("#seat-1", "mcts")
    unfold(page, "panel-text")
    look = """(e) => ['backgroundColor', 'borderColor', 'borderRadius', 'minHeight']
        .map((name) => getComputedStyle(e)[name]).join()"""
    looks = {page.locator(place).evaluate(look) for place in ("#typed", "#link", "#budget-1")}
    assert len(looks) == 1
    link, panel = (page.locator(place).bounding_box() for place in ("#link", "#position"))
    assert link and panel and link["width"] == panel["width"]
    typed = page.locator("#typed")
    assert typed.get_attribute("autocapitalize") == "none"  # 7L and a7L are different moves


def test_pressed_buttons_show_in_forced_colours(open_page: Open, shoot: Shoot) -> None:
    page = open_page(forced_colors="active")
    colour = "(e) => getComputedStyle(e).backgroundColor"
    for pressed, other in (("play", "learn"), ("learn", "play")):
        page.click(f"#tab-{pressed}")
        see(page, f"#tab-{pressed}").to_have_attribute("aria-pressed", "true")
        one, two = (page.locator(f"#tab-{tab}").evaluate(colour) for tab in (pressed, other))
        assert one != two
    shoot(page, "forced-colours")


def test_players_have_names_and_units(open_page: Open) -> None:
    """In the heading and among the evaluators, which the panel shows whole."""
    page = open_page()
    unfold(page, "panel-study")
    offered = page.locator("#evaluator option").all_inner_texts()
    assert "Network zanzibar, alpha-beta: 500 milliseconds" in offered
    page.select_option("#evaluator", label="Network zanzibar, alpha-beta: 500 milliseconds")
    assert page.locator("#evaluator").evaluate("(e) => e.offsetWidth") > 300
    for value, budget, words in (
        ("mcts", "500", "Monte Carlo tree search: 500 playouts"),
        ("solver-ms", "300", "Solver, alpha-beta: 300 milliseconds"),
    ):
        page.select_option("#seat-1", value)
        page.fill("#budget-1", budget)
        page.click("#new-game [type=submit]")
        see(page, "#players").to_have_text(f"South: A person · North: {words} · zanzibar")


def test_the_colours_of_the_board_are_variables(open_page: Open) -> None:
    """They have the colours of the pictures, and change what they name."""
    page = open_page()
    page.click("#hint")
    see(page, "#board .marks .hint").not_to_have_count(0)
    drawn = page.eval_on_selector_all(
        "#board svg [class*=bao-]",
        """(all) => all.map((e) => ['fill', 'stroke'].map((name) => {
            const probe = document.createElement('i');
            probe.style.color = e.getAttribute(name) ?? 'none';
            return [getComputedStyle(e)[name], probe.style.color || e.getAttribute(name) || 'none'];
        }))""",
    )
    assert len(drawn) > 400
    for shape in drawn:
        for shown, attribute in shape:
            assert shown == attribute
    for name, place in (("wood", ""), ("seed-1", ""), ("hint", ".hint ")):
        page.evaluate(f"document.documentElement.style.setProperty('--{name}', 'rgb(1, 2, 3)')")
        shape = page.locator(f"#board {place}.bao-{name}").first
        assert shape.evaluate("(e) => getComputedStyle(e).fill") == "rgb(1, 2, 3)"


def test_the_house_choice_hides_nothing(open_page: Open, shoot: Shoot) -> None:
    """It stands below the board, which stays whole; another move of the page takes it back."""
    page = open_page(**SMALL)
    set_up(page, HOUSE)
    page.tap("[data-pit=A8]")
    see(page, "#house").to_be_visible()
    at_rest(page)
    page.wait_for_timeout(300)
    board, strip = (page.locator(place).bounding_box() for place in ("#board", "#house"))
    assert board and strip and strip["y"] >= board["y"] + board["height"] - 1
    assert in_view(page, "#house") and board["y"] >= -60
    shoot(page, "house-phone")
    page.tap("#house button[value='']")
    see(page, "#house").to_be_hidden()
    see(page, ".pit.legal").not_to_have_count(0)
    page.tap("[data-pit=A8]")
    see(page, "#house").to_be_visible()
    page.tap("#to-new")
    page.tap("#new-game [type=submit]")
    see(page, "#house").to_be_hidden()
    see(page, "#moves button").to_have_count(0)


def test_errors_are_where_the_eye_is(open_page: Open, shoot: Shoot) -> None:
    page = open_page(allowed="400", **SMALL)
    unfold(page, "panel-text")
    page.fill("#position", HOUSE.replace("20,20", "21,20"))
    page.tap("#set-up")
    see(page, "#message").to_contain_text("65")
    assert in_view(page, "#message")
    shoot(page, "error-phone")
    page.fill("#transcript", "1: 9L;")
    page.tap("#load")
    see(page, "#message").to_contain_text("9L")
    assert in_view(page, "#message")


def test_set_up_by_touch(open_page: Open, shoot: Shoot) -> None:
    """An illegal position is taken in and repaired; its tools are below the board."""
    page = open_page(allowed="400", **SMALL)
    unfold(page, "panel-text")
    page.fill("#position", HOUSE.replace("20,20", "21,20"))
    page.tap("#edit")
    see(page, "#caption").to_have_text("Seeds too many: 1")
    expect(page.locator("#edit-play")).to_be_in_viewport()
    page.tap("label:has(#edit-less)")
    page.tap("[data-pit=A3]")
    see(page, "#caption").to_contain_text("64 seeds")
    shoot(page, "set-up-phone")
    page.tap("#clear")
    expect(page.locator("#edit-house-0")).not_to_be_checked()
    see(page, "#position").to_have_value(re.compile(r" 0,0 - S -$"))
    page.tap("#edit-end")
    see(page, "#edit-tools").to_be_hidden()
    page.fill("#position", HOUSE.replace("20,20", "21,20"))
    page.tap("#edit")
    page.tap("label:has(#edit-less)")
    if not page.is_checked("#edit-less"):
        page.tap("label:has(#edit-less)")
    page.tap("[data-pit=A3]")
    page.tap("#edit-play")
    see(page, "#status").to_have_text("South to move")
    see(page, "#position").to_have_value(re.compile(r" 21,20 SN S -$"))


def test_the_level_follows_the_player(open_page: Open) -> None:
    page = open_page()
    offered = page.locator("#seat-1 option").all_inner_texts()
    assert offered[1:3] == ["First steps · Elo 0", "Very easy · Elo 376"]
    last = "1,9,0,9,1,11,1,0/1,1,3,0,4,1,0,3/0,0,1,0,0,0,0,0/6,3,1,5,1,0,0,2 0,0 - S -"
    page.select_option("#ruleset", "zanzibar")
    set_up(page, last, north="level greedy")
    click_any(page, 0)
    see(page, "#status").to_contain_text("You won!")
    page.click("#harder")
    see(page, "#players").to_contain_text("North: Easy")
    see(page, "#row-end").to_be_hidden()


def test_what_a_blind_player_needs(open_page: Open) -> None:
    """The stores have names, a move says what it won and whose turn it is, and moves are typed."""
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
    told = r"^North: 5L, took 1 seed in 1 lap\. South to move\. Namua: .* You must capture\.$"
    see(page, "#live").to_have_text(re.compile(told))
    expect(page.get_by_role("img", name="South's store: 21 seeds")).to_have_count(1)
    assert page.evaluate(f"{FOCUS}.id") == "typed"
