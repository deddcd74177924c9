"""Offer the players at the board: people, bots with a limit, and checkpoints from a list.

A client names players as in :mod:`bao_agents.players.registry`, but only with the limits that its
table offers, and never by a path or a module. The checkpoints are the shipped ones and those in the
folders given when the server starts. The command line may add any other player, and rules, by name.
The label of a player is the text ``player NAME`` in ``static/en.json`` and in the files of other
languages, or ``player NAME-UNIT`` if its limit has a unit.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from bao_agents.arena.ladder import anchors_elo
from bao_agents.nets.checkpoint_files import CHECKPOINTS, shipped, version
from bao_agents.play.refused import Refused
from bao_agents.players import plugins, registry
from bao_agents.players.names import Kind, PlayerName, Unit
from bao_agents.players.player import NamedPlayer
from bao_agents.support.output import say
from bao_env.board import Board
from bao_env.engine.ruleset import RULESETS, Ruleset

HUMAN = "human"
NETWORK = "network"
"""The kind of player that can also give hints."""
_MAX_LOADED = 8
"""Maximum number of idle players."""
_MAX_WORDS = 300
"""Maximum length of the message about a player that fails, in characters."""
_MAX_CHECKPOINTS = 200


LEVELS = {
    "first steps": "random",
    "very easy": "greedy",
    "easy": "alphabeta:1",
    "fairly easy": "mcts:100",
    "medium": "alphabeta:2",
    "fairly hard": "alphabeta:4",
    "hard": "alphabeta:6",
    "very hard": "alphabeta:10",
    "master": "guided:100ms",
}
"""The opponents that the page offers first, from the weakest to the strongest; all but the last
are anchors of the default ladder. The label of a level is the text ``level NAME`` in the file of
a language."""


class Roster:
    """The players and the rule sets that this server offers.

    Args:
        folders: the folders whose ``.safetensors`` files may play besides the shipped ones;
            subfolders are included.
        seed: the seed of the players' random choices.
        players: further players, by any name that :func:`bao_agents.players.registry.load` accepts.
        ruleset: the rules offered first; they may be your own.

    Raises:
        ValueError: one of ``folders`` is not a folder, two checkpoints have the same name, or one
            of ``players`` is unknown.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        seed: int = 0,
        *,
        players: Iterable[str] = (),
        ruleset: Ruleset = RULESETS["zanzibar"],
    ) -> None:
        self.rulesets: dict[str, Ruleset] = {ruleset.name: ruleset}
        """The rules to choose from, by name."""
        self.rulesets |= {n: rules for n, rules in RULESETS.items() if n != ruleset.name}
        self.further: dict[str, PlayerName] = {
            str(spec): spec for spec in map(registry.parse, players)
        }
        """The further players, by name."""
        for spec in self.further.values():
            if spec.function:
                plugins.find(spec.function)  # to refuse a wrong name now
        self._seed = seed
        self.files: dict[str, Path] = {
            name: CHECKPOINTS / f"{name}.safetensors" for name in shipped()
        }
        """The checkpoints that may play, by name."""
        for folder in folders:
            for name, path in _checkpoints_in(folder):
                if not self.files.setdefault(name, path).samefile(path):
                    raise ValueError(
                        f"two checkpoints are called {name}, {self.files[name]} and {path}: rename "
                        "one of their folders, or leave it out"
                    )
        self._loaded: LRUCache[Hashable, NamedPlayer] = LRUCache(_MAX_LOADED)
        """Idle players. A search reuses its memory, so only one game may use a player at a time."""
        self._lock = threading.Lock()

    def levels(self) -> list[dict[str, Any]]:
        """Return LEVELS as plain values.

        Each has a ``name``, a ``spec``, the names of the ``rulesets`` that it can play, and its
        ``elo`` in zanzibar, or None.
        """
        elo = {name: round(rating) for name, rating in anchors_elo().items()}
        return [
            {
                "name": name,
                "spec": spec,
                "elo": elo.get(spec),
                "rulesets": self._rules_of(self.parse(spec)),
            }
            for name, spec in LEVELS.items()
        ]

    def choices(self) -> list[dict[str, Any]]:
        """Return all players except people, as plain values, for a list to choose from.

        Each has a unique ``value``. Its label is made from ``kind`` and ``checkpoint``; both are
        empty for a player that the command line added. ``budget`` is the unit of its limit, or
        None. ``spec`` has the parts of its name before and after the limit. ``rulesets`` names the
        rule sets that it can play.
        """
        choices: list[dict[str, Any]] = [
            {
                "value": name,
                "kind": "",
                "checkpoint": "",
                "spec": (name, ""),
                "budget": None,
                "rulesets": self._rules_of(spec),
            }
            for name, spec in self.further.items()
        ]
        for name in ("", *self.files):
            for kind, suffix, unit in _offers():
                if kind.has_checkpoint != bool(name):
                    continue
                label = "-".join(filter(None, [kind.name, suffix]))
                spec = PlayerName(kind, label, path=self.files.get(name))
                before = kind.form.replace("CHECKPOINT", name).replace("LIMIT", "")
                choices.append(
                    {
                        "value": label + (name and f":{name}"),
                        "kind": label,
                        "checkpoint": name,
                        "spec": (before, suffix),
                        "budget": unit and unit._asdict(),
                        "rulesets": self._rules_of(spec),
                    }
                )
        return choices

    def _rules_of(self, spec: PlayerName) -> list[str]:
        return [name for name, rules in self.rulesets.items() if spec.plays(rules)]

    def parse(self, spec: str) -> PlayerName:
        """Parse the name of a bot that may play here.

        Raises:
            Refused: the player may not play here, or its limit is out of range.
        """
        if spec in self.further:
            return self.further[spec]
        try:
            name = registry.parse(spec, self.files)
        except ValueError as error:
            raise Refused(str(error)) from error
        unit = name.unit
        if unit and not unit.high:
            units = " or ".join(
                key or "no unit" for key, unit in name.kind.units.items() if unit.high
            )
            raise Refused(f"player {spec!r}: expected {units} after the number")
        if unit and not unit.low <= name.number <= unit.high:
            raise Refused(f"player {spec!r}: expected a number from {unit.low} to {unit.high}")
        return name

    def check(self, spec: str, rules: Ruleset) -> str:
        """Check that a player, or a person, may play some rules here; return the name.

        Raises:
            Refused: the player may not play here, its limit is out of range, or it cannot play
                these rules.
        """
        if spec == HUMAN:
            return spec
        name = self.parse(spec)
        if not name.plays(rules):
            raise Refused(f"{name} cannot play {rules.name}: choose another player, or other rules")
        return str(name)

    def act(self, spec: str, board: Board, game: int) -> int:
        """Return the action that a player chooses on a board that is not over.

        Args:
            spec: the player.
            board: the board.
            game: the number of the game, for players that remember their games.

        Raises:
            Refused: the player cannot be loaded, fails, or chooses an illegal action.
        """
        parsed = self.parse(spec)
        try:
            key = str(parsed), parsed.path and version(parsed.path), board.ruleset
            with self._lock:
                player = self._loaded.pop(key, None)
            if player is None:
                player = registry.load(parsed, ruleset=board.ruleset, seed=self._seed, threads=1)
        except Exception as error:  # a damaged file or one for other rules must not stop the server
            raise self.unusable(f"{spec} cannot play", error) from error
        try:
            action = player.choose(board, game=game)
        except Exception as error:  # an error of a player must not stop it, either
            words = f"{type(error).__name__}: {error}"[:_MAX_WORDS]
            raise Refused(f"{spec} failed: {words}", 502) from error
        with self._lock:
            self._loaded[key] = player
        return action

    def unusable(self, failure: str, error: Exception) -> Refused:
        """Return the refusal for a player that fails; its text omits the paths of files."""
        words = str(error)
        for name, path in self.files.items():
            words = words.replace(str(path), name)
        return Refused(f"{failure}: {words[:_MAX_WORDS]}", 502)


def _checkpoints_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names and the files of the checkpoints in a folder.

    Raises:
        ValueError: it is not a folder.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: expected a folder with .safetensors files")
    # Reading a pipe or a device could block indefinitely.
    files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
    if len(files) > _MAX_CHECKPOINTS:
        say(
            f"note: {folder} has {len(files)} checkpoints: the board offers the first "
            f"{_MAX_CHECKPOINTS}, in the order of their paths; --checkpoints names other folders"
        )
    for path in files[:_MAX_CHECKPOINTS]:
        yield path.relative_to(folder.parent).with_suffix("").as_posix(), path


def _offers() -> Iterator[tuple[Kind, str, Unit | None]]:
    """Yield each offered kind of player, with the suffix and the unit of its limit, if any."""
    for kind in registry.KINDS:
        if not kind.is_foreign and not kind.units:
            yield kind, "", None
        for suffix, unit in kind.units.items():
            if unit.high:
                yield kind, suffix, unit
