"""Check every view of the page with axe-core, which finds barriers for people with disabilities."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from bao_agents import analyse
from bao_env.board import Board
from tests.board.browser.test_browser import WON, Open, click_any, see, set_up, unfold
from tests.board.browser.test_learning import BOTH_SIZES, TAKASIA

PANELS = ("panel-new", "panel-moves", "panel-study", "panel-text", "panel-help")


def check(page: Page) -> None:
    """Fail if axe finds anything, and show it."""
    violations = Axe().run(page).response["violations"]
    assert [(rule["id"], node["html"]) for rule in violations for node in rule["nodes"]] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@BOTH_SIZES
def test_nothing_is_found(open_page: Open, size: dict[str, object], scheme: str) -> None:
    page = open_page(color_scheme=scheme, **size)
    for panel in PANELS:
        unfold(page, panel)
    check(page)
    page.click("[data-pit=A5]")  # refused
    check(page)
    page.keyboard.press("Escape")
    click_any(page, 0)
    page.click("#explain")
    see(page, "#story").to_be_visible()
    check(page)
    page.click("#back")
    page.click("#hint")
    see(page, "#hints").to_contain_text("%")
    check(page)
    set_up(page, TAKASIA)
    check(page)
    page.click("#edit")
    see(page, "#edit-tools").to_be_visible()
    check(page)
    page.click("#tab-learn")
    see(page, "#lesson h2").to_be_visible()
    check(page)


@BOTH_SIZES
def test_nothing_is_found_in_a_review_and_puzzles(open_page: Open, size: dict[str, object]) -> None:
    """Lines that were left, a review, a mistake of it as a puzzle, and a puzzle with its rating."""
    page = open_page(**size)
    for panel in PANELS:
        unfold(page, panel)
    legal = Board.from_text(WON)
    best, *_, worst = (line.action for line in analyse(legal, "alphabeta:2", lines=None).lines)
    page.fill("#transcript", Board.from_text(WON, moves=[worst]).transcript())
    page.click("#load")
    see(page, "#moves button").to_have_count(1)
    page.click("#undo")
    page.fill("#typed", legal.move_text(best))
    page.keyboard.press("Enter")
    see(page, "#lines button").to_have_count(1)
    check(page)
    page.click("#lines button")
    page.click("#redo")
    page.click("#review-game")
    page.click("#learn-mistakes")
    see(page, "#lesson h2").to_contain_text("Mistake 1 of 1")
    check(page)
    page.click("#lesson button:has-text('Show the best move')")
    see(page, "#board .marks .hint").not_to_have_count(0)
    see(page, "#caption").to_have_text(f"Better: {legal.move_text(best)}")
    check(page)
    page.click("#lesson [aria-label='Puzzles: kujifunza']")
    see(page, "#lesson p").to_contain_text("levels below Master")
    check(page)
