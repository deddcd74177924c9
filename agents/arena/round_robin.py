"""A round robin: all pairings of some players over the same openings, each from both seats.

The work is cut into units of :data:`UNIT_PAIRS` pairs of one pairing. As many processes as there
are cores play them, each search on one core. A unit's result depends only on the seed, the openings
and its two players. So the number of processes does not change a tournament (except for players
limited by time), and a tournament that was stopped can continue.
``bao tournament`` is the command.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents import registry
from agents.arena.executors import LocalPool, RayPool
from agents.arena.match import play_openings
from agents.arena.openings import BALANCE, OPENING_PLIES, MatchOpenings, draw_openings
from agents.arena.report import Standing
from agents.base import NamedPlayer
from agents.files import hold
from agents.progress import Progress
from agents.provenance import current_commit, provenance
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.files import write_atomically

UNIT_PAIRS: Final = 50
"""Pairs that are played, and saved, at a time."""
FORMAT: Final = 2


class TournamentError(ValueError):
    """The tournament cannot be played, or cannot continue in its folder."""


@dataclass(frozen=True)
class TournamentSettings:
    """Settings of a tournament."""

    players: dict[str, str]
    """The players by name, each with what :func:`agents.registry.load` takes."""
    ruleset: Ruleset
    pairs: int
    """Number of openings that two players play, each from both seats."""
    pairs_of: dict[str, int] = field(default_factory=dict)
    """A smaller number for every pairing with one of these (slow) players, by name."""
    opening_plies: int = OPENING_PLIES
    balance: float | None = BALANCE
    seed: int = 1
    allow: tuple[str, ...] = ()
    """Names for :func:`agents.registry.allow_architecture`, in each process."""

    def pairs_between(self, first: str, second: str) -> int:
        """Return the number of pairs of games between two players."""
        return min(self.pairs, *(self.pairs_of.get(name, self.pairs) for name in (first, second)))

    def load(self, name: str, seed: int = 0) -> NamedPlayer:
        """Load a player for one core.

        Raises:
            ValueError: the player is unknown or unusable.
        """
        for architecture in self.allow:
            registry.allow_architecture(architecture)
        return registry.load(self.players[name], ruleset=self.ruleset, seed=seed, threads=1)

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The settings, the players' fingerprints and the code's versions, as values for JSON.

        They are computed once.

        Raises:
            ValueError: a player is unknown or unusable.
        """
        return {
            "format": FORMAT,
            "made_with": provenance(self.ruleset),
            "players": self.players,
            "known": {
                name: [spec, fingerprint(spec, self.load(name))]
                for name, spec in self.players.items()
            },
            "ruleset": self.ruleset.to_dict(),
            "pairs": self.pairs,
            "pairs_of": self.pairs_of,
            "opening_plies": self.opening_plies,
            "balance": self.balance,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Unit:
    """Some pairs of games between two players."""

    first: str
    second: str
    number: int
    """The unit's place in its pairing, from 0."""
    pairs: int

    @property
    def key(self) -> tuple[str, str, int]:
        """Its key in the file of results."""
        return self.first, self.second, self.number


def fingerprint(spec: str, player: NamedPlayer) -> str | None:
    """Return a hash of a player, 16 hex digits; empty for a bot that comes with the project.

    It covers a checkpoint's file, or the source file of ``module:function`` and the fingerprint of
    its agent. None if the agent has no fingerprint: its weights, or the modules it imports, may
    change unnoticed.

    Raises:
        ValueError: the agent's fingerprint is not a text.
    """
    found = registry.parse(spec)
    if found.path is not None:
        return hashlib.sha256(found.path.read_bytes()).hexdigest()[:16]
    if found.kind.name != "function":
        return ""
    if player.fingerprint is None:
        return None
    source = inspect.getsourcefile(importlib.import_module(spec.partition(":")[0]))
    code = Path(source).read_bytes() if source else b""
    return hashlib.sha256(code + player.fingerprint.encode()).hexdigest()[:16]


def units(settings: TournamentSettings) -> Iterator[Unit]:
    """Yield all units of a tournament."""
    for first, second in combinations(settings.players, 2):
        pairs = settings.pairs_between(first, second)
        for number, low in enumerate(range(0, pairs, UNIT_PAIRS)):
            yield Unit(first, second, number, min(UNIT_PAIRS, pairs - low))


def play_unit(
    settings: TournamentSettings,
    unit: Unit,
    openings: MatchOpenings,
    keep: bool,
    known: Mapping[str, Sequence[str | None]],
) -> dict[str, Any]:
    """Play a unit; return its result, a line of the file of results.

    Args:
        settings: the tournament's settings.
        unit: the unit to play.
        openings: the openings of the unit.
        keep: add the games as transcripts.
        known: each player's specification and fingerprint, by name.

    Raises:
        TournamentError: a player has changed since the tournament began.
    """
    names = unit.first, unit.second
    players = []
    for i, name in enumerate(names):
        # Not Python's hash(), which differs from process to process.
        words = [settings.seed, unit.number, i, *(zlib.crc32(n.encode()) for n in names)]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        player = settings.load(name, seed)
        spec, expected = known[name]
        if fingerprint(settings.players[name], player) != expected:
            raise TournamentError(
                f"player {name} ({spec}) changed while the tournament ran: give a file that stays "
                "as it is, and another --out"
            )
        players.append(player)
    match = play_openings(players[0], players[1], openings, Engine(settings.ruleset))
    line = {
        "first": unit.first,
        "second": unit.second,
        "unit": unit.number,
        "points": match.points.tolist(),
        "plies": match.plies.tolist(),
        "moves": match.moves,
        "seconds": [round(seconds, 6) for seconds in match.seconds],
        "commit": current_commit(),
    }
    if keep:
        line["games"] = "\n".join(match.transcripts(names))
    return line


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _Result(BaseModel):
    """A line of the file of results."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    first: str
    second: str
    unit: int
    points: list[list[float]]
    plies: list[list[_Count]]
    moves: list[_Count] = Field(min_length=2, max_length=2)
    seconds: list[Annotated[float, Field(ge=0)]] = Field(min_length=2, max_length=2)
    commit: str

    @model_validator(mode="after")
    def _check_shapes(self) -> Self:
        if [len(pair) for pair in self.points] != [len(pair) for pair in self.plies]:
            raise ValueError("points and plies are of different games")
        if any(points not in (0.0, 0.5, 1.0) for pair in self.points for points in pair):
            raise ValueError("a game gives 0, 1/2 or 1 point")
        return self


class _MadeWith(BaseModel):
    """The versions of the code that played."""

    rules_version: Any
    engine_signature: Any
    commit: Any


class _Description(BaseModel):
    """The file ``tournament.json``."""

    made_with: _MadeWith
    known: dict[str, tuple[str, str | None]]


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a file of results, without those that a crash cut short.

    Raises:
        TournamentError: a line is not a result.
    """
    lines = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = json.loads(text)
            _Result.model_validate(line)
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError) as error:
            raise TournamentError(
                f"{path}, line {number}: not a result; remove the line, and its games are played "
                "again"
            ) from error
        lines.append(line)
    return lines


