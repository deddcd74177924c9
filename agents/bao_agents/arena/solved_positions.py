"""Positions with their exact values and every winning action: solve them, save them, load them."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bao_agents.search.alphabeta import evaluation
from bao_agents.search.solver import solver
from bao_agents.search.solver.proof_number import LOSS, WIN
from bao_env.bots import Agent, check_actions
from bao_env.engine.action import is_legal, unpack_masks
from bao_env.engine.array_types import Int8Array, Int16Array
from bao_env.engine.batch import Engine
from bao_env.engine.bits import BYTE
from bao_env.engine.position import META, MOVER_IS_NORTH, PLY, WORDS, Flags, Words
from bao_env.engine.ruleset import RULES_VERSION, RULESETS, Ruleset
from bao_env.envs.afterstates import list_afterstates
from bao_env.files import write_atomically
from bao_env.game import Stage
from bao_env.observation.observer import get_observer

FORMAT = 2
"""Version of the file format, raised whenever an array changes its meaning."""
SHIPPED = Path(__file__).with_name("won")
"""Folder of the shipped files. They are loaded by name, without the suffix."""
_PART = 256
"""Positions that are solved, and kept in the cache, as one file."""
_TEST_SHARE = 10
"""One position in ten is for tests."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SolvedPositions:
    """N positions; the winner after each of their legal actions is proved."""

    ruleset: Ruleset
    positions: Words
    """uint64[N, 6], packed (:mod:`bao_env.engine.position`)."""
    masks: Words
    """uint64[N], the legal actions: bit a = action a."""
    winning: Words
    """uint64[N], the actions after which the player to move wins; 0 in a lost position."""
    plies: Int16Array
    """int16[N], plies within which the winner can win, by the proof found; the shortest win may be
    shorter."""
    source: npt.NDArray[np.str_]
    """str[N], name of the games the position is from."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Further facts about a file: seed, commit, limits, counts."""

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, index: slice | npt.NDArray[Any]) -> SolvedPositions:
        return replace(self, **{name: array[index] for name, array in self.arrays().items()})

    @staticmethod
    def concatenate(parts: Sequence[SolvedPositions]) -> SolvedPositions:
        """Join parts of the same rules in their order; the metadata is the first one's."""
        names = parts[0].arrays()
        arrays: dict[str, Any] = {
            name: np.concatenate([part.arrays()[name] for part in parts]) for name in names
        }
        return replace(parts[0], **arrays)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by their names."""
        return {name: getattr(self, name) for name in _ARRAYS}

    @property
    def values(self) -> Int8Array:
        """int8[N], 1 if the player to move wins with perfect play, -1 if they lose."""
        return np.where(self.winning != 0, WIN, LOSS).astype(np.int8)

    @property
    def losing(self) -> Words:
        """uint64[N], the legal actions after which the player to move loses."""
        return self.masks & ~self.winning

    @property
    def optimal(self) -> Words:
        """uint64[N], the actions that keep the value: ``winning``, or all in a lost position."""
        return np.where(self.winning != 0, self.winning, self.masks)

    @property
    def choices(self) -> Flags:
        """bool[N], whether the position is won and some legal action gives the win away."""
        return (self.winning != 0) & (self.losing != 0)

    @property
    def stages(self) -> npt.NDArray[np.str_]:
        """str[N], the :class:`~bao_env.game.Stage` of each position."""
        return _stages(self.positions)

    @property
    def won(self) -> SolvedPositions:
        """The positions that are won for the player to move."""
        return self[self.winning != 0]

    def part(self, *, test: bool) -> SolvedPositions:
        """Return the positions for tests, or those to learn from; see :func:`is_for_tests`."""
        return self[is_for_tests(self.positions) == test]

    def mistakes(self, player: Agent) -> Flags:
        """Return where a player gives a win away, bool[N].

        A forfeit is such a mistake where a move could have been one.

        Raises:
            ValueError: the player chooses an illegal action.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        actions = check_actions(
            player.act(self.positions.copy(), self.masks.copy()), self.masks, "the player"
        )
        kept = is_legal(actions, self.winning)  # in a lost position none is a mistake
        forfeits = getattr(player, "forfeits", None)
        return ~kept if forfeits is None else ~kept | (forfeits & self.choices)

    def save(self, path: str | Path) -> None:
        """Write a file that :meth:`load` reads. The same content gives the same bytes.

        Raises:
            OSError: the file cannot be written.
        """
        header = {"format": FORMAT, **_rules(self.ruleset)}
        metadata = np.array(json.dumps(self.metadata | header))
        write_atomically(path, _archive(self.arrays() | {"metadata": metadata}))

    @classmethod
    def load(cls, path: str | Path, ruleset: Ruleset | None = None) -> Self:
        """Read and check what :meth:`save` wrote.

        Args:
            path: a file, or the name of a shipped one.
            ruleset: the expected rules; None to accept those of the file.

        Raises:
            ValueError: the file is missing, damaged, no file of solved positions, or of other
                rules; the message names it.
        """
        shipped = SHIPPED / f"{path}.npz"
        try:
            arrays = dict(_read(shipped if shipped.is_file() else Path(path), _ARRAYS, "metadata"))
            metadata = json.loads(str(arrays.pop("metadata")))
            found = metadata["format"], metadata["rules_version"]
            if found != (FORMAT, RULES_VERSION):
                raise ValueError(
                    f"format {found[0]!s:.20} and rules version {found[1]!s:.20}, not "
                    f"{FORMAT} and {RULES_VERSION}: make it again"
                )
            rules = Ruleset.from_dict(metadata["ruleset"])
            _check_content(arrays, rules)
            if ruleset is not None and ruleset != rules:
                raise ValueError(f"other rules than {ruleset.name!r}")
        except Exception as error:  # zip, zlib, numpy and json raise a dozen kinds
            names = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.npz")))
            raise ValueError(
                f"{path} is no file of solved positions for this use ({error!s:.100}): make one "
                f"with bao dataset or bao blunders --won, or name one of: {names}"
            ) from error
        return cls(rules, **arrays, metadata=metadata)


