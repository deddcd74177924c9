"""Test lessons, puzzles and explanations, as a newcomer meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import bao_agents.play
from bao_agents.play.puzzles import puzzles
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS
from bao_env.notation.positions import action_to_move
from tests.board.browser.test_browser import Open, at_rest, see, set_up, sow, until

STATIC = Path(bao_agents.play.__file__).with_name("static")
LESSONS = json.loads((STATIC / "lessons.json").read_text(encoding="utf-8"))
TAKASIA = "0,0,0,0,2,0,0,0/4,5,0,1,1,1,6,0/0,8,1,6,10,3,6,1/2,0,2,0,3,0,2,0 0,0 - S -"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
BOTH_SIZES = pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])


def hurry(page: Page) -> None:
    """Skip the captions of a move, which take their time in a lesson."""
    done = "document.querySelector('#moves button, #message:not(:empty), #house[open]')"
    until(page, f"!document.getElementById('skip').disabled || {done}")
    page.evaluate("document.getElementById('skip').click()")


def play(page: Page, position: str, text: str) -> None:
    """Make a move as people do, by mouse or touch."""
    board = Board.from_text(position)
    action = board.parse_move(text)
    row = ("AB", "ab")[board.turn][action >> 5]
    pit = page.locator(f"[data-pit={row}{(action >> 2) % 8 + 1}]")
    sow(page, pit, "right" if action >> 1 & 1 else "left")
    hurry(page)
    if {action & ~1, action | 1} <= set(board.legal_actions):
        page.click(f"#house button[value={'play' if action & 1 else 'stop'}]")
        hurry(page)
    expect(page.locator("#moves button").first).to_be_visible()
    at_rest(page)


@BOTH_SIZES
def test_all_lessons(open_page: Open, size: dict[str, object]) -> None:
    """A lesson's move completes it, and the page says so; after another move people can try
    again."""
    page = open_page(new=True, **size)
    see(page, "#lesson").to_contain_text("New to Bao?")
    page.click("#lesson button.main")
    for number, lesson in enumerate(LESSONS, start=1):
        see(page, "#lesson h2").to_have_text(
            f"Lesson {number} of {len(LESSONS)}: {lesson['en']['title']}"
        )
        legal = Board.from_text(lesson["position"])
        wrong = {legal.move_text(move) for move in legal.legal_moves} - set(lesson["goal"])
        if wrong:
            play(page, lesson["position"], min(wrong))
            see(page, "#lesson p").to_have_text(lesson["en"]["wrong"])
            if not size:  # a phone shows no heading in a lesson
                see(page, "#status").to_have_text("Not that one: try again, above the board.")
            page.click("#lesson button.main")
            see(page, "#moves button").to_have_count(0)
        play(page, lesson["position"], lesson["goal"][0])
        see(page, "#lesson p").to_have_text(lesson["en"]["done"])
        see(page, ".pit.legal").to_have_count(0)
        page.click("#lesson button.main")
    see(page, "#players").to_contain_text("First steps")  # the last lesson leads to a whole game
    see(page, "#why").to_contain_text("Namua")
    see(page, "#lesson").to_be_hidden()


def test_words_of_bao_are_explained_where_they_stand(open_page: Open) -> None:
    page = open_page()
    see(page, "#why").to_have_text(
        "Namua: a seed enters from the store. No capture is possible: takasa."
    )
    page.click("#why .term >> text=takasa")
    see(page, "#explanation").to_contain_text("Takasa is a turn without a capture")
    page.keyboard.press("Escape")
    page.select_option("#language", "sw")
    page.click("[data-pit=A5]")
    page.click("#message .term >> text=Donkers 2.4b")
    see(page, "#explanation").to_contain_text("nyumba")


def test_takasia_says_why_a_pit_is_barred(open_page: Open) -> None:
    page = open_page()
    set_up(page, TAKASIA)
    play(page, TAKASIA, "A5L**")
    see(page, "#why").to_contain_text("Takasia bars")
    barred = page.locator(".pit[aria-label*='barred by takasia']")
    expect(barred).to_have_count(1)
    barred.click()
    see(page, "#message").to_contain_text("it is the only hole that the opponent threatens")
    page.click("#hint")
    see(page, "#board .marks .hint").not_to_have_count(0)
    for mark in ("barred", "last"):  # a hint keeps the other marks
        see(page, f"#board .marks .{mark}").not_to_have_count(0)


def test_a_puzzle(open_page: Open) -> None:
    """The page says if a move gives the proven win away; another move keeps the win."""
    page = open_page(allowed="409")  # the bot thinks while the move is taken back
    page.click("#tab-learn")
    page.click("#lesson [aria-label='Puzzles: zanzibar']")
    shipped = puzzles(RULESETS["zanzibar"])
    puzzle = shipped[0]
    see(page, "#lesson h2").to_have_text(
        re.compile(rf"Puzzle 1 of {len(shipped)}: (South|North) wins in {puzzle.plies} plies")
    )
    see(page, "#lesson p").to_contain_text(
        f"solved by {puzzle.levels} of the 8 levels below Master"
    )
    position = page.input_value("#position")
    moves = {action_to_move(action) for action in Board.from_text(position).legal_actions}
    play(page, position, min(moves - {*puzzle.winning}))
    see(page, "#lesson p").to_have_text("That throws a proven win away.")
    page.click("#lesson button:has-text('Try again')")
    see(page, "#moves button:not(.undone)").to_have_count(0)
    see(page, "#lesson p").to_have_text(re.compile("^The solver has proven the win"))
    page.fill("#typed", puzzle.winning[0])  # the bot then answers, as after a click
    page.keyboard.press("Enter")
    see(page, "#moves button:not(.undone)").to_have_count(2)
    see(page, "#lesson p").to_have_text("Good: the win is still there.")
    expect(page.locator(".pit.legal").first).to_be_visible()
    text = page.input_value("#position")
    legal = Board.from_text(text).legal_actions
    [last, *_] = [action for action in legal if Board.from_text(text, moves=[action]).outcome()]
    page.fill("#typed", action_to_move(last))
    page.keyboard.press("Enter")
    see(page, "#lesson p").to_have_text("Solved!")
    see(page, "#review").to_be_visible()
    see(page, "#rematch").to_be_hidden()  # it would leave the puzzles
