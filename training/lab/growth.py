"""Measure how strength grows with parameters, data and seconds: networks imitate a search.

    python -m training.lab.growth --out runs/growth
    python -m training.lab.growth --out runs/growth --report

Guided alpha-beta plays itself. Each network of :data:`NETWORKS` learns from 50,
200 or 800 thousand positions which action the search chose, and what to expect from it: half of the
target is who won, half the search's value. Then it plays the bots, alone and with 64 simulations.
Games, networks and results are files in ``OUT``; a stopped run continues with the same command.
``--report`` writes ``growth.json``, ``growth.png`` and a Markdown table of the results so far.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from agents import registry
from agents.arena.match import play_match
from agents.files import write_atomically
from agents.nets import checkpoint
from agents.nets.checkpoint import Checkpoint
from agents.nets.encoding import encode
from agents.nets.network import Inputs, NetworkConfig, PolicyNetwork, num_parameters
from agents.provenance import provenance
from agents.search.alphabeta.evaluation import SCALE
from agents.search.alphabeta.player import AlphaBetaAgent
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import get_ruleset
from training import search_games
from training.plot import errorbars
from training.resumable import Resumable
from training.search_games import SearchGames

RULES: Final = get_ruleset("zanzibar")
TEACHER: Final = "zanzibar"
"""The network that guides the search that is imitated."""
NETWORKS: Final = {
    "mlp 60 k": NetworkConfig("moves", (128, 32)),
    "residual 120 k": NetworkConfig("moves", (128,) * 3, "residual"),
    "residual 500 k": NetworkConfig("moves", (256,) * 4, "residual"),
    "residual 2.3 M": NetworkConfig("moves", (512,) * 5, "residual"),
}
"""The trained networks."""
GAMES: Final = 1000
"""Games of a part, about 27,000 positions."""
MINIBATCH: Final = 512
"""Positions of a step."""
BOTS: Final = ("greedy", "alphabeta:2", "alphabeta:4")
"""Opponents of the networks alone."""
SEARCHED: Final = ("alphabeta:6", 64)
"""Opponent of the networks with search, and their simulations."""
SEED: Final = 1


class Fit(NamedTuple):
    """A trained network and how well it predicts the search's actions."""

    network: PolicyNetwork
    agreement: float
    """Share of the held-out positions in which it would choose the search's action."""
    surprise: float
    """Cross-entropy of the search's action there, in bits."""
    seconds: float
    """Processor time."""


class Losses(NamedTuple):
    """Losses in P positions."""

    policy: Tensor
    """float32[P], cross-entropy of the search's action."""
    value: Tensor
    """float32[P], squared error of the result expected from it."""
    agreement: Tensor
    """float32[P], 1 where the network would choose it, else 0."""


def play_part(agent: AlphaBetaAgent, seed: int, path: Path) -> None:
    """Play the games of a part and write them."""
    search_games.play(agent, RULES, GAMES, seed).write(path)


def gather(folder: Resumable, thousands: int, nodes: int) -> SearchGames:
    """Return the first ``thousands`` thousand positions of guided self-play; play missing parts."""
    network = checkpoint.load(registry.CHECKPOINTS / f"{TEACHER}.safetensors").network
    agent = AlphaBetaAgent(RULES, nodes=nodes, network=network, threads=1)
    parts: list[SearchGames] = []
    count = 0
    with tqdm(total=1000 * thousands, unit="position", desc="self-play") as bar:
        while count < 1000 * thousands:
            seed = len(parts)
            part = folder.part(
                f"{nodes}-nodes-{GAMES}-games-seed-{seed}.npz",
                SearchGames.read,
                partial(play_part, agent, seed),
            )
            parts.append(part)
            count += len(part.results)
            bar.update(len(part.results))
    return SearchGames.join(parts).part(slice(1000 * thousands))


def targets(data: SearchGames) -> npt.NDArray[np.float32]:
    """Return the expected results of the actions played, float32[P], -1 to 1; half the outcome."""
    said = np.tanh(data.values.astype(np.float32) / (2 * SCALE))
    return (0.5 * said + data.results - 0.5).astype(np.float32)


