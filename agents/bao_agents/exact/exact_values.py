"""Generate a data set: positions with their exact values and every winning action.

    bao solve --sample 100000 --out kujifunza.npz --ruleset kujifunza

Parts of :data:`CHUNK` positions come from random games and from games between two searches, in
turns. The solver proves who wins after each action. The file holds
:class:`~bao_agents.exact.solved_positions.SolvedPositions`.
"""

from __future__ import annotations

import glob
import hashlib
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bao_agents.arena.resumable import part_file, read_part
from bao_agents.evaluators import tables
from bao_agents.exact.sampling import Sample, check_arguments, games
from bao_agents.exact.solved_positions import (
    CSV_HEAD,
    SolvedPositions,
    is_for_tests,
    rules_of,
    stages_of,
    without_seats,
)
from bao_agents.players import registry
from bao_agents.search.solver import solver
from bao_agents.support.files import hold, remove_unfinished, write_atomically
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_env.engine.masks import unpack_masks
from bao_env.engine.ruleset import Ruleset
from bao_env.game import Stage

SUFFIXES = (".npz", ".csv")
CHUNK = 500
"""Positions per part. Parts alternate between positions of random games and of games between
searches."""
SOURCES = ("random", "search")
PLAYERS = ("alphabeta:3", "alphabeta:4")
OPENING_PLIES = (2, 16)
"""Random plies before the searches play."""
NAMUA_PLIES = 10
"""By default, positions begin this many plies before the stores are spent, because earlier ones are
rarely solved."""


class DatasetSettings(NamedTuple):
    """The settings that determine the positions of a file, except their number."""

    ruleset: Ruleset
    seed: int
    nodes: int
    """Limit of positions that the solver visits to solve one position of the file."""
    plies: tuple[int, int]
    """The lowest and the highest ply of a position."""
    players: tuple[str, str]
    """Players of the games that are not random."""
    shortest: bool = False
    """Whether to look for the shortest wins, within the limit of nodes."""


def sample(settings: DatasetSettings, number: int, count: int, threads: int) -> Sample:
    """Draw the positions of part ``number``."""
    names = settings.players if number % len(SOURCES) else ("random", "random")
    first, second = (
        registry.load(name, ruleset=settings.ruleset, seed=number, threads=threads)
        for name in names
    )
    return games(
        settings.ruleset,
        first,
        second,
        count,
        opening_plies=OPENING_PLIES,
        plies=settings.plies,
        seed=(settings.seed, number),
    )


def solve_sample(sample: Sample, source: str, exact: solver.Solver) -> SolvedPositions:
    """Solve positions, and return the positions whose actions are all solved.

    The metadata of the result has the ``counts`` of the whole sample: by stage, the numbers of
    positions that are ``won``, ``lost`` and ``not solved``.

    Args:
        sample: the positions.
        source: name of the games that the positions come from.
        exact: the solver.
    """
    positions, legal = sample
    judged = exact.judge(positions, legal)
    wins = np.empty(judged.plies.shape, np.bool_)
    unpack_masks(judged.winning, wins)
    quickest = np.where(wins, judged.plies, np.iinfo(np.int16).max).min(axis=1)
    plies = np.where(judged.winning != 0, quickest, judged.plies.max(axis=1))
    is_solved = (judged.winning | judged.losing) == legal
    stages, won = stages_of(positions), is_solved & (judged.winning != 0)
    results = {"won": won, "lost": is_solved & ~won, "not solved": ~is_solved}
    counts = {
        stage: {name: int((where & (stages == stage)).sum()) for name, where in results.items()}
        for stage in (Stage.NAMUA.value, Stage.MTAJI.value)
        if (stages == stage).any()
    }
    return SolvedPositions(
        exact.ruleset,
        positions[is_solved],
        legal[is_solved],
        judged.winning[is_solved],
        plies[is_solved],
        np.full(int(is_solved.sum()), source),
        {"counts": counts},
    )


def with_shortest(data: SolvedPositions, nodes: int) -> SolvedPositions:
    """Return solved positions with the plies to the shortest wins.

    Args:
        data: the positions.
        nodes: limit of positions to visit for each position. If it is too low, the plies count
            to the shortest win found.
    """
    exact = solver.Solver(data.ruleset, nodes=nodes, threads=1)
    plies = data.plies.copy()
    for i, packed in enumerate(data.positions):
        plies[i] = min(plies[i], exact.solve(packed, shortest=True).plies or plies[i])
    return replace(data, plies=plies)


