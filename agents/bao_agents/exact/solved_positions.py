"""Read and write positions with their exact values and every winning action: a data set."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bao_agents.arena.games import choose
from bao_agents.players.player import as_player
from bao_agents.search.solver.proof_number import LOSS, WIN
from bao_agents.support.array_types import Int8Array, Int16Array
from bao_agents.support.files import write_atomically
from bao_env.bots import ActFunction, Agent
from bao_env.engine.action import actions_of
from bao_env.engine.batch import Engine
from bao_env.engine.bits import BYTE
from bao_env.engine.masks import is_legal
from bao_env.engine.position import (
    META,
    MOVER_IS_NORTH,
    PLY,
    WORDS,
    Flags,
    Legal,
    PackedPositions,
    mirrored,
    unpack,
)
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.files import read_bytes
from bao_env.game import Stage
from bao_env.notation.positions import action_to_move, format_position

FORMAT = 2
"""Version of the file format, increased whenever an array changes its meaning."""
CSV_HEAD = "position,value,plies,winning,losing,source\n"
"""The first line of :meth:`SolvedPositions.to_csv`."""
SHIPPED = Path(__file__).with_name("won")
"""Folder of the shipped files. They are loaded by name, without the suffix."""
_MAX_BYTES = 4 << 30
"""The longest file that is read."""
_TEST_SHARE = 10
"""One position in ten is for tests."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SolvedPositions:
    """N positions, with a proof of the winner after each of their legal actions."""

    ruleset: Ruleset
    positions: PackedPositions
    """uint64[N, 6], packed (:mod:`bao_env.engine.position`)."""
    legal: Legal
    """uint64[N], the legal actions: bit a = action a."""
    winning: Legal
    """uint64[N], the actions after which the player to move wins; 0 in a lost position."""
    plies: Int16Array
    """int16[N], plies within which the winner can win. They count to the shortest win in the
    shipped files and with ``bao solve --sample 500 --shortest``, else to the end of the proof that
    was found.
    """
    source: npt.NDArray[np.str_]
    """str[N], which kind of games each position comes from."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """More facts about a file: seed, commit, limits, counts."""

    def __len__(self) -> int:
        return len(self.legal)

    def __getitem__(self, index: slice | npt.NDArray[Any]) -> SolvedPositions:
        return replace(self, **{name: array[index] for name, array in self.arrays().items()})

    @staticmethod
    def concatenate(parts: Sequence[SolvedPositions]) -> SolvedPositions:
        """Join parts with the same rules, in order, with the metadata of the first."""
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
    def losing(self) -> Legal:
        """uint64[N], the legal actions after which the player to move loses."""
        return self.legal & ~self.winning

    @property
    def choices(self) -> Flags:
        """bool[N], whether the position is won and some legal action gives the win away."""
        return (self.winning != 0) & (self.losing != 0)

    @property
    def stages(self) -> npt.NDArray[np.str_]:
        """str[N], the :class:`~bao_env.game.Stage` of each position."""
        return stages_of(self.positions)

    @property
    def won(self) -> SolvedPositions:
        """The positions that are won for the player to move."""
        return self[self.winning != 0]

    def part(self, *, test: bool) -> SolvedPositions:
        """Return the positions for tests, or those to learn from; see :func:`is_for_tests`."""
        return self[is_for_tests(self.positions) == test]

    def mistakes(self, player: Agent | ActFunction) -> Flags:
        """Return in which positions a player gives a win away, bool[N]; see :meth:`ask`."""
        return self.ask(player)[0]

    def ask(self, player: Agent | ActFunction) -> tuple[Flags, list[str]]:
        """Ask a player for its action in each position.

        Returns:
            bool[N], the positions in which the player gives a win away; and the causes of its
            faults (:class:`~bao_agents.players.faults.PlayerFault`). A fault counts as a mistake in
            positions where a mistake is possible.

        Raises:
            ValueError: the player chooses an illegal action.
        """
        if not len(self):
            return np.zeros(0, np.bool_), []
        named = as_player(player, "the player")
        actions, causes = choose(named, self.positions.copy(), self.legal.copy())
        keeps_win = is_legal(actions, self.winning)  # in a lost position no action is a mistake
        return np.where(actions < 0, self.choices, ~keeps_win), causes

    def save(self, path: str | Path) -> None:
        """Write a file for :meth:`load`. The same content always gives the same bytes.

        Raises:
            OSError: the file cannot be written.
        """
        header = {"format": FORMAT, **rules_of(self.ruleset)}
        metadata = np.array(json.dumps(self.metadata | header))
        write_atomically(path, archive(self.arrays() | {"metadata": metadata}))

    def to_csv(self) -> str:
        """Return a row for each position: its text, who wins and how soon, and the moves.

        ``value`` is 1 if the player to move wins, else -1; ``winning`` and ``losing`` are canonical
        names of moves.
        """
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        file.write(CSV_HEAD)
        rows = zip(self.positions, self.values, self.plies, self.source, strict=True)
        for (position, value, plies, source), won, lost in zip(
            rows, self.winning, self.losing, strict=True
        ):
            moves = (
                " ".join(map(action_to_move, actions_of(action_bits)))
                for action_bits in (won, lost)
            )
            writer.writerow([format_position(unpack(position)), value, plies, *moves, source])
        return file.getvalue()

    @classmethod
    def load(
        cls, path: str | Path, ruleset: Ruleset | None = None, *, may_be_empty: bool = False
    ) -> Self:
        """Read and check what :meth:`save` wrote.

        Args:
            path: a file, or the name of a shipped one.
            ruleset: the expected rules; None to accept any rules.
            may_be_empty: whether to accept a file without positions.

        Raises:
            ValueError: the file is missing or damaged, does not hold solved positions, or is for
                other rules; the message names it.
        """
        try:
            arrays = dict(read_arrays(find(path), _ARRAYS, "metadata"))
            metadata = json.loads(str(arrays.pop("metadata")))
            version = metadata["format"], metadata["rules_version"]
            if version != (FORMAT, RULES_VERSION):
                raise ValueError(
                    f"it has format {version[0]!s:.20} and rules version {version[1]!s:.20}, not "
                    f"{FORMAT} and {RULES_VERSION}"
                )
            rules = Ruleset.from_dict(metadata["ruleset"])
            if not may_be_empty and not len(arrays["legal"]):
                raise ValueError("it has no positions")
            _check_content(arrays, rules)
        except Exception as error:  # zip, zlib, numpy and json raise a dozen kinds
            names = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.npz")))
            raise ValueError(
                f"{path} cannot be used as a file of solved positions ({error!s:.100}): make a "
                f"file with bao solve --sample, or choose one of: {names}"
            ) from error
        if ruleset is not None and ruleset != rules:
            raise ValueError(
                f"{path} has positions of other rules: {rules.contrast(ruleset)}; give its rules "
                "(--ruleset), or another file"
            )
        return cls(rules, **arrays, metadata=metadata)


def find(path: str | Path) -> Path:
    """Return the file of solved positions at a path, or the shipped one of this name."""
    is_shipped = str(path) in [file.stem for file in SHIPPED.glob("*.npz")]
    return SHIPPED / f"{path}.npz" if is_shipped else Path(path)


def shipped_won_positions(ruleset: Ruleset) -> SolvedPositions | None:
    """Return the won positions that come with the project; None if these rules have none."""
    if not ruleset.is_shipped or not (SHIPPED / f"{ruleset.name}.npz").is_file():
        return None
    return SolvedPositions.load(ruleset.name, ruleset)


# --- files ----------------------------------------------------------------------------------------

_ARRAYS: dict[str, type[np.generic]] = {
    "positions": np.uint64,
    "legal": np.uint64,
    "winning": np.uint64,
    "plies": np.int16,
    "source": np.str_,
}
"""Arrays of a file and their types."""


def rules_of(ruleset: Ruleset) -> dict[str, Any]:
    """Return what the first line of a file says about the rules; :func:`names_rules` reads it."""
    return {"rules_version": RULES_VERSION, "ruleset": ruleset.to_dict()}


def names_rules(line: str | bytes, ruleset: Ruleset) -> bool:
    """Return whether the first line of a file names these rules, also in earlier formats."""
    try:
        head = json.loads(line)
        rules, version = Ruleset.from_dict(head["ruleset"]), head["rules_version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return bool(version == RULES_VERSION and rules == ruleset)


def archive(arrays: Arrays) -> bytes:
    """Return the bytes of an ``.npz`` file."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def read_arrays(file: Path, types: Mapping[str, type[np.generic]], *more_names: str) -> Arrays:
    """Read the arrays in ``types`` and ``more_names``; check types, dimensions and lengths."""
    content = read_bytes(file, _MAX_BYTES)
    if not content.startswith(b"PK"):  # numpy's own message would advise unsafe loading
        raise ValueError("it is not an .npz file; .csv files cannot be loaded")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in (*types, *more_names)}
    for name, kind in types.items():
        array = arrays[name]
        shape = (len(arrays["winning"]), *((WORDS,) if name == "positions" else ()))
        if array.shape != shape or not np.issubdtype(array.dtype, kind):
            raise ValueError(
                f"{name} is {array.dtype}{list(array.shape)}, not {kind.__name__}{list(shape)}"
            )
    return arrays


