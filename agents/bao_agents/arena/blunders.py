"""Measure how often players give won games away.

    bao blunders greedy alphabeta:4 --ruleset kujifunza
    bao blunders zanzibar search:zanzibar:64 --json blunders.json --plot blunders.png

Each player chooses a move in positions that are proved to be won for the player to move. Positions
come from random games, from games of a strong player, and from games that the player plays against
itself. At most one comes from each game, which keeps them independent. All players get the same
ones, except for their own games. Positions that the solver cannot solve within its limit are
counted and dropped.

The command measures two shares of mistakes: among all moves from won positions, and among the moves
that could give the win away because some legal action does.

The same options give the same results on any number of threads, unless a player is limited by time.
Solved positions are kept in a folder: after Ctrl-C, run the same command to continue.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bao_agents import registry
from bao_agents.arena.elo import wilson_interval
from bao_agents.arena.report import markdown_table, result_table
from bao_agents.arena.sampling import games, random_play
from bao_agents.arena.solved_positions import SolvedPositions
from bao_agents.arena.solving import Solved, solve
from bao_agents.base import NamedPlayer
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    write_json,
)
from bao_agents.figures import errorbars, look, picture_file, save_figure
from bao_agents.fingerprint import fingerprint
from bao_agents.progress import Progress
from bao_agents.provenance import provenance
from bao_env.bots import Agent
from bao_env.engine.position import Flags
from bao_env.game import Stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRONG = "alphabeta:4"
"""Plays the games of the strong source, after up to eight random plies."""
SOURCES = {"random": "random play", "strong": f"games of {STRONG}", "own": "own games"}
"""Where positions come from."""
DISTANCES = {
    "1": (1, 1),
    "2 to 3": (2, 3),
    "4 to 7": (4, 7),
    "8 to 15": (8, 15),
    "16 and more": (16, 999),
}
"""Classes of positions, by the fewest and the most plies to the win."""


class Share(NamedTuple):
    """A share of independent trials."""

    rate: float
    low: float
    """Lower end of its 95 % interval, after Wilson."""
    high: float
    """Upper end of it."""

    @classmethod
    def of(cls, count: int, trials: int) -> Self | None:
        """Return the share of ``count`` in ``trials``; None without a trial."""
        if not trials:
            return None
        return cls(count / trials, *wilson_interval(count / trials, trials))


@dataclass(frozen=True)
class Blunders:
    """Counts of the wins that a player gave away."""

    moves: int
    """Moves from won positions."""
    choices: int
    """Those among them that could have given the win away: some legal action does."""
    mistakes: int
    """Those that did."""

    @classmethod
    def count(
        cls,
        won: SolvedPositions,
        mistakes: Flags,
        where: Flags | slice = slice(None),
    ) -> Self:
        """Count mistakes.

        Args:
            won: N won positions.
            mistakes: bool[N], the result of :meth:`SolvedPositions.mistakes`.
            where: bool[N], the positions that count; all by default.
        """
        return cls(len(mistakes[where]), int(won.choices[where].sum()), int(mistakes[where].sum()))

    @property
    def of_moves(self) -> Share | None:
        """Mistakes among all moves from won positions."""
        return Share.of(self.mistakes, self.moves)

    @property
    def of_choices(self) -> Share | None:
        """Mistakes among the moves that could have been mistakes."""
        return Share.of(self.mistakes, self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a share without a trial is None."""
        return asdict(self) | {
            "of_moves": self.of_moves and self.of_moves._asdict(),
            "of_choices": self.of_choices and self.of_choices._asdict(),
        }


def load(player: str, args: argparse.Namespace) -> NamedPlayer:
    """Load a player by name."""
    return registry.load(player, ruleset=args.ruleset, seed=args.seed, threads=args.threads)


def solved(source: str, player: NamedPlayer, args: argparse.Namespace) -> Solved:
    """Draw and solve the positions of a source; ``player`` plays its games, unless random."""
    seed = np.random.SeedSequence(args.seed, spawn_key=(list(SOURCES).index(source),))
    if source == "random":
        sample = random_play(args.ruleset, args.positions, plies=args.plies, seed=seed)
    else:
        sample = games(args.ruleset, player, player, args.positions, plies=args.plies, seed=seed)
    name = SOURCES[source] if source != "own" else f"own games of {player.name}"
    with Progress(total=len(sample.legal), unit="position", desc=name, leave=False) as bar:
        return solve(
            sample.positions,
            sample.legal,
            args.ruleset,
            source=source,
            nodes=args.nodes,
            threads=args.threads,
            cache=args.cache,
            progress=bar.update,
        )


