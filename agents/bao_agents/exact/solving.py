"""Solve positions, and keep the solutions for the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache as cache_once
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bao_agents.evaluators import tables
from bao_agents.exact.solved_positions import (
    Arrays,
    SolvedPositions,
    archive,
    read_arrays,
    rules_of,
    stages_of,
)
from bao_agents.search.solver import solver
from bao_agents.support.resumable import keep_part, part_file, read_part
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import Legal, PackedPositions
from bao_env.engine.ruleset import Ruleset
from bao_env.game import Stage

_PART = 256
"""The number of positions that are solved, and cached, as one file."""
_SOLVED: dict[str, type[np.generic]] = {
    "known": np.bool_,
    "winning": np.uint64,
    "plies": np.int16,
}
"""Arrays of a file in the cache and their types."""


class Solved(NamedTuple):
    """The result of solving a sample of positions."""

    known: SolvedPositions
    """The positions whose actions are all solved."""
    counts: dict[str, dict[str, int]]
    """Numbers of positions that are ``won``, ``lost`` and ``not solved``, by stage; ``not solved``
    means that the limit was too low for the position or for one of its actions."""


def solve(
    positions: PackedPositions,
    legal: Legal,
    ruleset: Ruleset,
    *,
    source: str,
    nodes: int,
    table_bits: int = solver.TABLE_BITS,
    threads: int | None = None,
    cache: Path | None = None,
    progress: Callable[[int], object] = lambda count: None,
) -> Solved:
    """Solve positions. The result does not depend on the threads.

    Args:
        positions: uint64[N, 6].
        legal: uint64[N], their legal actions, none of them 0.
        ruleset: the rules.
        source: name of the games that the positions come from.
        nodes: limit of positions to visit for each of them.
        table_bits: size of the solver's table (:class:`~bao_agents.search.solver.solver.Solver`).
        threads: number of threads; all cores by default.
        cache: folder that keeps the solutions for the next call; a damaged file in it is made
            again.
        progress: called with the number of positions that have just been solved.

    Raises:
        ValueError: a limit is out of range.
        OSError: the cache cannot be written.
    """
    exact = solver.Solver(ruleset, nodes=nodes, table_bits=table_bits, threads=threads)
    settings = [rules_of(ruleset), nodes, table_bits, _code()]
    parts = []
    for low in range(0, len(legal), _PART):
        batch = positions[low : low + _PART], legal[low : low + _PART]
        name = hashlib.sha256(batch[0].tobytes()).hexdigest()[:32]
        file = cache and part_file(cache, name, settings, ".npz")
        part = read_part(file, partial(_read, batch[1])) if file else None
        if part is None:
            part = _solve_part(exact, *batch)
            if file:
                keep_part(file, archive(part))
        parts.append(part)
        progress(len(batch[1]))
    known, winning, plies = (np.concatenate([part[name] for part in parts]) for name in _SOLVED)
    stages, won = stages_of(positions), known & (winning != 0)
    results = {"won": won, "lost": known & ~won, "not solved": ~known}
    counts = {
        stage: {name: int((where & (stages == stage)).sum()) for name, where in results.items()}
        for stage in (Stage.NAMUA.value, Stage.MTAJI.value)
        if (stages == stage).any()
    }
    names = np.full(int(known.sum()), source)
    solved = SolvedPositions(
        ruleset, positions[known], legal[known], winning[known], plies[known], names
    )
    return Solved(solved, counts)


def _solve_part(exact: solver.Solver, positions: PackedPositions, legal: Legal) -> Arrays:
    """Return the arrays of :data:`_SOLVED` for some positions."""
    judged = exact.judge(positions, legal)
    wins = np.empty(judged.plies.shape, np.bool_)
    unpack_masks(judged.winning, wins)
    quickest = np.where(wins, judged.plies, np.iinfo(np.int16).max).min(axis=1)
    return {
        "known": (judged.winning | judged.losing) == legal,
        "winning": judged.winning,
        "plies": np.where(judged.winning != 0, quickest, judged.plies.max(axis=1)),
    }


def _read(legal: Legal, file: Path) -> Arrays:
    """Read a part; raise ValueError if it is damaged or has other positions."""
    try:
        arrays = read_arrays(file, _SOLVED)
    except Exception as error:  # see SolvedPositions.load
        raise ValueError(f"{file} is damaged") from error
    winning = arrays["winning"]
    if len(winning) != len(legal) or (winning & ~legal).any():
        raise ValueError(f"{file} has other positions")
    return arrays


@cache_once
def _code() -> str:
    """Return a digest of the solver's source and weights, which decide what stays unsolved."""
    folder = Path(solver.__file__).parent
    files = [folder / "solver.py", *sorted(folder.glob("proof_*.py")), tables.FILE]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
