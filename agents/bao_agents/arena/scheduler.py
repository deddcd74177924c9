"""Play units of games in parallel, on the cores of this machine or of a Ray cluster.

:mod:`bao_agents.arena.tournament` and :mod:`bao_agents.arena.placement` decide which units are
played. A unit's result depends only on the unit, not on the number of processes or their speed,
except for players limited by time.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from bao_agents.arena.match import play_openings
from bao_agents.arena.openings import MatchOpenings
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import current_commit
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset

PART_PAIRS = 25
"""Pairs that a process plays, and a tournament saves, at a time, at most."""


class Part(NamedTuple):
    """Some pairs of games between two players of an event."""

    first: str
    second: str
    openings: tuple[int, ...]
    """The numbers of the openings, each played from both seats."""


@dataclass(frozen=True, eq=False)
class Event:
    """Players who meet under the same rules, from the same openings.

    A tournament plays all of its parts; a rating plans them in rounds.
    """

    players: Mapping[str, str]
    """The players by name, each with what :func:`bao_agents.players.registry.load` takes."""
    ruleset: Ruleset
    openings: MatchOpenings
    seed: int
    keys: Mapping[str, tuple[int, ...]]
    """Numbers that tell the players apart. With ``seed`` and the first opening they seed a part."""
    known: Mapping[str, str | None] = field(default_factory=dict)
    """The :func:`~bao_agents.players.fingerprint.fingerprint` that each player must have, by
    name."""
    keep_games: bool = False
    """Keep the games as transcripts."""

    def unit(self, part: Part) -> Unit:
        """Return a part as work for a process."""
        names = part.first, part.second
        words = [self.seed, *self.keys[part.first], *self.keys[part.second], part.openings[0]]
        first, second = np.random.SeedSequence(words).generate_state(2).tolist()
        return Unit(
            players=(self.players[part.first], self.players[part.second]),
            ruleset=self.ruleset,
            openings=self.openings[np.array(part.openings)],
            seeds=(first, second),
            keep_as=names if self.keep_games else None,
            known=self.known,
        )

    def play(
        self,
        parts: Sequence[Part],
        pool: Executor,
        bar: Progress,
        deadline: float = math.inf,
        wait_for_first: bool = False,
    ) -> Iterator[tuple[Part, Record]]:
        """Play parts; yield each with its record as it ends.

        Args:
            parts: the parts; processes take them in this order.
            pool: the pool that plays them. As a context manager it stops running work, for example
                after an error.
            bar: counts the games.
            deadline: the time of ``time.monotonic`` at which to stop.
            wait_for_first: stop only when a part has ended.

        Raises:
            TimeoutError: the time is up; unfinished parts are lost.
            ValueError: see :func:`play_unit`.
        """
        waiting = {pool.submit(play_unit, self.unit(part)): part for part in parts}
        while waiting:
            first = wait_for_first and len(waiting) == len(parts)
            left = math.inf if first else max(0.0, deadline - time.monotonic())
            ended, _ = wait(waiting, min(left, threading.TIMEOUT_MAX), FIRST_COMPLETED)
            if not ended:
                raise TimeoutError("the time is up")
            for future in ended:
                record = future.result()
                bar.update(2 * len(record.points))
                yield waiting.pop(future), record


@dataclass(frozen=True, eq=False)
class Unit:
    """A part with all that a process needs to play it."""

    players: tuple[str, str]
    """The players' names for :func:`bao_agents.players.registry.load`."""
    ruleset: Ruleset
    openings: MatchOpenings
    """The openings, each played from both seats."""
    seeds: tuple[int, int]
    """The seeds of the players."""
    keep_as: tuple[str, str] | None
    """Keep the games as transcripts, with these player names."""
    known: Mapping[str, str | None]
    """The :func:`~bao_agents.players.fingerprint.fingerprint` that each player must have, by
    name."""


_Two = Field(min_length=2, max_length=2)
_Points = Annotated[float, Field(ge=0, le=1, multiple_of=0.5)]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Record(BaseModel):
    """The result of a unit."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    points: list[Annotated[list[_Points], _Two]]
    """Points of the first player in each pair: as South, and as North."""
    plies: list[Annotated[list[_Count], _Two]]
    """Length of each game, its opening included."""
    moves: Annotated[list[_Count], _Two]
    """Actions that the first and the second player chose."""
    seconds: Annotated[list[Annotated[float, Field(ge=0)]], _Two]
    """Processor time that these took the two players."""
    faults: Annotated[list[list[str]], _Two]
    """For each player, the causes of the faults by which it lost games, one for each game."""
    commit: str
    """The commit of the code that played."""
    games: str = Field("", exclude=True)
    """The games as transcripts, if the unit keeps them."""


def play_unit(unit: Unit) -> Record:
    """Play a unit.

    Raises:
        ValueError: a player has an unexpected fingerprint, cannot be loaded, or failed.
    """
    players = []
    for spec, seed in zip(unit.players, unit.seeds, strict=True):
        player = registry.load(spec, ruleset=unit.ruleset, seed=seed, threads=1)
        if spec in unit.known and fingerprint(spec, player, unit.ruleset) != unit.known[spec]:
            raise ValueError(
                f"player {spec} changed meanwhile: give a file that does not change, and another "
                "--out"
            )
        players.append(player)
    try:
        for spec in unit.players:
            registry.warm_up(spec, unit.ruleset)
        match = play_openings(players[0], players[1], unit.openings, Engine(unit.ruleset))
    except Exception as error:  # a player may raise anything
        first, second = unit.players
        raise ValueError(
            f"{first} failed against {second}: {type(error).__name__}: {error}"
        ) from error
    return Record(
        points=match.points.tolist(),
        plies=match.plies.tolist(),
        moves=list(match.moves),
        seconds=[round(seconds, 6) for seconds in match.seconds],
        faults=list(match.faults),
        commit=current_commit(),
        games="\n".join(match.transcripts(unit.keep_as)) if unit.keep_as else "",
    )


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
        ValueError: likewise, as :func:`play_unit` raised it.
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
            if isinstance(cause, ValueError):  # of play_unit
                raise cause from None
            raise BrokenExecutor(str(cause).partition("\n")[0]) from error

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; a call takes one core."""
        return self._ray.remote(num_cpus=1)(function).remote(*args, **kwargs).future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends running and waiting calls."""
        self._ray.shutdown()
