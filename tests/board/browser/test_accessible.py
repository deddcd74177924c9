"""Check every view of the page with axe-core, which finds barriers for people with disabilities."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.board.browser.test_browser import Open, click_any, see, set_up, unfold
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
