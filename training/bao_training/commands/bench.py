"""Measure training: environment steps per second, end to end.

    bao bench train

Without a configuration it measures ``configs/quick.toml``, with one worker (one core) and then with
a worker for each core. ``--set`` changes any setting. In runs with a search, a step is a searched
action.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from tabulate import tabulate

from bao_agents.cli.benchmark import print_facts
from bao_agents.cli.options import Run, add_options, at_least, write_json
from bao_agents.support.cores import cores
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_training.run_settings import load_config
from bao_training.train import make_trainer


def measure(path: str | Path | None, overrides: list[str], updates: int) -> dict[str, Any]:
    """Measure the median steps per second of updates after the warm-up.

    Raises:
        ConfigError: the settings cannot be used.
    """
    trainer = make_trainer(*load_config(path, overrides))
    config = trainer.config
    for _ in Progress(range(3), desc="warming up", leave=False):
        trainer.train_update()
    bar = Progress(range(updates), desc=f"workers={config.workers}", unit="update", leave=False)
    rate = statistics.median(trainer.train_update()["steps_per_second"] for _ in bar)
    return {
        "network": "x".join(map(str, config.hidden)),
        "workers": config.workers,
        "steps_per_second": round(rate),
        "per_core": round(rate / config.workers),
    }


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao bench train``: environment steps per second of training, end to end."""
    parser.add_argument(
        "config", nargs="?", default="quick", metavar="FILE", help="a configuration, or its name"
    )
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="as in bao train"
    )
    parser.add_argument(
        "--updates", type=at_least(1), default=20, help="updates to time (default: %(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=at_least(1),
        nargs="+",
        default=[1, cores()],
        metavar="N",
        help="cores to use, one worker each",
    )
    add_options(parser, "json")
    return _run


def _run(args: argparse.Namespace) -> None:
    results = [
        measure(args.config, [*args.set, f"workers={workers}"], args.updates)
        for workers in sorted(set(args.threads))
    ]
    config, _ = load_config(args.config, args.set)
    record = provenance(config.get_ruleset(), seed=config.seed, command=["bao", *args.words])
    write_json(args.json, {"made_with": record, "results": results})
    if args.json == "-":
        return
    print_facts(record)
    print(tabulate(results, headers="keys", intfmt=","))