def classify(won: SolvedPositions, player: Agent) -> dict[str, dict[str, Blunders]]:
    """Count how often a player gives wins away: in total, by source, stage and plies to the win.

    Args:
        won: won positions.
        player: the player.

    Raises:
        ValueError: the player chooses an illegal action.
    """
    mistakes = won.mistakes(player)
    groups = {
        "all": {"all": np.ones(len(won), np.bool_)},
        "source": {name: won.source == name for name in SOURCES if (won.source == name).any()},
        "stage": {stage.value: won.stages == stage.value for stage in Stage},
        "plies": {
            name: (won.plies >= low) & (won.plies <= high)
            for name, (low, high) in DISTANCES.items()
        },
    }
    return {
        by: {name: Blunders.count(won, mistakes, where) for name, where in classes.items()}
        for by, classes in groups.items()
    }


def measure(
    spec: str,
    player: NamedPlayer,
    shared: Mapping[str, SolvedPositions],
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Measure one player; return plain values for JSON.

    Args:
        spec: the player's name on the command line.
        player: the player.
        shared: the won positions that all players get, by source.
        args: the options of the command line.

    Raises:
        ValueError: the player chooses an illegal action, or its games have too few positions.
    """
    won, counts = dict(shared), None
    if "own" in args.sources:
        own = solved("own", player, args)
        won["own"], counts = own.known.won, own.counts
    blunders = classify(SolvedPositions.concatenate(list(won.values())), player)
    return {
        "player": player.name,
        "spec": spec,
        "fingerprint": fingerprint(spec, player),
        "blunders": {
            by: {name: found.to_dict() for name, found in classes.items()}
            for by, classes in blunders.items()
        },
        "own_games": counts,
    }


def percent(share: Mapping[str, float] | None) -> str:
    """Return a share and, in a second line, its interval, as a cell of a table."""
    if share is None:
        return ""
    rate, low, high = (100 * share[name] for name in Share._fields)
    return f"{rate:.3g}\n{low:.3g} to {high:.3g}"


def table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the players; JSON has the classes of positions."""
    head = ["player", "moves", "given away", "could", "given away"]
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
            "wins given away in percent. Second lines: 95 % intervals.",
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
            errorbars(axes, list(shares), list(shares.values()), horizontal=True, **style)
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
    add_options(parser, "ruleset", "seed", "threads", "json", "format")
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    if args.plies is None:
        args.plies = (34, 60) if args.ruleset.opening_store else (0, 200)
    args.plies = tuple(args.plies)
    args.sources = [source for source in SOURCES if source in args.sources]
    settings = ("positions", "plies", "sources", "nodes", "seed")
    report: dict[str, Any] = {
        "made_with": provenance(args.ruleset),
        "settings": {
            "ruleset": args.ruleset.to_dict(),
            "strong": STRONG,
            **{name: getattr(args, name) for name in settings},
        },
        "sources": {},
        "results": [],
    }
    players = {spec: load(spec, args) for spec in args.players}
    shared: dict[str, SolvedPositions] = {}
    try:
        strong = load(STRONG, args)
        for source in args.sources:
            if source != "own":
                found = solved(source, strong, args)
                shared[source], report["sources"][source] = found.known.won, found.counts
        for spec, player in players.items():
            report["results"].append(measure(spec, player, shared, args))
    except KeyboardInterrupt:
        _write(report, args)
        raise KeyboardInterrupt("run the same command to continue") from None
    _write(report, args)


def _write(report: dict[str, Any], args: argparse.Namespace) -> None:
    """Print the results so far, and write the files that the options name."""
    results = report["results"]
    if args.format and results:
        print(result_table(args.format, *table(results), [values(row) for row in results]))
    elif args.json != "-":
        print(tables(report))
    write_json(args.json, report)
    if args.plot and results:
        save_figure(plot(results, f"Rule set {args.ruleset.name}"), args.plot)
