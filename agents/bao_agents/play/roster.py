"""Players at the board: people, bots with a limit, and checkpoints from a list.

A client names players as :mod:`bao_agents.registry` does, but only of the kinds that the board
offers, and never by a path or a module. The checkpoints are the shipped ones and those in the
folders given at the start of the server. The command line may offer any other player, and rules, by
name.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Hashable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache

from bao_agents import registry
from bao_agents.base import LoadRequest, OnBoard, PlayerSpec
from bao_agents.play.refused import Refused
from bao_agents.registry import read_network
from bao_env.board import Board
from bao_env.bots import Agent, check_actions
from bao_env.engine.action import mask_of
from bao_env.engine.ruleset import RULESETS, Ruleset

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork

HUMAN = "human"
MAX_NETWORKS = 8
_MAX_LOADED = 8
"""Maximum number of idle players."""
_MAX_WORDS = 300
"""Maximum length of the message about a failing player, in characters."""
_MAX_CHECKPOINTS = 200


class Roster:
    """The players and the rule sets that this server offers.

    Args:
        folders: the folders whose ``.safetensors`` files may play besides the shipped ones;
            subfolders are included.
        seed: the seed of the players' random choices.
        players: further players, by any name that :func:`bao_agents.registry.load` takes.
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
        self._networks: LRUCache[Hashable, PolicyNetwork] = LRUCache(MAX_NETWORKS)
        self._seed = seed
        self.files = {
            name: registry.CHECKPOINTS / f"{name}.safetensors" for name in registry.shipped()
        }
        """The checkpoints that may play, by name."""
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is not a folder; expected one with .safetensors files")
            # Reading a pipe or a device could block indefinitely.
            files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
            for path in files[:_MAX_CHECKPOINTS]:
                name = path.relative_to(folder.parent).with_suffix("").as_posix()
                self.files.setdefault(name, path)
        self._loaded: LRUCache[Hashable, Agent] = LRUCache(_MAX_LOADED)
        """Idle players: a search reuses its memory, so only one game may use it at a time."""
        self._lock = threading.Lock()

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
                "spec": kind.spelling.format(checkpoint=name, budget=f"\0{unit}").partition("\0")[
                    ::2
                ],
                "budget": entry.budget and asdict(entry.budget),
            }
            for name in ("", *self.files)
            for kind in registry.KINDS
            if kind.has_checkpoint == bool(name)
            for unit, entry in kind.on_board.items()
        ]

    def evaluators(self) -> list[dict[str, Any]]:
        """Return the players that give hints, each with its default budget, as plain values."""
        found = []
        for choice in self.choices():
            value, label = "".join(choice["spec"]), choice["label"]
            if choice["budget"]:
                budget = str(choice["budget"]["default"])
                value = budget.join(choice["spec"])
                label = {language: f"{text}, {budget}" for language, text in label.items()}
            if self.parse(value).kind.gives_hints:
                found.append({"value": value, "label": label})
        return found

    def parse(self, spec: str) -> PlayerSpec:
        """Parse the name of a player that may play here; people excluded.

        Raises:
            Refused: the player may not play here, or its budget is out of range.
        """
        if spec in self.further:
            return self.further[spec]
        try:
            found = registry.parse(spec, self.files)
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
        parsed = self.parse(spec)
        try:
            key = str(parsed), parsed.path and _version(parsed.path), board.ruleset
            with self._lock:
                agent = self._loaded.pop(key, None)
            if agent is None:
                network = self.network(parsed.path, board.ruleset) if parsed.path else None
                request = LoadRequest(parsed, board.ruleset, self._seed, 1, network)
                agent = parsed.kind.load(request)
        except Exception as error:  # no damaged file, or one for other rules, may stop the server
            raise self.unusable(f"{spec} cannot play", error) from error
        try:
            action = int(check_actions(agent.act(board.words[None], legal), legal, spec)[0])
        except Exception as error:  # nor an error or the answer of a player
            words = f"{type(error).__name__}: {error}"[:_MAX_WORDS]
            raise Refused(f"{spec} failed: {words}", 502) from error
        with self._lock:
            self._loaded[key] = agent
        return action

    def network(self, path: Path, ruleset: Ruleset) -> PolicyNetwork:
        """Return the network of a checkpoint; callers share it and must not change it.

        The longest unused is dropped first. A checkpoint that has been rewritten is read again.

        Raises:
            OSError, ValueError: the checkpoint cannot be read, or cannot be used under these rules.
            ImportError: torch is not installed.
        """
        key = _version(path), ruleset
        with self._lock:  # held while it is read, so that nothing is read twice
            if key not in self._networks:
                self._networks[key] = read_network(path, ruleset)
            return self._networks[key]

    def unusable(self, what: str, error: Exception) -> Refused:
        """Return the refusal for a player that fails, without the paths of its files."""
        words = str(error)
        for name, path in self.files.items():
            words = words.replace(str(path), name)
        if isinstance(error, ImportError):
            words = f"a checkpoint needs torch: pip install -e '.[train]' ({words})"
        return Refused(f"{what}: {words[:_MAX_WORDS]}", 502)


def _label(entry: OnBoard, checkpoint: str) -> dict[str, str]:
    return {
        language: text.replace("{checkpoint}", checkpoint) for language, text in entry.label.items()
    }


def _version(path: Path) -> tuple[Path, int, int]:
    """Return a file with its time in nanoseconds and its size, which change if it is rewritten.

    Raises:
        OSError: the file does not exist.
        ValueError: the path is a folder, a pipe or a device.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is not a regular file: expected a checkpoint")
    return path, found.st_mtime_ns, found.st_size
