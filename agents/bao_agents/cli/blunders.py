"""Run ``bao blunders``: measure how often players give won games away.

    bao blunders greedy alphabeta:4 --ruleset kujifunza
    bao blunders zanzibar guided:64n --json blunders.json --plot blunders.png

The same options give the same results on any number of threads, unless a player is limited by time.
Solved positions are kept in a folder: after Ctrl-C, run the same command to continue.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bao_agents.arena.report import formatted, markdown_table, to_csv
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    picture_file,
    write_json,
    write_text,
)
from bao_agents.exact.blunders import SOURCES, STRONG, Settings, Share, measure, solved
from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.players import registry
from bao_agents.support.figures import errorbars, look, save_figure
from bao_agents.support.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def percent(share: Mapping[str, float] | None) -> str:
    """Return a share and, in a second line, its interval, as a cell of a table."""
    if share is None:
        return ""
    rate, low, high = (100 * share[name] for name in Share._fields)
    return f"{rate:.3g}\n{low:.3g} to {high:.3g}"


def table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the players; JSON has the classes of positions."""
    head = ["player", "moves", "given away, %", "that could", "of those, %"]
    rows = []
    for result in results:
        found = result["blunders"]["all"]["all"]
        row = [result["player"]]
        for of in ("moves", "choices"):
            row += [f"{found[of]:,}", percent(found[f"of_{of}"])]
        rows.append(row)
    return head, rows


def values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of :func:`table` for one player, for CSV."""
    found = result["blunders"]["all"]["all"]
    counts = {name: found[name] for name in ("moves", "choices", "mistakes")}
    return {"player": result["player"], **counts}


def tables(report: dict[str, Any]) -> str:
    """Return the positions and the players of a report, for a terminal."""
    counts = {SOURCES[source]: count for source, count in report["sources"].items()}
    for result in report["results"]:
        if result["own_games"]:
            counts[f"own games of {result['player']}"] = result["own_games"]
    sizes = [
        [name, stage, *(f"{number:,}" for number in count.values())]
        for name, stages in counts.items()
        for stage, count in stages.items()
    ]
    return "\n\n".join(
        [
            "Positions, by the player to move:",
            markdown_table(["source", "stage", "won", "lost", "not solved"], sizes, "simple"),
            "Moves from won positions, and those among them that could give the win away;\n"
            "wins given away. Second lines: 95 % intervals.",
            markdown_table(*table(report["results"]), "simple"),
        ]
    )


def plot(results: Sequence[dict[str, Any]], title: str) -> Figure:
    """Plot the shares among all moves by source, and among those that could by plies to the win."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.8 + 0.35 * len(results)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, by, share, heading in (
        (left, "source", "of_moves", "of all moves from won positions"),
        (right, "plies", "of_choices", "of the moves that could, by plies to the win"),
    ):
        names = list(results[0]["blunders"][by])
        for place, name in enumerate(names):
            offset = 0.6 * (place / max(1, len(names) - 1) - 0.5)
            shares = {
                row + offset: [100 * rate for rate in found.values()]
                for row, result in enumerate(results)
                if (found := result["blunders"][by][name][share])
            }
            style = {"linestyle": "", "markersize": 4, "capsize": 2, **look(place)}
            style["label"] = SOURCES.get(name, name)
            errorbars(axes, list(shares), list(shares.values()), **style)
        axes.set_xlabel(f"give the win away, % {heading}", size=9)
        axes.set_xlim(left=-0.5)  # so that marks at 0 are whole
        axes.grid(axis="x", alpha=0.3)
        axes.legend(fontsize=8, title="plies to the win" if by == "plies" else "positions")
    left.set_yticks(range(len(results)), [result["player"] for result in results])
    left.invert_yaxis()
    figure.suptitle(title, size=11)
    return figure


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao blunders``: how often players give away games that are proved to be won."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="a checkpoint or a bot")
    parser.add_argument(
        "--positions",
        type=at_least(1),
        default=1000,
        help="positions to draw from each source (default: 1000)",
    )
    parser.add_argument(
        "--plies",
        type=at_least(0),
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of plies of the positions; default: all in rules without a store, else 34 to "
        "60, which the solver can handle",
    )
    parser.add_argument(
        "--sources",
        nargs="+",
        choices=SOURCES,
        default=list(SOURCES),
        help="; ".join(f"{name}: {words}" for name, words in SOURCES.items()),
    )
    parser.add_argument(
        "--nodes",
        type=at_least(1),
        default=100_000,
        help="limit of positions that the solver visits for each one (default: 100000)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path("runs/solved"),
        metavar="DIR",
        help="folder that caches solved positions (default: %(default)s)",
    )
    parser.add_argument(
        "--plot", type=picture_file, metavar="FILE", help="also draw: .png, .pdf or .svg"
    )
    add_options(parser, "ruleset", "seed", "threads", "json", "csv", "format")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    rules, low = args.ruleset, 34 if args.ruleset.opening_store else 0
    settings = Settings(
        ruleset=rules,
        positions=args.positions,
        plies=tuple(args.plies or (low, 60 if low else 200)),
        nodes=args.nodes,
        seed=args.seed,
        threads=args.threads,
        cache=args.cache,
    )
    args.sources = [source for source in SOURCES if source in args.sources]
    report: dict[str, Any] = {
        "made_with": provenance(rules),
        "settings": {
            "ruleset": rules.to_dict(),
            "strong": STRONG,
            "positions": settings.positions,
            "plies": settings.plies,
            "sources": args.sources,
            "nodes": settings.nodes,
            "seed": settings.seed,
        },
        "sources": {},
        "results": [],
    }
    players = {
        spec: registry.load(spec, ruleset=rules, seed=args.seed, threads=args.threads)
        for spec in (*args.players, STRONG)
    }
    shared: dict[str, SolvedPositions] = {}
    try:
        for source in args.sources:
            if source != "own":
                found = solved(source, players[STRONG], settings)
                shared[source], report["sources"][source] = found.known.won, found.counts
        for spec in args.players:
            own = "own" in args.sources
            report["results"].append(measure(spec, players[spec], shared, settings, own))
    except KeyboardInterrupt:
        _write(report, args)
        raise KeyboardInterrupt("run the same command to continue") from None
    _write(report, args)


def _write(report: dict[str, Any], args: argparse.Namespace) -> None:
    """Write the files that the options name, and print the results so far."""
    results = report["results"]
    low, high = report["settings"]["plies"]
    source = {
        "ruleset": args.ruleset.name,
        "positions": f"{args.positions} each of {', '.join(args.sources)}; plies {low} to {high}",
        "seed": args.seed,
        "commit": report["made_with"]["commit"],
    }
    with ExitStack() as last:  # in the opposite order, and each even if another one fails
        if args.format and results:
            last.callback(print, formatted(args.format, *table(results), source))
        elif "-" not in (args.json, args.csv):
            last.callback(print, tables(report))
        last.callback(write_json, args.json, report)
        if results:
            last.callback(write_text, args.csv, to_csv([values(row) for row in results], source))
        if args.plot and results:
            save_figure(plot(results, f"Rule set {args.ruleset.name}"), args.plot)
