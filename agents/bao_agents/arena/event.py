"""Define an event: players who meet under the same rules, from the same openings.

An event with a folder keeps the results of each part in ``results/`` there, and the same event goes
on from them after it was stopped. You may then add or remove players and change the numbers of
pairs. A part's result depends only on its players, openings and seeds.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from bao_agents.arena.openings import MatchOpenings, write_openings
from bao_agents.arena.pairs import Pairs, play_pairs
from bao_agents.arena.plan import Part
from bao_agents.players import registry
from bao_agents.players.base import NamedPlayer
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.provenance import current_commit, provenance
from bao_agents.support.resumable import keep_part, part_file, read_part
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.files import read_text


class Interrupted(Exception):
    """The caller of :meth:`Task.play` does not want the games any more."""


@dataclass(frozen=True, eq=False)
class Task:
    """A part of an event, with all that a process needs to play it."""

    part: Part
    specs: tuple[str, str]
    """The players' names for :func:`bao_agents.players.registry.load`."""
    seeds: tuple[int, int]
    """The seeds of the players."""
    ruleset: Ruleset
    openings: MatchOpenings
    known: Mapping[str, str | None]
    """See :attr:`Event.known`."""
    keep_games: bool

    def play(self, threads: int = 1, progress: Callable[[int], None] = lambda ended: None) -> Pairs:
        """Play the games.

        Args:
            threads: number of threads of a search.
            progress: called after each ply with the number of games that have just ended. It may
                raise :class:`Interrupted`.

        Raises:
            ValueError: a player has an unexpected fingerprint, cannot be loaded, or failed.
            Interrupted: as ``progress`` raised it.
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
                names=self.part[:2] if self.keep_games else None,
                numbers=self.part.numbers,
                progress=progress,
            )
        except Interrupted:
            raise
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
        player = program(side, spec, self.ruleset, threads)
        player.reseed(seed)
        return player


@cache
def program(side: int, spec: str, ruleset: Ruleset, threads: int) -> NamedPlayer:
    """Return the first (0) or the second (1) player of all tasks here, a running program."""
    return registry.load(spec, ruleset=ruleset, threads=threads)


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
    specification. An event with a folder has all of them."""
    keep_games: bool = False
    """Keep the games as transcripts."""
    folder: Path | None = None
    """The folder that keeps the results."""

    def task(self, part: Part) -> Task:
        """Return what a process needs to play a part."""
        # Not Python's hash(), which differs from process to process.
        keys = [self.keys.get(name, (zlib.crc32(name.encode()),)) for name in part[:2]]
        words = [self.seed, *keys[0], *keys[1], part.numbers[0]]
        seeds = np.random.SeedSequence(words).generate_state(2).tolist()
        return Task(
            part=part,
            specs=(self.players[part.first], self.players[part.second]),
            seeds=(seeds[0], seeds[1]),
            ruleset=self.ruleset,
            openings=self.openings[np.array(part.numbers)],
            known=self.known,
            keep_games=self.keep_games,
        )

    def read(self, part: Part) -> Pairs | None:
        """Return the kept results of a part.

        None if there are none, they are damaged or lack the games, or if a player has no
        fingerprint: it may have changed unnoticed.
        """
        task = self.task(part)
        if self.folder is None or None in [self.known[spec] for spec in task.specs]:
            return None
        found = read_part(self._file(task), lambda file: Pairs.from_json(read_text(file)))
        if found is None or len(found) != len(part.numbers):
            return None
        return None if self.keep_games and len(found.games) != 2 * len(found) else found

    def keep(self, part: Part, pairs: Pairs) -> None:
        """Write the results of a part, if there is a folder.

        Raises:
            OSError: they cannot be written.
        """
        if self.folder is not None:
            keep_part(self._file(self.task(part)), pairs.to_json() + "\n")

    def _file(self, task: Task) -> Path:
        assert self.folder is not None
        names = task.part[:2]
        settings = [
            self._rules,
            *zip(names, task.specs, map(self.known.get, task.specs), task.seeds, strict=True),
            write_openings(task.openings),
        ]
        folder = self.folder / "results" / "--".join(map(file_name, names))
        return part_file(folder, f"{task.part.numbers[0]:05}", settings, ".json")

    @cached_property
    def _rules(self) -> str:
        made_with = provenance(self.ruleset)
        found = [made_with["rules_version"], made_with["engine_signature"], self.ruleset.to_dict()]
        return json.dumps(found, sort_keys=True)


def file_name(name: str) -> str:
    """Return a player's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:100]