def shipped_won_positions(ruleset: Ruleset) -> SolvedPositions | None:
    """Return the won positions that come with the project; None if these rules have none."""
    if ruleset != RULESETS.get(ruleset.name) or not (SHIPPED / f"{ruleset.name}.npz").is_file():
        return None
    return SolvedPositions.load(ruleset.name, ruleset)


# --- solving --------------------------------------------------------------------------------------


class Solved(NamedTuple):
    """Result of solving a sample of positions."""

    known: SolvedPositions
    """The positions whose actions are all solved."""
    counts: dict[str, dict[str, int]]
    """Numbers of positions that are ``won``, ``lost`` and ``not solved``, by stage; ``not solved``
    means that the limit was too low for the position or for one of its actions."""


def solve(
    positions: Words,
    masks: Words,
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
        masks: uint64[N], their legal actions, none of them 0.
        ruleset: the rules.
        source: name of the games the positions are from.
        nodes: limit of positions to visit for each of them.
        table_bits: size of the solver's table (:class:`~bao_agents.search.solver.solver.Solver`).
        threads: number of threads; all cores by default.
        cache: folder that keeps what has been solved for the next call; a damaged file in it is
            made again.
        progress: called with the number of positions that have just been solved.

    Raises:
        ValueError: a limit is out of range.
        OSError: the cache cannot be written.
    """
    exact = solver.Solver(ruleset, nodes=nodes, table_bits=table_bits, threads=threads)
    settings = json.dumps([_rules(ruleset), nodes, table_bits, _code()]).encode()
    parts = []
    for low in range(0, len(masks), _PART):
        batch = positions[low : low + _PART], masks[low : low + _PART]
        digest = hashlib.sha256(settings + batch[0].tobytes()).hexdigest()[:32]
        file = cache and cache / f"{digest}.npz"
        part = _cached(file, batch[1]) if file else None
        if part is None:
            part = _solve_part(exact, *batch)
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, _archive(part))
        parts.append(part)
        progress(len(batch[1]))
    known, winning, plies = (np.concatenate([part[name] for part in parts]) for name in _SOLVED)
    stages, won = _stages(positions), known & (winning != 0)
    results = {"won": won, "lost": known & ~won, "not solved": ~known}
    counts = {
        stage: {name: int((where & (stages == stage)).sum()) for name, where in results.items()}
        for stage in (Stage.NAMUA.value, Stage.MTAJI.value)
        if (stages == stage).any()
    }
    names = np.full(int(known.sum()), source)
    solved = SolvedPositions(
        ruleset, positions[known], masks[known], winning[known], plies[known], names
    )
    return Solved(solved, counts)


def _solve_part(exact: solver.Solver, positions: Words, masks: Words) -> Arrays:
    """Return the arrays of :data:`_SOLVED` for some positions."""
    judged = exact.judge(positions, masks)
    wins = np.empty(judged.plies.shape, np.bool_)
    unpack_masks(judged.winning, wins)
    quickest = np.where(wins, judged.plies, np.iinfo(np.int16).max).min(axis=1)
    return {
        "known": (judged.winning | judged.losing) == masks,
        "winning": judged.winning,
        "plies": np.where(judged.winning != 0, quickest, judged.plies.max(axis=1)),
    }


def _cached(file: Path, masks: Words) -> Arrays | None:
    """Return a part from the cache; None if it is missing, damaged or of other positions."""
    try:
        arrays = _read(file, _SOLVED)
    except Exception:  # see SolvedPositions.load
        return None
    winning = arrays["winning"]
    return None if len(winning) != len(masks) or (winning & ~masks).any() else arrays


@functools.cache
def _code() -> str:
    """Return a digest of the solver's source and weights, which decide what stays unsolved."""
    folder = Path(solver.__file__).parent
    files = [folder / "solver.py", *sorted(folder.glob("proof_*.py")), evaluation.FILE]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


# --- files ----------------------------------------------------------------------------------------

_ARRAYS: dict[str, type[np.generic]] = {
    "positions": np.uint64,
    "masks": np.uint64,
    "winning": np.uint64,
    "plies": np.int16,
    "source": np.str_,
}
"""Arrays of a file and their types."""
_SOLVED: dict[str, type[np.generic]] = {
    "known": np.bool_,
    "winning": np.uint64,
    "plies": np.int16,
}
"""Arrays of a file in the cache and their types."""


def _rules(ruleset: Ruleset) -> dict[str, Any]:
    return {"rules_version": RULES_VERSION, "ruleset": ruleset.to_dict()}


def _archive(arrays: Arrays) -> bytes:
    """Return the bytes of an ``.npz`` file."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _read(file: Path, types: Mapping[str, type[np.generic]], *others: str) -> Arrays:
    """Read the arrays of ``types``, and ``others``, and check types, dimensions and lengths."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in (*types, *others)}
    for name, kind in types.items():
        array = arrays[name]
        shape = (len(arrays["winning"]), *((WORDS,) if name == "positions" else ()))
        if array.shape != shape or not np.issubdtype(array.dtype, kind):
            raise ValueError(
                f"{name} is {array.dtype}{list(array.shape)}, not {kind.__name__}{list(shape)}"
            )
    return arrays


def _check_content(arrays: Arrays, ruleset: Ruleset) -> None:
    """Check that there are positions, the masks are theirs, and contain the winning actions."""
    if not len(arrays["masks"]):
        raise ValueError("it has no positions")
    if (arrays["plies"] < 0).any():
        raise ValueError("a number of plies is negative")
    if not all(name.isprintable() for name in np.unique(arrays["source"]).tolist()):
        raise ValueError("the name of a source has control characters")
    masks = np.empty(len(arrays["masks"]), np.uint64)
    Engine(ruleset).legal_masks(arrays["positions"], masks, np.empty(len(masks), np.int8))
    if (arrays["masks"] != masks).any() or not masks.all() or (arrays["winning"] & ~masks).any():
        raise ValueError("its actions are not the legal ones of its positions")


# --- positions seen from another side -------------------------------------------------------------


def without_seats(positions: Words) -> Words:
    """Return positions as the player to move sees them, without their seat and ply.

    Legal actions and the winner depend on nothing else.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy with South to move and ply 0.
    """
    seen = positions.copy()
    seen[:, META] &= ~MOVER_IS_NORTH
    seen[:, PLY] = 0
    return seen


def mirrored(positions: Words) -> Words:
    """Return positions with left and right exchanged.

    Where the rules have no house, the winner is the same.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy.
    """
    mirror = positions.copy()
    mirror[:, :META] = positions[:, :META].byteswap()
    meta = mirror.view(np.uint8).reshape(len(mirror), WORDS, 8)[:, META]
    for pit in (meta[:, 3], meta[:, 4]):  # barred, waiting; 255 for none
        pit[pit < 8] = 7 - pit[pit < 8]
    return mirror


def is_for_tests(positions: Words) -> Flags:
    """Return which positions are for tests, bool[N]: one in ten, by a hash.

    The answer is the same for a position seen from the other seat, for its mirror image, and in
    every file.

    Args:
        positions: uint64[N, 6].
    """
    views = [without_seats(view).astype("<u8") for view in (positions, mirrored(positions))]
    keys = [min(one.tobytes(), other.tobytes()) for one, other in zip(*views, strict=True)]
    digests = b"".join(hashlib.blake2b(key, digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, "<u8") % _TEST_SHARE == 0


def with_successors(data: SolvedPositions) -> tuple[Words, Words, Int8Array]:
    """Return the positions and those after each of their actions, whose values are known as well.

    This makes about four times as many. Successors of positions for tests are dropped unless they
    are for tests themselves, and the same holds for those to learn from. A position may come twice.

    Returns:
        positions uint64[M, 6], masks uint64[M] and values int8[M].
    """
    observer = get_observer("board", data.ruleset)
    after = list_afterstates(Engine(data.ruleset), observer, data.positions, data.masks)
    parents = np.repeat(np.arange(len(data)), np.diff(after.indptr))
    wins = data.winning[parents] >> after.actions.astype(np.uint64) & np.uint64(1) != 0
    values = np.where(wins, after.signs, -after.signs).astype(np.int8)
    test = is_for_tests(data.positions)[parents]
    kept = (after.results == 0) & (is_for_tests(after.positions) == test)
    return (
        np.concatenate([data.positions, after.positions[kept]]),
        np.concatenate([data.masks, after.legal[kept]]),
        np.concatenate([data.values, values[kept]]),
    )


def _stages(positions: Words) -> npt.NDArray[np.str_]:
    store = positions[:, META] & BYTE  # the mover's
    return np.where(store != 0, Stage.NAMUA.value, Stage.MTAJI.value)
