"""Test choices: at every window size all of them are visible, and each can be taken back."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.board.browser.test_browser import HOUSE, Open, at_rest, moves, see, until

CAPTURE = "0,0,1,1,0,0,3,0/0,0,1,1,1,1,1,1/0,0,0,2,9,5,2,1/0,0,0,0,0,0,0,0 17,17 N S -"
"""South captures with A3 or A4, sown from either end."""
MTAJI = "2,10,0,3,1,1,2,1/0,5,3,0,2,1,1,0/2,1,1,2,1,3,2,3/2,3,3,1,6,0,0,2 0,0 - S -"
"""South captures with A4 to either side, and with A2, A7, B2 and B3 to one."""
BACK = "0,0,0,1,0,0,0,0/2,4,0,2,0,1,3,1/2,8,0,5,12,1,7,1/0,2,0,5,1,3,1,2 0,0 - S -"
EDGE = "2,2,3,4,3,1,0,0/0,0,1,0,1,1,0,8/3,0,2,1,8,1,6,1/3,0,2,4,3,1,2,1 0,0 - S -"
"""South captures with pits of the back row to either side; in EDGE, also with the last pit of that
row."""
NORTH = CAPTURE.replace("17,17 N S", "17,17 N N")
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
SIZES: dict[str, dict[str, Any]] = {
    "laptop": {"viewport": {"width": 1366, "height": 660}},
    "phone": PHONE,
    "landscape": PHONE | {"viewport": {"width": 844, "height": 390}},
    "zoom-300": {"viewport": {"width": 426, "height": 341}},
    "zoom-400": {"viewport": {"width": 320, "height": 256}},
}


def show(page: Page, position: str) -> None:
    page.evaluate(f"location.hash = 'position={position}'")
    see(page, "#position").to_have_value(position)
    expect(page.locator(".pit.legal").first).to_be_visible()


def press(page: Page, selector: str) -> None:
    """Click, or on a touch screen tap."""
    if page.evaluate("matchMedia('(hover: none)').matches"):
        page.tap(selector)
    else:
        page.click(selector)


def boxes(page: Page, selector: str) -> list[tuple[float, float, float, float]]:
    """Return the left, top, right and bottom of elements in the window."""
    sides: list[tuple[float, float, float, float]] = page.eval_on_selector_all(
        selector,
        """all => all.map((e) => e.getBoundingClientRect())
        .map((box) => [box.left, box.top, box.right, box.bottom])""",
    )
    assert sides, selector
    return sides


def seen(page: Page, selector: str) -> bool:
    """Return whether elements lie within the window, to a pixel."""
    assert page.viewport_size
    width, height = page.viewport_size["width"], page.viewport_size["height"]
    return all(
        left > -1 and top > -1 and right < width + 1 and bottom < height + 1
        for left, top, right, bottom in boxes(page, selector)
    )


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_choice_hides_nothing(open_page: Open, size: dict[str, Any]) -> None:
    """Pits, arrows, answers and lessons are in the window; no arrow covers a pit or its
    question."""
    page = open_page(**size)
    for position in (CAPTURE, NORTH, BACK, EDGE, MTAJI):
        show(page, position)
        assert seen(page, ".pit")
        pits = page.eval_on_selector_all(
            ".pit.to-left.to-right", "all => all.map((e) => e.dataset.pit)"
        )
        assert pits
        for pit in pits:
            press(page, f"[data-pit={pit}]")
            assert seen(page, ".arrows button"), (position, pit)
            arrows = boxes(page, ".arrows button")
            for arrow, obstacle in product(arrows, boxes(page, ".pit, #caption") + arrows):
                apart = arrow[2] <= obstacle[0] + 1 or obstacle[2] <= arrow[0] + 1
                apart |= arrow[3] <= obstacle[1] + 1 or obstacle[3] <= arrow[1] + 1
                assert arrow is obstacle or apart, (position, pit, arrow, obstacle)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            press(page, f"[data-pit={pit}]")
            see(page, ".arrows").to_be_hidden()
    show(page, HOUSE)
    for answer, expected in (("", []), ("stop", ["8"]), ("play", ["8>"])):
        press(page, "[data-pit=A8]")
        see(page, "#house").to_be_visible()
        at_rest(page)
        assert seen(page, "#house button, [data-pit^=A], [data-pit^=a]"), answer
        press(page, f"#house button[value='{answer}']")
        see(page, "#status").to_contain_text("North to move" if answer else "South to move")
        assert moves(page) == expected
        if answer:
            page.click("#undo")
            see(page, ".pit.legal").not_to_have_count(0)
    for lesson in (1, 8):
        # A move's answer may put its game into the address at the same moment.
        page.evaluate(f"location.hash = 'lesson={lesson}'; history.replaceState(null, '', '#')")
        see(page, "#lesson h2").to_contain_text(f"Lesson {lesson}")
        assert seen(page, ".pit.legal")
        assert size["viewport"]["height"] < 500 or seen(page, "#lesson")


@pytest.mark.parametrize("size", [{}, PHONE], ids=["mouse", "touch"])
def test_a_choice_is_taken_back(open_page: Open, size: dict[str, Any]) -> None:
    """Escape, the same pit or anything else takes a choice back; another golden pit is chosen
    instead."""
    page = open_page(**size)
    show(page, CAPTURE)
    pits = [f"[data-pit={pit}]" for pit in ("A3", "b5", "A8")]
    for away in ("Escape", "#status", "#board svg", *pits):
        press(page, "[data-pit=A3]")
        see(page, ".pit.chosen").to_have_count(1)
        see(page, "#caption").to_have_text("A3: from A1 or A8?")
        if away == "Escape":
            page.keyboard.press(away)
        elif away == "#board svg":
            page.locator(away).dispatch_event("click")
        else:
            press(page, away)
        see(page, ".pit.chosen").to_have_count(0)
        see(page, ".arrows").to_be_hidden()
        see(page, "#caption").not_to_contain_text("A8?")
    press(page, "[data-pit=A3]")
    press(page, "[data-pit=A4]")
    see(page, ".pit.chosen").to_have_attribute("data-pit", "A4")
    arrow = page.locator(
        ".arrows .right"
    )  # the arrow shows the way of the hand from the end of the row
    assert arrow.get_attribute("aria-label") == "Capture with A4, sow from A8"
    expect(arrow).to_have_text("◀")
    page.wait_for_timeout(500)
    assert moves(page) == []
    press(page, ".arrows .right")
    until(page, "document.querySelectorAll('#moves button').length == 1")
    assert moves(page) == ["4R"]


def test_the_right_button_sows_right(open_page: Open) -> None:
    """This is an expert's shortcut. If the end of the row must still be chosen, it only chooses the
    pit."""
    page = open_page()
    page.click("[data-pit=A6]", button="right")
    see(page, "#moves button:not(.undone)[data-move='6R*']").to_have_count(1)
    show(page, CAPTURE)
    page.click("[data-pit=A3]", button="right")
    see(page, ".pit.chosen").to_have_count(1)
    assert moves(page) == []


def test_a_choice_by_keys(open_page: Open) -> None:
    """Enter chooses and takes back; arrow keys answer; the focus stays on the pit."""
    page = open_page()
    page.select_option("#seat-1", "human")
    page.click("#new-game [type=submit]")
    name = "document.activeElement.dataset.pit"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(f"{name} !== undefined"):
            break
    assert page.evaluate(name) == "A6"
    label = page.get_attribute("[data-pit=A6]", "aria-label")
    assert label == "A6, 2 seeds, can be played towards A5 and A7"
    for back, focus in (("Enter", "A6"), ("Escape", "A6"), ("ArrowUp", "a3")):
        page.keyboard.press("Enter")
        see(page, ".arrows .left").to_be_visible()
        page.keyboard.press(back)
        see(page, ".arrows").to_be_hidden()
        assert page.evaluate(name) == focus
    page.click("[data-pit=A6]")  # choose by mouse, and answer by keys
    page.keyboard.press("ArrowRight")
    see(page, "#status").to_have_text("North to move")
    assert moves(page) == ["6R*"]
    at_rest(page)
    page.keyboard.press("ArrowLeft")  # if no pit is chosen, the key looks back
    see(page, "#status").to_have_text("Looking back, move 1: South to move")


LEFT = "A3 from A1: captures 5 seeds at a6, ends at A5"
RIGHT = "A3 from A8: captures 5 seeds at a6, captures 9 seeds at a5, ends at B1, takes 14 seeds"


def test_a_pit_shows_where_its_moves_go(open_page: Open) -> None:
    """Mouse and keys show it, in both directions, and for a single arrow; nothing is played."""
    page = open_page()
    show(page, CAPTURE)
    position = page.input_value("#position")
    page.hover("[data-pit=A1]")
    page.hover("[data-pit=A3]")
    see(page, "#caption").to_have_text(f"{LEFT}. {RIGHT}.")
    see(page, "#board .paths .left .now").to_have_count(1)
    see(page, "#board .paths .right .prey").to_have_count(2)
    see(page, "#board .paths .right text").to_have_text("+14")
    page.hover("h1")
    see(page, "#board .paths *").to_have_count(0)
    see(page, "#caption").to_be_empty()
    page.click("[data-pit=A3]")
    page.hover(".arrows .right")
    see(page, "#caption").to_have_text(f"{RIGHT}.")
    see(page, "#board .paths polyline").to_have_count(1)
    page.keyboard.press("Escape")
    page.focus("[data-pit=A3]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    see(page, "#live").to_have_text(f"{LEFT}. {RIGHT}.")
    page.uncheck("#preview")
    page.focus("[data-pit=A3]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(500)
    see(page, "#board .paths *").to_have_count(0)
    assert page.input_value("#position") == position and moves(page) == []


def test_a_long_touch_shows_where_a_move_goes(open_page: Open) -> None:
    """A long touch plays nothing and chooses nothing; in a puzzle it shows nothing."""
    page = open_page(**PHONE)

    def touch(pit: str) -> None:
        touched = {"pointerType": "touch", "bubbles": True}
        page.dispatch_event(pit, "pointerdown", touched)
        page.wait_for_timeout(800)
        for kind in ("pointerup", "click"):
            page.dispatch_event(pit, kind, touched)

    show(page, CAPTURE)
    touch("[data-pit=A3]")
    see(page, "#caption").to_have_text(f"{LEFT}. {RIGHT}.")
    see(page, ".pit.chosen").to_have_count(0)
    page.evaluate("location.hash = 'puzzle=zanzibar/1'")
    see(page, "#lesson h2").to_contain_text("Puzzle 1")
    touch(".pit.legal")
    see(page, "#board .paths *").to_have_count(0)