@cache
def _code() -> str:
    """Return a digest of the solver's source and weights, which determine what is solved."""
    folder = Path(solver.__file__).parent
    files = [folder / "solver.py", *sorted(folder.glob("proof_*.py")), tables.FILE]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def generate(
    settings: DatasetSettings, count: int, path: Path, threads: int = 1
) -> SolvedPositions:
    """Write a file of exact values.

    Solved positions are kept in a folder beside the file, ``FILE.parts``. A later call with the
    same settings uses them again, whatever its ``count``.

    Args:
        settings: which positions to choose.
        count: number of positions to sample. Unsolved and repeated ones are dropped.
        path: file to write, a ``.npz`` (:meth:`SolvedPositions.save`) or a ``.csv``
            (:meth:`SolvedPositions.to_csv`). An earlier file of this function is replaced; an
            ``.npz`` file only if it is for the same rules.
        threads: number of threads; the file does not depend on it.

    Returns:
        the content of the file.

    Raises:
        ValueError: a setting is out of range, ``path`` is a file of another kind, or no position
            was solved.
        OSError: a file cannot be written.
    """
    # Refuse wrong settings before anything is written.
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: expected a name that ends in {' or '.join(SUFFIXES)}")
    if path.exists():
        _check_replaceable(path, settings.ruleset)
    check_arguments(count, OPENING_PLIES, settings.plies)
    for name in settings.players:
        registry.load(name, ruleset=settings.ruleset)
    folder = path.with_name(path.name + ".parts")
    with hold(folder, "*.npz"):
        remove_unfinished(path.parent, glob.escape(path.name))
        data = _solve_parts(settings, count, folder, threads)
        if not len(data):
            raise ValueError(
                f"none of {count:,} positions could be solved with a limit of {settings.nodes:,} "
                "visited positions each: give a larger limit, or sample more positions"
            )
        if path.suffix == ".csv":
            write_atomically(path, data.to_csv())
        else:
            data.save(path)
    return data


def _solve_parts(
    settings: DatasetSettings, count: int, folder: Path, threads: int
) -> SolvedPositions:
    """Sample and solve positions; keep each part in a folder. See :func:`generate`."""
    parts: list[SolvedPositions] = []
    counts: dict[str, dict[str, Counter[str]]] = {source: {} for source in SOURCES}
    ruleset, nodes = settings.ruleset, settings.nodes
    exact = solver.Solver(ruleset, nodes=nodes, threads=threads)
    kept_by = [rules_of(ruleset), nodes, settings.shortest, _code()]
    with Progress(total=count, unit="position", smoothing=0.05) as bar:
        for number, low in enumerate(range(0, count, CHUNK)):
            drawn = sample(settings, number, min(CHUNK, count - low), threads)
            source = SOURCES[number % len(SOURCES)]
            name = hashlib.sha256(drawn.positions.tobytes()).hexdigest()[:32]
            file = part_file(folder, name, kept_by, ".npz")
            load = partial(SolvedPositions.load, ruleset=ruleset, may_be_empty=True)
            part = read_part(file, load)
            if part is None:
                part = solve_sample(drawn, source, exact)
                if settings.shortest:
                    part = with_shortest(part, nodes)
                part.save(file)
            parts.append(part)
            for stage, numbers in part.metadata["counts"].items():
                counts[source].setdefault(stage, Counter()).update(numbers)
            bar.update(len(drawn.legal))
    joined = SolvedPositions.concatenate(parts)
    new = np.unique(without_seats(joined.positions), axis=0, return_index=True)[1]
    metadata = {
        "seed": settings.seed,
        "nodes": settings.nodes,
        "plies": settings.plies,
        "shortest": settings.shortest,
        "players": settings.players,
        "opening_plies": OPENING_PLIES,
        "counts": counts,
        "repeats": len(joined) - len(new),
        **provenance(settings.ruleset),
    }
    return replace(joined[np.sort(new)], metadata=metadata)


def _check_replaceable(path: Path, ruleset: Ruleset) -> None:
    """Check that a file may be replaced.

    Raises:
        ValueError: it does not hold exact values, or it is an ``.npz`` file for other rules.
    """
    try:
        if path.suffix == ".npz":
            SolvedPositions.load(path, ruleset)
        elif not path.read_text(encoding="utf-8").startswith(CSV_HEAD):
            raise ValueError("its columns are not those of a file of exact values")
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path} exists and is not a file of exact values under the rules of {ruleset.name}: "
            "choose another name"
        ) from error


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
