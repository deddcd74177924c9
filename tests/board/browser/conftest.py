"""Run a server and a real browser; tests/board/browser/run installs what this needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[3]
CHROMIUM = os.environ.get("BAO_CHROMIUM", "/usr/bin/chromium")
expect.set_options(timeout=150_000)  # the first bot compiles, the first network loads torch


def run_server(port: str = "0") -> tuple[subprocess.Popen[str], str]:
    """Start a server; return its process and its address."""
    command = [sys.executable, "-m", "bao_agents", "play", "--no-browser", "--port", port]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    match = re.search(r"http://\S+", server.stdout.readline())
    assert match, "the server has not started"
    return server, match[0]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Return the address of a server."""
    server, address = run_server()
    with server:
        yield address
        server.terminate()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Run Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open the board in its own context; anything on the console fails the test.

    ``allowed`` is a pattern of messages that may appear there; ``new`` opens the page as a new
    visitor. Other arguments are Playwright's.
    """
    contexts = []
    messages: list[str] = []

    def start(
        allowed: str = r"(?!)", speed: int = 10, path: str = "", new: bool = False, **options: Any
    ) -> Page:
        options.setdefault("viewport", {"width": 1400, "height": 900})
        options.setdefault("locale", "en-GB")
        context = browser.new_context(**options)
        contexts.append(context)
        context.add_init_script(
            f"localStorage.getItem('bao speed') ?? localStorage.setItem('bao speed', '{speed}')"
        )
        if not new:
            context.add_init_script("localStorage.setItem('bao met', 'true')")
        page = context.new_page()
        page.set_default_timeout(60_000)

        def hear(text: str) -> None:
            if not re.search(allowed, text):
                messages.append(text)

        page.on("console", lambda message: hear(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: hear(f"error: {error}"))
        page.goto(address + path)
        page.wait_for_selector("body[data-ready]")
        return page

    yield start
    for context in contexts:
        context.close()
    assert messages == []
