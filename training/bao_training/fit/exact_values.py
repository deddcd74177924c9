"""Make a file of positions with their exact values and every winning action, to learn from.

    bao dataset kujifunza.npz --ruleset kujifunza --count 100000

Half of the positions are from random games, half from games between two searches. The solver proves
what each action leads to. The file is one of
:class:`~bao_agents.arena.solved_positions.SolvedPositions`.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bao_agents import registry
from bao_agents.arena.sampling import Sample, check_arguments, games, random_play
from bao_agents.arena.solved_positions import (
    SolvedPositions,
    is_for_tests,
    without_seats,
)
from bao_agents.arena.solving import solve
from bao_agents.cli.files import hold
from bao_agents.cli.options import Run, add_options, add_player_options, at_least, new_file
from bao_agents.progress import Progress
from bao_agents.provenance import provenance
from bao_env.engine.ruleset import Ruleset

CHUNK = 500
"""Positions per part. Parts alternate between random games and games between searches."""
SOURCES = ("random", "search")
PLAYERS = ("alphabeta:3", "alphabeta:4")
OPENING_PLIES = (2, 16)
"""Random plies before the searches play."""
NAMUA_PLIES = 10
"""By default, positions begin this many plies before the stores are spent, because earlier ones are
rarely solved."""
TABLE_BITS = 16
"""The table is small because it is cleared every few positions."""


class DatasetSettings(NamedTuple):
    """Everything that decides which positions a file holds, except their number."""

    ruleset: Ruleset
    seed: int
    nodes: int
    """Limit of positions that the solver visits for each one."""
    plies: tuple[int, int]
    """The lowest and the highest ply of a position."""
    players: tuple[str, str]
    """Players of the games that are not random."""


def sample(settings: DatasetSettings, number: int, count: int, threads: int) -> Sample:
    """Draw the positions of a part."""
    ruleset, plies = settings.ruleset, settings.plies
    seed = np.random.SeedSequence((settings.seed, number))
    if number % len(SOURCES) == 0:
        return random_play(ruleset, count, plies=plies, seed=seed)
    first, second = (
        registry.load(name, ruleset=ruleset, seed=number, threads=threads)
        for name in settings.players
    )
    return games(ruleset, first, second, count, opening_plies=OPENING_PLIES, plies=plies, seed=seed)


def generate(
    settings: DatasetSettings, count: int, path: Path, threads: int = 1
) -> SolvedPositions:
    """Write a file of exact values.

    Solved positions are kept in a folder beside it, ``FILE.parts``. A later call with the same
    settings, and any ``count``, uses them.

    Args:
        settings: which positions to choose.
        count: number of positions to sample. Unsolved and repeated ones are dropped.
        path: file to write; one that :meth:`SolvedPositions.save` wrote is replaced.
        threads: number of threads; the file does not depend on it.

    Returns:
        the content of the file.

    Raises:
        ValueError: a setting is out of range, or ``path`` is a file of another kind.
        OSError: a file cannot be written.
    """
    # Refuse wrong settings before anything is written.
    if path.exists():
        try:
            SolvedPositions.load(path)
        except ValueError as error:
            raise ValueError(
                f"{path} exists and is not a file of exact values: choose another name"
            ) from error
    check_arguments(count, OPENING_PLIES, settings.plies)
    for name in settings.players:
        registry.load(name, ruleset=settings.ruleset)
    folder = path.with_name(path.name + ".parts")
    parts: list[SolvedPositions] = []
    counts: dict[str, dict[str, Counter[str]]] = {source: {} for source in SOURCES}
    with hold(folder), Progress(total=count, unit="position", smoothing=0.05) as bar:
        for number, low in enumerate(range(0, count, CHUNK)):
            found = sample(settings, number, min(CHUNK, count - low), threads)
            source = SOURCES[number % len(SOURCES)]
            solved = solve(
                found.positions,
                found.masks,
                settings.ruleset,
                source=source,
                nodes=settings.nodes,
                table_bits=TABLE_BITS,
                threads=threads,
                cache=folder,
                progress=bar.update,
            )
            parts.append(solved.known)
            for stage, numbers in solved.counts.items():
                counts[source].setdefault(stage, Counter()).update(numbers)
    joined = SolvedPositions.concatenate(parts)
    new = np.unique(without_seats(joined.positions), axis=0, return_index=True)[1]
    metadata = {
        "seed": settings.seed,
        "nodes": settings.nodes,
        "plies": settings.plies,
        "players": settings.players,
        "opening_plies": OPENING_PLIES,
        "counts": counts,
        "repeats": len(joined) - len(new),
        **provenance(settings.ruleset),
    }
    data = replace(joined[np.sort(new)], metadata=metadata)
    data.save(path)
    return data


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao dataset``: write positions with their exact values, to learn from."""
    parser.description = (
        "Write positions with their exact values and best actions, to learn from. Run the "
        "same command to continue a stopped one, or with a larger --count to add to it."
    )
    parser.add_argument("file", type=new_file, metavar="FILE", help="an .npz file")
    parser.add_argument(
        "--count", type=at_least(1), default=100_000, help="positions to sample (default: 100000)"
    )
    parser.add_argument(
        "--nodes",
        type=at_least(1),
        default=300_000,
        help="limit of positions that the solver visits per position; unsolved ones are dropped "
        "(default: 300000)",
    )
    parser.add_argument(
        "--plies",
        type=at_least(0),
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of plies (default: from ten before the stores are spent)",
    )
    parser.add_argument(
        "--players",
        nargs=2,
        default=PLAYERS,
        metavar="PLAYER",
        help=f"players of the games that are not random (default: {' '.join(PLAYERS)})",
    )
    add_options(parser, "threads", ruleset="kujifunza", seed=0)
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    lowest = max(0, 2 * args.ruleset.opening_store - NAMUA_PLIES)
    plies = tuple(args.plies or (lowest, 999))
    settings = DatasetSettings(args.ruleset, args.seed, args.nodes, plies, tuple(args.players))
    try:
        data = generate(settings, args.count, Path(args.file), args.threads)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command to continue") from None
    print(describe(Path(args.file), data))


def describe(path: Path, data: SolvedPositions) -> str:
    """Return a summary of a file."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    tests = is_for_tests(data.positions).sum()
    lines = [
        f"{path}: {len(data):,} positions, {tests:,} of them for tests; "
        f"{(data.values > 0).mean():.1%} are won for the player to move",
        f"{path.stat().st_size / 1e6:.1f} MB, sha256 {digest}",
    ]
    for source, stages in data.metadata["counts"].items():
        for stage, count in stages.items():
            sampled, unsolved = sum(count.values()), count["not solved"]
            lines.append(
                f"{source}, {stage}: {sampled:,} sampled, {unsolved:,} "
                f"({unsolved / sampled:.2%}) not solved"
            )
    return "\n".join(lines)
