"""Plot how runs learn: their metrics, Elo of their generations, or won games given away.

    bao curve runs/first runs/second --out both.pdf
    bao curve 'small=runs/small*' 'large=runs/large*'
    bao curve runs/zanzibar --elo --against greedy alphabeta:2 alphabeta:4
    bao curve runs/kujifunza --blunders --simulations 64

The first form draws the metrics of several runs into one picture. The second compares settings over
seeds: a line is the mean, and its band reaches from the lowest to the highest run. Both print a
table of the last values.

The other forms play with the generations of a run, ``step-*.safetensors`` and
``final.safetensors``. For ``--elo``, each plays as its network alone in one tournament with the
bots (:mod:`bao_agents.arena.tournament`), in ``RUN/curve/``; a picture shows Elo against hours. The
same command continues a stopped tournament. With ``--blunders`` each chooses moves in won
positions, as its network alone and with a search. The command prints a table, and a picture shows
it against training steps.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from bao_agents import registry
from bao_agents.arena.blunders import Blunders, Share
from bao_agents.arena.report import elos_of, markdown_table, to_dict, write_report
from bao_agents.arena.solved_positions import SolvedPositions, shipped_won_positions
from bao_agents.arena.tournament import TournamentSettings, run
from bao_agents.cli.options import Run, add_options, add_player_options, at_least
from bao_agents.figures import errorbars, look, picture_file, reference_lines, save_figure
from bao_agents.nets import checkpoint
from bao_agents.progress import Progress
from bao_env.engine.ruleset import Ruleset
from bao_training.plot import X_AXES, draw_curves, read_groups

_TICKS = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


class Generation(NamedTuple):
    """A network that a run has saved."""

    path: Path
    steps: int
    hours: float


def read_run(folder: Path) -> tuple[Ruleset, list[Generation]]:
    """Return the rules of a run and its generations, the oldest first.

    Raises:
        ValueError: there are fewer than two, or one cannot be read.
    """
    found, ruleset = [], None
    for path in [*sorted(folder.glob("step-*.safetensors")), *folder.glob("final.safetensors")]:
        saved = checkpoint.load(path)
        ruleset, info = saved.ruleset, saved.info
        steps, hours = int(info.get("steps", 0)), float(info.get("seconds", 0.0)) / 3600
        found.append(Generation(path, steps, hours))
    if ruleset is None or len(found) < 2:
        raise ValueError(f"{folder} holds fewer than two generations: train with keep_every")
    return ruleset, sorted(found, key=lambda one: (one.hours, one.steps))


def new_plot(title: str) -> tuple[Any, Any]:
    """Return a figure and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    axes.set_title(title, size=11)
    return figure, axes


def elo_curve(folder: Path, args: argparse.Namespace) -> None:
    """Play the tournament, print its tables and draw ``curve.png``.

    Raises:
        ValueError: the generations cannot be read, or a player is unknown.
        OSError: a file cannot be written.
    """
    ruleset, generations = read_run(folder)
    # One generation for each number of steps: the last one is also the final network.
    generations = list({one.steps: one for one in generations}.values())
    hours = {one.path.stem: one.hours for one in generations}
    settings = TournamentSettings(
        players={one.path.stem: str(one.path) for one in generations}
        | {name: name for name in args.against},
        ruleset=ruleset,
        pairs=args.pairs,
        seed=args.seed,
    )
    standing = run(settings, folder / "curve", args.threads, False)
    anchor = args.against[0] if args.against else None
    report = to_dict(standing, settings.description, anchor)
    print(write_report(report, folder / "curve"))
    elo = elos_of(report)
    figure, axes = new_plot(f"{folder.name}: network alone, rule set {ruleset.name}")
    errorbars(axes, list(hours.values()), [elo[name] for name in hours], **look(0))
    reference_lines(axes, {name: score[0] for name, score in elo.items() if name not in hours})
    axes.set_xlabel("hours of training")
    axes.set_ylabel(f"Elo, 95 % intervals; 0 is {anchor or 'the mean of all'}")
    save_figure(figure, args.out or folder / "curve" / "curve.png")


def blunder_share(player: str, won: SolvedPositions, threads: int) -> Share:
    """Return the share of a player's moves that give the win away.

    Raises:
        ValueError: no player has that name, or it cannot play by these rules.
    """
    loaded = registry.load(player, ruleset=won.ruleset, threads=threads)
    share = Blunders.count(won, won.mistakes(loaded)).of_moves
    assert share is not None  # there are positions
    return share


