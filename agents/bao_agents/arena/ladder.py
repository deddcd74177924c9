"""Define ladders: anchors, which are players with fixed ratings, and openings to play from.

A ladder is a JSON file for one rule set. People share these files, so the anchors are built-in
bots, and loading a file never runs code from it. The ratings are the ladder's scale: a ladder's
name always stands for the same ratings. If an anchor begins to play differently, make a new ladder
with a new number: ``docs/make_ladder.py`` makes one from a tournament.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from typing_extensions import TypedDict

from bao_agents.arena.elo import Z95, expected_score
from bao_agents.arena.openings import MatchOpenings, parse_openings
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.player import NamedPlayer
from bao_agents.support.array_types import Float64Array
from bao_agents.support.files import fault
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.signature import signature
from bao_env.files import read_text

LADDERS = Path(__file__).with_name("ladders")
"""Folder of the shipped ladders; load one by its file name without the suffix."""
DEFAULT = "bao-ladder-3"

_DIGEST_POSITIONS = 32


class LadderError(ValueError):
    """A ladder, or a player on it, cannot be used; the message says why."""


class _Table(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False
    )


def _built_in(player: str) -> str:
    """Return the name of a built-in bot; raise ValueError for a program, a module or a file."""
    try:
        registry.parse(player, checkpoints={})
    except ValueError as error:
        raise ValueError(
            f"{player!r:.200} is not a built-in bot, such as greedy or alphabeta:6"
        ) from error
    return player


_Text = Annotated[str, StringConstraints(pattern="^[ -~]{1,200}$")]
"""Printable ASCII text, which is safe to show on a terminal."""


_Elo = Annotated[float, Field(ge=-10_000, le=10_000)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Anchor(_Table):
    """A player of known rating."""

    player: Annotated[str, AfterValidator(_built_in)]
    """The name of a built-in bot for :func:`bao_agents.players.registry.load`."""
    elo: _Elo
    low: _Elo
    """Lower end of the tournament's 95% interval of ``elo``, relative to the player at 0."""
    high: _Elo
    """Upper end of this interval."""
    games: _Count
    """Games that it played in the tournament."""
    ms_a_move: Annotated[float, Field(ge=0, le=1e9)]
    answers: str
    """:func:`choices_digest` of the rated player; empty if it is unknown."""
    fingerprint: str
    """:func:`~bao_agents.players.fingerprint.fingerprint` of the rated player."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low <= self.elo <= self.high:
            raise ValueError(f"its Elo {self.elo} is not between {self.low} and {self.high}")
        return self


class _MadeWith(TypedDict):
    """The versions of the code; other keys are allowed."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    commit: _Text


