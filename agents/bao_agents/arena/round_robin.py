"""A round robin: all pairings of some players over the same openings, each from both seats.

The work is cut into parts of up to :data:`PART_PAIRS` pairs of one pairing. As many processes as
there are cores play them, each search on one core (:mod:`bao_agents.arena.scheduler`). A part's
result depends only on the seed, the openings and its two players. So the number of processes does
not change a tournament (except for players limited by time), and a tournament that was stopped can
continue. ``bao tournament`` is the command.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ValidationError

from bao_agents import registry
from bao_agents.arena.openings import BALANCE, OPENING_PLIES, MatchOpenings, draw_openings
from bao_agents.arena.report import Standing
from bao_agents.arena.scheduler import LocalPool, RayPool, Record, Unit, fingerprint, play_units
from bao_agents.progress import Progress
from bao_agents.provenance import provenance
from bao_env.engine.ruleset import Ruleset
from bao_env.files import fault, hold, write_atomically

PART_PAIRS = 50
"""Pairs that are played, and saved, at a time."""
FORMAT = 2


class TournamentError(ValueError):
    """The tournament cannot be played, or cannot continue in its folder."""


class Part(NamedTuple):
    """Some pairs of games between two players: a line of the file of results."""

    first: str
    second: str
    number: int
    """The part's place in its pairing, from 0."""
    pairs: int


