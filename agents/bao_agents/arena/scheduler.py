"""Play units of games in parallel, on the cores of this machine or of a Ray cluster.

:mod:`bao_agents.arena.tournament` and :mod:`bao_agents.arena.placement` decide which units are
played. A unit's result depends only on the unit, not on the number of processes or their speed,
except for players limited by time.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from bao_agents import registry
from bao_agents.arena.match import play_openings
from bao_agents.arena.openings import MatchOpenings
from bao_agents.fingerprint import fingerprint
from bao_agents.progress import Progress
from bao_agents.provenance import current_commit
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset


@dataclass(frozen=True, eq=False)
class Unit:
    """Some pairs of games between two players."""

    players: tuple[str, str]
    """The players' names for :func:`bao_agents.registry.load`."""
    ruleset: Ruleset
    openings: MatchOpenings
    """The openings, each played from both seats."""
    seeds: tuple[int, int]
    """The seeds of the players."""
    keep_as: tuple[str, str] | None = None
    """Keep the games as transcripts, with these player names."""
    known: Mapping[str, str | None] = field(default_factory=dict)
    """The :func:`~bao_agents.fingerprint.fingerprint` that a player of that name must have."""
    allow: Sequence[str] = ()
    """Names for :func:`bao_agents.registry.allow_architecture`, in each process."""


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
    for architecture in unit.allow:
        registry.allow_architecture(architecture)
    players = []
    for spec, seed in zip(unit.players, unit.seeds, strict=True):
        player = registry.load(spec, ruleset=unit.ruleset, seed=seed, threads=1)
        if spec in unit.known and fingerprint(spec, player) != unit.known[spec]:
            raise ValueError(
                f"player {spec} changed meanwhile: give a file that does not change, and another "
                "--out"
            )
        players.append(player)
    try:
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


def play_units(
    units: Sequence[Unit], pool: Executor, bar: Progress, seconds: float = threading.TIMEOUT_MAX
) -> Iterator[tuple[int, Record]]:
    """Play units; yield the number and the record of each as it ends.

    Args:
        units: the units; processes take them in this order.
        pool: the pool that plays them. As a context manager it stops running work, for example
            after an error.
        bar: counts the games.
        seconds: the time limit.

    Raises:
        TimeoutError: the time is up; unfinished units are lost.
        ValueError: see :func:`play_unit`.
    """
    futures = {pool.submit(play_unit, unit): number for number, unit in enumerate(units)}
    for future in as_completed(futures, min(max(0.0, seconds), threading.TIMEOUT_MAX)):
        record = future.result()
        bar.update(2 * len(record.points))
        yield futures[future], record


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
    """

    def __init__(self, address: str) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ValueError("Ray is not installed: pip install ray") from error
        host, colon, port = address.rpartition(":")
        if colon and port.isdigit():  # Ray itself would try for minutes
            try:
                socket.create_connection((host, int(port)), timeout=5.0).close()
            except OSError as error:
                raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error
        ray.init(
            address or None,
            # Its processes can import what this one can: a checkout, your modules.
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
            logging_level="WARNING",
        )
        self._ray = ray

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`; a call takes one core."""
        return self._ray.remote(num_cpus=1)(function).remote(*args, **kwargs).future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which ends running and waiting calls."""
        self._ray.shutdown()
