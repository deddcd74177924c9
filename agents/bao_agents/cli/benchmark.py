"""Measure cases in turn, round after round, and print what they ran on: for every benchmark.

A machine whose speed drifts affects all cases alike, because they take turns. The rate of a case is
the median over its rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bao_agents.cli.options import at_least
from bao_agents.support.output import say
from bao_agents.support.provenance import facts


@dataclass
class Case:
    """A case to measure."""

    name: str
    batch: int
    threads: int
    play: Callable[[int], int]
    """The function that makes the given number of calls, and returns the number of plies played."""
    rates: list[float] = field(default_factory=list)
    """Plies per second of each round."""
    cpu_rates: list[float] = field(default_factory=list)
    """Plies per second of processor time of each round; the time is summed over the threads."""

    @property
    def rate(self) -> float:
        """Median plies per second."""
        return statistics.median(self.rates)

    @property
    def cpu_rate(self) -> float:
        """Median plies per second of processor time."""
        return statistics.median(self.cpu_rates)


def measure(cases: Sequence[Case], rounds: int, seconds: float) -> None:
    """Run the cases in turn, ``rounds`` times, each for about ``seconds`` seconds a round."""
    calls = []
    for case in cases:
        case.play(1)
        count, spent = timeit.Timer(partial(case.play, 1)).autorange()
        calls.append(max(1, round(count * seconds / spent)))
    for i in range(rounds):
        say(f"round {i + 1} of {rounds}")
        for case, count in zip(cases, calls, strict=True):
            cpu, start = time.process_time(), time.perf_counter()
            plies = case.play(count)
            case.rates.append(plies / (time.perf_counter() - start))
            case.cpu_rates.append(plies / max(time.process_time() - cpu, 1e-9))


def add_rounds(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Add the options ``--rounds`` and ``--seconds`` of :func:`measure` to a parser."""
    parser.add_argument(
        "--rounds", type=at_least(1), default=5, help="number of rounds over all cases (default: 5)"
    )
    parser.add_argument(
        "--seconds",
        type=at_least(0.001, float),
        default=seconds,
        help="seconds per case and round (default: %(default)s)",
    )


def print_facts(record: Mapping[str, Any]) -> None:
    """Print the rules, the engine's signature, the machine and the code of a benchmark."""
    texts = facts(record)
    print(texts["rules"])
    print(texts["machine"])
    print(f"commit {texts['commit']}, {texts['versions']}")
