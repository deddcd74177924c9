"""Positions with their exact values and every best action, as a file to learn from.

    python -m training.exact_values --ruleset kujifunza --count 100000 --out kujifunza.npz

Half of the positions are of random games, half of games between two searches; the solver proves
what each action leads to. ``training/EXACT.md`` says what a file holds and how to read it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from agents import registry
from agents.files import hold, write_atomically
from agents.provenance import provenance
from agents.search.solver.proof_number import WIN
from agents.search.solver.solver import Solver
from bao_env.engine.batch import Engine
from bao_env.engine.bits import BYTE
from bao_env.engine.position import META, PLY, WORDS, Words
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.envs.afterstates import list_afterstates
from bao_env.observation.observer import get_observer
from bao_env.rule_files import RULESET_HELP, ruleset_argument
from training.sampling import Sample, games, random_play, without_seats

FORMAT: Final = 1
"""Raised whenever an array changes its meaning."""
CHUNK: Final = 500
"""Positions of a part; a part is of random games or of games between searches, by turns."""
SOURCES: Final = ("random", "search")
"""The games that positions are from, by their number in ``source``."""
PLAYERS: Final = ("alphabeta:3", "alphabeta:4")
OPENING_PLIES: Final = (2, 16)
"""Random plies before the searches play."""
NAMUA_PLIES: Final = 10
"""By default positions begin so many plies before the stores are spent: earlier ones are seldom
solved."""
TABLE_BITS: Final = 16
"""Small, since it is cleared every few positions."""
TEST_SHARE: Final = 10
"""One position of so many is for tests."""

Arrays = dict[str, npt.NDArray[Any]]


class ExactValues(NamedTuple):
    """What a file holds: N different positions, the value of each action known."""

    positions: Words
    """uint64[N, 6], packed (:mod:`bao_env.engine.position`)."""
    masks: Words
    """uint64[N], the legal actions: bit a = action a."""
    values: npt.NDArray[np.int8]
    """int8[N], 1 if the player to move wins with perfect play, -1 if they lose."""
    winning: Words
    """uint64[N], the actions after which they win; 0 where they lose whatever they do."""
    optimal: Words
    """uint64[N], the actions that keep the value: ``winning``, or all where there is none."""
    plies: npt.NDArray[np.int16]
    """int16[N], actions played before."""
    source: npt.NDArray[np.uint8]
    """uint8[N], the games they are from: 0 random ones, 1 those between searches."""
    test: npt.NDArray[np.bool_]
    """bool[N], whether the position is for tests; see :func:`is_for_tests`."""
    metadata: dict[str, Any]
    """Rules, seed, commit, limits, and how many positions were solved, by source and stage."""

    def part(self, *, test: bool) -> ExactValues:
        """The positions to learn from, or those for tests."""
        chosen = self.test == test
        return self._replace(**{name: getattr(self, name)[chosen] for name in _ARRAYS})


_ARRAYS: Final = tuple(name for name in ExactValues._fields if name != "metadata")


def mirrored(positions: Words) -> Words:
    """Positions as in a mirror, left and right exchanged.

    Where the rules have no house, who wins is the same.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy.
    """
    found = positions.copy()
    found[:, :META] = positions[:, :META].byteswap()
    meta = found.view(np.uint8).reshape(len(found), WORDS, 8)[:, META]
    for pit in (meta[:, 3], meta[:, 4]):  # barred, waiting; 255 for none
        pit[pit < 8] = 7 - pit[pit < 8]
    return found


def is_for_tests(positions: Words) -> npt.NDArray[np.bool_]:
    """Which positions are for tests, bool[N]: one in ten, by a hash.

    It is the same for a position seen from the other seat and for its mirror image, and in every
    file.

    Args:
        positions: uint64[N, 6].
    """
    seen, mirror = (
        without_seats(found).astype("<u8") for found in (positions, mirrored(positions))
    )
    chosen = np.empty(len(positions), bool)
    for i, pair in enumerate(zip(seen, mirror, strict=True)):
        key = min(words.tobytes() for words in pair)
        digest = hashlib.blake2b(key, digest_size=8).digest()
        chosen[i] = int.from_bytes(digest, "little") % TEST_SHARE == 0
    return chosen


def with_successors(data: ExactValues) -> tuple[Words, Words, npt.NDArray[np.int8]]:
    """The positions and those after each of their actions, whose values are known as well.

    Of positions to learn from that makes four times as many. One for tests brings only others for
    tests, and one to learn from only others to learn from. The same may come more than once.

    Returns:
        positions uint64[M, 6], masks uint64[M] and values int8[M].
    """
    ruleset = Ruleset.from_dict(data.metadata["ruleset"])
    after = list_afterstates(
        Engine(ruleset), get_observer("board", ruleset), data.positions, data.masks
    )
    games = np.repeat(np.arange(len(data.values)), np.diff(after.indptr))
    wins = data.winning[games] >> after.actions.astype(np.uint64) & np.uint64(1) != 0
    values = np.where(wins, after.signs, -after.signs).astype(np.int8)
    kept = (after.results == 0) & (is_for_tests(after.positions) == data.test[games])
    return (
        np.concatenate([data.positions, after.positions[kept]]),
        np.concatenate([data.masks, after.legal[kept]]),
        np.concatenate([data.values, values[kept]]),
    )


class DatasetSettings(NamedTuple):
    """What decides which positions a file holds, but for their number."""

    ruleset: Ruleset
    seed: int
    nodes: int
    """Positions that the solver may visit for one."""
    plies: tuple[int, int]
    """The lowest and the highest ply of a position."""
    players: tuple[str, str]
    """Who plays the games that are not random."""

    def describe(self) -> dict[str, Any]:
        """As plain values, with the code that they run on."""
        return {
            "format": FORMAT,
            "ruleset": self.ruleset.to_dict(),
            "seed": self.seed,
            "nodes": self.nodes,
            "plies": list(self.plies),
            "players": list(self.players),
            "opening_plies": list(OPENING_PLIES),
            **provenance(self.ruleset),
        }


def sample(settings: DatasetSettings, number: int, count: int, threads: int) -> Sample:
    """The positions of a part."""
    seed = np.random.SeedSequence((settings.seed, number))
    if number % len(SOURCES) == 0:
        return random_play(settings.ruleset, count, plies=settings.plies, seed=seed)
    first, second = (
        registry.load(name, ruleset=settings.ruleset, seed=number, threads=threads)
        for name in settings.players
    )
    return games(
        settings.ruleset,
        first,
        second,
        count,
        opening_plies=OPENING_PLIES,
        plies=settings.plies,
        seed=seed,
    )


def solve(found: Sample, solver: Solver) -> Arrays:
    """The arrays of a part; a position with an action of unknown value has value 0."""
    judged = solver.judge(found.positions, found.masks)
    known = (judged.winning | judged.losing) == found.masks
    return {
        "positions": found.positions,
        "masks": found.masks,
        "values": np.where(known, judged.values, 0).astype(np.int8),
        "winning": judged.winning,
    }


def generate(settings: DatasetSettings, count: int, path: Path, threads: int = 1) -> ExactValues:
    """Write a file of exact values, or finish one that was begun.

    Parts go to a folder beside it, ``FILE.parts``; a later call with the same settings, and any
    ``count``, uses those that are there.

    Args:
        settings: which positions.
        count: positions to sample. Those not solved and those met before are dropped.
        path: of the file; it is replaced.
        threads: on which to solve; the file does not depend on it.

    Returns:
        what it holds.

    Raises:
        ValueError: a setting is out of range, or the folder holds parts of other settings.
        OSError: a file cannot be written.
    """
    if count < 1:
        raise ValueError(f"count={count}: expected at least 1")
    for name in settings.players:  # so that a wrong one is refused before anything is written
        registry.load(name, ruleset=settings.ruleset)
    solver = Solver(settings.ruleset, nodes=settings.nodes, table_bits=TABLE_BITS, threads=threads)
    folder = path.with_name(path.name + ".parts")
    with hold(folder):
        described = _agree(folder, settings)
        sizes = [min(CHUNK, count - low) for low in range(0, count, CHUNK)]
        files = [folder / f"{i:05}-{size}.npz" for i, size in enumerate(sizes)]
        missing = [i for i, file in enumerate(files) if not file.exists()]
        done = count - sum(sizes[i] for i in missing)
        with tqdm(total=count, initial=done, unit="position", smoothing=0.05) as bar:
            for i in missing:
                part = solve(sample(settings, i, sizes[i], threads), solver)
                write_atomically(files[i], _archive(part))
                bar.update(sizes[i])
        data = _join(files, described)
        write_atomically(path, _archive(_plain(data)))
    return data


def _agree(folder: Path, settings: DatasetSettings) -> dict[str, Any]:
    """The settings of the parts in a folder, written there if it has none.

    Raises:
        ValueError: they are others.
    """
    file = folder / "settings.json"
    described = settings.describe()
    if not any(folder.glob("*.npz")):
        write_atomically(file, json.dumps(described, indent=2) + "\n")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for name in described.keys() - {"commit", "packages"}:
        if found.get(name) != described[name]:
            raise ValueError(
                f"{folder} holds parts with {name} {found.get(name)!r}, not {described[name]!r}: "
                "give the same settings, or another --out"
            )
    return found


def _parts(files: list[Path]) -> Iterator[tuple[int, Arrays]]:
    """The parts in files, each with the number of its source."""
    for i, file in enumerate(files):
        with np.load(file, allow_pickle=False) as archive:
            yield i % len(SOURCES), {name: archive[name] for name in archive.files}


def _join(files: list[Path], described: dict[str, Any]) -> ExactValues:
    """All that is known and new in the parts."""
    kept: list[Arrays] = []
    sources: list[npt.NDArray[np.uint8]] = []
    counts = {
        source: {stage: {"sampled": 0, "unknown": 0} for stage in ("namua", "mtaji")}
        for source in SOURCES
    }
    for number, part in _parts(files):
        known = part["values"] != 0
        namua = (part["positions"][:, META] & BYTE) != 0  # the mover's store
        for stage, inside in (("namua", namua), ("mtaji", ~namua)):
            count = counts[SOURCES[number]][stage]
            count["sampled"] += int(inside.sum())
            count["unknown"] += int((inside & ~known).sum())
        kept.append({name: array[known] for name, array in part.items()})
        sources.append(np.full(int(known.sum()), number, np.uint8))
    joined = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
    source = np.concatenate(sources)
    new = np.sort(np.unique(without_seats(joined["positions"]), axis=0, return_index=True)[1])
    positions, masks, values, winning = (
        joined[name][new] for name in ("positions", "masks", "values", "winning")
    )
    return ExactValues(
        positions,
        masks,
        values,
        winning,
        np.where(values == WIN, winning, masks),
        positions[:, PLY].astype(np.int16),
        source[new],
        is_for_tests(positions),
        described | {"counts": counts, "repeats": len(source) - len(new)},
    )


def _plain(data: ExactValues) -> Arrays:
    """The arrays of a file, the metadata as JSON."""
    return data._asdict() | {"metadata": np.array(json.dumps(data.metadata))}


def _archive(arrays: Arrays) -> bytes:
    """The bytes of an ``.npz`` file; the same arrays have the same ones."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def load(path: str | Path) -> ExactValues:
    """Read a file.

    Raises:
        ValueError: it is no such file, or its positions are of other rules than ours.
        OSError: it cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ExactValues._fields}
        metadata = json.loads(str(arrays.pop("metadata")))
        found = metadata["format"], metadata["rules_version"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path} is no file of exact values: make one with python -m training.exact_values"
        ) from error
    if found != (FORMAT, RULES_VERSION):
        raise ValueError(
            f"{path} has format {found[0]} and rules version {found[1]}, not {FORMAT} and "
            f"{RULES_VERSION}: make it again"
        )
    return ExactValues(**arrays, metadata=metadata)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.exact_values``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.exact_values",
        description="Write positions with their exact values and best actions, to learn from. "
        "If it is stopped, the same command continues; a larger --count adds to what is there.",
    )
    parser.add_argument("--ruleset", type=ruleset_argument, default="kujifunza", help=RULESET_HELP)
    parser.add_argument("--count", type=int, default=100_000, help="to sample (default 100000)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="an .npz file")
    parser.add_argument("--seed", type=int, default=0, help="(default 0)")
    parser.add_argument(
        "--nodes",
        type=int,
        default=300_000,
        help="positions that the solver may visit for one; what it does not solve within them "
        "is dropped (default 300000)",
    )
    parser.add_argument(
        "--plies",
        type=int,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="of the positions (default: from ten before the stores are spent)",
    )
    parser.add_argument(
        "--players",
        nargs=2,
        default=PLAYERS,
        metavar="PLAYER",
        help=f"of the games that are not random (default {' '.join(PLAYERS)})",
    )
    parser.add_argument("--threads", type=int, default=1, help="(default 1)")
    args = parser.parse_args(argv)
    lowest = max(0, 2 * args.ruleset.opening_store - NAMUA_PLIES)
    if args.seed < 0:
        parser.error("--seed must not be negative")
    settings = DatasetSettings(
        args.ruleset,
        args.seed,
        args.nodes,
        tuple(args.plies or (lowest, 999)),
        tuple(args.players),
    )
    try:
        data = generate(settings, args.count, args.out, args.threads)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped: the same command continues", file=sys.stderr)
        return 130
    print(describe(args.out, data))
    return 0


def describe(path: Path, data: ExactValues) -> str:
    """What a file holds, in words."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = [
        f"{path}: {len(data.values):,} positions, {data.test.sum():,} of them for tests; "
        f"{(data.values == WIN).mean():.1%} are won for the player to move",
        f"{path.stat().st_size / 1e6:.1f} MB, sha256 {digest}",
    ]
    for source, stages in data.metadata["counts"].items():
        for stage, count in stages.items():
            if count["sampled"]:
                share = count["unknown"] / count["sampled"]
                lines.append(
                    f"{source}, {stage}: {count['sampled']:,} sampled, "
                    f"{count['unknown']:,} ({share:.2%}) not solved"
                )
    lines.append(f"{data.metadata['repeats']:,} met before")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
