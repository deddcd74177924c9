"""How often players give won games away.

    python -m training.blunders greedy alphabeta:4 --ruleset kujifunza
    python -m training.blunders zanzibar search:zanzibar:64 --json blunders.json --plot blunders.png

In positions that are won for the player to move, and in which the solver has proved who wins after
every action, each player is asked for its move. The positions come from random games, from games of
a strong player, and from the games that the player plays against itself: one a game, so that they
are independent. All players get the same ones, but for their own games. Positions that are not
solved within the limit are dropped, and counted.

Two shares tell how often a move gives the win away: of all moves from won positions, and of those
that could, because some legal action does. Then the player plays on from some of these positions
against perfect play, which takes any win it is given and resists as long as it can.

The same options give the same results, on any number of threads, unless a player is limited by
time. What is solved is kept in a folder: the same command continues after Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from agents import registry
from agents.arena.match import play_games
from agents.arena.report import markdown_table
from agents.arena.round_robin import fingerprint
from agents.base import NamedPlayer
from agents.files import write_atomically
from agents.provenance import provenance
from agents.search.solver.player import SolverAgent
from bao_env.bots import Agent
from bao_env.engine.batch import Engine
from bao_env.engine.position import movers
from bao_env.engine.ruleset import Ruleset
from bao_env.game import Stage
from bao_env.rule_files import RULESET_HELP, ruleset_argument
from training.sampling import Sample, games, random_play
from training.won_positions import Blunders, Share, Solved, WonPositions, solve

STRONG: Final = "alphabeta:4"
"""Plays the games of the strong source, after up to eight random plies."""
SOURCES: Final = {"random": "random play", "strong": f"games of {STRONG}", "own": "own games"}
"""Where positions come from."""
DISTANCES: Final = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 999))
"""Classes of positions, by plies to the win: the lowest and the highest of each."""
_MAX_PLIES: Final = 300
"""Length at which a game against perfect play counts as not won."""


@dataclass(frozen=True)
class Options:
    """What is measured."""

    ruleset: Ruleset
    positions: int
    """To be drawn from each source."""
    plies: tuple[int, int]
    """The lowest and the highest ply of a position."""
    sources: Sequence[str]
    games: int
    """Against perfect play."""
    nodes: int
    """That the solver visits for a position, at most."""
    seed: int
    threads: int | None
    cache: Path | None

    def to_dict(self) -> dict[str, Any]:
        """What results depend on, as plain values."""
        values = vars(self) | {"ruleset": self.ruleset.to_dict(), "strong": STRONG}
        return {key: value for key, value in values.items() if key not in ("threads", "cache")}

    def load(self, player: str) -> NamedPlayer:
        """A player by its name."""
        return registry.load(player, ruleset=self.ruleset, seed=self.seed, threads=self.threads)

    def sample(self, source: str, player: Agent) -> Sample:
        """Positions of a source; ``player`` plays the games, except in random play."""
        seed = np.random.SeedSequence(self.seed, spawn_key=(list(SOURCES).index(source),))
        if source == "random":
            return random_play(self.ruleset, self.positions, plies=self.plies, seed=seed)
        return games(self.ruleset, player, player, self.positions, plies=self.plies, seed=seed)


@dataclass
class PlayerBlunders:
    """What was found out about a player."""

    player: str
    """As it was asked for."""
    fingerprint: str | None
    blunders: dict[str, dict[str, Blunders]] = field(default_factory=dict)
    """By ``all``, ``source``, ``stage`` and ``plies``, and by the classes of each."""
    won: int = 0
    """Games that it won against perfect play, from won positions."""
    games: int = 0
    own: dict[str, dict[str, int]] | None = None
    """:attr:`Solved.counts` of its own games."""

    @property
    def against_perfect_play(self) -> Share | None:
        """The share of games that it won."""
        return Share.of(self.won, self.games)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        share = self.against_perfect_play
        return {
            "player": self.player,
            "fingerprint": self.fingerprint,
            "blunders": {
                by: {name: blunders.to_dict() for name, blunders in classes.items()}
                for by, classes in self.blunders.items()
            },
            "against_perfect_play": {
                "games": self.games,
                "won": self.won,
                "share": share and share._asdict(),
            },
            "own_games": self.own,
        }


class _Watched:
    """A player whose moves a progress bar counts."""

    def __init__(self, player: Agent, progress: Callable[[int], object]) -> None:
        self._player, self._progress = player, progress

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        chosen = self._player.act(positions, masks)
        self._progress(len(masks))
        return chosen


def solved(options: Options, source: str, name: str, player: Agent) -> Solved:
    """The positions of a source, solved, with progress bars; ``name`` is that of the player."""
    with tqdm(unit="move", desc=f"{name}: {SOURCES[source]}", leave=False) as bar:
        sample = options.sample(source, _Watched(player, bar.update))
    with tqdm(total=len(sample.masks), unit="position", desc="solving", leave=False) as bar:
        return solve(
            sample,
            options.ruleset,
            nodes=options.nodes,
            threads=options.threads,
            cache=options.cache,
            progress=bar.update,
        )


def classify(won: Mapping[str, WonPositions], player: Agent) -> dict[str, dict[str, Blunders]]:
    """How often a player gives wins away: in all, by source, by stage and by plies to the win.

    Args:
        won: positions by source, at least one source.
        player: the player.

    Raises:
        ValueError: it chooses an illegal action.
    """
    every = WonPositions.concatenate(list(won.values()))
    sources = np.repeat(list(won), [len(part) for part in won.values()])
    stages = every.stages
    mistakes = every.mistakes(player)
    groups = {
        "all": {"all": np.ones(len(every), np.bool_)},
        "source": {source: sources == source for source in won},
        "stage": {stage.value: stages == stage.value for stage in Stage},
        "plies": {
            class_name(low, high): (every.plies >= low) & (every.plies <= high)
            for low, high in DISTANCES
        },
    }
    return {
        by: {name: every.blunders(mistakes, where) for name, where in classes.items()}
        for by, classes in groups.items()
    }


def class_name(low: int, high: int) -> str:
    """A class of :data:`DISTANCES`, as tables show it."""
    if high == DISTANCES[-1][1]:
        return f"{low} and more"
    return f"{low} to {high}" if low < high else str(low)


def play_perfect(
    player: Agent, starts: WonPositions, options: Options, progress: Callable[[int], None]
) -> int:
    """How many games a player wins against perfect play, from positions that are won for it."""
    seats = movers(starts.positions).astype(np.int8)
    played = play_games(
        (player, SolverAgent(options.ruleset, nodes=options.nodes, threads=options.threads)),
        starts.positions,
        seats,
        Engine(options.ruleset),
        max_plies=_MAX_PLIES,
        progress=progress,
    )
    return int((played.winners == seats).sum())


def measure(
    spec: str, player: NamedPlayer, shared: Mapping[str, WonPositions], options: Options
) -> PlayerBlunders:
    """Everything about one player, with progress bars.

    Args:
        spec: the player as it was asked for.
        player: the player.
        shared: the positions that all players get, by source.
        options: what is measured.

    Raises:
        ValueError: it chooses an illegal action, or its games have too few positions.
    """
    result = PlayerBlunders(spec, fingerprint(spec, player))
    won = dict(shared)
    if "own" in options.sources:
        found = solved(options, "own", player.name, player)
        won["own"], result.own = found.won, found.counts
    with tqdm(unit="move", desc=f"{player.name}: won positions", leave=False) as bar:
        result.blunders = classify(won, _Watched(player, bar.update))
    # The same for all players, if there are any.
    pools = list((shared or won).values())
    starts = [pool[pool.choices][: options.games // len(pools)] for pool in pools]
    result.games = sum(map(len, starts))
    if result.games:
        with tqdm(total=result.games, unit="game", desc="perfect play", leave=False) as bar:
            result.won = play_perfect(player, WonPositions.concatenate(starts), options, bar.update)
    return result


def percent(share: Share | None, interval: bool = True) -> list[str]:
    """A share as the cells of a table."""
    if share is None:
        return ["", ""] if interval else [""]
    cells = [f"{100 * share.rate:.2f}"]
    return [*cells, f"{100 * share.low:.2f} to {100 * share.high:.2f}"] if interval else cells


def tables(
    results: Sequence[PlayerBlunders], shared: Mapping[str, Mapping[str, Mapping[str, int]]]
) -> str:
    """What was found out, as Markdown.

    Args:
        results: of the players.
        shared: :attr:`Solved.counts` of the sources that all players share.
    """
    counts = {SOURCES[source]: count for source, count in shared.items()}
    counts |= {f"own games of {result.player}": result.own for result in results if result.own}
    sizes = [
        [name, stage, *(f"{number:,}" for number in count.values())]
        for name, stages in counts.items()
        for stage, count in stages.items()
    ]
    paragraphs = [
        "Positions, by the player to move:",
        markdown_table(["source", "stage", "won", "lost", "not solved"], sizes),
    ]
    if not results:
        return "\n\n".join(paragraphs)
    rows = []
    for result in results:
        blunders = result.blunders["all"]["all"]
        row = [result.player, f"{blunders.moves:,}", *percent(blunders.of_moves)]
        row += [f"{blunders.choices:,}", *percent(blunders.of_choices)]
        rows.append([*row, f"{result.games:,}", *percent(result.against_perfect_play)])
    head = ["player", "moves", "give the win away, %", "95 % interval", "moves that could"]
    head += ["give it away, %", "95 % interval", "games against perfect play", "won, %"]
    paragraphs += [
        "All moves from won positions; those among them that could give the win away; and games "
        "from won positions against perfect play:",
        markdown_table([*head, "95 % interval"], rows),
    ]
    classes = [
        (by, name)
        for by in ("source", "stage", "plies")
        for name, blunders in results[0].blunders[by].items()
        if blunders.moves
    ]
    words = SOURCES | {class_name(*ends): f"{class_name(*ends)} plies" for ends in DISTANCES}
    words["1"] = "1 ply"
    head = ["player", *(words.get(name, name) for _, name in classes)]
    for title, share in (
        (
            "Moves that give the win away, in percent of all moves from won positions; by source, "
            "stage, and plies to the win (those of the proof found: there may be a shorter one):",
            "of_moves",
        ),
        ("The same, in percent of the moves that could:", "of_choices"),
    ):
        body = [
            [
                r.player,
                *(percent(getattr(r.blunders[by][name], share), False)[0] for by, name in classes),
            ]
            for r in results
        ]
        paragraphs += [title, markdown_table(head, body)]
    return "\n\n".join(paragraphs)


def plot(results: Sequence[PlayerBlunders], title: str) -> bytes:
    """Shares of all moves by source, and of those that could by plies to the win, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.8 + 0.35 * len(results)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    rows = np.arange(len(results))
    for axes, by, share, heading in (
        (left, "source", "of_moves", "of all moves from won positions"),
        (right, "plies", "of_choices", "of the moves that could, by plies to the win"),
    ):
        names = list(results[0].blunders[by])
        for place, name in enumerate(names):
            shares = [getattr(result.blunders[by][name], share) for result in results]
            kept = np.array([found is not None for found in shares])
            rate, low, high = 100 * np.array([found for found in shares if found]).reshape(-1, 3).T
            offset = 0.6 * (place / max(1, len(names) - 1) - 0.5)
            axes.errorbar(
                rate,
                rows[kept] + offset,
                xerr=np.maximum(0, [rate - low, high - rate]),
                fmt="o",
                markersize=4,
                capsize=2,
                label=SOURCES.get(name, name),
            )
        axes.set_xlabel(f"give the win away, % {heading}", size=9)
        axes.set_xlim(left=0)
        axes.grid(axis="x", alpha=0.3)
        axes.legend(fontsize=8)
    left.axvline(1, color="grey", linewidth=0.8, linestyle="--")
    left.set_yticks(rows, [result.player for result in results])
    left.invert_yaxis()
    figure.suptitle(title, size=11)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def report(
    options: Options,
    results: Sequence[PlayerBlunders],
    shared: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> dict[str, Any]:
    """Everything that was found out, as plain values, for JSON."""
    return {
        "made_with": provenance(options.ruleset),
        "settings": options.to_dict(),
        "sources": dict(shared),
        "results": [result.to_dict() for result in results],
    }


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.blunders",
        description="How often players give away games that are proved to be won.",
        epilog="players: " + registry.KNOWN,
    )
    parser.add_argument("players", nargs="*", metavar="PLAYER", help="a checkpoint or a bot")
    parser.add_argument("--ruleset", type=ruleset_argument, default="zanzibar", help=RULESET_HELP)
    parser.add_argument(
        "--positions", type=int, default=1000, help="to draw from each source (default 1000)"
    )
    parser.add_argument(
        "--plies",
        type=int,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="of the positions; default: all without a store, else from 34, so that the solver "
        "can cope, to 60",
    )
    parser.add_argument(
        "--sources",
        nargs="+",
        choices=SOURCES,
        default=list(SOURCES),
        help="; ".join(f"{name}: {words}" for name, words in SOURCES.items()),
    )
    parser.add_argument(
        "--games", type=int, default=100, help="against perfect play (default 100; 0 for none)"
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=100_000,
        help="positions that the solver visits for each one, at most (default 100000)",
    )
    parser.add_argument("--seed", type=int, default=1, help="(default 1)")
    parser.add_argument("--threads", type=int, help="default: one a core")
    registry.add_allow(parser)
    parser.add_argument(
        "--cache", default="runs/solved", metavar="FOLDER", help="keeps what is solved"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--plot", metavar="FILE", help="also draw them, as a PNG")
    parser.add_argument(
        "--won", metavar="FILE", help="also write the won positions that players share"
    )
    args = parser.parse_args(argv)
    if not args.players and not args.won:
        parser.error("there is nothing to do: name a PLAYER, or a file with --won")
    if min(args.positions, args.nodes, args.threads or 1) < 1 or min(args.games, args.seed) < 0:
        parser.error(
            "--positions, --nodes and --threads must be positive, --games and --seed not negative"
        )
    if args.plies is None:
        args.plies = (34, 60) if args.ruleset.opening_store else (0, 200)
    return args


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.blunders``."""
    args = arguments(argv)
    options = Options(
        ruleset=args.ruleset,
        positions=args.positions,
        plies=tuple(args.plies),
        sources=[source for source in SOURCES if source in args.sources],
        games=args.games,
        nodes=args.nodes,
        seed=args.seed,
        threads=args.threads,
        cache=Path(args.cache),
    )
    shared: dict[str, Solved] = {}
    results: list[PlayerBlunders] = []
    stopped = False
    try:
        for name in args.allow:
            registry.allow_architecture(name)
        players = {spec: options.load(spec) for spec in args.players}
        try:
            strong = options.load(STRONG)
            for source in options.sources:
                if source != "own":
                    shared[source] = solved(options, source, STRONG, strong)
            won = {source: found.won for source, found in shared.items()}
            for spec, player in players.items():
                results.append(measure(spec, player, won, options))
        except KeyboardInterrupt:
            stopped = True
        counts = {source: found.counts for source, found in shared.items()}
        print(tables(results, counts))
        if args.json:
            text = json.dumps(report(options, results, counts), indent=2, allow_nan=False)
            write_atomically(args.json, text + "\n")
        if args.plot and results:
            write_atomically(args.plot, plot(results, f"Rule set {args.ruleset.name}"))
        if args.won and shared and not stopped:
            WonPositions.concatenate([found.won for found in shared.values()]).save(args.won)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if stopped:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
