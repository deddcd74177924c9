"""Play with a program that answers lines on its stdin with lines on its stdout.

``pipe:COMMAND`` starts the program, and ``pipe:2s:COMMAND`` allows it two seconds per move.
``pipe:2s+100ms:COMMAND`` allows two seconds, and tolerates another 100 milliseconds.
``docs/engine-protocol.md`` describes the lines. :mod:`bao_agents.cli.engine` is the other end.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from typing import IO, NoReturn

import numpy as np

from bao_agents.players.faults import PlayerFault
from bao_agents.search.limits import Limit
from bao_agents.support.array_types import Int64Array
from bao_agents.support.cores import cores
from bao_agents.support.files import printable
from bao_agents.support.output import say
from bao_agents.support.remade import Remade
from bao_env.engine.action import actions_of
from bao_env.engine.argument_checks import as_batch
from bao_env.engine.position import Actions, Legal, PackedPositions, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import format_position

PROTOCOL = 1
_PROCESS_CLOCK = 2
"""The low bits of the id of a process's processor-time clock (Linux, posix-timers.h)."""
MOVE_SECONDS = 60.0
"""Default time limit per move."""
PROGRAM_START_SECONDS = 300.0
"""Seconds within which a program must be ready; ``bao engine`` may have to compile first."""
QUIET_SECONDS = 5.0
"""Seconds of silence after which a notice names the line that a program should write.

A program that is not ready with a new seed after this time is ended."""
MAX_LINE = 4096
"""Longest line that a program may write, in bytes."""
_PATIENCE = 0.5
"""Seconds in which a program can end after ``quit``, and again after SIGTERM."""
_SLICE = 0.1
"""Seconds between two checks for Ctrl-C, which does not interrupt a longer wait on Windows."""
_WAITING = 16
"""Most chunks of output in the queue; when it is full, the program's writes block."""
_PATH_ADVICE = (
    "expected a program in PATH, or its path with a slash, such as ./bot; a path with blanks needs "
    "quotes of its own"
)
_HINT = "does it flush every line that it writes, and read without waiting for more input?"


def read_time(player: str, time: str | None) -> tuple[float, float]:
    """Return a program's time limit per move, and how much longer a move may take, in seconds.

    Args:
        player: the player, for the error message.
        time: ``2s`` or ``500ms+50ms``; None for the default.

    Raises:
        ValueError: the time per move is 0.
    """
    if time is None:
        return MOVE_SECONDS, 0.0
    limit, _, margin = time.partition("+")
    if _seconds(limit) == 0:
        raise ValueError(f"player {player[:85]}: expected a time limit of more than 0")
    return _seconds(limit), _seconds(margin or "0s")


def _seconds(time: str) -> float:
    """Return the seconds of ``2s`` or ``500ms``."""
    return int(time[:-2]) / 1000 if time.endswith("ms") else float(time[:-1])


