"""Play parts of an event in parallel, on the cores of this machine or of a Ray cluster.

:mod:`bao_agents.arena.match`, :mod:`bao_agents.arena.tournament` and
:mod:`bao_agents.arena.placement` decide which parts are played. A part's result depends only on the
part, not on the number of processes or their speed, except for players limited by time.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bao_agents.arena.openings import MatchOpenings
from bao_agents.arena.pairs import Pairs, play_pairs
from bao_agents.players import registry
from bao_agents.players.base import NamedPlayer
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import current_commit
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset

PART_PAIRS = 25
"""Pairs that a process plays, and a tournament saves, at a time, at most."""
START_SECONDS = 10.0
"""A match plays in this process what takes no longer than this: processes take seconds to start."""


@dataclass(frozen=True)
class Part:
    """Some pairs of games of an event, with all that a process needs to play them.

    Parts of an event are equal if they have the same players and openings.
    """

    names: tuple[str, str]
    """The names of the first and the second player."""
    numbers: tuple[int, ...]
    """The numbers of the openings, each played from both seats."""
    specs: tuple[str, str] = field(compare=False)
    """The players' names for :func:`bao_agents.players.registry.load`."""
    seeds: tuple[int, int] = field(compare=False)
    """The seeds of the players."""
    ruleset: Ruleset = field(compare=False)
    openings: MatchOpenings = field(compare=False)
    known: Mapping[str, str | None] = field(compare=False)
    """See :attr:`Event.known`."""
    keep_games: bool = field(compare=False)

    def play(self, threads: int = 1, progress: Callable[[int], None] = lambda ended: None) -> Pairs:
        """Play the games.

        Args:
            threads: number of threads of a search.
            progress: called after each ply with the number of games that have just ended.

        Raises:
            ValueError: a player has an unexpected fingerprint, cannot be loaded, or failed.
        """
        players = []
        for side, spec in enumerate(self.specs):
            player = self._load(side, threads)
            if spec in self.known and fingerprint(spec, player, self.ruleset) != self.known[spec]:
                raise ValueError(
                    f"player {spec} changed meanwhile: give a file that does not change, and "
                    "another --out"
                )
            players.append(player)
        try:
            for spec in self.specs:
                registry.warm_up(spec, self.ruleset)
            played = play_pairs(
                players[0],
                players[1],
                self.openings,
                Engine(self.ruleset),
                names=self.names if self.keep_games else None,
                numbers=self.numbers,
                progress=progress,
            )
        except Exception as error:  # a player may raise anything
            first, second = self.specs
            raise ValueError(
                f"{first} failed against {second}: {type(error).__name__}: {error}"
            ) from error
        return replace(played, commits=frozenset([current_commit()]))

    def _load(self, side: int, threads: int) -> NamedPlayer:
        """Load the first player (0) or the second (1)."""
        spec, seed = self.specs[side], self.seeds[side]
        if not registry.parse(spec).kind.gets_ready:
            return registry.load(spec, ruleset=self.ruleset, seed=seed, threads=threads)
        player = _program(side, spec, self.ruleset, threads)
        player.reseed(seed)
        return player


@dataclass(frozen=True, eq=False)
class Event:
    """Players who meet under the same rules, from the same openings."""

    players: Mapping[str, str]
    """The players by name, each with what :func:`bao_agents.players.registry.load` takes."""
    ruleset: Ruleset
    openings: MatchOpenings
    seed: int
    keys: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Numbers that tell players apart in place of their names. With ``seed`` and the first opening
    they seed a part."""
    known: Mapping[str, str | None] = field(default_factory=dict)
    """The :func:`~bao_agents.players.fingerprint.fingerprint` that each player must have, by
    specification."""
    keep_games: bool = False
    """Keep the games as transcripts."""

    def part(self, first: str, second: str, numbers: Sequence[int]) -> Part:
        """Return the part in which two players play the openings of these numbers."""
        # Not Python's hash(), which differs from process to process.
        keys = [self.keys.get(name, (zlib.crc32(name.encode()),)) for name in (first, second)]
        words = [self.seed, *keys[0], *keys[1], numbers[0]]
        seeds = np.random.SeedSequence(words).generate_state(2).tolist()
        return Part(
            names=(first, second),
            numbers=tuple(numbers),
            specs=(self.players[first], self.players[second]),
            seeds=(seeds[0], seeds[1]),
            ruleset=self.ruleset,
            openings=self.openings[np.array(numbers)],
            known=self.known,
            keep_games=self.keep_games,
        )

    def parts(self, first: str, second: str, size: int = PART_PAIRS) -> list[Part]:
        """Return the parts, each of up to ``size`` pairs, in which two players play all openings.

        More openings only add parts, unless the last one was not full.
        """
        pairs = len(self.openings)
        return [
            self.part(first, second, range(low, min(low + size, pairs)))
            for low in range(0, pairs, size)
        ]


@cache
def _program(side: int, spec: str, ruleset: Ruleset, threads: int) -> NamedPlayer:
    """Return the first (0) or the second (1) player of all parts here, a running program."""
    return registry.load(spec, ruleset=ruleset, threads=threads)


def play_parts(
    parts: Sequence[Part],
    pool: Executor,
    bar: Progress,
    deadline: float = math.inf,
    wait_for_first: bool = False,
) -> Iterator[tuple[Part, Pairs]]:
    """Play parts; yield each with its results as it ends.

    Args:
        parts: the parts; processes take them in this order.
        pool: the pool that plays them. As a context manager it stops running work, for example
            after an error.
        bar: counts the games.
        deadline: the time of ``time.monotonic`` at which to stop.
        wait_for_first: stop only when a part has ended.

    Raises:
        TimeoutError: the time is up; unfinished parts are lost.
        ValueError: see :meth:`Part.play`.
    """
    waiting = {pool.submit(Part.play, part): part for part in parts}
    try:
        while waiting:
            first = wait_for_first and len(waiting) == len(parts)
            left = math.inf if first else max(0.0, deadline - time.monotonic())
            ended, _ = wait(waiting, min(left, threading.TIMEOUT_MAX), FIRST_COMPLETED)
            if not ended:
                raise TimeoutError("the time is up")
            for future in ended:
                played = future.result()
                bar.update(2 * len(played))
                yield waiting.pop(future), played
    finally:
        for future in waiting:
            future.cancel()


# --- pools ----------------------------------------------------------------------------------------


def _start_worker(parent: Connection) -> None:
    """Ignore Ctrl-C, which the parent handles; exit as soon as the connection closes.

    It closes when the parent closes it or ends for any reason.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        with suppress(EOFError, OSError):
            parent.recv()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


