"""A round robin: all pairings of some players over the same openings, each from both seats.

The work is cut into units of :data:`UNIT_PAIRS` pairs of one pairing. As many processes as there
are cores play them, each search on one core. A unit's result depends only on the seed, the openings
and its two players. So the number of processes does not change a tournament (except for players
limited by time), and a tournament that was stopped can continue.
``python -m training.tournament`` is the command.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from agents import registry
from agents.arena.executors import LocalPool, RayPool
from agents.arena.match import play_openings
from agents.arena.openings import BALANCE, OPENING_PLIES, Openings, draw_openings
from agents.arena.report import Standing
from agents.files import write_atomically
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset

UNIT_PAIRS: Final = 50
"""Pairs that are played, and saved, at a time."""
FORMAT: Final = 1


class TournamentError(ValueError):
    """A tournament cannot be played or continued as asked."""


@dataclass(frozen=True)
class Settings:
    """What is played in a tournament."""

    players: dict[str, str]
    """The players by name, each with what :func:`agents.registry.load` takes."""
    ruleset: Ruleset
    pairs: int
    """Openings that two players play, each from both seats."""
    pairs_of: dict[str, int] = field(default_factory=dict)
    """A smaller number for every pairing with one of these (slow) players, by name."""
    opening_plies: int = OPENING_PLIES
    balance: float | None = BALANCE
    seed: int = 1

    def pairs_between(self, first: str, second: str) -> int:
        """Pairs of games between two players."""
        return min(self.pairs, *(self.pairs_of.get(name, self.pairs) for name in (first, second)))

    def fingerprints(self) -> dict[str, list[str]]:
        """What each player is: its specification and, for a checkpoint, the first 16 hex digits of
        its file's SHA-256."""
        found = {}
        for name, spec in self.players.items():
            path = registry.checkpoint_of(spec)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path else ""
            found[name] = [spec, digest]
        return found

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        return {
            "format": FORMAT,
            "players": self.players,
            "known": self.fingerprints(),
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
        """What identifies it in the file of results."""
        return self.first, self.second, self.number


def units(settings: Settings) -> Iterator[Unit]:
    """All units of a tournament."""
    for first, second in combinations(settings.players, 2):
        pairs = settings.pairs_between(first, second)
        for number, low in enumerate(range(0, pairs, UNIT_PAIRS)):
            yield Unit(first, second, number, min(UNIT_PAIRS, pairs - low))


def play_unit(settings: Settings, unit: Unit, openings: Openings, keep: bool) -> dict[str, Any]:
    """Play a unit; returns its result, a line of the file of results.

    Args:
        settings: of the tournament.
        unit: what to play.
        openings: those of the unit.
        keep: add the games as transcripts.
    """
    names = unit.first, unit.second
    players = []
    for i, name in enumerate(names):
        # Not Python's hash(), which differs from process to process.
        words = [settings.seed, unit.number, i, *(zlib.crc32(n.encode()) for n in names)]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        spec = settings.players[name]
        players.append(registry.load(spec, ruleset=settings.ruleset, seed=seed, threads=1))
    match = play_openings(players[0], players[1], openings, Engine(settings.ruleset))
    line = {
        "first": unit.first,
        "second": unit.second,
        "unit": unit.number,
        "points": match.points.tolist(),
        "plies": match.plies.tolist(),
        "moves": match.moves,
        "seconds": [round(seconds, 6) for seconds in match.seconds],
    }
    if keep:
        line["games"] = "\n".join(match.transcripts(names))
    return line


def read_results(path: Path, expected: dict[tuple[str, str, int], Unit]) -> list[dict[str, Any]]:
    """The lines of a file of results that belong to the tournament.

    Ignores lines that a crash cut short, lines of players who no longer take part, and lines of
    units whose size has changed.

    Raises:
        TournamentError: a line is not a result.
    """
    lines: dict[tuple[str, str, int], dict[str, Any]] = {}
    if path.exists():
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            try:
                unit = expected.get((line["first"], line["second"], line["unit"]))
                points, plies = np.array(line["points"], float), np.array(line["plies"], int)
                moves, seconds = np.array(line["moves"], int), np.array(line["seconds"], float)
                if points.shape != plies.shape or moves.shape != (2,) or seconds.shape != (2,):
                    raise ValueError
                if points.ndim != 2 or not np.isin(points, (0.0, 0.5, 1.0)).all():
                    raise ValueError
            except (KeyError, TypeError, ValueError) as error:
                raise TournamentError(f"{path}, line {number}: not a result") from error
            if unit is not None and points.shape == (unit.pairs, 2):
                lines[unit.key] = line
    return list(lines.values())


def standing(settings: Settings, lines: Sequence[dict[str, Any]]) -> Standing:
    """The results so far; the order in which they came in does not matter."""
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
    )


