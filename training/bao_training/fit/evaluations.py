"""Fit alpha-beta's evaluations to self-play: the tables, or the network of guided alpha-beta.

    python -m bao_training.fit tables zanzibar --file evaluation.npz
    python -m bao_training.fit network zanzibar --file value_network.npz
    python -m bao_training.fit network zanzibar --teacher network --seed 2000 --parts 30 --file ...

Alpha-beta plays itself to a shallow depth, from random openings of all lengths. Positions of
held-out games measure each fit. During the fit, a cell of a pair of pits is a sum of three: one for
the pair, and one for each of its two pits, so that rare pairs learn from others. At the end the
three are added up.

The tables learn who won, in rounds: each round plays with the cells of the previous round. The
first round has none, and its search sees only wins within its depth.

The network learns a mean of who won and of the search's value. Self-play evaluates with the tables,
or with the network fitted before, which is a better teacher. Its games are written to
``OUT/RULES/``, one file per part. A stopped run continues with those files, and every fit uses all
games in the folder.
"""

from __future__ import annotations

import argparse
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bao_agents.array_types import Int16Array, Int32Array
from bao_agents.cli.files import hold, write_atomically
from bao_agents.cli.options import Run, add_options, at_least, new_file
from bao_agents.progress import Progress
from bao_agents.resumable import part_file, read_part
from bao_agents.search.alphabeta import evaluation, value_network
from bao_agents.search.alphabeta.evaluation import CELLS, LIMIT, PAIRS, SCALE
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.value_network import ROW_LIMIT, ROW_SCALE, SIGNS, load_network
from bao_env.engine.position import Words
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset
from bao_training.fit import search_games
from bao_training.fit.search_games import SearchGames

BATCH = 8192
"""Positions per step."""


class Shape(NamedTuple):
    """The differences between the two evaluators."""

    features: Callable[[Words, Int32Array], None]
    """Lists the cells that positions select."""
    cells: int
    """Cells per rule set."""
    bits: int
    """Bits of a count: a table has 2^(2 * ``bits``) cells."""
    units: int
    """Numbers in a cell."""
    scale: int
    """Units of a number per logit."""
    limit: int
    """Numbers lie within plus and minus this."""
    learning_rate: float
    decay: float
    """Weight decay, which pulls rare cells to 0."""


SHAPES = {
    "tables": Shape(
        evaluation.table_features,
        CELLS,
        evaluation.COUNT_BITS,
        1,
        SCALE,
        LIMIT // PAIRS,
        learning_rate=0.01,
        decay=1e-6,
    ),
    "network": Shape(
        value_network.network_features,
        value_network.ROWS,
        value_network.LEVEL_BITS,
        value_network.UNITS,
        ROW_SCALE,
        ROW_LIMIT,
        learning_rate=0.003,
        decay=0.0,
    ),
}


