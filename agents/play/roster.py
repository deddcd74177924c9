"""Who may sit down at the board: people, bots with a limit, and checkpoints on a list.

A client names a player by a short word that is checked here against fixed patterns; it never
gives a path or a module. Checkpoints are those that are shipped and those of the folders that
the person who started the server has named.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from agents.base import NamedPlayer
from agents.play.refused import Refused
from agents.registry import CHECKPOINTS, load, shipped
from bao_env.board import Board
from bao_env.engine.ruleset import Ruleset

HUMAN: Final = "human"
LIMITS: Final = {
    "alphabeta": (1, 10),
    "alphabeta-ms": (1, 10_000),
    "mcts": (2, 100_000),
    "search": (2, 2_000),
    "guided": (1, 10_000),
}
"""Lowest and highest search budget of each kind: plies, milliseconds, playouts, simulations,
milliseconds."""
_BOTS: Final = ("random", "greedy")
_ALPHABETA: Final = re.compile(r"alphabeta:(\d{1,5})(ms)?")
_MCTS: Final = re.compile(r"mcts:(\d{1,6})(:greedy)?")
_SEARCH: Final = re.compile(r"search:(.+):(\d{1,5})")
_GUIDED: Final = re.compile(r"guided:(.+):(\d{1,5})ms")
_MAX_LOADED: Final = 8
_MAX_CHECKPOINTS: Final = 200


@dataclass(frozen=True)
class _Seated:
    """A loaded player. One game at a time asks it, for searches reuse their memory."""

    player: NamedPlayer
    lock: threading.Lock


class Roster:
    """The players that this server offers.

    Args:
        folders: their ``.safetensors`` files, in subfolders too, may play beside the shipped.
        seed: of whatever the players draw.

    Raises:
        ValueError: one of ``folders`` is no folder.
    """

    def __init__(self, folders: Iterable[Path] = (), seed: int = 0) -> None:
        self._seed = seed
        self._files = {name: CHECKPOINTS / f"{name}.safetensors" for name in shipped()}
        for folder in folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is no folder; expected one with .safetensors files")
            for path in sorted(folder.rglob("*.safetensors"))[:_MAX_CHECKPOINTS]:
                name = path.relative_to(folder.parent).with_suffix("").as_posix()
                self._files.setdefault(name, path)
        self._loaded: OrderedDict[tuple[str, Ruleset], _Seated] = OrderedDict()
        self._lock = threading.Lock()

    def checkpoints(self) -> list[str]:
        """Names of the checkpoints that may play."""
        return list(self._files)

    def path(self, name: str) -> Path:
        """The file of a checkpoint.

        Raises:
            Refused: the list has no such name.
        """
        if name not in self._files:
            known = ", ".join(self._files) or "none"
            raise Refused(f"unknown checkpoint {name[:80]!r}; the list has: {known}", 404)
        return self._files[name]

    def check(self, spec: str) -> str:
        """The name of a player, if it is one that may sit down.

        Raises:
            Refused: it is not, or its budget is out of range.
        """
        if spec == HUMAN or spec in _BOTS or spec in self._files:
            return spec
        if found := _ALPHABETA.fullmatch(spec):
            kind = "alphabeta-ms" if found[2] else "alphabeta"
            return self._within(kind, int(found[1]), spec)
        if found := _MCTS.fullmatch(spec):
            return self._within("mcts", int(found[1]), spec)
        if found := _SEARCH.fullmatch(spec):
            self.path(found[1])
            return self._within("search", int(found[2]), spec)
        if found := _GUIDED.fullmatch(spec):
            self.path(found[1])
            return self._within("guided", int(found[2]), spec)
        if spec.startswith(("alphabeta", "mcts", "search", "guided")) or ":" in spec:
            raise Refused(
                f"unknown player {spec[:80]!r}: expected something like human, random, greedy, "
                "alphabeta:6, alphabeta:500ms, mcts:1000, search:CHECKPOINT:64 or "
                "guided:CHECKPOINT:500ms"
            )
        self.path(spec)
        return spec

    def _within(self, kind: str, budget: int, spec: str) -> str:
        low, high = LIMITS[kind]
        if not low <= budget <= high:
            raise Refused(f"player {spec!r}: expected a budget from {low} to {high}")
        return spec

    def act(self, spec: str, ruleset: Ruleset, boards: list[Board]) -> list[int]:
        """The actions that a player chooses on boards of one rule set, none of them over.

        Raises:
            Refused: it cannot be loaded, fails, or chooses what is illegal; the message says so.
        """
        seated = self._seat(self.check(spec), ruleset)
        masks = [sum(1 << action for action in board.legal_actions) for board in boards]
        positions = np.stack([board.words for board in boards])
        try:
            with seated.lock:
                chosen = seated.player.act(positions, np.array(masks, np.uint64))
            actions = [int(action) for action in chosen]
        except Exception as error:  # whatever a player raises must not stop the server
            raise Refused(f"{spec} failed: {type(error).__name__}: {error}", 502) from error
        for action, mask in zip(actions, masks, strict=True):
            if not (0 <= action < 64 and mask >> action & 1):
                raise Refused(f"{spec} chose action {action}, which is illegal here", 502)
        return actions

    def _seat(self, spec: str, ruleset: Ruleset) -> _Seated:
        with self._lock:
            key = (spec, ruleset)
            if key not in self._loaded:
                player = self._load(spec, ruleset)
                self._loaded[key] = _Seated(player, threading.Lock())
                if len(self._loaded) > _MAX_LOADED:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(key)
            return self._loaded[key]

    def _load(self, spec: str, ruleset: Ruleset) -> NamedPlayer:
        named: dict[str, Any] = {"ruleset": ruleset, "seed": self._seed, "threads": 1}
        try:
            if found := _SEARCH.fullmatch(spec):
                return load(f"search:{self.path(found[1])}:{found[2]}", **named)
            if found := _GUIDED.fullmatch(spec):
                return load(f"guided:{self.path(found[1])}:{found[2]}ms", **named)
            return load(self._files.get(spec, spec), **named)
        except ImportError as error:
            raise Refused(
                f"{spec} cannot play: a checkpoint needs torch, pip install 'bao_env[train]' "
                f"({error})",
                502,
            ) from error
        except (ValueError, OSError) as error:
            raise Refused(f"{spec} cannot play: {self.without_paths(error)}", 502) from error

    def without_paths(self, error: Exception) -> str:
        """An error's words with the names of checkpoints in place of their files."""
        words = str(error)
        for name, path in self._files.items():
            words = words.replace(str(path), name)
        return words