def losses(network: PolicyNetwork, data: SearchGames, expected: Tensor) -> Losses:
    """Compare a network with the search in some positions.

    Args:
        network: the network.
        data: P positions.
        expected: float32[P], their :func:`targets`.
    """
    engine = Engine(RULES)
    masks = np.empty(len(data.actions), np.uint64)
    engine.legal_masks(data.positions, masks, np.full(len(masks), -1, np.int8))
    per_action = network.config.per_action
    encodings, legal_actions, indptr = encode(engine.rules, data.positions, masks, per_action)
    actions = torch.from_numpy(legal_actions)
    logits, values = network(Inputs(torch.from_numpy(encodings), actions))
    logits = logits[: len(actions)]
    place = actions // 64
    chosen = torch.from_numpy(
        np.flatnonzero((legal_actions & 63) == data.actions[legal_actions >> 6])
    )
    top = torch.full((len(masks),), -math.inf).scatter_reduce(0, place, logits, "amax")
    total = torch.zeros(len(masks)).index_add(0, place, (logits - top[place]).exp())
    values = values[chosen if per_action else torch.arange(len(masks))]
    return Losses(
        policy=total.log() + top - logits[chosen],
        value=(values - expected).square(),
        agreement=(logits[chosen] == top).float(),
    )


def fit(config: NetworkConfig, data: SearchGames, epochs: int) -> Fit:
    """Train a network."""
    torch.manual_seed(SEED)
    generator = np.random.default_rng(SEED)
    begun = time.process_time()
    held = data.held_out
    train = np.flatnonzero(~held)
    expected = torch.from_numpy(targets(data))
    network = PolicyNetwork(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-4)
    steps = max(1, epochs * (len(train) // MINIBATCH))
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, steps, pct_start=0.05)
    with tqdm(total=steps, unit="step", desc=f"{num_parameters(config):,} parameters") as bar:
        for _ in range(epochs):
            order = generator.permutation(train)
            for low in range(0, len(order) - MINIBATCH + 1, MINIBATCH):
                part = np.sort(order[low : low + MINIBATCH])
                lost = losses(network, data.part(part), expected[part])
                optimizer.zero_grad()
                (lost.policy.mean() + lost.value.mean()).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                rate.step()
                bar.update()
    seconds = time.process_time() - begun
    network.eval()
    found = []
    with torch.inference_mode():
        tests = np.flatnonzero(held)
        for low in range(0, len(tests), 4096):
            part = tests[low : low + 4096]
            lost = losses(network, data.part(part), expected[part])
            found.append(torch.stack([lost.agreement, lost.policy / math.log(2)]))
    agreement, surprise = torch.cat(found, dim=1).mean(dim=1).tolist()
    return Fit(network, agreement, surprise, seconds)


def measure(path: Path, pairs: int) -> dict[str, Any]:
    """Play a saved network against each bot, alone and with search; return scores for JSON."""
    bot, simulations = SEARCHED
    matches = {name: (str(path), name) for name in BOTS}
    matches[f"{bot}, {simulations} simulations"] = (f"search:{path}:{simulations}", bot)
    scores = {}
    for label, (player, opponent) in matches.items():
        with tqdm(total=2 * pairs, unit="game", desc=label) as bar:
            match = play_match(
                registry.load(player, ruleset=RULES),
                registry.load(opponent, ruleset=RULES, seed=SEED + 1),
                ruleset=RULES,
                pairs=pairs,
                seed=SEED,
                progress=bar.update,
            )
        scores[label] = match.score.to_dict()
    return scores


def train_and_measure(
    name: str, config: NetworkConfig, data: SearchGames, args: argparse.Namespace, result: Path
) -> None:
    """Train and measure a network on some data, and write ``result``."""
    path = result.with_suffix(".safetensors")
    found = fit(config, data, args.epochs)
    checkpoint.save(path, Checkpoint(found.network, RULES, {"steps": len(data.results)}))
    report = {
        "network": name,
        "parameters": num_parameters(config),
        "positions": len(data.results),
        "nodes": args.nodes,
        "epochs": args.epochs,
        "seconds": found.seconds,
        "agreement": found.agreement,
        "surprise": found.surprise,
        "scores": measure(path, args.pairs),
        "made_with": provenance(RULES),
    }
    write_atomically(result, (json.dumps(report, indent=1) + "\n").encode())


def table(reports: list[dict[str, Any]]) -> str:
    """Return all results as Markdown: points in percent, and half of their 95 % intervals."""
    labels = list(reports[0]["scores"])
    head = ["network", "parameters", "positions", "seconds", "agrees", "bits", *labels]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for report in reports:
        scores = [report["scores"][label] for label in labels]
        cells = [
            report["network"],
            f"{report['parameters']:,}",
            f"{report['positions']:,}",
            f"{report['seconds']:,.0f}",
            f"{100 * report['agreement']:.1f} %",
            f"{report['surprise']:.3f}",
            *(
                f"{100 * s['score']:.1f} ± {50 * (s['score_high'] - s['score_low']):.1f}"
                for s in scores
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def short(number: float) -> str:
    """Format a number with at most three figures."""
    for size, letter in ((1e6, " M"), (1e3, " k"), (1.0, "")):
        if number >= size:
            return f"{number / size:.{0 if number >= 10 * size or size == 1 else 1}f}{letter}"
    return f"{number:g}"


def plot(reports: list[dict[str, Any]], path: Path) -> None:
    """Draw points against ``alphabeta:2`` over parameters, positions and seconds."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    bot = BOTS[1]
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    columns = figure.subplots(1, 3, sharey=True)
    for axes, over, other in zip(
        columns,
        ("parameters", "positions", "seconds"),
        ("positions", "network", "network"),
        strict=True,
    ):
        for group in dict.fromkeys(report[other] for report in reports):
            line = sorted((r for r in reports if r[other] == group), key=lambda r: r[over])
            keys = ("score", "score_low", "score_high")
            scores = [tuple(100 * r["scores"][bot][key] for key in keys) for r in line]
            label = f"{group:,} positions" if other == "positions" else group
            errorbars(axes, [r[over] for r in line], scores, elinewidth=0.8, label=label)
        axes.set_xscale("log")
        if over != "seconds":
            axes.set_xticks(sorted({report[over] for report in reports}))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(lambda number, _: short(number))
        axes.set_xlabel({"seconds": "processor seconds of learning"}.get(over, over))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    columns[0].set_ylabel(f"% against {bot}, 95 % intervals")
    figure.savefig(path, dpi=110)


def report(folder: Path) -> str:
    """Write ``growth.json`` and ``growth.png`` of the results in a folder; return their table.

    Raises:
        ValueError: there is no result yet.
    """
    files = sorted(folder.glob("*positions.json"))
    if not files:
        raise ValueError(f"{folder} has no results yet: run without --report first")
    found = [json.loads(file.read_text("utf-8")) for file in files]
    found.sort(key=lambda one: (one["parameters"], one["positions"]))
    write_atomically(folder / "growth.json", (json.dumps(found, indent=1) + "\n").encode())
    plot(found, folder / "growth.png")
    return table(found)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.growth``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.growth",
        description="Train networks of several sizes on several amounts of guided self-play, and "
        "measure them.",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/growth"), metavar="DIR")
    parser.add_argument("--nodes", type=int, default=5000, help="of the search imitated (5000)")
    parser.add_argument(
        "--thousands",
        type=int,
        nargs="+",
        default=[50, 200, 800],
        metavar="N",
        help="thousands of positions to learn from (50 200 800)",
    )
    parser.add_argument("--epochs", type=int, default=3, help="passes over the positions (3)")
    parser.add_argument("--pairs", type=int, default=250, help="openings a match (250)")
    parser.add_argument("--report", action="store_true", help="train nothing")
    args = parser.parse_args(argv)
    if min(args.nodes, *args.thousands, args.epochs, args.pairs) < 1:
        parser.error("all numbers must be positive")
    try:
        if not args.report:
            torch.set_num_threads(1)
            settings = {"nodes": args.nodes, "epochs": args.epochs, "pairs": args.pairs}
            with Resumable(args.out, settings) as folder:
                data = gather(folder, max(args.thousands), args.nodes)
                for thousands, (name, config) in product(sorted(args.thousands), NETWORKS.items()):
                    part = data.part(slice(1000 * thousands))
                    stem = f"{name} {thousands} k positions".replace(" ", "-")
                    folder.part(
                        f"{stem}.json",
                        lambda path: json.loads(path.read_bytes()),
                        partial(train_and_measure, name, config, part, args),
                    )
        print(report(args.out))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
