"""The training curve: Elo of a run's saved generations against hours of training.

    python -m training.curve runs/zanzibar --against greedy alphabeta:2 alphabeta:4

All generations (``step-*.safetensors`` and ``final.safetensors``), each as its network alone, play
one tournament with the bots (:mod:`agents.arena.round_robin`), in ``RUN/curve/``. A stopped
tournament can be continued. ``curve.png`` there shows Elo against hours, with the bots as lines.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from agents import registry
from agents.arena.ratings import Ratings, rate
from agents.arena.report import write_report
from agents.arena.round_robin import TournamentSettings, run
from agents.nets import checkpoint


def generations(folder: Path) -> dict[str, tuple[Path, float]]:
    """Name, file and hours of training of each saved generation of a run, the oldest first.

    Raises:
        ValueError: there are fewer than two, or one cannot be read.
    """
    found = {}
    for path in [*folder.glob("step-*.safetensors"), *folder.glob("final.safetensors")]:
        found[path.stem] = (path, float(checkpoint.load(path).info.get("seconds", 0.0)) / 3600)
    if len(found) < 2:
        raise ValueError(f"{folder} holds fewer than two generations: train with keep_every")
    return dict(sorted(found.items(), key=lambda item: item[1][1]))


def plot(ratings: Ratings, hours: dict[str, float], title: str, path: Path) -> None:
    """Elo with intervals against hours; players without hours are horizontal lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    place = {name: i for i, name in enumerate(ratings.names)}
    index = [place[name] for name in hours]
    elo, low, high = ratings.elo[index], ratings.low[index], ratings.high[index]
    axes.errorbar(list(hours.values()), elo, yerr=[elo - low, high - elo], fmt="o-", capsize=3)
    for name in ratings.names:
        if name not in hours:
            axes.axhline(ratings.elo[place[name]], color="grey", linewidth=0.8, linestyle="--")
            # At the left edge of the plot, whatever the hours.
            where = axes.get_yaxis_transform()
            axes.text(
                0.01,
                ratings.elo[place[name]],
                name,
                transform=where,
                va="bottom",
                color="grey",
                size=8,
            )
    axes.set_xlabel("hours of training")
    axes.set_ylabel("Elo, 95 % intervals")
    axes.grid(alpha=0.3)
    axes.set_title(title, size=11)
    figure.savefig(path, dpi=110)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.curve``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.curve",
        description="Play a run's saved generations against each other and plot Elo over time.",
        epilog="players: " + registry.KNOWN,
    )
    parser.add_argument("run", metavar="RUN", help="folder of a run, trained with keep_every")
    parser.add_argument(
        "--against", nargs="*", default=["greedy", "alphabeta:2", "alphabeta:4"], metavar="PLAYER"
    )
    parser.add_argument("--pairs", type=int, default=100, help="openings a pairing (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="(default 1)")
    registry.add_allow(parser)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    if args.pairs < 1 or args.processes < 1 or args.seed < 0:
        parser.error("--pairs and --processes must be positive, --seed not negative")
    folder = Path(args.run)
    try:
        for name in args.allow:
            registry.allow_architecture(name)
        found = generations(folder)
        players = {name: str(path) for name, (path, _) in found.items()}
        ruleset = checkpoint.load(next(iter(found.values()))[0]).ruleset
        settings = TournamentSettings(
            players=players | {name: name for name in args.against},
            ruleset=ruleset,
            pairs=args.pairs,
            seed=args.seed,
        )
        standing = run(settings, folder / "curve", args.processes, False)
        anchor = args.against[0] if args.against else None
        print(write_report(standing, settings.description, folder / "curve", anchor))
        hours = {name: time for name, (_, time) in found.items()}
        ratings = rate(standing.results, anchor=anchor)
        title = f"{folder.name}: network alone, rule set {ruleset.name}"
        plot(ratings, hours, title, folder / "curve" / "curve.png")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