@dataclass(frozen=True)
class TournamentSettings:
    """Settings of a tournament."""

    players: dict[str, str]
    """The players by name, each with what :func:`bao_agents.registry.load` takes."""
    ruleset: Ruleset
    pairs: int
    """Number of openings that two players play, each from both seats."""
    pairs_of: dict[str, int] = field(default_factory=dict)
    """A smaller number for every pairing with one of these (slow) players, by name."""
    opening_plies: int = OPENING_PLIES
    balance: float | None = BALANCE
    seed: int = 1
    allow: tuple[str, ...] = ()
    """Names for :func:`bao_agents.registry.allow_architecture`, in each process."""

    def pairs_between(self, *names: str) -> int:
        """Return the number of pairs of games between two players."""
        return min(self.pairs, *(self.pairs_of.get(name, self.pairs) for name in names))

    def units(
        self, openings: MatchOpenings, keep_games: bool = False
    ) -> Iterator[tuple[Part, Unit]]:
        """Yield all parts of the tournament, each with its work.

        Args:
            openings: all openings of the tournament.
            keep_games: keep the games as transcripts.
        """
        known = dict(self.description["known"].values())
        for names in combinations(self.players, 2):
            # Not Python's hash(), which differs from process to process.
            words = [zlib.crc32(name.encode()) for name in names]
            pairs = self.pairs_between(*names)
            for number, low in enumerate(range(0, pairs, PART_PAIRS)):
                some = openings[low : min(low + PART_PAIRS, pairs)]
                first, second = (
                    np.random.SeedSequence([self.seed, number, i, *words]) for i in range(2)
                )
                yield (
                    Part(*names, number, len(some)),
                    Unit(
                        players=(self.players[names[0]], self.players[names[1]]),
                        ruleset=self.ruleset,
                        openings=some,
                        seeds=(int(first.generate_state(1)[0]), int(second.generate_state(1)[0])),
                        keep_as=names if keep_games else None,
                        known=known,
                        allow=self.allow,
                    ),
                )

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The settings, the players' fingerprints and the code's versions, as values for JSON.

        They are computed once.

        Raises:
            ValueError: a player is unknown or unusable.
        """
        for architecture in self.allow:
            registry.allow_architecture(architecture)
        return {
            "format": FORMAT,
            "made_with": provenance(self.ruleset),
            "players": self.players,
            "known": {
                name: [spec, fingerprint(spec, registry.load(spec, ruleset=self.ruleset))]
                for name, spec in self.players.items()
            },
            "ruleset": self.ruleset.to_dict(),
            "pairs": self.pairs,
            "pairs_of": self.pairs_of,
            "opening_plies": self.opening_plies,
            "balance": self.balance,
            "seed": self.seed,
        }


class _Description(BaseModel):
    """The file ``tournament.json``."""

    format: Literal[2]
    made_with: dict[str, Any]
    known: dict[str, tuple[str, str | None]]
    ruleset: dict[str, Any]
    opening_plies: int
    balance: float | None
    seed: int


class _Line(Record):
    """A line of the file of results."""

    first: str
    second: str
    unit: int


def _to_line(part: Part, record: Record) -> bytes:
    first, second, number, _ = part
    line = {"first": first, "second": second, "unit": number} | record.model_dump()
    return json.dumps(line).encode() + b"\n"


def read_results(path: Path) -> dict[Part, Record]:
    """Read a file of results, without the lines that a crash cut short.

    Raises:
        TournamentError: a line is not a result.
    """
    results: dict[Part, Record] = {}
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = _Line.model_validate(json.loads(text))
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError) as error:
            raise TournamentError(
                f"{path}, line {number}: not a result; remove the line, and its games are played "
                "again"
            ) from error
        results[Part(line.first, line.second, line.unit, len(line.points))] = line
    return results


def _check_continues(folder: Path, old: _Description, new: _Description) -> None:
    """Raise TournamentError if ``folder`` holds the tournament ``old``, and ``new`` is another."""
    differing = [
        key
        for key in ("rules_version", "engine_signature")
        if old.made_with.get(key) != new.made_with[key]
    ]
    differing += [
        key
        for key in ("ruleset", "opening_plies", "balance", "seed")
        if getattr(old, key) != getattr(new, key)
    ]
    for name, (spec, digest) in new.known.items():
        old_spec, old_digest = old.known.get(name, (spec, digest))
        if spec != old_spec or (digest != old_digest and None not in (digest, old_digest)):
            differing.append(f"player {name}")
    if differing:
        raise TournamentError(
            f"{folder} holds another tournament ({', '.join(differing)} differ): give the "
            "same options to continue it, or another --out"
        )


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def prepare(folder: Path, settings: TournamentSettings) -> dict[Part, Record]:
    """Check that the tournament in a folder can continue with these settings; return its results.

    Players may be added or left out, and numbers of pairs changed: results do not depend on them.
    Results of a player without a fingerprint are dropped: the player may have changed.

    Raises:
        TournamentError: anything else differs, or a file is damaged.
    """
    path, file = folder / "tournament.json", folder / "results.jsonl"
    description = dict(settings.description)
    results: dict[Part, Record] = {}
    if path.exists():
        try:
            old = _Description.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise TournamentError(
                f"{path} does not describe a tournament of this version of the project "
                f"({fault(error)}): choose another --out"
            ) from error
        new = _Description.model_validate_json(json.dumps(description))
        _check_continues(folder, old, new)
        before, now = old.made_with.get("commit"), new.made_with["commit"]
        if before != now:
            _note(f"the last results are of commit {before!s:.200}, the next ones of {now}")
        results = read_results(file) if file.exists() else {}
        unknown = {
            name
            for name, (_, digest) in new.known.items()
            if name in old.known and None in (digest, old.known[name][1])
        }
        kept = {part: record for part, record in results.items() if not unknown & {*part[:2]}}
        if len(kept) < len(results):
            _note(
                f"games of {', '.join(sorted(unknown))} are played again: nothing tells whether "
                "the player is still the same; an attribute `fingerprint` of its agent, a text, can"
            )
            results = kept
        # Without lines that were cut short: more are appended.
        write_atomically(file, b"".join(_to_line(*result) for result in results.items()))
        description["known"] = old.known | new.known  # every player with results
    elif file.exists():
        raise TournamentError(
            f"{folder} holds results without their tournament.json: put it back, or choose another "
            "--out"
        )
    write_atomically(path, json.dumps(description, indent=2) + "\n")
    return results


def standing(settings: TournamentSettings, results: Mapping[Part, Record]) -> Standing:
    """Return the results so far; their order does not matter."""
    moves = dict.fromkeys(settings.players, 0)
    seconds = dict.fromkeys(settings.players, 0.0)
    points: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    plies: list[list[int]] = []
    for part in sorted(results):
        record, names = results[part], part[:2]
        points[names] += record.points
        plies += record.plies
        for i, name in enumerate(names):
            moves[name] += record.moves[i]
            seconds[name] += record.seconds[i]
    return Standing(
        results={names: np.array(of_first) for names, of_first in points.items()},
        milliseconds={name: 1000 * seconds[name] / max(1, moves[name]) for name in moves},
        mean_plies=float(np.mean(plies)) if plies else 0.0,
        commits=sorted({record.commit for record in results.values()}),
    )


def run(
    settings: TournamentSettings,
    folder: Path,
    processes: int,
    keep_games: bool,
    ray_address: str | None = None,
) -> Standing:
    """Play the remaining parts of a tournament; return all results.

    Args:
        settings: the tournament's settings.
        folder: the folder of the results.
        processes: number of processes on this machine.
        keep_games: write every game as a transcript.
        ray_address: play on the Ray cluster there instead
            (:class:`bao_agents.arena.scheduler.RayPool`).

    Raises:
        TournamentError: the folder holds another tournament, or a file in it is damaged or cannot
            be written.
        HeldError: another process plays in the folder.
        ValueError: a player is unknown or unusable, failed, or changed; there are too few
            openings; or Ray is not installed.
        OSError: the folder cannot be made, or there is no Ray cluster at the address.
    """
    _ = settings.description  # refuse a wrong player before anything is written
    openings = draw_openings(
        settings.ruleset, settings.pairs, settings.opening_plies, settings.seed, settings.balance
    )
    with hold(folder):
        before, units = prepare(folder, settings), dict(settings.units(openings, keep_games))
        results = {part: before[part] for part in units if part in before}
        left = [part for part in units if part not in results]
        left.sort(key=lambda part: settings.pairs_between(part.first, part.second))  # slow first
        pool: Executor = LocalPool(processes) if ray_address is None else RayPool(ray_address)
        total, played = (2 * sum(part.pairs for part in parts) for parts in (units, results))
        with pool, Progress(total=total, initial=played, unit="game") as bar:
            for i, record in play_units([units[part] for part in left], pool, bar):
                save(folder, left[i], record)
                results[left[i]] = record
    return standing(settings, results)


def save(folder: Path, part: Part, record: Record) -> None:
    """Write a result to disk; games, if any, go to a file of their own.

    Raises:
        TournamentError: it cannot be written.
    """
    try:
        if record.games:
            names = f"{file_name(part.first)}--{file_name(part.second)}"
            file = folder / "games" / names / f"{part.number:04}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, record.games)
        with open(folder / "results.jsonl", "ab") as results:
            results.write(_to_line(part, record))
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