class PipeAgent(Remade):
    """Play the actions of a program, which runs until the agent is closed or deleted.

    A fault or Ctrl-C stops the program, and the next move starts it again. The program also stops
    if this process is killed. A copy of the agent has its own program.

    Args:
        command: the program and its arguments, split into words as a shell would; no shell runs it.
        ruleset: the rules.
        seed: the seed of its random choices.
        threads: the number of threads it may use; None for all cores.
        memory: the megabytes that it may use for its tables; None to set no limit.
        seconds: the time limit per move, which is also sent to the program.
        margin: the seconds that a move may take beyond the limit before it is a fault.

    Attributes:
        name: the name that the program reports, or ``pipe:COMMAND``.
        fingerprint: the version that the program reports; None if it reports none.
        ruleset: the rules.
        remembers: whether the program asks for the numbers of the games.
        most_games: the most games that it remembers at once; None if it gives no number.

    Raises:
        ValueError: the program cannot be started, or is not ready in time.
    """

    def __init__(
        self,
        command: str,
        ruleset: Ruleset,
        seed: int = 0,
        threads: int | None = None,
        memory: int | None = None,
        seconds: float = MOVE_SECONDS,
        margin: float = 0.0,
    ) -> None:
        self._command = command
        self.ruleset: Ruleset = ruleset
        self._seed, self._threads, self._memory = seed, threads, memory
        self._seconds, self._margin = seconds, margin
        self.name: str = f"pipe:{command}"
        self.fingerprint: str | None = None
        self.remembers: bool = False
        self.most_games: int | None = None
        self._move_seconds = 0.0
        self._has_crashed = False
        self._lock = threading.Lock()
        self._program: _Program | None = None
        self._program = self._start()

    @property
    def limit(self) -> Limit:
        """The time for a move."""
        return Limit(seconds=self._seconds)

    def act(
        self,
        positions: PackedPositions,
        legal: Legal,
        *,
        limit: Limit | None = None,
        games: Int64Array | None = None,
    ) -> Actions:
        """Choose actions one by one; see :meth:`bao_agents.players.player.Player.act`.

        The program gets the seconds or the clock of ``limit``, and no other limit.

        Raises:
            PlayerFault: the program gave no legal action in time; the message says what it did.
            ValueError: it cannot be started again, or reports that it cannot continue.
        """
        positions, legal = as_batch(positions, legal)
        actions = np.zeros(len(legal), np.int64)
        with self._lock:
            try:
                for i in np.flatnonzero(legal):
                    program = self._get_program()
                    before = program.processor_seconds()
                    game = None if games is None else games[i]
                    actions[i] = self._choose(
                        program, positions[i], actions_of(legal[i]), limit or self.limit, game
                    )
                    self._move_seconds += max(0.0, program.processor_seconds() - before)
            except BaseException as error:  # a late answer must not reach the next move
                self._note_crash()
                self.close()
                if isinstance(error, PlayerFault):
                    error.actions = actions[:i].tolist()
                raise
        return actions

    def get_ready(self) -> None:
        """Start the program again if it has ended.

        Raises:
            ValueError: it cannot be started again.
        """
        with self._lock:
            self._get_program()

    def reseed(self, seed: int) -> None:
        """Set another seed for the program's random choices.

        The program gets the seed, and must report again that it is ready. If that takes too long,
        the program is ended, and the next move restarts it.
        """
        with self._lock:
            self._seed = seed
            if self._program is not None:
                try:
                    self._prepare(self._program, QUIET_SECONDS)
                except PlayerFault:
                    self.close()

    def processor_seconds(self) -> float:
        """Return the processor time that the program's moves have taken so far.

        On systems other than Linux it is wall-clock time.
        """
        return self._move_seconds

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.end()
        self._program = None

    def _note_crash(self) -> None:
        """After the program's first crash, say that its messages are not shown again.

        Otherwise a program that always crashes would print its traceback in every game.
        """
        if self._program is not None and self._program.crashed and not self._has_crashed:
            self._has_crashed = True
            say(f"player {self.name} crashed; from now on its standard error is not shown")

    def _get_program(self) -> _Program:
        """Return the running program; start it if there is none."""
        self._program = self._program or self._start()
        return self._program

    def _start(self) -> _Program:
        program = _Program(self._command, is_silent=self._has_crashed)
        try:
            self._prepare(program, PROGRAM_START_SECONDS)
        except PlayerFault as fault:  # no fault of one game: the program may never work
            raise ValueError(str(fault)) from None
        return program

    def _prepare(self, program: _Program, seconds: float) -> None:
        """Tell the program the rules and the seed, and wait until it is ready."""
        ruleset = self.ruleset
        program.send(
            f"bao {PROTOCOL}",
            f"ruleset {ruleset.name if ruleset.is_shipped else json.dumps(ruleset.to_dict())}",
            f"seed {self._seed}",
            f"threads {self._threads or cores()}",
            *([] if self._memory is None else [f"memory {self._memory}"]),
            "isready",
        )
        while True:
            word, argument = program.read(seconds, waiting_for="ready")
            if word == "ready":
                return
            if word == "name":
                self.name = printable(argument)[:40] or self.name
            elif word == "version":
                self.fingerprint = argument
            elif word == "remembers":
                self.remembers = True
                is_number = re.fullmatch("[1-9][0-9]{0,8}", argument)
                self.most_games = int(argument) if is_number else None
            else:
                program.fail_unexpected("name, version, remembers, info or ready")

    def _choose(
        self,
        program: _Program,
        packed: PackedPositions,
        legal: list[int],
        limit: Limit,
        game: int | None,
    ) -> int:
        """Ask the program for its action in a position.

        Args:
            program: the program.
            packed: uint64[6], the position.
            legal: the legal actions.
            limit: the limit of the move.
            game: the number of the game; None to leave it out.
        """
        seconds = limit.seconds or self._seconds
        words = f"movetime {round(1000 * seconds)}"
        if limit.clock is not None:
            seconds = limit.clock.seconds
            words = f"clock {round(1000 * seconds)} {round(1000 * limit.clock.increment)}"
        program.send(
            *([] if game is None else [f"game {game}"]),
            f"position {format_position(unpack(packed))}",
            f"legal {' '.join(map(str, legal))}",
            f"go {words}",
        )
        word, argument = program.read(seconds + self._margin)
        if (word, argument) == ("move", "none"):
            program.fail("found no move")
        if word != "move" or not re.fullmatch("[0-9]{1,2}", argument):
            program.fail_unexpected("move N")
        if int(argument) not in legal:
            program.fail(f"chose action {argument}, which is illegal: expected one of {legal}")
        return int(argument)


