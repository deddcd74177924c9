"""Run ``bao play``: serve the web board, to play against people, bots or checkpoints."""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import os
import re
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bao_agents.cli.options import Run, add_options, add_player_options, at_least
from bao_agents.support.output import say

if TYPE_CHECKING:
    import uvicorn

RUNS = Path("runs")
"""The folder of training runs; by default, the checkpoints in it may play."""

_TEXT_BROWSERS = {"browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser"}
"""Text browsers, which would occupy the terminal and cannot show the page."""

MAX_PORT = 65535

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""The addresses that stand for every address of this machine, each with one to open here."""

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
    _check(options)
    from bao_agents.play.roster import Roster
    from bao_agents.play.server import create_app, make_server

    if options.checkpoints is None:
        options.checkpoints = [RUNS] if RUNS.is_dir() else []
    roster = Roster(
        options.checkpoints, options.seed, players=options.players, ruleset=options.ruleset
    )
    # Listen at once, because the address printed below must work.
    listener = _listen(options.host, options.port)
    port, hosts = listener.getsockname()[1], [options.host]
    if options.host in _LOOPBACK:
        hosts = [socket.gethostname()]
        say(
            f"On other machines, open http://{hosts[0]}:{port}/ (or this machine's address in "
            "place of the name)",
            sys.stdout,
        )
    host = _LOOPBACK.get(options.host, options.host)
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    say(f"The board is at {address} (Ctrl-C stops it)", sys.stdout)
    if not options.no_browser:
        threading.Timer(0.7, open_page, [address]).start()
    server = make_server(create_app(roster, hosts, options.name))
    _serve(server, listener, owns_process=options.owns_process)


def _check(options: argparse.Namespace) -> None:
    """Check what can be checked before anything is imported.

    Raises:
        ValueError: the board cannot be served from here, or an option is wrong.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ValueError("a notebook cannot serve the board: run bao play in a terminal")
    for name in options.name:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise ValueError(f"--name {name!r}: expected only a host name, such as bao.example.org")


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port of an address.

    Raises:
        ValueError: the port is too high, in use or not allowed, or the address is of another
            machine.
    """
    if port > MAX_PORT:
        raise ValueError(
            f"cannot listen on {host} port {port}: expected a port of at most {MAX_PORT}"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        remedy = (
            "; --port gives the board another port, and --port 0 any free one" if in_use else ""
        )
        raise ValueError(f"cannot listen on {host} port {port}: {error}{remedy}") from error


def _serve(server: uvicorn.Server, listener: socket.socket, *, owns_process: bool) -> None:
    """Serve the board until Ctrl-C, and compile what games need at the same time.

    Args:
        server: the server.
        listener: the socket on which it listens.
        owns_process: whether the process may end with the server.
    """
    from bao_agents.play.seated_game import compile_moves

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)

    def compile_and_freeze() -> None:
        compile_moves()
        gc.freeze()  # else collections would scan these objects, and stop the server for 0.1 s

    # The page opens meanwhile, and says that new games wait for this.
    threading.Thread(target=compile_and_freeze, daemon=True).start()

    async def serve() -> None:
        await server.serve(sockets=[listener])
        if owns_process:
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