def blunder_curve(folder: Path, args: argparse.Namespace) -> None:
    """Ask all generations for their moves, print the table and draw ``blunders.png``.

    Raises:
        ValueError: the generations or the positions cannot be read, or a player is unknown.
        OSError: the picture cannot be written.
    """
    ruleset, generations = read_run(folder)
    # One generation for each number of steps: the last one is also the final network.
    generations = list({one.steps: one for one in generations}.values())
    won = shipped_won_positions(ruleset)
    if args.won:
        won = SolvedPositions.load(args.won, ruleset).won
    if won is None or not len(won):
        raise ValueError(
            f"there are no won positions of rule set {ruleset.name}: give --won a file that "
            "bao blunders --won wrote"
        )
    spellings = {"network alone": "{}"}
    if args.simulations:
        spellings[f"{args.simulations} simulations"] = f"search:{{}}:{args.simulations}"
    lines = {name: 100 * blunder_share(name, won, args.threads).rate for name in args.against}
    curves: dict[str, list[tuple[float, float, float]]] = {name: [] for name in spellings}
    for one in Progress(generations, unit="generation", leave=False):
        for name, spelling in spellings.items():
            rate, low, high = blunder_share(spelling.format(one.path), won, args.threads)
            curves[name].append((100 * rate, 100 * low, 100 * high))
    rows = [
        [f"{one.steps:,}", *(f"{shares[i][0]:.2f}" for shares in curves.values())]
        for i, one in enumerate(generations)
    ]
    print(markdown_table(["steps", *(f"{name}, %" for name in curves)], rows))
    title = f"{folder.name}: {len(won):,} won positions, rule set {ruleset.name}"
    figure, axes = new_plot(title)
    for i, (name, shares) in enumerate(curves.items()):
        errorbars(axes, [one.steps / 1e6 for one in generations], shares, label=name, **look(i))
    reference_lines(axes, lines)
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.3)
    axes.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    axes.set_ylim(0, 1.2 * max(share[2] for shares in curves.values() for share in shares))
    axes.set_xlim(left=0)
    axes.set_xlabel("million steps of training")
    axes.set_ylabel("moves that give a won game away, %")
    axes.legend()
    save_figure(figure, args.out or folder / "blunders.png")


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao curve``: plot how runs learn."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folder of a run, or NAME=PATTERN for the mean of runs; for --elo and --blunders one "
        "folder, trained with keep_every",
    )
    parser.add_argument("--elo", action="store_true", help="plot Elo of the run's generations")
    parser.add_argument(
        "--against", nargs="*", default=["greedy", "alphabeta:2", "alphabeta:4"], metavar="PLAYER"
    )
    parser.add_argument(
        "--pairs", type=at_least(1), default=100, help="openings per pairing (default: 100)"
    )
    parser.add_argument("--blunders", action="store_true", help="plot won games given away")
    parser.add_argument(
        "--simulations",
        type=at_least(0),
        default=64,
        help="simulations of the search with --blunders; 0 for none (default: 64)",
    )
    parser.add_argument(
        "--won",
        metavar="FILE",
        help="won positions for --blunders, by name or as bao blunders --won writes them; default: "
        "those shipped for the run's rules",
    )
    parser.add_argument(
        "--out",
        type=picture_file,
        metavar="FILE",
        help="the picture: .png, .pdf or .svg (default: a PNG in the first run's folder)",
    )
    parser.add_argument(
        "--metrics", nargs="+", default=[], metavar="COLUMN", help="columns of metrics.csv to draw"
    )
    parser.add_argument("--x", choices=X_AXES, default="steps", help="the x axis (default: steps)")
    add_options(parser, "seed", "threads")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    if args.simulations == 1:
        raise ValueError("--simulations 1: expected 0 or at least 2")
    if not args.elo and not args.blunders:
        groups = read_groups(args.runs)
        file = args.out or groups[0].runs[0] / "curves.png"
        print(draw_curves(groups, file, args.metrics, args.x))
        print(f"\n{file}")
        return
    if len(args.runs) > 1:
        raise ValueError(f"--elo and --blunders plot one run, not {len(args.runs)}")
    try:
        (blunder_curve if args.blunders else elo_curve)(Path(args.runs[0]), args)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command to continue") from None
