"""Run ``bao play``: serve the web board, to play against people, bots or checkpoints."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

from bao_agents.cli.options import Run, add_options, add_player_options, at_least
from bao_agents.support.output import say

RUNS = Path("runs")
"""The folder of training runs; by default, the checkpoints in it may play."""

_TEXT_BROWSERS = {"browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser"}
"""Text browsers, which would occupy the terminal and cannot show the page."""

MAX_PORT = 65535

SWITCH_SECONDS = 0.0005
"""Python's switch interval: seconds after which a busy thread lets the server's thread run."""


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao play``: play Bao in a browser, against people, bots or checkpoints."""
    parser.description = (
        "Play Bao in a browser: against people, bots or checkpoints. The server listens\n"
        "on this machine only, unless --host says otherwise."
    )
    parser.add_argument(
        "--port",
        type=at_least(0),
        default=8017,
        help="port, or 0 for any free port (default: 8017)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s); any other address opens the board to "
        "your network, without a password. For the public internet put a reverse proxy before it",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name under which people open the board through a reverse proxy or in your "
        "network, such as bao.example.org; may be repeated",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    parser.add_argument(
        "--checkpoints",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="folders whose .safetensors files may play, besides the shipped ones (default: runs, "
        "if it exists)",
    )
    parser.add_argument(
        "players",
        nargs="*",
        metavar="PLAYER",
        help="more players to choose from; your own as module:function",
    )
    add_options(parser, "ruleset", seed=0)
    add_player_options(parser)
    return _run


def _run(options: argparse.Namespace) -> None:
    """Serve the board until Ctrl-C."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ValueError("a notebook cannot serve the board: run bao play in a terminal")
    from bao_agents.play.roster import Roster
    from bao_agents.play.seated_game import compile_moves
    from bao_agents.play.server import create_app, make_server

    if not options.host:
        raise ValueError(
            "--host '': expected an address of this machine, or 0.0.0.0 for all of them"
        )
    for name in options.name:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise ValueError(f"--name {name!r}: expected only a host name, such as bao.example.org")
    if options.checkpoints is None:
        options.checkpoints = [RUNS] if RUNS.is_dir() else []
    roster = Roster(
        options.checkpoints, options.seed, players=options.players, ruleset=options.ruleset
    )
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    if options.port > MAX_PORT:
        raise ValueError(
            f"cannot listen on {options.host} port {options.port}: expected a port of at most "
            f"{MAX_PORT}"
        )
    try:  # listen at once, because the address printed below must work
        listener = socket.create_server((options.host, options.port), family=family)
    except OSError as error:
        raise ValueError(f"cannot listen on {options.host} port {options.port}: {error}") from error
    address_host, hosts = options.host, [options.host]
    if options.host in ("0.0.0.0", "::"):  # every address of this machine
        address_host, hosts = (
            "127.0.0.1" if options.host == "0.0.0.0" else "::1",
            [socket.gethostname()],
        )
        say(
            f"On other machines, open the board with this machine's address or name, {hosts[0]}",
            sys.stdout,
        )
    port = listener.getsockname()[1]
    address = (
        f"http://[{address_host}]:{port}/"
        if ":" in address_host
        else f"http://{address_host}:{port}/"
    )
    say(f"The board is at {address} (Ctrl-C stops it)", sys.stdout)
    if not options.no_browser:
        threading.Timer(0.7, open_page, [address]).start()
    server = make_server(create_app(roster, hosts, options.name))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)

    def compile_and_freeze() -> None:
        compile_moves()
        gc.freeze()  # else collections would scan these objects, and stop the server for 0.1 s

    # The page opens meanwhile, and says that new games wait for this.
    threading.Thread(target=compile_and_freeze, daemon=True).start()

    async def serve() -> None:
        await server.serve(sockets=[listener])
        if options.owns_process:
            os._exit(0)  # otherwise asyncio and Python would wait for bots that still think

    try:
        asyncio.run(serve())
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()


def open_page(address: str) -> None:
    """Open a page in the default browser, if that is a graphical one."""
    with suppress(webbrowser.Error):  # there is none
        browser = webbrowser.get()
        if os.path.basename(getattr(browser, "name", "")) not in _TEXT_BROWSERS:
            browser.open(address)