def belonging(
    lines: Sequence[dict[str, Any]], expected: Mapping[tuple[str, str, int], Unit]
) -> list[dict[str, Any]]:
    """Return the results of the expected units, one for each, that have the expected size."""
    found = {}
    for line in lines:
        unit = expected.get((line["first"], line["second"], line["unit"]))
        if unit is not None and np.shape(line["points"]) == (unit.pairs, 2):
            found[unit.key] = line
    return list(found.values())


def standing(settings: TournamentSettings, lines: Sequence[dict[str, Any]]) -> Standing:
    """Return the results so far; the order of the lines does not matter."""
    points: dict[tuple[str, str], list[npt.NDArray[np.float64]]] = {}
    moves = dict.fromkeys(settings.players, 0)
    seconds = dict.fromkeys(settings.players, 0.0)
    plies: list[int] = []
    for line in sorted(lines, key=lambda line: (line["first"], line["second"], line["unit"])):
        names = line["first"], line["second"]
        points.setdefault(names, []).append(np.array(line["points"], float))
        plies += [n for pair in line["plies"] for n in pair]
        for i, name in enumerate(names):
            moves[name] += line["moves"][i]
            seconds[name] += line["seconds"][i]
    return Standing(
        results={names: np.concatenate(parts) for names, parts in points.items()},
        milliseconds={
            name: 1000 * seconds[name] / moves[name] if moves[name] else 0.0 for name in moves
        },
        mean_plies=float(np.mean(plies)) if plies else 0.0,
        commits=sorted({line["commit"] for line in lines}),
    )


def _read_description(path: Path) -> dict[str, Any]:
    """Read ``tournament.json``.

    Raises:
        TournamentError: it does not describe a tournament of this version.
    """
    try:
        found = json.loads(path.read_bytes())
        version = found["format"]
        if version == FORMAT:
            _Description.model_validate(found)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise TournamentError(
            f"{path} does not describe a tournament: {type(error).__name__} {str(error)[:200]}"
        ) from error
    if version != FORMAT:
        raise TournamentError(
            f"{path} has format {str(version)[:200]}, this version of the project writes "
            f"{FORMAT}: choose another --out"
        )
    return found