class Evaluator(torch.nn.Module):
    """An evaluator during its fit; :meth:`weights` returns the weights for the search.

    Args:
        shape: one of :data:`SHAPES`.
    """

    signs: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.factors = 2 * shape.cells >> shape.bits
        self.pairs = torch.nn.EmbeddingBag(shape.cells, shape.units, mode="sum")
        self.pits = torch.nn.EmbeddingBag(self.factors, shape.units, mode="sum")
        torch.nn.init.zeros_(self.pairs.weight)
        torch.nn.init.normal_(self.pits.weight, 0.1 / (2 * PAIRS), 0.03)
        with torch.no_grad():
            self.pits.weight[:, 0] = 0.0
        self.register_buffer("signs", torch.tensor(SIGNS[: shape.units], dtype=torch.float32))

    def features(self, positions: Words) -> Int32Array:
        """Return the cells int32[B, PAIRS] of positions uint64[B, 6]."""
        features = np.empty((len(positions), PAIRS), np.int32)
        self.shape.features(positions, features)
        return features

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of winning, float32[B], from features int32[B, PAIRS]."""
        total = self._cells(features)
        return total[:, 0] + torch.relu(total[:, 1:]) @ self.signs[1:]

    def _cells(self, features: Tensor) -> Tensor:
        """Return the sums float32[B, units] of cells int32[B, N], with those of their pits."""
        bits = self.shape.bits
        table, counts = features >> 2 * bits << bits, (1 << bits) - 1
        first = table + (features & counts)
        second = table + (features >> bits & counts) + self.factors // 2
        return self.pairs(features) + self.pits(torch.cat([first, second], dim=1))

    def penalty(self) -> Tensor:
        """Return the weight decay."""
        squares = self.pairs.weight.square().sum() + self.pits.weight.square().sum()
        return self.shape.decay * squares

    def weights(self) -> Int16Array:
        """Return the weights for :class:`AlphaBetaAgent`: int16[cells, units], or int16[cells] if a
        cell has one number."""
        scale, limit = self.shape.scale, self.shape.limit
        with torch.inference_mode():
            every = torch.arange(self.shape.cells, dtype=torch.int32)[:, None]
            cells = self._cells(every).numpy()
        rounded = (cells * scale).round().clip(-limit, limit).astype(np.int16)
        return rounded[:, 0] if self.shape.units == 1 else rounded


def fit(
    evaluator: Evaluator, data: SearchGames, epochs: int, search_share: float, seed: int
) -> float:
    """Fit an evaluator in place.

    Args:
        evaluator: the module to fit.
        data: positions of games, some of which are held out.
        epochs: number of passes over the positions.
        search_share: weight of the search's value in the target; the rest is the result's.
        seed: seed of the order of the positions.

    Returns:
        the log loss on the results of held-out games, in bits per position.

    Raises:
        ValueError: there are too few positions.
    """
    generator = np.random.default_rng(seed)
    features = evaluator.features(data.positions)
    search_values = torch.sigmoid(torch.from_numpy(data.values).float() / SCALE).numpy()
    targets = search_share * search_values + (1 - search_share) * data.results
    targets = targets.astype(np.float32)
    train = np.flatnonzero(~data.held_out)
    steps = epochs * (len(train) // BATCH)
    if not steps:
        raise ValueError(f"{len(train)} positions to learn from: expected {BATCH}; add --games")
    optimizer = torch.optim.Adam(evaluator.parameters(), evaluator.shape.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.01 + 0.99 * (1 + math.cos(math.pi * step / steps)) / 2
    )
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    with Progress(total=steps, unit="step", desc="fit") as bar:
        for _ in range(epochs):
            order = generator.permutation(train)
            for low in range(0, len(order) - BATCH + 1, BATCH):
                part = order[low : low + BATCH]
                logits = evaluator(torch.from_numpy(features[part]))
                loss = loss_of(logits, torch.from_numpy(targets[part])) + evaluator.penalty()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.update()
    with torch.inference_mode():
        logits = evaluator(torch.from_numpy(features[data.held_out]))
        results = torch.from_numpy(data.results[data.held_out].astype(np.float32))
        return float(loss_of(logits, results)) / math.log(2)


def fit_tables(ruleset: Ruleset, args: argparse.Namespace) -> Int16Array:
    """Play and fit the tables in rounds; return the weights.

    Raises:
        ValueError: there are too few positions.
    """
    weights = np.zeros(CELLS, np.int16)
    for i in range(args.parts):
        seed = args.seed + i
        agent = AlphaBetaAgent(ruleset, depth=args.depth, weights=weights)
        data = search_games.play(agent, ruleset, args.games, seed)
        tables = Evaluator(SHAPES["tables"])
        loss = fit(tables, data, args.epochs, args.search_share, seed)
        weights = tables.weights()
        print(f"{ruleset.name} round {i + 1}: {len(data.results)} positions, {loss:.4f} bits")
    return weights


def fit_network(ruleset: Ruleset, args: argparse.Namespace) -> Int16Array:
    """Play the missing parts, fit the network to all of them, and return its rows.

    Raises:
        ValueError: the teacher is a network that has not been fitted, or there are too few
            positions.
        OSError: a part cannot be written.
    """
    teacher = load_network(ruleset) if args.teacher == "network" else None
    if args.teacher == "network" and teacher is None:
        raise ValueError(f"{ruleset.name} has no network yet: fit one with --teacher tables")
    agent = AlphaBetaAgent(ruleset, depth=args.depth, weights=teacher and teacher.rows)
    prefix = "" if args.teacher == "tables" else f"{args.teacher}-"
    folder, rules = args.out / ruleset.name, ruleset.to_dict()
    with hold(folder):
        for i in Progress(range(args.parts), unit="part", desc=f"{ruleset.name}: self-play"):
            seed = args.seed + i
            name = f"{prefix}depth-{args.depth}-{args.games}-games-seed-{seed}"
            file = part_file(folder, name, rules, ".npz")
            if read_part(file, SearchGames.read) is None:
                search_games.play(agent, ruleset, args.games, seed).write(file)
        files = sorted(folder.glob(part_file(folder, "*", rules, ".npz").name))
        data = SearchGames.join([SearchGames.read(file) for file in files])
        torch.manual_seed(args.seed)
        network = Evaluator(SHAPES["network"])
        loss = fit(network, data, args.epochs, args.search_share, args.seed)
    print(f"{ruleset.name}: {len(data.results)} positions, log loss {loss:.4f} bits")
    return network.weights()


def write(ruleset: Ruleset, weights: Int16Array, path: Path) -> None:
    """Write the weights of a rule set to a file, beside those of other rule sets."""
    kept = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as archive:
            kept = {name: archive[name] for name in archive.files}
    kept[ruleset.name] = weights
    memory = io.BytesIO()
    np.savez_compressed(memory, **kept)
    write_atomically(path, memory.getvalue())


DEFAULTS = {
    "tables": {
        "parts": 3,
        "games": 60_000,
        "depth": 4,
        "epochs": 3,
        "search_share": 0.0,
        "seed": 0,
    },
    "network": {
        "parts": 18,
        "games": 15_000,
        "depth": 5,
        "epochs": 4,
        "search_share": 0.8,
        "seed": 1000,
    },
}
"""Options that depend on the evaluator."""


def command(parser: argparse.ArgumentParser) -> Run:
    """Fit an evaluation of alpha-beta to self-play, and write its file of weights."""
    parser.add_argument("evaluator", choices=list(DEFAULTS), help="what is fitted")
    parser.add_argument("rulesets", nargs="+", metavar="RULES", choices=list(RULESETS))
    parser.add_argument(
        "--teacher",
        choices=["tables", "network"],
        default="tables",
        help="evaluation of the self-play that a network learns from (default: tables)",
    )
    for name, words in {
        "parts": "parts of self-play, or rounds for the tables",
        "games": "games of a part",
        "depth": "plies that self-play looks ahead",
        "epochs": "passes over the positions",
        "seed": "of the games",
    }.items():
        both = ", ".join(f"{defaults[name]} for {kind}" for kind, defaults in DEFAULTS.items())
        least = at_least(100 if name == "games" else 0 if name == "seed" else 1)
        parser.add_argument(f"--{name}", type=least, help=f"{words} (default: {both})")
    parser.add_argument(
        "--search-share",
        type=at_least(0, float),
        help="weight of the search's value beside the result, 0 to 1",
    )
    add_options(parser, out=Path("runs/value_network"))
    parser.add_argument(
        "--file",
        type=new_file,
        required=True,
        help="file of the weights of all rule sets: evaluation.npz or value_network.npz",
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    for name, value in DEFAULTS[args.evaluator].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.search_share > 1:
        raise ValueError(f"--search-share {args.search_share}: expected 0 to 1")
    try:
        for ruleset in map(get_ruleset, args.rulesets):
            fit_one = fit_tables if args.evaluator == "tables" else fit_network
            write(ruleset, fit_one(ruleset, args), Path(args.file))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command to continue a network's games") from None
