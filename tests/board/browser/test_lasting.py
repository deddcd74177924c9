"""Test that games, lessons and their addresses outlive the server, the tab and other pages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.board.browser.conftest import run_server
from tests.board.browser.test_browser import (
    Open,
    click_any,
    moves,
    peoples_turn,
    see,
    sow,
    unfold,
    until,
)

Server = Callable[[], None]
LOST = r"ERR_|404|Failed to load"
"""Messages on the console while the server is away."""


@pytest.fixture
def restart() -> Iterator[Callable[[], str]]:
    """Start a server, or stop the last one and start another on its port."""
    running: list[subprocess.Popen[str]] = []
    port = "0"

    def start() -> str:
        nonlocal port
        stop()
        server, address = run_server(port)
        running.append(server)
        port = address.rpartition(":")[2].strip("/")
        return address

    def stop() -> None:
        for server in running:
            server.terminate()
            server.communicate()
        running.clear()

    yield start
    stop()


def visit(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("body[data-ready]")


def test_a_game_outlives_the_server(open_page: Open, restart: Callable[[], str]) -> None:
    """The game continues with its bot, whether the page stays open or is loaded later."""
    page = open_page(allowed=LOST)
    visit(page, restart())
    click_any(page, 0)
    before = moves(page)
    restart()
    click_any(page, 1)
    see(page, "#moves button").to_have_count(4)
    assert moves(page)[:2] == before
    before = moves(page)
    see(page, "#message").to_be_empty()
    restart()
    page.reload()
    see(page, "#moves button").to_have_count(4)
    assert moves(page) == before
    see(page, "#players").to_contain_text("North: Very easy")
    click_any(page, 0)
    see(page, "#moves button").to_have_count(6)


def test_two_windows_stay_one_game(open_page: Open, restart: Callable[[], str]) -> None:
    """After a restart of the server either window restores the game, and the other follows."""
    page = open_page(allowed=LOST)
    visit(page, restart())
    page.select_option("#seat-1", "human")
    page.click("#new-game [type=submit]")
    see(page, "#players").to_contain_text("North: A person")
    for side in ("left", "left"):
        sow(page, page.locator(".pit.legal").first, side)
        peoples_turn(page)
    second = page.context.new_page()
    visit(second, page.url)
    see(second, "#moves button").to_have_count(2)
    game = re.compile(r"game=([\w-]+)").findall(page.url)
    restart()
    for window in (page, second):  # both ask at once
        window.evaluate("document.getElementById('previous').click()")
    for window in (page, second):
        see(window, "#status").to_contain_text("Looking back")
        window.click("#back")
        peoples_turn(window)
    click_any(second, 0)
    see(page, "#moves button").to_have_count(3)
    assert moves(page) == moves(second)
    page.click("#undo")
    see(second, "#moves .undone").to_have_count(1)
    assert all(re.findall(r"game=([\w-]+)", window.url) == game for window in (page, second))


def test_the_slower_of_two_windows_is_told(open_page: Open) -> None:
    """A window gets no messages about a position that it has not shown."""
    page = open_page(allowed="409")
    page.select_option("#seat-1", "human")
    page.click("#new-game [type=submit]")
    see(page, "#players").to_contain_text("North: A person")
    slower = page.context.new_page()
    visit(slower, page.url)
    slower.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
    sow(page, page.locator(".pit.legal").first, "left")
    peoples_turn(page)
    sow(slower, "A6", "left")
    see(slower, "#message").to_contain_text("The game has gone on in another window")
    see(slower, "#position").to_have_value(page.input_value("#position"))
    assert moves(slower) == moves(page)


DAMAGED = ["", "{", "null", "5", "[]", '"x"', '{"game": 7, "transcript": [], "seats": 1}', "\0"]


@pytest.mark.parametrize("name", ["game", "done", "language", "speed", "spelling", "counts", "met"])
def test_a_damaged_memory_costs_only_itself(open_page: Open, name: str) -> None:
    """Whatever the browser's storage contains, the page shows a board, and the lessons open."""
    page = open_page(allowed="400|404")
    for value in DAMAGED:
        page.evaluate("(pair) => localStorage.setItem(...pair)", [f"bao {name}", value])
        page.goto(page.url.partition("#")[0] + "?")
        page.wait_for_selector("body[data-ready]")
        expect(page.locator(".pit.legal").first).to_be_visible()
        see(page, "#status").to_have_text("South to move")
        page.click("#tab-learn")
        see(page, "#lesson h2").to_contain_text("Lesson 1 of")


def test_a_dropped_game_can_be_saved_and_linked(open_page: Open) -> None:
    """The file and the link are made from the page's own moves, without the server."""
    page = open_page(allowed=LOST)
    click_any(page, 0)
    before = moves(page)
    page.context.set_offline(True)
    unfold(page, "panel-text")
    with page.expect_download() as download:
        page.click("#save")
    text = download.value.path().read_text()
    assert "north: greedy" in text and before[0] in text
    page.click("#link-game")
    see(page, "#link").to_have_value(re.compile("transcript="))
    page.context.set_offline(False)
    for kind, start in (("svg", b"<svg "), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.click(f"#save-{kind}")
        assert download.value.path().read_bytes().startswith(start)
    page.click("#load")  # with its bot
    see(page, "#players").to_contain_text("North: Very easy")


def test_a_second_page_asks_the_bot_when_the_first_is_gone(open_page: Open, address: str) -> None:
    page = open_page(allowed="409")
    page.select_option("#seat-1", "alphabeta-ms")
    page.fill("#budget-1", "2500")
    page.click("#new-game [type=submit]")
    see(page, "#players").to_contain_text("2500 milliseconds")
    second = page.context.new_page()
    visit(second, page.url)
    sow(page, "A6", "left")
    until(page, "document.querySelectorAll('#moves button').length == 1")
    page.close()
    see(second, "#moves button").to_have_count(2)


def test_lessons_do_not_touch_the_game(open_page: Open) -> None:
    page = open_page()
    for turn in range(2):
        click_any(page, turn)
    before, position = moves(page), page.input_value("#position")
    page.click("#tab-learn")
    page.click("#lesson [aria-label^='3.']")
    see(page, "#lesson h2").to_contain_text("Lesson 3 of")
    assert page.url.endswith("#lesson=3")
    page.reload()
    see(page, "#lesson h2").to_contain_text("Lesson 3 of")
    page.click("#tab-play")
    see(page, "#position").to_have_value(position)
    assert moves(page) == before
    see(page, "#lesson").to_be_hidden()
    see(page, "#players").to_contain_text("North: Very easy")


def test_lessons_are_listed_with_ticks(open_page: Open) -> None:
    """Captions stay for as long as reading them takes."""
    page = open_page(path="#lesson=1", speed=10)
    expect(page.locator("#lesson .list")).not_to_contain_text("✓")
    page.click("[data-pit=B1]")
    caption = page.locator("#caption")
    expect(caption).to_contain_text("lifts 2 seeds")
    page.wait_for_timeout(500)
    expect(caption).to_contain_text("lifts 2 seeds", timeout=1)
    page.click("#skip")
    expect(page.locator("#lesson .list")).to_contain_text("1 ✓")
