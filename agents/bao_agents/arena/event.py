"""Define an event: players who meet under the same rules, from the same openings.

An event may keep the results of each part in a folder, under ``results/``. When it is started
again, it reads these results and plays only the missing parts, even if players were added or
removed, or the number of pairs has changed. A part's result depends only on its players, openings
and seeds.
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
from bao_agents.arena.resumable import keep_part, part_file, read_part
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.player import NamedPlayer
from bao_agents.search.limits import Clock
from bao_agents.support.provenance import current_commit, provenance
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.files import read_text


class Interrupted(Exception):
    """Stop :meth:`Event.play`: its caller no longer needs the games."""


@cache
def program(side: int, spec: str, ruleset: Ruleset) -> NamedPlayer:
    """Return a program as first (0) or second (1) player; a process starts it once for all parts.

    It gets one thread, because it receives positions one by one, and both players of a match must
    compute on equal terms.
    """
    return registry.load(spec, ruleset=ruleset, threads=1)


@dataclass(frozen=True, eq=False)
class Event:
    """Players who meet under the same rules, from the same openings."""

    players: Mapping[str, str]
    """The specification of each player, for :func:`bao_agents.players.registry.load`, by name."""
    ruleset: Ruleset
    openings: MatchOpenings
    seed: int
    keys: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The numbers from which a player's seeds are made, by the player's name; by default, a
    checksum of the name. The seeds of a part are made from ``seed``, both players' numbers and the
    part's first opening."""
    fingerprints: Mapping[str, str | None] = field(default_factory=dict)
    """The :func:`~bao_agents.players.fingerprint.fingerprint` that each player must have, by
    specification. An event with a folder has all of them."""
    clock: Clock | None = None
    """The clock of each player in a game; None to apply the limit in the player's name."""
    keep_games: bool = False
    """Whether to keep the games as transcripts."""
    folder: Path | None = None
    """The folder that keeps the results."""

    def play(
        self, part: Part, threads: int = 1, progress: Callable[[int], None] = lambda ended: None
    ) -> Pairs:
        """Play the games of a part.

        Args:
            part: the part.
            threads: number of threads of a search.
            progress: called after each ply with the number of games that have just ended. It may
                raise :class:`Interrupted`.

        Raises:
            ValueError: a player has an unexpected fingerprint, cannot be loaded, or failed.
            Interrupted: as ``progress`` raised it.
        """
        first, second = self.specs(part)
        players = []
        for side, spec in enumerate((first, second)):
            seed, parsed = self._seeds(part)[side], registry.parse(spec)
            if parsed.kind.is_program:
                player = program(side, spec, self.ruleset)
                player.reseed(seed)
            else:
                player = registry.load(parsed, ruleset=self.ruleset, seed=seed, threads=threads)
            current_fingerprint = fingerprint(parsed, player, self.ruleset)
            if current_fingerprint != self.fingerprints.get(spec, current_fingerprint):
                advice = (
                    "the version that a program reports should stay the same while its play does"
                    if parsed.kind.is_program
                    else "start again with another --out, and do not change the player's file "
                    "meanwhile"
                )
                raise ValueError(f"player {spec} has changed since the event began: {advice}")
            players.append(player)
        try:
            for spec in (first, second):
                registry.warm_up(spec, self.ruleset)
            played = play_pairs(
                players[0],
                players[1],
                self._openings(part),
                Engine(self.ruleset),
                clock=self.clock,
                names=part[:2] if self.keep_games else None,
                numbers=part.numbers,
                progress=progress,
            )
        except Interrupted:
            raise
        except Exception as error:  # a player may raise anything
            players_that_failed = getattr(error, "__notes__", [])
            cause = ": ".join([*players_that_failed, f"{type(error).__name__}: {error}"])
            raise ValueError(f"{first} against {second}: {cause}") from error
        return replace(played, commits=frozenset([current_commit()]))

    def specs(self, part: Part) -> tuple[str, str]:
        """Return the specifications of a part's two players."""
        return self.players[part.first], self.players[part.second]

    def read(self, part: Part) -> Pairs | None:
        """Return the results of a part from the folder, or None if the part must be played.

        It must be played if its results are missing, damaged or without the transcripts, or if a
        player has no fingerprint, because the player may then have changed.
        """
        if self.folder is None or None in [self.fingerprints[spec] for spec in self.specs(part)]:
            return None
        for file in self._files(part):
            pairs = read_part(file, lambda file: Pairs.from_json(read_text(file)))
            if pairs is None or len(pairs) != len(part.numbers):
                continue
            if not self.keep_games or len(pairs.games) == 2 * len(pairs):
                return pairs
        return None

    def keep(self, part: Part, pairs: Pairs) -> None:
        """Write the results of a part, if there is a folder.

        Raises:
            OSError: they cannot be written.
        """
        if self.folder is not None:
            keep_part(self._files(part)[0], pairs.to_json() + "\n")

    def _files(self, part: Part) -> list[Path]:
        """Return the file of a part's results, and the file that earlier versions wrote."""
        assert self.folder is not None
        names, specs = part[:2], self.specs(part)
        marks, seeds = [self.fingerprints.get(spec) for spec in specs], self._seeds(part)
        conditions: list[object] = [write_openings(self._openings(part))]
        if self.clock is not None:
            conditions.append(str(self.clock))
        folder = self.folder / "results" / "--".join(map(file_name, names))
        files = []
        for texts in ([self._pathless[spec] for spec in specs], specs):
            players = zip(names, texts, marks, seeds, strict=True)
            settings = [self._rules, *players, *conditions]
            files.append(part_file(folder, f"{part.numbers[0]:05}", settings, ".json"))
        return files

    @cached_property
    def _pathless(self) -> dict[str, str]:
        """Each specification without the path of its file.

        A file that has moved plays the same games: its fingerprint says what is in it.
        """
        return {spec: registry.parse(spec).with_file("") for spec in self.players.values()}

    def _openings(self, part: Part) -> MatchOpenings:
        return self.openings[np.array(part.numbers)]

    def _seeds(self, part: Part) -> list[int]:
        """Return the seeds of the two players."""
        # Not Python's hash(), which differs from process to process.
        keys = [self.keys.get(name, (zlib.crc32(name.encode()),)) for name in part[:2]]
        words = [self.seed, *keys[0], *keys[1], part.numbers[0]]
        return np.random.SeedSequence(words).generate_state(2).tolist()

    @cached_property
    def _rules(self) -> str:
        made_with = provenance(self.ruleset)
        values = [made_with["rules_version"], made_with["engine_signature"], self.ruleset.to_dict()]
        return json.dumps(values, sort_keys=True)


def file_name(name: str) -> str:
    """Return a player's name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:100]
