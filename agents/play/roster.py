"""Who may play at the board: people, bots with a limit, and checkpoints from a list.

A client names a player as :mod:`agents.registry` does, but only of the kinds that the board offers,
and never by a path or a module. The checkpoints are the shipped ones and those in the folders named
when the server was started.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
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
from bao_env.engine.ruleset import Ruleset

HUMAN: Final = "human"
_MAX_LOADED: Final = 8
"""Players kept, besides those that are thinking."""
_MAX_WORDS: Final = 300
"""Longest text of what a player did wrong."""
_MAX_CHECKPOINTS: Final = 200


def _offered() -> list[tuple[PlayerKind, OnBoard]]:
    """The kinds of players that the board offers."""
    return [(kind, kind.on_board) for kind in registry.KINDS if kind.on_board is not None]


class Roster:
    """The players that this server offers.

    Args:
        folders: their ``.safetensors`` files, subfolders included, may play besides the shipped.
        seed: of the players' random choices.

    Raises:
        ValueError: one of ``folders`` is not a folder.
    """

    def __init__(self, folders: Iterable[Path] = (), seed: int = 0) -> None:
        self.networks = Networks()
        """The players' networks; hints use them, too."""
        self._seed = seed
        self._files = {
            name: registry.CHECKPOINTS / f"{name}.safetensors" for name in registry.shipped()
        }
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is not a folder; expected one with .safetensors files")
            # Reading a pipe or a device could take for ever.
            files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
            for path in files[:_MAX_CHECKPOINTS]:
                name = path.relative_to(folder.parent).with_suffix("").as_posix()
                self._files.setdefault(name, path)
        self._loaded: LRUCache[Hashable, Agent] = LRUCache(_MAX_LOADED)
        """Those that are not thinking: a search reuses its memory, so only one game uses it."""
        self._lock = threading.Lock()

    def checkpoints(self) -> list[str]:
        """Names of the checkpoints that may play."""
        return list(self._files)

    def choices(self) -> list[dict[str, Any]]:
        """All players but people, as plain values, for a list to choose from.

        Each has a unique ``value``, a ``label`` by language, the ``budget`` that it needs or None,
        and ``spec``: the parts of its name before and after the budget.
        """
        alone = [(kind, place, "") for kind, place in _offered() if not kind.has_checkpoint]
        with_network = [
            (kind, place, name)
            for name in self._files
            for kind, place in _offered()
            if kind.has_checkpoint
        ]
        return [
            {
                "value": f"{kind.name}:{name}" if name else kind.name,
                "label": _label(place, name),
                "spec": [
                    part.replace("{checkpoint}", name)
                    for part in kind.spelling.partition("{budget}")[::2]
                ],
                "budget": place.budget
                and {
                    "label": dict(place.budget.label),
                    "low": place.budget.low,
                    "high": place.budget.high,
                    "default": place.budget.default,
                },
            }
            for kind, place, name in alone + with_network
        ]

    def evaluators(self) -> list[dict[str, Any]]:
        """The players that give hints, each with its default budget, as plain values."""
        found = []
        for name in self._files:
            for kind, place in _offered():
                if place.gives_hints:
                    fields = {"checkpoint": name}
                    label = _label(place, name)
                    if place.budget:
                        fields["budget"] = str(place.budget.default)
                        label = {key: f"{text}, {fields['budget']}" for key, text in label.items()}
                    found.append({"value": str(PlayerSpec(kind, fields)), "label": label})
        return found

    def parse(self, spec: str) -> PlayerSpec:
        """The player that a name means, if it may play here; people excluded.

        Raises:
            Refused: it is not, or its budget is out of range.
        """
        try:
            found = registry.parse(spec, [kind for kind, _ in _offered()], self._files)
        except ValueError as error:
            raise Refused(str(error)) from error
        budget = found.kind.on_board and found.kind.on_board.budget
        if budget and not budget.low <= found.budget <= budget.high:
            raise Refused(f"player {spec!r}: expected a budget from {budget.low} to {budget.high}")
        return found

    def check(self, spec: str) -> str:
        """The name of a player, if it may play here; people included.

        Raises:
            Refused: it is not, or its budget is out of range.
        """
        return spec if spec == HUMAN else str(self.parse(spec))

    def act(self, spec: str, board: Board) -> int:
        """The action that a player chooses on a board that is not over.

        Raises:
            Refused: it cannot be loaded, fails, or chooses an illegal action; the message says
                which.
        """
        masks = np.array([mask_of(board.legal_actions)], np.uint64)
        key, agent = self._take(self.parse(spec), board.ruleset)
        try:
            answer = agent.act(board.words[None], masks)
        except Exception as error:  # whatever a player raises may not stop the server
            words = f"{type(error).__name__}: {error}"[:_MAX_WORDS]
            raise Refused(f"{spec} failed: {words}", 502) from error
        with self._lock:
            self._loaded[key] = agent
        try:
            return int(check_actions(answer, masks, spec)[0])
        except Exception as error:  # nor may its answer, whatever it is
            raise Refused(str(error)[:_MAX_WORDS], 502) from error

    def _take(self, spec: PlayerSpec, ruleset: Ruleset) -> tuple[Hashable, Agent]:
        """A player for one game, and under which key to keep it afterwards."""
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
        """The refusal of a checkpoint or a bot that fails, without the paths of its files."""
        words = str(error)
        for name, path in self._files.items():
            words = words.replace(str(path), name)
        if isinstance(error, ImportError):
            words = f"a checkpoint needs torch: pip install -e '.[train]' ({words})"
        return Refused(f"{what}: {words[:_MAX_WORDS]}", 502)


def _label(place: OnBoard, checkpoint: str) -> dict[str, str]:
    return {
        language: text.replace("{checkpoint}", checkpoint) for language, text in place.label.items()
    }
