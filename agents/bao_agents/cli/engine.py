"""Run a player as a program, for ``pipe:COMMAND`` in another checkout or another program.

    bao engine alphabeta:6

``docs/engine-protocol.md`` describes what it reads and writes. The player applies the limit in its
name, and uses less than the time that the host allows.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from bao_agents.cli.options import Run, add_player_options, at_least
from bao_agents.players.faults import PlayerFault
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.pipe import PROTOCOL
from bao_agents.players.player import NamedPlayer
from bao_agents.players.registry import load
from bao_agents.search.limits import LEAST_SECONDS, Clock, Limit
from bao_agents.support.provenance import current_commit
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset, get_ruleset

_SHARE = 0.02
"""The share of the host's time that a search leaves unused, in addition to the overhead."""
_SETTINGS = "ruleset", "seed", "threads", "memory"
"""The settings with which a player is loaded."""
_MAX_ERROR = 1000
"""The maximum length of an error that the host gets, in characters."""


class EngineProtocol:
    """Answer the lines of a host.

    Args:
        spec: the player's name for :func:`bao_agents.players.registry.load`.
        write: the function that writes a line.
        overhead: seconds of the host's time that a search leaves for everything else.
    """

    def __init__(self, spec: str, write: Callable[[str], None], overhead: float = 0.005) -> None:
        self._spec = spec
        self._write = write
        self._overhead = overhead
        self._ruleset = get_ruleset("zanzibar")
        self._seed = 0
        self._threads: int | None = None
        self._memory: int | None = None
        self._player: NamedPlayer | None = None
        self._game: int | None = None
        self._position = ""
        self._legal: list[int] = []
        self._thinking = False
        self._settings_read = 0
        """The number of settings that have been read."""
        self._settings_applied = 0
        """The number of settings that have been applied; each discards the loaded player."""

    def serve(self, lines: Iterator[str]) -> None:
        """Answer lines until they end; skip lines that are unknown.

        A second thread reads the lines. While the calling thread thinks, the second thread itself
        answers ``isready``, unless there are new settings. It ends the process at ``quit``.

        Raises:
            ValueError: a line cannot be answered; the reason has been written for the host.
            ImportError: the same, for a player whose packages are not installed.
        """
        requests: queue.Queue[tuple[str, str] | None] = queue.Queue()

        def read() -> None:
            for line in lines:
                word, _, argument = line.strip().partition(" ")
                self._settings_read += word in _SETTINGS
                is_loaded = (
                    self._settings_read == self._settings_applied and self._player is not None
                )
                if word == "quit":
                    os._exit(0)  # at once: a search would first run to its end
                elif word == "isready" and self._thinking and is_loaded:
                    self._write("ready")
                else:
                    self._thinking |= word == "go"
                    requests.put((word, argument.strip()))
            requests.put(None)

        threading.Thread(target=read, daemon=True).start()
        while line := requests.get():
            try:
                self._answer(*line)
            except (ValueError, ImportError) as error:
                self._write("error " + " ".join(str(error).split())[:_MAX_ERROR])
                raise

    def _answer(self, word: str, argument: str) -> None:
        if word in _SETTINGS:
            self._player = None
            self._settings_applied += 1
        if word == "bao" and argument != str(PROTOCOL):
            raise ValueError(f"bao {argument[:20]}: expected version {PROTOCOL} of the protocol")
        if word == "ruleset":
            self._ruleset = _read_rules(argument)
        elif word == "seed":
            self._seed = _number(word, argument)
        elif word == "threads":
            self._threads = _number(word, argument)
        elif word == "memory":
            self._memory = _number(word, argument)
        elif word == "isready":
            self._get_ready()
        elif word == "game":
            self._game = _number(word, argument, 63)
        elif word == "position":
            self._position = argument
        elif word == "legal":
            self._legal = [_number(word, action, 6) for action in argument.split()]
        elif word == "go":
            move, self._game = self._choose(argument), None
            self._thinking = False
            self._write(f"move {move}")

    def _load(self) -> NamedPlayer:
        return load(
            self._spec,
            ruleset=self._ruleset,
            seed=self._seed,
            threads=self._threads,
            memory=self._memory,
        )

    def _get_ready(self) -> None:
        self._write("info loading")  # the host then knows that its lines arrive
        player = self._load()
        with suppress(PlayerFault):
            player.choose(Board(self._ruleset))  # compiles what it needs before a clock runs
        self._write(f"name {self._spec}")
        mark, commit = fingerprint(self._spec, player, self._ruleset), current_commit()
        if mark is not None and commit != "unknown" and not commit.endswith("dirty"):
            self._write(f"version {commit} {mark}".rstrip())
        if player.remembers:
            self._write(f"remembers {player.most_games or ''}".rstrip())
        self._player = self._load()  # again, because the first one has drawn random numbers
        self._write("ready")

    def _choose(self, limit_text: str) -> str:
        """Return the action that the player chooses, or ``none`` after a fault, in answer to
        ``go``.

        Args:
            limit_text: what follows ``go`` (:meth:`_limit`).

        Raises:
            ValueError: no player is ready, or the host plays by other rules.
            RuntimeError: the player fails otherwise. It ends this program, so in a match it loses
                one game, whatever the player itself has raised.
        """
        if self._player is None:
            raise ValueError(
                "go came too early: send all settings, then isready, and wait for ready"
            )
        board = Board.from_text(self._position, self._ruleset)
        if sorted(board.legal_actions) != sorted(self._legal):
            raise ValueError(
                f"the host plays by other rules: here the legal actions of {self._position} are "
                f"{board.legal_actions}"
            )
        try:
            return str(self._player.choose(board, self._limit(limit_text), game=self._game))
        except PlayerFault as fault:  # the player can go on with the next game
            self._write(f"info {fault.cause}")
            return "none"
        except (ValueError, ImportError) as error:
            raise RuntimeError(str(error)) from error

    def _limit(self, limit_text: str) -> Limit | None:
        """Return the limit that the host sets for a move; None to apply the limit in the name.

        The host's limit counts only if the name has a time limit. ``movetime`` counts only if it is
        shorter than that limit.

        Args:
            limit_text: what follows ``go``: ``movetime MS``, or ``clock MS MS`` with the remaining
                time and the increment after a move.
        """
        match = re.fullmatch("movetime ([0-9]{1,9})|clock ([0-9]{1,9}) ([0-9]{1,9})", limit_text)
        own = self._player.limit if self._player else None
        if not match or own is None or own.seconds is None:
            return None
        if match[2]:
            seconds, increment = int(match[2]) / 1000, int(match[3]) / 1000
            left = max(LEAST_SECONDS, seconds * (1 - _SHARE) - self._overhead)
            return Limit.by_clock(Clock(left, max(0.0, increment - self._overhead)))
        allowed = max(LEAST_SECONDS, int(match[1]) / 1000 * (1 - _SHARE) - self._overhead)
        return own._replace(seconds=allowed) if allowed < own.seconds else None


