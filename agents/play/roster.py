"""Players at the board: people, bots with a limit, and checkpoints from a list.

A client names players as :mod:`agents.registry` does, but only of the kinds that the board offers,
and never by a path or a module. The checkpoints are the shipped ones and those in the folders given
at the start of the server. The command line may offer any other player, and rules, by name.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from cachetools import LRUCache

from agents import registry
from agents.base import LoadRequest, OnBoard, PlayerKind, PlayerSpec
from agents.play.networks import Networks, file_version
from agents.play.refused import Refused
from bao_env.board import Board
from bao_env.bots import Agent, check_actions
from bao_env.engine.action import mask_of
from bao_env.engine.ruleset import RULESETS, Ruleset

HUMAN: Final = "human"
_MAX_LOADED: Final = 8
"""Maximum number of idle players."""
_MAX_WORDS: Final = 300
"""Maximum length of the message about a failing player, in characters."""
_MAX_CHECKPOINTS: Final = 200


class Roster:
    """The players and the rule sets that this server offers.

    Args:
        folders: the folders whose ``.safetensors`` files may play besides the shipped ones;
            subfolders are included.
        seed: the seed of the players' random choices.
        players: further players, by any name that :func:`agents.registry.load` takes.
        ruleset: the rules offered first, which may be your own.

    Raises:
        ValueError: one of ``folders`` is not a folder, or one of ``players`` is unknown.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        seed: int = 0,
        *,
        players: Iterable[str] = (),
        ruleset: Ruleset = RULESETS["zanzibar"],
    ) -> None:
        self.rulesets = {ruleset.name: ruleset}
        """The rules to choose from, by name."""
        self.rulesets |= {n: rules for n, rules in RULESETS.items() if n != ruleset.name}
        self.further = {str(spec): spec for spec in map(registry.parse, players)}
        """The further players, by name."""
        self.networks = Networks()
        """The players' networks; hints use them, too."""
        self._seed = seed
        self._files = {
            name: registry.CHECKPOINTS / f"{name}.safetensors" for name in registry.shipped()
        }
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is not a folder; expected one with .safetensors files")
            # Reading a pipe or a device could block indefinitely.
            files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
            for path in files[:_MAX_CHECKPOINTS]:
                name = path.relative_to(folder.parent).with_suffix("").as_posix()
                self._files.setdefault(name, path)
        self._loaded: LRUCache[Hashable, Agent] = LRUCache(_MAX_LOADED)
        """Idle players: a search reuses its memory, so only one game may use it at a time."""
        self._lock = threading.Lock()

    def checkpoints(self) -> list[str]:
        """Return the names of the checkpoints that may play."""
        return list(self._files)

    def _offered(self) -> Iterator[tuple[PlayerKind, str, OnBoard, str]]:
        """Yield each choice of the board: kind, unit, entry, checkpoint or an empty text."""
        for name in ("", *self._files):
            for kind in registry.KINDS:
                if kind.has_checkpoint == bool(name):
                    for unit, entry in kind.on_board.items():
                        yield kind, unit, entry, name

    def choices(self) -> list[dict[str, Any]]:
        """Return all players but people, as plain values, for a list to choose from.

        Each has a unique ``value``, a ``label`` by language, its ``budget`` or None, and ``spec``:
        the parts of its name before and after the budget.
        """
        further = [
            {"value": name, "label": {"en": name}, "spec": (name, ""), "budget": None}
            for name in self.further
        ]
        return further + [
            {
                "value": "-".join(filter(None, [kind.name, unit])) + (name and f":{name}"),
                "label": _label(entry, name),
                "spec": kind.fill({"checkpoint": name, "budget": "\0", "unit": unit}).partition(
                    "\0"
                )[::2],
                "budget": entry.budget and asdict(entry.budget),
            }
            for kind, unit, entry, name in self._offered()
        ]

    def evaluators(self) -> list[dict[str, Any]]:
        """Return the players that give hints, each with its default budget, as plain values."""
        found = []
        for kind, unit, entry, name in self._offered():
            if kind.gives_hints:
                fields = {"checkpoint": name, "unit": unit}
                label = _label(entry, name)
                if entry.budget:
                    fields["budget"] = str(entry.budget.default)
                    label = {key: f"{text}, {fields['budget']}" for key, text in label.items()}
                found.append({"value": kind.fill(fields), "label": label})
        return found

    def parse(self, spec: str) -> PlayerSpec:
        """Parse the name of a player that may play here; people excluded.

        Raises:
            Refused: the player may not play here, or its budget is out of range.
        """
        if spec in self.further:
            return self.further[spec]
        kinds = [kind for kind in registry.KINDS if kind.on_board]
        try:
            found = registry.parse(spec, kinds, self._files)
        except ValueError as error:
            raise Refused(str(error)) from error
        entry = found.kind.on_board.get(found.unit)
        if entry is None:
            units = " or ".join(repr(unit) for unit in found.kind.on_board)
            raise Refused(f"unknown player {spec!r}: expected the unit {units} behind the number")
        budget = entry.budget
        if budget and not budget.low <= found.budget <= budget.high:
            raise Refused(f"player {spec!r}: expected a budget from {budget.low} to {budget.high}")
        return found

    def check(self, spec: str) -> str:
        """Return the name of a player that may play here; people included.

        Raises:
            Refused: the player may not play here, or its budget is out of range.
        """
        return spec if spec == HUMAN else str(self.parse(spec))

    def act(self, spec: str, board: Board) -> int:
        """Return the action that a player chooses on a board that is not over.

        Raises:
            Refused: the player cannot be loaded, fails, or chooses an illegal action.
        """
        legal = np.array([mask_of(board.legal_actions)], np.uint64)
        key, agent = self._take(self.parse(spec), board.ruleset)
        try:
            answer = agent.act(board.words[None], legal)
        except Exception as error:  # no error of a player may stop the server
            words = f"{type(error).__name__}: {error}"[:_MAX_WORDS]
            raise Refused(f"{spec} failed: {words}", 502) from error
        with self._lock:
            self._loaded[key] = agent
        try:
            return int(check_actions(answer, legal, spec)[0])
        except Exception as error:  # nor may its answer
            raise Refused(str(error)[:_MAX_WORDS], 502) from error

    def _take(self, spec: PlayerSpec, ruleset: Ruleset) -> tuple[Hashable, Agent]:
        """Return a player for one game, and its key in the cache."""
        try:
            version = file_version(spec.path) if spec.path else None
            key = str(spec), version, ruleset
            with self._lock:
                agent = self._loaded.pop(key, None)
            if agent is None:
                network = self.networks.network(spec.path, ruleset) if spec.path else None
                agent = spec.kind.load(LoadRequest(spec, ruleset, self._seed, 1, network))
            return key, agent
        except Exception as error:  # nor may a damaged file, or one for other rules
            raise self.unusable(f"{spec} cannot play", error) from error

    def unusable(self, what: str, error: Exception) -> Refused:
        """Return the refusal for a player that fails, without the paths of its files."""
        words = str(error)
        for name, path in self._files.items():
            words = words.replace(str(path), name)
        if isinstance(error, ImportError):
            words = f"a checkpoint needs torch: pip install -e '.[train]' ({words})"
        return Refused(f"{what}: {words[:_MAX_WORDS]}", 502)


def _label(entry: OnBoard, checkpoint: str) -> dict[str, str]:
    return {
        language: text.replace("{checkpoint}", checkpoint) for language, text in entry.label.items()
    }