class _Program:
    """A running program, with the lines that it has written.

    Args:
        command: the program and its arguments.
        is_silent: whether to drop what it writes to its standard error.

    Raises:
        ValueError: the program cannot be started.
    """

    crashed: bool = False
    """Whether it has ended by itself, with another exit status than 0."""

    def __init__(self, command: str, *, is_silent: bool = False) -> None:
        self._name = f"pipe:{command:.80}"
        try:
            # Windows splits the words itself.
            words = command if os.name == "nt" else shlex.split(command)
            if not words:
                raise ValueError("the command is empty")
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if is_silent else None,
                # Ctrl-C in the terminal is for this process, which ends the program.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except (OSError, ValueError) as error:
            is_missing = isinstance(error, FileNotFoundError)
            advice = f"; {_PATH_ADVICE}" if is_missing else ""
            raise ValueError(f"player {self._name} cannot be started: {error}{advice}") from error
        assert self._process.stdout is not None
        self._output: queue.Queue[list[bytes]] = queue.Queue(_WAITING)
        self._lines: deque[bytes] = deque()
        self._last = ""
        self._silent: bool = True
        """Whether it has written nothing since the last request."""
        pipe = os.pipe()
        reader = threading.Thread(
            target=_pass_on, args=(self._process.stdout, pipe[0], self._output), daemon=True
        )
        reader.start()
        watcher = _watch(self._process.pid)
        self.end = weakref.finalize(self, _end, self._process, watcher, self._output, reader, pipe)

    def processor_seconds(self) -> float:
        """Return the program's processor time in seconds; 0 after its end.

        On systems other than Linux it is wall-clock time.
        """
        if sys.platform != "linux":
            return time.perf_counter()
        try:
            return time.clock_gettime((~self._process.pid << 3) | _PROCESS_CLOCK)
        except OSError:  # it has ended
            return 0.0

    def send(self, *lines: str) -> None:
        """Write lines to the program.

        Raises:
            PlayerFault: the program has ended, or has written a line without being asked.
        """
        with suppress(queue.Empty):
            while True:
                self._take(self._output.get_nowait())
        while self._lines:
            if self._next()[0] != "info":
                self.fail(f"wrote {self._quoted()} when no answer was due")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()
        except OSError:
            self._fail_ended("input")
        self._silent = True

    def read(self, seconds: float, *, waiting_for: str = "") -> tuple[str, str]:
        """Return the first word and the rest of the next line that is not an info line.

        Args:
            seconds: the time limit.
            waiting_for: the expected line. If the program writes nothing for a while, a notice on
                stderr names it. If it is empty, there is no notice.

        Raises:
            PlayerFault: the program is too late, has ended, or writes too long a line.
            ValueError: the program reports that it cannot continue.
        """
        start, processor_start = time.monotonic(), self.processor_seconds()
        while True:
            remaining = start + seconds - time.monotonic()
            if remaining <= 0:
                used_seconds = max(0.0, self.processor_seconds() - processor_start)
                is_idle = self._silent and used_seconds < seconds / 4
                hint = f": {_HINT}" if is_idle else ""
                self.fail(
                    f"gave no answer within {seconds:g} s, and used {used_seconds:.2f} s of "
                    f"processor time{hint}"
                )
            if waiting_for and self._silent and seconds - remaining > QUIET_SECONDS:
                say(f'waiting for "{waiting_for}" from {self._name}: {_HINT}')
                waiting_for = ""
            if not self._lines:
                with suppress(queue.Empty):
                    self._take(self._output.get(timeout=min(remaining, _SLICE)))
                continue
            word, argument = self._next()
            if word == "error":
                self.end()
                reason = printable(argument)[:300]
                raise ValueError(f"player {self._name} cannot continue: {reason}")
            if word != "info":
                return word, argument

    def _take(self, lines: list[bytes]) -> None:
        if not lines:
            self._fail_ended()
        self._lines.extend(lines)

    def _next(self) -> tuple[str, str]:
        line = self._lines.popleft()
        self._silent = False
        self._last = line.decode("utf-8", "backslashreplace").strip()
        if len(line) > MAX_LINE:
            self.fail(f"wrote a line of more than {MAX_LINE} bytes: {self._quoted()}")
        word, _, argument = self._last.partition(" ")
        return word, argument.strip()

    def _quoted(self) -> str:
        return ascii(self._last[:60]) + ("..." if len(self._last) > 60 else "")

    def fail_unexpected(self, expected: str) -> NoReturn:
        """Stop the program because of its last line; see :meth:`fail`."""
        self.fail(f"wrote {self._quoted()}: expected {expected}")

    def _fail_ended(self, stream: str = "output") -> NoReturn:
        """Stop the program because it has ended, or closed its ``stream``; see :meth:`fail`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        status = self._process.returncode
        self.crashed = bool(status)
        if status is None:
            self.fail(f"closed its {stream}")
        end = f"exit status {status}"
        if status < 0:
            end = f"signal {-status} ({signal.strsignal(-status)})"
        self.fail(f"{'crashed' if status else 'ended'}: {end}")

    def fail(self, cause: str) -> NoReturn:
        """Stop the program, and raise PlayerFault with the cause."""
        self.end()
        raise PlayerFault(self._name, cause)


def _watch(process_id: int) -> subprocess.Popen[bytes] | None:
    """Start a shell that kills a program and its children a second after this process ends.

    The shell waits for the end of its input, which comes for whatever reason this process ends. The
    signal of PR_SET_PDEATHSIG would come too early: when the thread that started the program ends.
    Windows has no such shell. There the result is None, and a program only sees the end of its
    input.
    """
    if os.name == "nt":
        return None
    return subprocess.Popen(
        ["/bin/sh", "-c", f"read _; sleep 1; kill -s KILL -- -{process_id}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _pass_on(stream: IO[bytes], stop: int, output: queue.Queue[list[bytes]]) -> None:
    """Pass on the lines of a program in chunks; an empty chunk marks the end.

    Also stop as soon as ``stop`` is readable: a child of the program may hold the stream open for
    longer.

    Args:
        stream: the program's output.
        stop: the descriptor of a pipe.
        output: the queue that receives the chunks.
    """
    unfinished = b""
    # Lines written together stay in one chunk, so a second answer is not taken for the next one.
    while len(unfinished) <= MAX_LINE:
        if os.name != "nt" and stop in wait([stream.fileno(), stop]):
            return
        chunk = os.read(stream.fileno(), 1 << 16)
        if not chunk:
            break
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        if lines:
            output.put(lines)
    output.put([unfinished] if unfinished else [])
    if unfinished:
        output.put([])


def _end(
    process: subprocess.Popen[bytes],
    watcher: subprocess.Popen[bytes] | None,
    output: queue.Queue[list[bytes]],
    reader: threading.Thread,
    pipe: tuple[int, int],
) -> None:
    """Ask a program to quit, then terminate it, then kill it; kill its children, and close all.

    Args:
        process: the program.
        watcher: the shell that watches it (:func:`_watch`), or None.
        output: the queue of the program's unread output.
        reader: the thread that fills ``output``.
        pipe: the two ends of the pipe that stops the thread.
    """

    def send(name: str) -> None:
        with suppress(OSError):
            if hasattr(os, "killpg"):  # together with its children
                os.killpg(process.pid, getattr(signal, name))
            else:
                process.kill()

    def soon(ended: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while not ended() and time.monotonic() < deadline:
            with suppress(queue.Empty):
                output.get(timeout=0.02)  # the thread may be blocked by a full queue
        return ended()

    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.write(b"quit\n")
    with suppress(OSError):
        process.stdin.close()
    for name in ("SIGTERM", "SIGKILL"):
        if soon(lambda: process.poll() is not None):
            break
        send(name)
    process.wait()
    send("SIGKILL")  # its children
    os.close(pipe[1])
    if soon(lambda: not reader.is_alive()):  # on Windows a child may still hold the pipe
        process.stdout.close()
        os.close(pipe[0])
    if watcher is not None:
        watcher.kill()
        watcher.communicate()
