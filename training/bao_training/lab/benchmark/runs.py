"""Train and rate a learner on an observation with a seed, and write its file.

The clock counts processor seconds of this process while it trains, but not while the player is
rated. A tiny training beforehand compiles everything.
"""

from __future__ import annotations

import math
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bao_agents import registry
from bao_agents.arena.elo import finite
from bao_agents.arena.ladder import Ladder, load_ladder
from bao_agents.arena.match import play_match, play_openings
from bao_agents.arena.placement import Session
from bao_agents.files import fault
from bao_agents.progress import Progress
from bao_agents.provenance import provenance
from pydantic import BaseModel, ConfigDict, ValidationError

from bao_env.bots import Agent
from bao_env.engine.batch import Engine
from bao_env.files import write_atomically
from bao_env.signature import machine
from bao_training.lab.benchmark.learners import LEARNERS

POINTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of its steps at which a run is rated."""
BOTS = ("random", "greedy", "alphabeta:2")
"""Opponents at the end."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BenchmarkSettings(_Table):
    """Settings that the runs of a folder share."""

    steps: int = 1_000_000
    """Steps of each run, rounded up to whole updates; a learner may take a share of it."""
    precision: float = 60.0
    """Longer arm of the 95 % interval of a rating on the way, in Elo; at the end two thirds."""
    pairs: int = 500
    """Openings against each bot in the end, each from both seats."""


class Name(NamedTuple):
    """Name of a run."""

    learner: str
    observation: str
    seed: int

    def __str__(self) -> str:
        return f"{self.learner}-{self.observation}-{self.seed}"


class Point(_Table):
    """A rating on the way."""

    steps: int
    seconds: float
    """Processor seconds of training so far."""
    elo: float
    """Rating; if it is infinite, the one with an additional draw."""
    low: float | None
    high: float | None
    games: int


class Run(_Table):
    """A finished run."""

    learner: str
    observation: str
    seed: int
    settings: BenchmarkSettings
    points: tuple[Point, ...]
    scores: dict[str, dict[str, Any]]
    """Scores against each of :data:`BOTS` (:meth:`bao_agents.arena.elo.Score.to_dict`)."""
    ladder: str
    package: str
    """Name and version of the library that trained it."""
    machine: dict[str, Any]
    made_with: dict[str, Any]


class Recorder:
    """Rate a player at :data:`POINTS` and measure the time between; a learner's ``report``.

    Args:
        steps: steps of the run.
        settings: settings of the benchmark.
        ladder: scale of the ratings.
        bar: progress bar of the steps.
    """

    def __init__(
        self, steps: int, settings: BenchmarkSettings, ladder: Ladder, bar: Progress
    ) -> None:
        self.points: list[Point] = []
        self.scores: dict[str, dict[str, Any]] = {}
        self._due = [math.ceil(share * steps) for share in POINTS]
        self._settings, self._ladder, self._bar = settings, ladder, bar
        self._seconds = 0.0
        self._since = time.process_time()

    def __call__(self, steps: int, player: Agent) -> None:
        self._seconds += time.process_time() - self._since
        self._bar.update(min(steps, self._due[-1] if self._due else steps) - self._bar.n)
        if self._due and steps >= self._due[0]:
            self._due = [due for due in self._due if due > steps]
            precision = self._settings.precision * (1.0 if self._due else 2.0 / 3.0)
            self.points.append(rated(player, self._ladder, precision, steps, self._seconds))
            self._bar.set_postfix_str(f"{self.points[-1].elo:.0f} Elo")
            if not self._due:
                self.scores = {bot: self._score(player, bot) for bot in BOTS}
        self._since = time.process_time()

    def _score(self, player: Agent, bot: str) -> dict[str, Any]:
        ruleset = self._ladder.ruleset
        opponent = registry.load(bot, ruleset=ruleset, seed=1, threads=1)
        match = play_match(player, opponent, ruleset=ruleset, pairs=self._settings.pairs, seed=1)
        return match.score.to_dict()


def rated(player: Agent, ladder: Ladder, precision: float, steps: int, seconds: float) -> Point:
    """Rate a player on a ladder in this process.

    Args:
        player: the player.
        ladder: the scale.
        precision: longer arm of the 95 % interval, in Elo.
        steps, seconds: training so far.
    """
    session, engine = Session(ladder, seed=1), Engine(ladder.ruleset)
    while parts := session.plan(precision):
        for part in parts:
            seed = int(np.random.SeedSequence([part.anchor, *part.openings]).generate_state(1)[0])
            anchor = ladder.load(ladder.anchors[part.anchor].player, seed)
            match = play_openings(player, anchor, ladder.starts[np.array(part.openings)], engine)
            session.add(part, match.points)
    found = session.placement()
    return Point(
        steps=steps,
        seconds=seconds,
        elo=found.elo if math.isfinite(found.elo) else session.guess(),
        low=finite(found.low),
        high=finite(found.high),
        games=2 * session.pairs,
    )


def file_of(folder: Path, name: Name) -> Path:
    """Return the file of a run."""
    return folder / f"{name}.json"


def run(name: Name, settings: BenchmarkSettings, folder: Path, line: int = 0) -> Run:
    """Train, rate and write a run.

    Args:
        name: the run.
        settings: settings of the benchmark.
        folder: folder of its file.
        line: line of the progress bar.

    Raises:
        OSError: it cannot be written.
    """
    learner, ladder = LEARNERS[name.learner], load_ladder()
    steps = math.ceil(settings.steps * learner.share)
    learner.train(name.observation, name.seed, 1, lambda steps, player: None)
    with Progress(
        total=steps, unit="step", unit_scale=True, desc=str(name), position=line, leave=False
    ) as bar:
        recorder = Recorder(steps, settings, ladder, bar)
        learner.train(name.observation, name.seed, steps, recorder)
    done = Run(
        **name._asdict(),
        settings=settings,
        points=tuple(recorder.points),
        scores=recorder.scores,
        ladder=ladder.name,
        package=f"{learner.distribution} {version(learner.distribution)}",
        machine=machine(),
        made_with=provenance(ladder.ruleset),
    )
    write_atomically(file_of(folder, name), done.model_dump_json(indent=1) + "\n")
    return done


def load(path: Path) -> Run:
    """Read a run from its file.

    Raises:
        ValueError: it holds something else.
        OSError: it cannot be read.
    """
    try:
        return Run.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(
            f"{path} is not a run of this benchmark ({fault(error)}): remove it, or choose another "
            "--out"
        ) from error
