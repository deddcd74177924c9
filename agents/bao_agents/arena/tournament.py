"""Play a round robin of any players.

All pairings play the same openings, each from both seats. The work is cut into parts
of up to :data:`~bao_agents.arena.scheduler.PART_PAIRS` pairs of one pairing. Processes play them,
each search on one core (:mod:`bao_agents.arena.scheduler`); with ``--ray`` the work spreads over a
Ray cluster.

A part's result depends only on the seed, the openings and its two players. So the number of
processes does not change a tournament, except for players limited by time. The same command
continues a stopped tournament, because ``results/`` in its folder has a file for each part. You may
then add or remove players and change the numbers of pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from bao_agents.arena.openings import BALANCE, OPENING_PLIES, draw_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.scheduler import Event, LocalPool, Part, RayPool, play_parts
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.files import hold
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import current_commit, provenance
from bao_agents.support.resumable import keep_part, part_file, read_part
from bao_env.engine.ruleset import Ruleset
from bao_env.files import read_text


@dataclass(frozen=True)
class TournamentSettings:
    """Settings of a tournament."""

    players: dict[str, str]
    """The players by name, each with what :func:`bao_agents.players.registry.load` takes."""
    ruleset: Ruleset
    pairs: int
    """Number of openings that two players play, each from both seats."""
    opening_plies: int = OPENING_PLIES
    balance: float | None = BALANCE
    seed: int = 1

    def parts(self, keep_games: bool = False) -> list[Part]:
        """Return all parts.

        Args:
            keep_games: keep each game as a transcript.

        Raises:
            ValueError: there are too few openings, or a player is unknown or unusable.
        """
        event = Event(
            self.players,
            self.ruleset,
            draw_openings(self.ruleset, self.pairs, self.opening_plies, self.seed, self.balance),
            self.seed,
            known=dict(self.description["known"].values()),
            keep_games=keep_games,
        )
        pairings = combinations(self.players, 2)
        return [part for first, second in pairings for part in event.parts(first, second)]

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The settings, the players' fingerprints and the code's versions, as values for JSON.

        Computed once.

        Raises:
            ValueError: a player is unknown or unusable.
        """
        return {
            "made_with": provenance(self.ruleset),
            "players": self.players,
            "known": {
                name: [
                    spec,
                    fingerprint(spec, registry.load(spec, ruleset=self.ruleset), self.ruleset),
                ]
                for name, spec in self.players.items()
            },
            "ruleset": self.ruleset.to_dict(),
            "pairs": self.pairs,
            "opening_plies": self.opening_plies,
            "balance": self.balance,
            "seed": self.seed,
        }

    def file_of(self, folder: Path, part: Part) -> Path:
        """Return the file of a part in the tournament's folder."""
        found, made_with = self.description, self.description["made_with"]
        settings = [
            *(made_with[key] for key in ("rules_version", "engine_signature")),
            *(found[key] for key in ("ruleset", "opening_plies", "balance", "seed")),
            *([name, *found["known"][name]] for name in part.names),
            part.numbers,
        ]
        return part_file(folder / "results" / folder_of(part), name_of(part), settings, ".json")


def folder_of(part: Part) -> str:
    """Return the name of the folder of a part's pairing."""
    return "--".join(map(file_name, part.names))


def name_of(part: Part) -> str:
    """Return the name of a part's files, without the suffix: its first opening."""
    return f"{part.numbers[0]:05}"


def kept(settings: TournamentSettings, folder: Path, parts: Sequence[Part]) -> dict[Part, Pairs]:
    """Return the results in a folder, and print a note about those that cannot be used."""
    results, changed = {}, set()  # players that may have changed unnoticed
    for part in parts:
        file = settings.file_of(folder, part)
        found = read_part(file, lambda file: Pairs.from_json(read_text(file)))
        if found is None or len(found) != len(part.numbers):
            continue
        unknown = {n for n in part.names if settings.description["known"][n][1] is None}
        changed |= unknown
        if not unknown:
            results[part] = found
    if changed:
        _note(
            f"games of {', '.join(sorted(changed))} are played again, because the player may have "
            "changed: give its agent a string `fingerprint` that changes with its play"
        )
    commits = sum(results.values(), Pairs()).commits - {current_commit()}
    if commits:
        _note(f"some results come from commit {', '.join(sorted(commits))}, not {current_commit()}")
    return results


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def run(
    settings: TournamentSettings,
    folder: Path,
    processes: int,
    keep_games: bool,
    ray_address: str | None = None,
) -> dict[tuple[str, str], Pairs]:
    """Play the remaining parts of a tournament; return the results of each pairing.

    Args:
        settings: the tournament's settings.
        folder: the folder of the results.
        processes: number of processes on this machine.
        keep_games: write every game as a transcript.
        ray_address: play on the Ray cluster there instead
            (:class:`bao_agents.arena.scheduler.RayPool`).

    Raises:
        HeldError: another process plays in the folder.
        ValueError: a player is unknown or unusable, failed, or changed; there are too few
            openings; or Ray is not installed.
        OSError: a file cannot be written, or there is no Ray cluster at the address.
    """
    parts = settings.parts(keep_games)
    # What is refused is refused before anything is written.
    pool: Executor = LocalPool(processes) if ray_address is None else RayPool(ray_address)
    with pool, hold(folder):
        results = kept(settings, folder, parts)
        left = [part for part in parts if part not in results]
        total, played = (2 * sum(len(part.numbers) for part in some) for some in (parts, results))
        with Progress(total=total, initial=played, unit="game") as bar:
            for part, pairs in play_parts(left, pool, bar):
                if pairs.games:
                    file = folder / "games" / folder_of(part) / f"{name_of(part)}.txt"
                    keep_part(file, "\n".join(pairs.games))
                keep_part(settings.file_of(folder, part), pairs.to_json() + "\n")
                results[part] = pairs
    by_pairing: dict[tuple[str, str], Pairs] = {}
    for part in parts:
        by_pairing[part.names] = by_pairing.get(part.names, Pairs()) + results[part]
    return by_pairing


def file_name(name: str) -> str:
    """Return a player's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:100]
