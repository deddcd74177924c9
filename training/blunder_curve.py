"""How often the generations of a run give won games away, against steps of training.

    python -m training.blunder_curve runs/kujifunza --simulations 64

Each generation (``step-*.safetensors`` and ``final.safetensors``) is asked for its moves in won
positions (:mod:`training.won_positions`), as its network alone and with a search. It prints a table
and draws ``blunders.png`` in the run's folder, with bots as lines.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from agents import registry
from agents.arena.report import markdown_table
from agents.nets import checkpoint
from bao_env.engine.ruleset import Ruleset
from training.curve import generations
from training.won_positions import Share, WonPositions, shipped

ALONE = "network alone"


class Generation(NamedTuple):
    """A network that a run has kept."""

    path: Path
    steps: int


def read_run(folder: Path) -> tuple[Ruleset, list[Generation]]:
    """The rules of a run, and its generations, the oldest first.

    Raises:
        ValueError: there are fewer than two, or one cannot be read.
    """
    loaded = [(path, checkpoint.load(path)) for path, _ in generations(folder).values()]
    # One generation for each number of steps: the last one is also the final network.
    by_steps = {int(saved.info.get("steps", 0)): path for path, saved in loaded}
    found = [Generation(path, steps) for steps, path in sorted(by_steps.items())]
    return loaded[0][1].ruleset, found


def measure(player: str, won: WonPositions, threads: int | None) -> Share:
    """The share of its moves with which a player gives the win away.

    Raises:
        ValueError: no player has that name, or it cannot play by these rules.
    """
    loaded = registry.load(player, ruleset=won.ruleset, threads=threads)
    share = won.blunders(won.mistakes(loaded)).of_moves
    assert share is not None  # there are positions
    return share


def plot(
    steps: list[int],
    curves: dict[str, list[Share]],
    lines: dict[str, Share],
    title: str,
    path: Path,
) -> None:
    """Draw shares in percent with their intervals against steps; those of bots are lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    millions = [count / 1e6 for count in steps]
    for name, shares in curves.items():
        rates = [100 * share.rate for share in shares]
        below = [100 * max(0.0, share.rate - share.low) for share in shares]
        above = [100 * max(0.0, share.high - share.rate) for share in shares]
        axes.errorbar(millions, rates, yerr=[below, above], fmt="o-", capsize=3, label=name)
    for name, share in lines.items():
        axes.axhline(100 * share.rate, color="grey", linewidth=0.8, linestyle="--")
        where = axes.get_yaxis_transform()
        axes.text(
            0.99, 100 * share.rate, name, transform=where, va="bottom", ha="right", color="grey"
        )
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.3)
    ticks = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(0, 1.2 * max(100 * share.high for shares in curves.values() for share in shares))
    axes.set_xlim(left=0)
    axes.set_xlabel("million steps of training")
    axes.set_ylabel("moves that give a won game away, %")
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_title(title, size=11)
    figure.savefig(path, dpi=110)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.blunder_curve``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.blunder_curve",
        description="Plot how often a run's saved generations give won games away.",
        epilog="players: " + registry.KNOWN,
    )
    parser.add_argument("run", metavar="RUN", help="folder of a run, trained with keep_every")
    parser.add_argument(
        "--simulations", type=int, default=64, help="of the search; 0 for none (default 64)"
    )
    parser.add_argument(
        "--against", nargs="*", default=["alphabeta:2", "alphabeta:4"], metavar="PLAYER"
    )
    parser.add_argument(
        "--won",
        metavar="FILE",
        help="won positions, by name or as python -m training.blunders --won writes them; default: "
        "those shipped for the run's rules",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    registry.add_allow(parser)
    args = parser.parse_args(argv)
    if args.simulations < 0 or args.simulations == 1 or args.threads < 1:
        parser.error("--simulations must be 0 or at least 2, --threads positive")
    folder = Path(args.run)
    try:
        for name in args.allow:
            registry.allow_architecture(name)
        ruleset, found = read_run(folder)
        won = WonPositions.load(args.won, ruleset) if args.won else shipped(ruleset)
        if won is None or not len(won):
            raise ValueError(
                f"there are no won positions of rule set {ruleset.name}: name a file of them, "
                "which python -m training.blunders --won writes, with --won"
            )
        spellings = {ALONE: "{}"}
        if args.simulations:
            spellings[f"{args.simulations} simulations"] = f"search:{{}}:{args.simulations}"
        lines = {name: measure(name, won, args.threads) for name in args.against}
        curves: dict[str, list[Share]] = {name: [] for name in spellings}
        for generation in tqdm(found, unit="generation", leave=False):
            for name, spelling in spellings.items():
                player = spelling.format(generation.path)
                curves[name].append(measure(player, won, args.threads))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    steps = [generation.steps for generation in found]
    rows = [
        [f"{count:,}", *(f"{100 * shares[i].rate:.2f}" for shares in curves.values())]
        for i, count in enumerate(steps)
    ]
    print(markdown_table(["steps", *(f"{name}, %" for name in curves)], rows))
    title = f"{folder.name}: {len(won):,} won positions, rule set {ruleset.name}"
    plot(steps, curves, lines, title, folder / "blunders.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
