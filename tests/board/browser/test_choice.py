"""Test that a choice can be taken back, and that choosing never sows: by mouse, touch and keys."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Page, expect

from tests.board.browser.test_browser import Open, Shoot, at_rest, moves, see, until

CAPTURE = "0,0,1,1,0,0,3,0/0,0,1,1,1,1,1,1/0,0,0,2,9,5,2,1/0,0,0,0,0,0,0,0 17,17 N S -"
"""South captures with A3 or A4, sown from either end."""
MTAJI = "2,10,0,3,1,1,2,1/0,5,3,0,2,1,1,0/2,1,1,2,1,3,2,3/2,3,3,1,6,0,0,2 0,0 - S -"
"""South captures with A4 to either side, and with A2, A7, B2 and B3 to one."""
BACK = "0,0,0,1,0,0,0,0/2,4,0,2,0,1,3,1/2,8,0,5,12,1,7,1/0,2,0,5,1,3,1,2 0,0 - S -"
EDGE = "2,2,3,4,3,1,0,0/0,0,1,0,1,1,0,8/3,0,2,1,8,1,6,1/3,0,2,4,3,1,2,1 0,0 - S -"
"""South captures with pits of the back row to either side; with its last one in EDGE."""
NORTH = CAPTURE.replace("17,17 N S", "17,17 N N")
SIZES: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "tablet": {"viewport": {"width": 820, "height": 1180}, "has_touch": True, "is_mobile": True},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "small": {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True},
    "landscape": {"viewport": {"width": 844, "height": 390}, "has_touch": True, "is_mobile": True},
}
EVERY_SIZE = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())


def show(page: Page, position: str) -> None:
    page.evaluate(f"location.hash = 'position={position}'")
    see(page, "#position").to_have_value(position)
    expect(page.locator(".pit.legal").first).to_be_visible()


def press(page: Page, place: str) -> None:
    """Click, or on a touch screen tap."""
    if page.evaluate("matchMedia('(hover: none)').matches"):
        page.tap(place)
    else:
        page.click(place)


def box(page: Page, place: str) -> FloatRect:
    found = page.locator(place).bounding_box()
    assert found
    return found


def apart(one: FloatRect, other: FloatRect) -> bool:
    """Return whether two boxes share no more than a line of pixels."""
    return any(
        a["x"] + a["width"] <= b["x"] + 1 or a["y"] + a["height"] <= b["y"] + 1
        for a, b in ((one, other), (other, one))
    )


@EVERY_SIZE
def test_no_arrow_lies_on_a_pit_that_may_be_played(
    open_page: Open, shoot: Shoot, size: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    page = open_page(**size)
    tried = 0
    for position in (CAPTURE, MTAJI, BACK, EDGE, NORTH):
        show(page, position)
        golden = page.eval_on_selector_all(".pit.legal", "all => all.map((e) => e.dataset.pit)")
        both = page.eval_on_selector_all(
            ".pit.to-left.to-right", "all => all.map((e) => e.dataset.pit)"
        )
        tried += len(both)
        for pit in both:
            press(page, f"[data-pit={pit}]")
            for side, other in product(("left", "right"), golden):
                arrow = box(page, f".arrows .{side}")
                assert apart(arrow, box(page, f"[data-pit={other}]")), (position, pit, side, other)
            assert apart(box(page, ".arrows .left"), box(page, ".arrows .right"))
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size["viewport"]["width"]
            press(page, f"[data-pit={pit}]")
            see(page, ".arrows").to_be_hidden()
    assert tried >= 8
    press(page, f"[data-pit={both[0]}]")
    shoot(page, f"arrows-{request.node.callspec.id}")


@pytest.mark.parametrize("size", [SIZES["desk"], SIZES["phone"]], ids=["mouse", "touch"])
def test_a_choice_is_taken_back(open_page: Open, size: dict[str, Any]) -> None:
    """By Escape, the same pit, or anything else; another golden pit is chosen instead."""
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
    page.wait_for_timeout(500)
    assert moves(page) == []
    press(page, ".arrows .right")
    until(page, "document.querySelectorAll('#moves button').length == 1")
    assert moves(page) == ["4R"]


def test_a_choice_is_taken_back_by_keys(open_page: Open) -> None:
    """Enter chooses and takes back; the focus stays on the pit, even from an arrow."""
    page = open_page()
    show(page, CAPTURE)
    name = "document.activeElement.dataset.pit"
    page.focus("[data-pit=A3]")
    for back in ("Enter", "Escape", "ArrowUp"):
        page.focus("[data-pit=A3]")
        page.keyboard.press("Enter")
        see(page, ".arrows .left").to_be_visible()
        page.keyboard.press(back)
        see(page, ".arrows").to_be_hidden()
        assert page.evaluate(name) == ("a6" if back == "ArrowUp" else "A3")
    page.focus("[data-pit=A3]")
    page.keyboard.press("Enter")
    page.locator(".arrows .left").focus()
    page.keyboard.press("Escape")
    see(page, ".arrows").to_be_hidden()
    assert page.evaluate(name) == "A3" and moves(page) == []


def test_arrow_keys_answer_a_choice_of_the_mouse(open_page: Open) -> None:
    """They look back only if no pit is chosen."""
    page = open_page()
    page.select_option("#seat-1", "human")
    page.click("#new-game [type=submit]")
    page.click("[data-pit=A6]")
    page.keyboard.press("ArrowRight")
    see(page, "#status").to_have_text("North to move")
    assert moves(page) == ["6R*"]
    at_rest(page)
    page.keyboard.press("ArrowLeft")
    see(page, "#status").to_have_text("Looking back, move 1: South to move")


@pytest.mark.parametrize("size", [SIZES["desk"], SIZES["phone"]], ids=["mouse", "touch"])
def test_choosing_never_sows(open_page: Open, size: dict[str, Any]) -> None:
    """Wherever a pit with two ways is touched, it is only chosen; the line below says so."""
    page = open_page(**size)
    see(page, "#how").to_contain_text("Where there are two ways, choose the pit, then ◀ or ▶")
    see(page, "#how").not_to_contain_text("lick")
    pit = box(page, "[data-pit=A6]")
    for across, down in product((0.2, 0.5, 0.8), (0.2, 0.5)):
        place = {"x": across * pit["width"], "y": down * pit["height"]}
        target = page.locator("[data-pit=A6]")
        touch: Any = target.tap if "has_touch" in size else target.click
        touch(position=place)
        see(page, ".pit.chosen").to_have_count(1)
        page.keyboard.press("Escape")
    assert moves(page) == []
    show(page, CAPTURE)
    see(page, "#how").to_contain_text("choose the pit, then the end of your front row")


def test_a_pit_with_one_way_is_sown_at_once(open_page: Open) -> None:
    page = open_page()
    show(page, MTAJI)
    page.click("[data-pit=B3]")
    see(page, "#moves button").to_have_count(1)
    assert moves(page)[0].startswith("B3")


def test_the_right_button_sows_right(open_page: Open) -> None:
    """An expert's short way; where the end of the row is to be chosen, it chooses."""
    page = open_page()
    page.click("[data-pit=A6]", button="right")
    see(page, "#moves button:not(.undone)[data-move='6R*']").to_have_count(1)
    show(page, CAPTURE)
    page.click("[data-pit=A3]", button="right")
    see(page, ".pit.chosen").to_have_count(1)
    assert moves(page) == []