def _number(word: str, text: str, bits: int = 64) -> int:
    """Return the number after a word.

    Raises:
        ValueError: the text is not a number from 0 to ``2**bits - 1``.
    """
    if not re.fullmatch("[0-9]{1,20}", text) or int(text) >= 1 << bits:
        raise ValueError(f"{word} {text:.40}: expected a number from 0 to 2**{bits} - 1")
    return int(text)


def _read_rules(text: str) -> Ruleset:
    """Return the rule set of a name, or of a JSON object of switches.

    Raises:
        ValueError: there is no such rule set, or the JSON is wrong.
    """
    if not text.startswith("{"):
        return get_ruleset(text)
    try:
        return Ruleset.from_dict(json.loads(text))
    except RecursionError:
        raise ValueError(
            "ruleset: expected a JSON object of switches; this one is nested too deeply"
        ) from None


def _read_lines(file: int) -> Iterator[str]:
    """Yield the lines of a file descriptor.

    This reads the descriptor itself: a thread blocked in ``sys.stdin`` would keep Python from
    exiting.
    """
    unfinished = b""
    while chunk := os.read(file, 1 << 16):
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        yield from (line.decode("utf-8", "backslashreplace") for line in lines)
    yield unfinished.decode("utf-8", "backslashreplace")


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao engine``: play as a program that reads positions and writes moves."""
    parser.add_argument(
        "player", metavar="PLAYER", help="a bot, or a checkpoint by its name or path"
    )
    parser.add_argument(
        "--overhead",
        type=at_least(0),
        default=5,
        metavar="MS",
        help="milliseconds of the host's time limit that a search leaves unused, besides 2%% of "
        "the limit (default: %(default)s)",
    )
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    if sys.stdin is None:
        raise ValueError("bao engine reads lines from its standard input, which is closed")
    out, sys.stdout = sys.stdout, sys.stderr  # text that a player prints is not an answer
    lock = threading.Lock()

    def write(line: str) -> None:
        with lock:
            print(line, file=out, flush=True)

    try:
        engine = EngineProtocol(args.player, write, args.overhead / 1000)
        engine.serve(_read_lines(sys.stdin.fileno()))
    finally:
        sys.stdout = out