def prepare(folder: Path, settings: Settings) -> None:
    """Make the folder, or check that what it holds can continue as this tournament.

    Players may be added or left out, and numbers of pairs changed: results do not depend on them.

    Raises:
        TournamentError: anything else differs.
    """
    path = folder / "tournament.json"
    new = settings.to_dict()
    if path.exists():
        try:
            old = json.loads(path.read_text(encoding="utf-8"))
            fixed = ("format", "ruleset", "opening_plies", "balance", "seed")
            differing = [key for key in fixed if old[key] != json.loads(json.dumps(new[key]))]
            known = old["known"]  # all who ever took part: their results may be there
            now = known | new["known"]
            differing += [f"player {name}" for name in known if known[name] != now[name]]
            new["known"] = now
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise TournamentError(f"{path} does not describe a tournament: {error!r}") from error
        if differing:
            raise TournamentError(
                f"{folder} holds another tournament ({', '.join(differing)} differ): give the "
                "same options to continue it, or another --out"
            )
    elif (folder / "results.jsonl").exists():
        raise TournamentError(
            f"{folder} holds results without their tournament.json: put it back, or choose another "
            "--out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(new, indent=2) + "\n")


def run(
    settings: Settings,
    folder: Path,
    processes: int,
    keep_games: bool,
    ray_address: str | None = None,
) -> Standing:
    """Play the units that have not been played yet; returns all results.

    Args:
        settings: what to play.
        folder: where the results are kept.
        processes: number of processes on this machine.
        keep_games: write every game as a transcript.
        ray_address: play on the Ray cluster there instead
            (:class:`agents.arena.executors.RayPool`).

    Raises:
        TournamentError: the folder holds another tournament.
        ValueError: a player is unknown or unusable, there are too few openings, or Ray is not
            installed.
        ConnectionError: there is no Ray cluster at the address.
    """
    for spec in settings.players.values():
        registry.load(spec, ruleset=settings.ruleset, threads=1)
    everything = {unit.key: unit for unit in units(settings)}
    openings = draw_openings(
        settings.ruleset, settings.pairs, settings.opening_plies, settings.seed, settings.balance
    )
    prepare(folder, settings)
    path = folder / "results.jsonl"
    lines = read_results(path, everything)
    done = {(line["first"], line["second"], line["unit"]) for line in lines}
    left = [unit for key, unit in everything.items() if key not in done]
    left.sort(key=lambda unit: settings.pairs_between(unit.first, unit.second))  # slow ones first
    total = sum(2 * unit.pairs for unit in everything.values())
    bar = tqdm(total=total, initial=total - sum(2 * unit.pairs for unit in left), unit="game")
    pool: LocalPool | RayPool
    pool = LocalPool(processes) if ray_address is None else RayPool(ray_address)
    try:
        with open(path, "a", encoding="utf-8") as results, bar:
            if results.tell() and not path.read_text(encoding="utf-8").endswith("\n"):
                results.write("\n")  # the last line was cut short
            futures = {}
            for unit in left:
                low = unit.number * UNIT_PAIRS
                part = openings[low : low + unit.pairs]
                futures[pool.submit(play_unit, settings, unit, part, keep_games)] = unit
            for future in as_completed(futures):
                line = future.result()
                unit = futures[future]
                if keep_games:
                    names = f"{file_name(unit.first)}--{file_name(unit.second)}"
                    games = folder / "games" / names / f"{unit.number:04}.txt"
                    games.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(games, line.pop("games"))
                results.write(json.dumps(line) + "\n")
                results.flush()
                os.fsync(results.fileno())
                lines.append(line)
                bar.update(2 * unit.pairs)
    except BaseException:
        pool.stop()  # otherwise running units would be played to their ends, for nothing
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return standing(settings, lines)


def file_name(name: str) -> str:
    """A player's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
