"""Train a network on exact values; measure how often it is right and keeps a win.

    python -m training.lab.values kujifunza.npz --observation board replies planes

The file is one of ``python -m training.exact_values``. The network, two layers of 256 units, learns
from its positions and those after each action, except those for tests. It prints a Markdown table:
how often the network predicts the winner, in all test positions and in those of each source; and,
where some actions win and others lose, how often the action that it prefers wins. The last rows are
for alpha-beta's evaluation and for random numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import flatdim
from tabulate import tabulate
from torch import nn
from tqdm import tqdm

from agents.arena.elo import wilson_interval
from agents.search.alphabeta.evaluation import FEATURES, features, load_weights
from agents.search.solver.solved_positions import SolvedPositions, with_successors
from bao_env.engine.batch import Engine
from bao_env.engine.position import Words, movers
from bao_env.engine.ruleset import Ruleset
from bao_env.envs.afterstates import list_afterstates
from bao_env.observation.observer import (
    OBSERVATIONS,
    Observer,
    get_observer,
    make_observations,
)
from training.exact_values import SOURCES

BATCH: Final = 1024
_CERTAIN: Final = np.float32(1e9)
"""Value of an action that ends the game with a win."""
HEAD: Final = (
    "who judges",
    "says rightly who wins",
    *(f"in {name} games" for name in SOURCES),
    "keeps a win that it can lose",
)

Judge = Callable[[Words, Words], npt.NDArray[np.float32]]
"""Map positions uint64[B, 6] and masks uint64[B] to float32[B]: positive where the player to move
probably wins, and higher where that is more likely."""


def see(observer: Observer, positions: Words, masks: Words) -> torch.Tensor:
    """Return the observations of the players to move, float32[B, inputs]."""
    arrays = make_observations(observer, positions, masks, movers(positions))
    parts = arrays.values() if isinstance(arrays, dict) else [arrays]
    return torch.cat([torch.from_numpy(array).flatten(1) for array in parts], dim=1)


def learn(data: SolvedPositions, observer: Observer, steps: int, seed: int) -> Judge:
    """Train a network; return its logits of a win.

    Args:
        data: positions to learn from.
        observer: observation that the network reads.
        steps: number of steps of :data:`BATCH` positions.
        seed: seed of the weights and of the order of the positions.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    inputs = flatdim(observer.space)
    network = nn.Sequential(
        nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss_of = nn.BCEWithLogitsLoss()
    positions, masks, values = with_successors(data)
    won = torch.from_numpy((values > 0).astype(np.float32))
    for _ in tqdm(range(steps), desc="steps", unit="step"):
        chosen = rng.integers(len(won), size=BATCH)
        seen = see(observer, positions[chosen], masks[chosen])
        loss = loss_of(network(seen).squeeze(1), won[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()

    def judge(positions: Words, masks: Words) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            logits: npt.NDArray[np.float32] = network(see(observer, positions, masks))[:, 0].numpy()
            return logits

    return judge


def evaluation(ruleset: Ruleset) -> Judge:
    """Return alpha-beta's evaluation without search."""
    weights = load_weights(ruleset).astype(np.float32)

    def judge(positions: Words, masks: Words) -> npt.NDArray[np.float32]:
        found = np.empty((len(masks), FEATURES), np.int32)
        features(positions, found)
        values: npt.NDArray[np.float32] = weights[found].sum(axis=1)
        return values

    return judge


def keeps_the_win(data: SolvedPositions, ruleset: Ruleset, judge: Judge) -> npt.NDArray[np.bool_]:
    """Return whether the action that a judge prefers wins, where some win and others lose."""
    chosen = (data.winning != 0) & (data.winning != data.masks)
    positions, masks, winning = data.positions[chosen], data.masks[chosen], data.winning[chosen]
    after = list_afterstates(Engine(ruleset), get_observer("board", ruleset), positions, masks)
    liked = after.signs * judge(after.positions, after.legal)
    liked = np.where(after.results == 0, liked, _CERTAIN * after.results)
    best = [low + int(liked[low:high].argmax()) for low, high in pairwise(after.indptr)]
    return winning >> after.actions[best].astype(np.uint64) & np.uint64(1) != 0


def share(right: npt.NDArray[np.bool_]) -> str:
    """Format a share in percent with its 95 % interval."""
    if not len(right):
        return ""
    low, high = wilson_interval(float(right.mean()), len(right))
    return f"{right.mean():.1%} ({low:.1%} to {high:.1%})"


def row(name: str, data: SolvedPositions, ruleset: Ruleset, judge: Judge) -> list[str]:
    """Return a row of the table, in the order of :data:`HEAD`."""
    right = (judge(data.positions, data.masks) > 0) == (data.values > 0)
    by_source = [share(right[data.source == name]) for name in SOURCES]
    return [name, share(right), *by_source, share(keeps_the_win(data, ruleset, judge))]


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.values``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.values",
        description="Train a network on exact values, and print how often it is right.",
    )
    parser.add_argument("file", help="of python -m training.exact_values")
    parser.add_argument(
        "--observation",
        nargs="+",
        choices=OBSERVATIONS,
        default=["board"],
        metavar="KIND",
        help=f"what it reads, one network for each: {', '.join(OBSERVATIONS)} (default board)",
    )
    parser.add_argument("--steps", type=int, default=2000, help=f"of {BATCH} positions (2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the networks (0)")
    args = parser.parse_args(argv)
    if args.steps < 1 or args.seed < 0:
        parser.error("--steps must be positive, --seed not negative")
    try:
        data = SolvedPositions.load(args.file)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    ruleset = data.ruleset
    lessons, tests = data.part(test=False), data.part(test=True)
    rows, stopped = [], False
    try:
        for name in args.observation:
            judge = learn(lessons, get_observer(name, ruleset), args.steps, args.seed)
            rows.append(row(f"network, `{name}`", tests, ruleset, judge))
    except KeyboardInterrupt:
        stopped = True
        print("\nstopped; what was found:", file=sys.stderr)
    rows.append(row("alpha-beta's evaluation", tests, ruleset, evaluation(ruleset)))
    rng = np.random.default_rng(args.seed)
    rows.append(
        row("random", tests, ruleset, lambda _, masks: rng.normal(size=len(masks)).astype("f4"))
    )
    print(f"{len(lessons.values):,} positions to learn from, {len(tests.values):,} for tests\n")
    print(tabulate(rows, HEAD, tablefmt="github"))
    return 130 if stopped else 0


if __name__ == "__main__":
    torch.set_num_threads(1)  # so small a network gains nothing from more
    sys.exit(main())
