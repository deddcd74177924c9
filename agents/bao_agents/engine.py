"""Run a player as a program, for ``pipe:COMMAND`` in another checkout or another program.

    bao engine alphabeta:6

``docs/engine-protocol.md`` describes what it reads and writes. The player keeps the limit in its
name.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable

from bao_agents.base import NamedPlayer
from bao_agents.cli.options import Run, add_player_options
from bao_agents.fingerprint import fingerprint
from bao_agents.pipe import PROTOCOL
from bao_agents.provenance import current_commit
from bao_agents.registry import load
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset, get_ruleset


class Engine:
    """Answer the lines of a host.

    Args:
        spec: the player, by name.
        write: writes a line.
    """

    def __init__(self, spec: str, write: Callable[[str], None]) -> None:
        self._spec = spec
        self._write = write
        self._ruleset = get_ruleset("zanzibar")
        self._seed = 0
        self._threads: int | None = None
        self._player: NamedPlayer | None = None
        self._position = ""
        self._legal: list[int] = []

    def serve(self, lines: Iterable[str]) -> None:
        """Answer lines until ``quit``; unknown ones are skipped.

        Raises:
            ValueError: a line cannot be answered, and the host has been told why.
        """
        for line in lines:
            word, _, rest = line.strip().partition(" ")
            if word == "quit":
                return
            try:
                self._answer(word, rest.strip())
            except (ValueError, ImportError) as error:
                self._write("error " + " ".join(str(error).split()))
                raise

    def _answer(self, word: str, rest: str) -> None:
        if word == "bao" and rest != str(PROTOCOL):
            raise ValueError(f"bao {rest[:20]}: expected version {PROTOCOL} of the protocol")
        elif word == "ruleset":
            rules = json.loads(rest) if rest.startswith("{") else None
            self._ruleset = Ruleset.from_dict(rules) if rules else get_ruleset(rest)
        elif word == "seed":
            self._seed = int(rest)
        elif word == "threads":
            self._threads = int(rest)
        elif word == "isready":
            self._get_ready()
        elif word == "position":
            self._position = rest
        elif word == "legal":
            self._legal = [int(action) for action in rest.split()]
        elif word == "go":
            self._write(f"move {self._choose()}")

    def _load(self) -> NamedPlayer:
        return load(self._spec, ruleset=self._ruleset, seed=self._seed, threads=self._threads)

    def _get_ready(self) -> None:
        player = self._load()
        player.choose(Board(self._ruleset))  # compiles what it needs before a clock runs
        self._player = self._load()  # without the first one's random draws
        self._write(f"name {self._spec}")
        mark, commit = fingerprint(self._spec, player), current_commit()
        if mark is not None and commit != "unknown" and not commit.endswith("dirty"):
            self._write(f"version {commit} {mark}".rstrip())
        self._write("ready")

    def _choose(self) -> int:
        if self._player is None:
            raise ValueError("go came before isready")
        board = Board.from_text(self._position, self._ruleset)
        if sorted(board.legal_actions) != sorted(self._legal):
            raise ValueError(
                f"other rules: the legal actions of {self._position} are {board.legal_actions} here"
            )
        return self._player.choose(board)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao engine``: play as a program that reads positions and writes moves."""
    parser.add_argument("player", metavar="PLAYER", help="a checkpoint's path or name, or a bot")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # what a player prints is not an answer
    try:
        Engine(args.player, lambda line: print(line, file=out, flush=True)).serve(sys.stdin)
    finally:
        sys.stdout = out
