"""Measure training: environment steps a second, end to end, and where the time goes.

    python -m training.bench

The reference is a 2x256 network that reads the board, one epoch, on one worker (one
core), then on all. ``--set`` changes any setting of :mod:`training.config`; a whole
configuration is measured with ``--config``, say configs/zanzibar.toml, where a step is a
searched action and the time of the network within the searches is shown apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
import torch

from agents.nets.compiled import compile_network, forward, make_network_workspace
from agents.nets.encoding import encode
from bao_env.bench import machine
from training.config import ConfigError, TrainConfig, load_config
from training.searchplay import SearchWorker
from training.train import make_trainer
from training.trainer import Trainer

REFERENCE = ("network=board", "hidden=[256, 256]", "epochs=1", "envs=4096", "minibatch=8192")
"""Settings of the reference: the network reads each position once, and learns from it once."""


def encodings_read(trainer: Trainer) -> list[int]:
    """Rows that the network has read in each worker's searches; none without searches."""
    return [w.search.encodings_read for w in trainer.workers if isinstance(w, SearchWorker)]


def seconds_a_row(trainer: Trainer) -> float:
    """What the compiled network takes for a row of the games under way, on one core."""
    worker = trainer.workers[0]
    rows, legal_actions, _ = encode(
        worker.engine.rules, worker.positions, worker.masks, trainer.network.config.per_action
    )
    weights = compile_network(trainer.network)
    count = len(legal_actions) if trainer.network.config.per_action else len(worker.masks)
    out = np.empty((len(rows), int(weights.widths[-1])), np.float32)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        forward(weights, rows, count, make_network_workspace(weights), out)
        times.append((time.perf_counter() - start) / count)
    return min(times)


def measure(config: TrainConfig, updates: int) -> dict[str, Any]:
    """Median steps a second of some updates after three to warm up, and the share of each part."""
    trainer = make_trainer(config)
    spent: dict[str, float] = defaultdict(float)
    rates = []
    judged = 0
    rows: list[dict[str, float]] = []
    call = trainer.each

    def timed(method: str, *args: Any) -> list[Any]:
        start = time.perf_counter()
        results = call(method, *args)
        spent[{"collect": "play", "gradient": "learn"}.get(method, "rest")] += (
            time.perf_counter() - start
        )
        return results

    trainer.each = timed  # type: ignore[method-assign]
    for update in range(3 + updates):
        if update == 3:
            spent.clear()
            judged = -sum(encodings_read(trainer))
        start = time.perf_counter()
        row = trainer.train_update()
        if update >= 3:
            rows.append(row)
            rates.append(config.envs * config.rollout / (time.perf_counter() - start))
    judged += sum(encodings_read(trainer))
    total = sum(config.envs * config.rollout / rate for rate in rates)
    shares = {part: spent[part] / total for part in ("play", "learn")}
    network = statistics.fmean(row.get("network_share", 0.0) for row in rows)
    if config.method == "gumbel" and not network:
        network = judged * seconds_a_row(trainer) / config.workers / total
    if network:
        shares = {"search": shares["play"] - network, "network": network, "learn": shares["learn"]}
    rate = statistics.median(rates)
    return {
        "workers": config.workers,
        "network": config.network,
        "hidden": list(config.hidden),
        "steps_per_second": rate,
        "steps_per_second_and_core": rate / config.workers,
        "simulations_per_second": rate * config.simulations if config.method == "gumbel" else None,
        "shares": shares | {"rest": 1.0 - sum(shares.values())},
    }


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.bench``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.bench",
        description="Environment steps a second of training, end to end.",
    )
    parser.add_argument("--config", metavar="FILE", help="in place of the reference")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument("--updates", type=int, default=20, help="updates to time (default 20)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args(argv)
    if args.updates < 1 or min(args.workers) < 1:
        parser.error("--updates and --workers must be positive")
    settings = args.set if args.config else [*REFERENCE, *args.set]
    try:
        results = [
            measure(load_config(args.config, [*settings, f"workers={workers}"]), args.updates)
            for workers in sorted(set(args.workers))
        ]
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    where = machine() | {"torch": torch.__version__}
    if args.json:
        print(json.dumps({"machine": where, "results": results}, indent=2))
        return 0
    print(f"{where['cpu']}, {where['cores']} cores, torch {where['torch']}")
    print(f"{'network':22}{'workers':>8}{'steps/s':>11}{'per core':>11}", end="")
    print("".join(f"{part:>9}" for part in results[0]["shares"]))
    for row in results:
        name = f"{row['network']} {'x'.join(map(str, row['hidden']))}"
        print(f"{name:22}{row['workers']:>8}{row['steps_per_second']:>11,.0f}", end="")
        print(f"{row['steps_per_second_and_core']:>11,.0f}", end="")
        print("".join(f"{share:>9.0%}" for share in row["shares"].values()))
        if row["simulations_per_second"]:
            print(f"{'':22}{row['simulations_per_second']:>19,.0f} simulations/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