class LocalPool(ProcessPoolExecutor):
    """Processes on this machine, one core each. At the end of the ``with`` block they end
    immediately, and running work is lost.

    Args:
        processes: the number of processes.
    """

    def __init__(self, processes: int) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the workers inherit it
        context = get_context("spawn")
        receiver, self._sender = context.Pipe(duplex=False)
        super().__init__(
            processes, mp_context=context, initializer=_start_worker, initargs=(receiver,)
        )

    def __exit__(self, *exception: object) -> None:
        self._sender.close()
        for process in list((self._processes or {}).values()):
            process.terminate()
        self.shutdown(wait=False, cancel_futures=True)


class RayPool(Executor):
    """The cores of a Ray cluster, whose machines must have the same packages at the same paths.

    At the end of the ``with`` block running work is lost. A cluster that was started for the pool
    ends.

    Args:
        address: the cluster's address, ``host:port``. ``local`` starts a new one on this machine.
            An empty string takes the one that Ray finds (``RAY_ADDRESS``, or one on this machine),
            else starts a new one.

    Raises:
        ValueError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
        BrokenExecutor: at the end of the ``with`` block, if a process of Ray itself has died.
        ValueError: likewise, as :meth:`Part.play` raised it.
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError("Ray is not installed: pip install ray") from error
        for name, level in (("RAY_BACKEND_LOG_LEVEL", "fatal"), ("GRPC_VERBOSITY", "NONE")):
            os.environ.setdefault(name, level)  # the error below says it in one line
        address = address or os.environ.get("RAY_ADDRESS", "")
        host, colon, port = address.rpartition(":")
        try:
            if colon and port.isdigit():  # Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=5.0).close()
            ray.init(
                address or None,
                # Its processes can import what this one can: a checkout, your modules.
                runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
                logging_level="WARNING",
            )
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            place = f"at {address}" if address else "on this machine"
            reason = (str(error).splitlines() or [""])[0]
            raise ConnectionError(f"there is no Ray cluster {place}: {reason:.200}") from error
        self._ray = ray

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.shutdown()
        if isinstance(error, self._ray.exceptions.RayError):
            cause = getattr(error, "cause", error)  # that of a RayTaskError, a whole traceback
            if isinstance(cause, ValueError):  # of Part.play
                raise cause from None
            raise BrokenExecutor(str(cause).partition("\n")[0]) from error

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; a call takes one core."""
        return self._ray.remote(num_cpus=1)(function).remote(*args, **kwargs).future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends running and waiting calls."""
        self._ray.shutdown()


class Workers(ExitStack):
    """Play the parts of a match in this process while that is quick, else in a pool.

    At the end of the ``with`` block running work is lost.

    Args:
        processes: the number of processes, and of threads of a search in this process; with 1 all
            parts are played here.
        ray_address: play on the Ray cluster there instead (:class:`RayPool`).
    """

    def __init__(self, processes: int, ray_address: str | None = None) -> None:
        super().__init__()
        self.callback(_program.cache_clear)  # ends the programs
        self._processes = processes
        self._pool: Executor | None = None
        if ray_address is not None:
            self._pool = self.enter_context(RayPool(ray_address))

    def play(self, parts: Sequence[Part], bar: Progress) -> Iterator[tuple[Part, Pairs]]:
        """Play parts; yield each with its results as it ends.

        The first part is played here, which tells how long the others would take.

        Args:
            parts: the parts; they are taken in this order.
            bar: counts the games.

        Raises:
            ValueError: see :meth:`Part.play`.
        """
        if self._pool is None:  # compiling is no part of the time that the others would take
            with suppress(Exception):  # Part.play raises it again, and says whose it is
                for spec in parts[0].specs:
                    registry.warm_up(spec, parts[0].ruleset)
        begun = time.monotonic()
        for i, part in enumerate(parts):
            left = (time.monotonic() - begun) / max(1, i) * (len(parts) - i)
            if self._pool is None and self._processes > 1 and left > START_SECONDS:
                self._pool = self.enter_context(LocalPool(self._processes))
            if self._pool is not None:
                yield from play_parts(parts[i:], self._pool, bar)
                return
            yield part, part.play(self._processes, bar.update)