def _check_content(arrays: Arrays, ruleset: Ruleset) -> None:
    """Check plies and sources, and that the legal actions contain the winning ones."""
    if (arrays["plies"] < 0).any():
        raise ValueError("a number of plies is below 0")
    if not all(name.isprintable() for name in np.unique(arrays["source"]).tolist()):
        raise ValueError("the name of a source has control characters")
    legal = np.empty(len(arrays["legal"]), np.uint64)
    Engine(ruleset).find_legal(arrays["positions"], legal, np.empty(len(legal), np.int8))
    if (arrays["legal"] != legal).any() or not legal.all() or (arrays["winning"] & ~legal).any():
        raise ValueError("its actions are not the legal actions of its positions")


# --- positions seen from another side -------------------------------------------------------------


def without_seats(positions: PackedPositions) -> PackedPositions:
    """Return positions as the player to move sees them, without the seat and the ply.

    What remains determines the legal actions and the winner.

    Args:
        positions: uint64[N, 6].

    Returns:
        uint64[N, 6], a copy with South to move and ply 0.
    """
    views = positions.copy()
    views[:, META] &= ~MOVER_IS_NORTH
    views[:, PLY] = 0
    return views


def without_sides(positions: PackedPositions) -> list[bytes]:
    """Return a key for each position, the same for its mirror image and from the other seat.

    Args:
        positions: uint64[N, 6].
    """
    views = [without_seats(view).astype("<u8") for view in (positions, mirrored(positions))]
    return [min(view.tobytes(), mirror.tobytes()) for view, mirror in zip(*views, strict=True)]


def is_for_tests(positions: PackedPositions) -> Flags:
    """Return which positions are for tests, bool[N]; a hash selects one in ten.

    The answer is the same for a position seen from the other seat, for its mirror image, and in
    every file.

    Args:
        positions: uint64[N, 6].
    """
    keys = without_sides(positions)
    digests = b"".join(hashlib.blake2b(key, digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, "<u8") % _TEST_SHARE == 0


def stages_of(positions: PackedPositions) -> npt.NDArray[np.str_]:
    """Return the stage of each position, as the value of a :class:`~bao_env.game.Stage`."""
    store = positions[:, META] & BYTE  # the mover's store
    return np.where(store != 0, Stage.NAMUA.value, Stage.MTAJI.value)