class _Tournament(TypedDict):
    """The settings of a tournament that a rating's card shows; other keys are allowed."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    made_with: _MadeWith
    opening_plies: _Count


class Ladder(_Table):
    """A scale on which to rate players."""

    name: _Text
    rules: dict[str, Any]
    """:meth:`Ruleset.to_dict` of the rule set."""
    engine_signature: str
    """:func:`bao_env.engine.signature.signature` of the engine that rated the anchors."""
    tournament: _Tournament
    """The tournament that rated the anchors: its settings and the versions of the code."""
    openings_seed: int
    """The seed of the openings, which have the length and balance of the tournament's openings."""
    anchors: tuple[Anchor, ...] = Field(min_length=2)
    openings: tuple[str, ...] = Field(min_length=1)
    """The openings, as :func:`~bao_agents.arena.openings.write_openings` writes them."""

    @cached_property
    def ruleset(self) -> Ruleset:
        """The rules of the games.

        Raises:
            ValueError: ``rules`` are contradictory.
        """
        return Ruleset.from_dict(self.rules)

    @cached_property
    def ratings(self) -> Float64Array:
        """float64[A], the anchors' Elo."""
        return np.array([anchor.elo for anchor in self.anchors])

    @cached_property
    def covariance(self) -> Float64Array:
        """float64[A, A], the covariance of the errors of the anchors' ratings, in square Elo.

        Errors are relative to the anchor at 0, whose rating is exact. The file states the error of
        each anchor. Their correlations follow from the model of
        :func:`bao_agents.arena.ratings.rate`, for a round robin that ended with these ratings.
        """
        errors = np.array([anchor.high - anchor.low for anchor in self.anchors]) / (2.0 * Z95)
        games = np.array([max(1.0, anchor.games) for anchor in self.anchors])
        expected = expected_score(self.ratings[:, None] - self.ratings)
        curvature = -np.minimum.outer(games, games) * expected * (1.0 - expected)
        np.fill_diagonal(curvature, 0.0)
        np.fill_diagonal(curvature, -curvature.sum(axis=1))
        from_zero = np.eye(len(errors)) - np.eye(len(errors))[errors.argmin()]
        model = from_zero @ np.linalg.pinv(curvature) @ from_zero.T
        model_errors = np.sqrt(np.diag(model).clip(min=0.0))
        scale = np.divide(errors, model_errors, out=np.zeros_like(errors), where=model_errors > 0)
        return np.asarray(model * np.outer(scale, scale), np.float64)

    @cached_property
    def starts(self) -> MatchOpenings:
        """The openings, and the positions after them.

        Raises:
            ValueError: an opening is not legal, ends the game, or differs in length.
        """
        return parse_openings(self.openings, self.ruleset)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len({anchor.player for anchor in self.anchors}) < len(self.anchors):
            raise ValueError("two anchors are the same player, so one of its ratings is wrong")
        try:
            _ = self.starts
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
        return self

    def changed(self) -> list[str]:
        """Return the anchors that now play differently than when they were rated."""
        return [anchor.player for anchor in self.anchors if self._is_changed(anchor)]

    def _is_changed(self, anchor: Anchor) -> bool:
        player = registry.load(anchor.player, ruleset=self.ruleset, threads=1)
        if fingerprint(anchor.player, player, self.ruleset) != anchor.fingerprint:
            return True
        return anchor.answers not in ("", choices_digest(player, self.starts, self.ruleset))


def choices_digest(player: NamedPlayer, openings: MatchOpenings, ruleset: Ruleset) -> str:
    """Return a hash, 16 hex digits, of a player's choices after the first openings."""
    positions = openings.positions[:_DIGEST_POSITIONS].copy()
    legal = np.empty(len(positions), np.uint64)
    Engine(ruleset).find_legal(positions, legal, np.empty(len(positions), np.int8))
    actions = np.asarray(player.act(positions, legal)).astype(np.uint8)
    return hashlib.sha256(actions.tobytes()).hexdigest()[:16]


def shipped() -> list[str]:
    """Return the names of the shipped ladders."""
    return sorted(path.stem for path in LADDERS.glob("*.json"))


def anchors_elo() -> dict[str, float]:
    """Return the Elo of each anchor of the default ladder, without checking the engine."""
    content = json.loads((LADDERS / f"{DEFAULT}.json").read_bytes())
    return {anchor["player"]: anchor["elo"] for anchor in content["anchors"]}


def load_ladder(name: str = DEFAULT) -> Ladder:
    """Load a ladder, and check that the engine still plays its rules.

    Args:
        name: the name of a shipped ladder, or the path of a JSON file.

    Raises:
        LadderError: there is no such ladder, its file is damaged or has the name of a shipped
            ladder with another content, or the engine now plays its rules differently.
        OSError: its file cannot be read.
    """
    path = LADDERS / f"{name}.json" if name in shipped() else Path(name)
    try:
        text = read_text(path)
        ladder = Ladder.model_validate_json(text)
    except FileNotFoundError as error:
        raise LadderError(
            f"no ladder {name!r:.200}: expected the path of a file, or {', '.join(shipped())}"
        ) from error
    except ValidationError as error:
        raise LadderError(f"{path} is not a valid ladder: {fault(error)}") from error
    if signature(ladder.ruleset) != ladder.engine_signature:
        raise LadderError(
            f"{ladder.name} was made with other rules: the engine now plays "
            f"{ladder.ruleset.name} differently; make a new ladder"
        )
    namesake = LADDERS / f"{ladder.name}.json"
    if ladder.name in shipped() and json.loads(text) != json.loads(namesake.read_bytes()):
        raise LadderError(
            f"{path} has the name of the shipped ladder {ladder.name}, but differs from it: give "
            "it another name"
        )
    return ladder