def _check_continues(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise TournamentError if ``folder`` holds another tournament.

    Args:
        folder: the folder, for the message.
        old, new: its tournament and the one to play, as in ``tournament.json``.
    """
    same = json.loads(json.dumps(new))
    fixed = ("ruleset", "opening_plies", "balance", "seed")
    differing = [key for key in fixed if old.get(key) != same[key]]
    if "ruleset" not in differing:  # the signature depends on it
        made_with = ("rules_version", "engine_signature")
        differing += [key for key in made_with if old["made_with"][key] != same["made_with"][key]]
    for name, (spec, digest) in same["known"].items():
        old_spec, old_digest = old["known"].get(name, (spec, digest))
        if spec != old_spec or (digest != old_digest and None not in (digest, old_digest)):
            differing.append(f"player {name}")
    if differing:
        raise TournamentError(
            f"{folder} holds another tournament ({', '.join(differing)} differ): give the "
            "same options to continue it, or another --out"
        )


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def prepare(
    folder: Path, settings: TournamentSettings
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Check that the tournament in a folder can continue with these settings.

    Players may be added or left out, and numbers of pairs changed: results do not depend on them.
    Results of a player without a fingerprint are dropped: the player may have changed.

    Returns:
        the new contents of ``tournament.json``, and the results so far.

    Raises:
        TournamentError: anything else differs, or a file is damaged.
    """
    path, results = folder / "tournament.json", folder / "results.jsonl"
    new = dict(settings.description)
    lines: list[dict[str, Any]] = []
    if path.exists():
        old = _read_description(path)
        _check_continues(folder, old, new)
        before, now = old["made_with"]["commit"], new["made_with"]["commit"]
        if before != now:
            _note(f"the last results are of commit {str(before)[:200]}, the next ones of {now}")
        lines = read_results(results) if results.exists() else []
        both = {name: (old["known"].get(name), new["known"][name]) for name in settings.players}
        unknown = {name for name, (a, b) in both.items() if a and None in (a[1], b[1])}
        kept = [line for line in lines if not unknown & {line["first"], line["second"]}]
        if len(kept) < len(lines):
            _note(
                f"games of {', '.join(sorted(unknown))} are played again: nothing tells whether "
                "the player is still the same; an attribute `fingerprint` of its agent, a text, can"
            )
            write_atomically(results, "".join(json.dumps(line) + "\n" for line in kept))
            lines = kept
        new["known"] = old["known"] | new["known"]  # every player with results
    elif results.exists():
        raise TournamentError(
            f"{folder} holds results without their tournament.json: put it back, or choose another "
            "--out"
        )
    write_atomically(path, json.dumps(new, indent=2) + "\n")
    return new, lines


def run(
    settings: TournamentSettings,
    folder: Path,
    processes: int,
    keep_games: bool,
    ray_address: str | None = None,
) -> Standing:
    """Play the remaining units of a tournament; return all results.

    Args:
        settings: the tournament's settings.
        folder: the folder of the results.
        processes: number of processes on this machine.
        keep_games: write every game as a transcript.
        ray_address: play on the Ray cluster there instead
            (:class:`agents.arena.executors.RayPool`).

    Raises:
        TournamentError: the folder holds another tournament, or a file in it is damaged or cannot
            be written.
        HeldError: another process plays in the folder.
        ValueError: a player is unknown or unusable, there are too few openings, or Ray is not
            installed.
        OSError: the folder cannot be made, or there is no Ray cluster at the address.
    """
    for name in settings.players:
        settings.load(name)
    openings = draw_openings(
        settings.ruleset, settings.pairs, settings.opening_plies, settings.seed, settings.balance
    )
    with hold(folder):
        description, before = prepare(folder, settings)
        everything = {unit.key: unit for unit in units(settings)}
        lines = belonging(before, everything)
        done = {(line["first"], line["second"], line["unit"]) for line in lines}
        left = [unit for key, unit in everything.items() if key not in done]
        left.sort(key=lambda unit: settings.pairs_between(unit.first, unit.second))  # slow first
        total = sum(2 * unit.pairs for unit in everything.values())
        bar = Progress(
            total=total, initial=total - sum(2 * unit.pairs for unit in left), unit="game"
        )
        pool: LocalPool | RayPool
        pool = LocalPool(processes) if ray_address is None else RayPool(ray_address)
        try:
            futures = {}
            for unit in left:
                low = unit.number * UNIT_PAIRS
                part = openings[low : low + unit.pairs]
                known = description["known"]
                futures[pool.submit(play_unit, settings, unit, part, keep_games, known)] = unit
            with bar:
                for future in as_completed(futures):
                    line = future.result()
                    save(folder, futures[future], line)
                    lines.append(line)
                    bar.update(2 * futures[future].pairs)
        except BaseException:
            pool.stop()  # otherwise running units would be played to the end
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return standing(settings, lines)


def save(folder: Path, unit: Unit, line: dict[str, Any]) -> None:
    """Write the result of a unit to disk.

    Args:
        folder: the tournament's folder.
        unit: the unit.
        line: its result; games, if any, go to a file of their own.

    Raises:
        TournamentError: it cannot be written.
    """
    path = folder / "results.jsonl"
    try:
        games = line.pop("games", None)
        if games is not None:
            names = f"{file_name(unit.first)}--{file_name(unit.second)}"
            file = folder / "games" / names / f"{unit.number:04}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, games)
        with open(path, "a+b") as results:
            size = results.seek(0, os.SEEK_END)
            if size:
                results.seek(size - 1)
                if results.read(1) != b"\n":
                    results.write(b"\n")  # the last line was cut short
            results.write(json.dumps(line).encode() + b"\n")
            results.flush()
            os.fsync(results.fileno())
    except OSError as error:
        raise TournamentError(
            f"{folder} cannot be written ({error.strerror or error}): mend that, and the same "
            "command continues"
        ) from error


def file_name(name: str) -> str:
    """Return a player's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
