"""Fit the value network of guided alpha-beta to self-play.

    python -m training.fit_value_network zanzibar
    python -m training.fit_value_network zanzibar --teacher network --seed 2000 --parts 30

Alpha-beta plays itself to a shallow depth, from random openings of all lengths. From each position
the network learns a mean of who won and of what the search said. The first command plays with the
tables of :mod:`agents.search.alphabeta.evaluation`, the second with the network that guided
alpha-beta reads, which is a better teacher.

In training, a row is a sum of three: one for the pair, and one for each of its two pits, so that
pairs that are rare learn from others. In the end the three are added up. Positions of held-out
games measure the fit.

Games are written to ``OUT/RULES/``, a file for each part. A stopped run goes on with what is there,
and every fit is to all the games there.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from agents.files import hold, write_atomically
from agents.search.alphabeta.evaluation import SCALE
from agents.search.alphabeta.player import AlphaBetaAgent
from agents.search.alphabeta.value_network import (
    FILE,
    LEVELS,
    PAIRS,
    ROW_LIMIT,
    ROW_SCALE,
    ROWS,
    SIGNS,
    TABLE_ROWS,
    UNITS,
    load_rows,
    network_features,
)
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset
from training import search_games
from training.search_games import SearchGames

BATCH: Final = 8192
"""Positions of a step of the fit."""
_FACTORS: Final = 2 * ROWS // LEVELS
"""Rows for either pit of a pair alone."""


class Part(NamedTuple):
    """How the games of one part are played."""

    ruleset: Ruleset
    teacher: str
    """``"tables"``, or ``"network"`` for the one fitted before: what the search evaluates with."""
    depth: int
    """Plies that each search looks ahead."""
    games: int
    """Fewer are played where there are too few openings of a length."""
    seed: int
    """Of the openings."""

    @property
    def file(self) -> str:
        """Name of the file of the part."""
        teacher = "" if self.teacher == "tables" else f"{self.teacher}-"
        return f"{teacher}depth-{self.depth}-{self.games}-games-seed-{self.seed}.npz"


def play(part: Part) -> SearchGames:
    """Play the games of a part.

    Raises:
        ValueError: the network is to teach, but none has been fitted.
    """
    ruleset = part.ruleset
    rows = load_rows(ruleset) if part.teacher == "network" else None
    if part.teacher == "network" and rows is None:
        raise ValueError(f"{ruleset.name} has no network yet: fit one with --teacher tables")
    agent = AlphaBetaAgent(ruleset, depth=part.depth, weights=rows)
    return search_games.play(agent, ruleset, part.games, part.seed)


class Network(torch.nn.Module):
    """The network while it is fitted; :meth:`rows` are those of the search."""

    signs: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.pairs = torch.nn.EmbeddingBag(ROWS, UNITS, mode="sum")
        self.pits = torch.nn.EmbeddingBag(_FACTORS, UNITS, mode="sum")
        torch.nn.init.zeros_(self.pairs.weight)
        torch.nn.init.normal_(self.pits.weight, 0.1 / (2 * PAIRS), 0.03)
        with torch.no_grad():
            self.pits.weight[:, 0] = 0.0
        self.register_buffer("signs", torch.tensor(SIGNS, dtype=torch.float32))

    def forward(self, features: Tensor) -> Tensor:
        """The logits float32[B] of winning, from features int32[B, PAIRS]."""
        total = self.pairs(features) + self.pits(factors(features))
        return total[:, 0] + torch.relu(total[:, 1:]) @ self.signs[1:]

    def rows(self) -> npt.NDArray[np.int16]:
        """int16[ROWS, UNITS] of :mod:`agents.search.alphabeta.value_network`."""
        with torch.inference_mode():
            every = torch.arange(ROWS, dtype=torch.int32)[:, None]
            rows = (self.pairs(every) + self.pits(factors(every))).numpy()
        return (rows * ROW_SCALE).round().clip(-ROW_LIMIT, ROW_LIMIT).astype(np.int16)


def factors(features: Tensor) -> Tensor:
    """The rows int32[B, 2N] for either pit of each pair; ``features`` are int32[B, N]."""
    table = features // TABLE_ROWS * LEVELS
    first = table + features % LEVELS
    second = table + features // LEVELS % LEVELS + _FACTORS // 2
    return torch.cat([first, second], dim=1)


def fit(data: SearchGames, epochs: int, search_share: float, seed: int) -> tuple[Network, float]:
    """Fit a network.

    Args:
        data: positions of games, some of which are held out.
        epochs: passes over the positions.
        search_share: weight of the search's opinion in the target, the rest is the result's.
        seed: of the first rows and of the positions' order.

    Returns:
        the network, and its log loss on the results of held-out games, in bits a position.

    Raises:
        ValueError: there are too few positions.
    """
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    features = np.empty((len(data.results), PAIRS), np.int32)
    network_features(data.positions, features)
    said = torch.sigmoid(torch.from_numpy(data.values).float() / SCALE).numpy()
    targets = (search_share * said + (1 - search_share) * data.results).astype(np.float32)
    held = data.held_out
    train = np.flatnonzero(~held)
    steps = epochs * (len(train) // BATCH)
    if not steps:
        raise ValueError(f"{len(train)} positions to learn from: expected {BATCH}; add --games")

    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.01 + 0.99 * (1 + math.cos(math.pi * step / steps)) / 2
    )
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    with tqdm(total=steps, unit="step", desc="fit") as bar:
        for _ in range(epochs):
            order = generator.permutation(train)
            for low in range(0, len(order) - BATCH + 1, BATCH):
                part = order[low : low + BATCH]
                logits = network(torch.from_numpy(features[part]))
                loss = loss_of(logits, torch.from_numpy(targets[part]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                falling.step()
                bar.update()
    with torch.inference_mode():
        logits = network(torch.from_numpy(features[held]))
        results = torch.from_numpy(data.results[held].astype(np.float32))
        return network, float(loss_of(logits, results)) / math.log(2)


def gather(parts: list[Part], folder: Path) -> SearchGames:
    """All games in a folder, and those of the parts of which it has no file, which are played."""
    for part in tqdm(parts, unit="part", desc=f"{parts[0].ruleset.name}: self-play"):
        file = folder / part.file
        if not file.exists():
            play(part).write(file)
    return SearchGames.join([SearchGames.read(file) for file in sorted(folder.glob("*.npz"))])


def write(ruleset: Ruleset, rows: npt.NDArray[np.int16], path: Path) -> None:
    """Put the rows of a rule set into the file of all, beside those of the others."""
    kept = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as archive:
            kept = {name: archive[name] for name in archive.files}
    kept[ruleset.name] = rows
    memory = io.BytesIO()
    np.savez_compressed(memory, **kept)
    write_atomically(path, memory.getvalue())


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.fit_value_network``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.fit_value_network",
        description="Fit the value network of guided alpha-beta to self-play.",
    )
    parser.add_argument("rulesets", nargs="+", metavar="RULES", choices=list(RULESETS))
    parser.add_argument(
        "--teacher",
        choices=["tables", "network"],
        default="tables",
        help="what self-play evaluates with (tables)",
    )
    parser.add_argument("--parts", type=int, default=18, help="parts of self-play (18)")
    parser.add_argument("--games", type=int, default=15_000, help="games of a part (15000)")
    parser.add_argument("--depth", type=int, default=5, help="plies that self-play looks ahead (5)")
    parser.add_argument("--epochs", type=int, default=4, help="passes over the positions (4)")
    parser.add_argument(
        "--search-share",
        type=float,
        default=0.8,
        help="weight of the search's opinion beside the result (0.8)",
    )
    parser.add_argument("--seed", type=int, default=1000, help="(1000)")
    parser.add_argument("--out", type=Path, default=Path("runs/value_network"), help="for games")
    parser.add_argument("--file", type=Path, default=FILE, help=f"of all rows ({FILE.name})")
    args = parser.parse_args(argv)
    if min(args.parts, args.depth, args.epochs) < 1 or args.games < 100 or args.seed < 0:
        parser.error("--parts, --depth and --epochs must be positive, --games at least 100")
    if not 0 <= args.search_share <= 1:
        parser.error("--search-share must be between 0 and 1")
    try:
        for ruleset in map(get_ruleset, args.rulesets):
            folder = args.out / ruleset.name
            with hold(folder):
                parts = [
                    Part(ruleset, args.teacher, args.depth, args.games, args.seed + number)
                    for number in range(args.parts)
                ]
                data = gather(parts, folder)
                network, loss = fit(data, args.epochs, args.search_share, args.seed)
            write(ruleset, network.rows(), args.file)
            print(f"{ruleset.name}: {len(data.results)} positions, log loss {loss:.4f} bits")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with the games in {args.out}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
