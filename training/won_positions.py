"""Positions that are won for the player to move, and the moves that give the win away.

Of each it is proved who wins after every legal action (:mod:`agents.search.solver.solver`). So
whatever a player chooses there, it is known whether the win is kept.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from agents.arena.elo import wilson_interval
from agents.files import write_atomically
from agents.search.alphabeta import evaluation
from agents.search.solver import solver
from agents.search.solver.proof_number import LOSS, WIN
from bao_env.bots import Agent, check_actions
from bao_env.engine.action import unpack_masks
from bao_env.engine.position import META, Words
from bao_env.engine.ruleset import RULES_VERSION, RULESETS, Ruleset
from bao_env.game import Stage
from training.sampling import Sample

SHIPPED: Final = Path(__file__).with_name("won")
"""Folder of the shipped files; they are loaded by name, without the suffix."""
_PART: Final = 256
"""Positions that are solved, and kept in the cache, together."""
_STORE: Final = np.uint64(0xFF)


class Share(NamedTuple):
    """A share of independent trials."""

    rate: float
    low: float
    """Lower end of its 95 % interval, after Wilson."""
    high: float
    """Upper end of it."""

    @classmethod
    def of(cls, count: int, trials: int) -> Self | None:
        """So many of so many; None without a trial."""
        if not trials:
            return None
        return cls(count / trials, *wilson_interval(count / trials, trials))


@dataclass(frozen=True)
class Blunders:
    """How often a player gave wins away."""

    moves: int
    """Moves from won positions."""
    choices: int
    """Those among them that could have given the win away: some legal action does."""
    mistakes: int
    """Those that did."""

    @property
    def of_moves(self) -> Share | None:
        """Mistakes among all moves from won positions."""
        return Share.of(self.mistakes, self.moves)

    @property
    def of_choices(self) -> Share | None:
        """Mistakes among the moves that could have been one."""
        return Share.of(self.mistakes, self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; shares are None without a trial."""
        return {
            "moves": self.moves,
            "choices": self.choices,
            "mistakes": self.mistakes,
            "of_moves": self.of_moves and self.of_moves._asdict(),
            "of_choices": self.of_choices and self.of_choices._asdict(),
        }


@dataclass(frozen=True, eq=False)
class WonPositions:
    """N positions, all won for the player to move."""

    ruleset: Ruleset
    positions: Words
    """uint64[N, 6]."""
    masks: Words
    """uint64[N], their legal actions."""
    losing: Words
    """uint64[N], those among them that give the win away."""
    plies: npt.NDArray[np.int16]
    """int16[N], plies within which the game can be won, by the proof found; the shortest win may be
    shorter."""

    def __len__(self) -> int:
        return len(self.masks)

    def __getitem__(self, index: slice | npt.NDArray[Any]) -> WonPositions:
        arrays = (array[index] for array in self.arrays().values())
        return WonPositions(self.ruleset, *arrays)

    @staticmethod
    def concatenate(parts: Sequence[WonPositions]) -> WonPositions:
        """One after the other; at least one part, all of the same rules."""
        columns = zip(*(part.arrays().values() for part in parts), strict=True)
        return WonPositions(parts[0].ruleset, *map(np.concatenate, columns))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by their names."""
        return {name: getattr(self, name) for name in ("positions", "masks", "losing", "plies")}

    @property
    def choices(self) -> npt.NDArray[np.bool_]:
        """Where some legal action gives the win away, bool[N]."""
        return self.losing != 0

    @property
    def stages(self) -> npt.NDArray[np.str_]:
        """The :class:`~bao_env.game.Stage` of each, as text."""
        return _stages(self.positions)

    def mistakes(self, player: Agent) -> npt.NDArray[np.bool_]:
        """Where a player gives the win away, bool[N].

        Raises:
            ValueError: it chooses an illegal action.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        chosen = check_actions(
            player.act(self.positions.copy(), self.masks.copy()), self.masks, "the player"
        )
        return (self.losing >> chosen.astype(np.uint64)) & np.uint64(1) != 0

    def blunders(
        self, mistakes: npt.NDArray[np.bool_], where: npt.NDArray[np.bool_] | None = None
    ) -> Blunders:
        """Sum up what :meth:`mistakes` returned, for all positions or those ``where``, bool[N]."""
        kept = np.ones(len(self), np.bool_) if where is None else where
        return Blunders(int(kept.sum()), int(self.choices[kept].sum()), int(mistakes[kept].sum()))

    def save(self, path: str | Path) -> None:
        """Write a file that :meth:`load` reads.

        Raises:
            OSError: it cannot be written.
        """
        rules = json.dumps([RULES_VERSION, self.ruleset.to_dict()])
        write_atomically(path, _packed(rules=np.array(rules), **self.arrays()))

    @classmethod
    def load(cls, path: str | Path, ruleset: Ruleset) -> Self:
        """Read what :meth:`save` wrote.

        Args:
            path: of the file, or the name of a shipped one.
            ruleset: the rules to be played.

        Raises:
            ValueError: there is no such file, it holds something else, or it is of other rules.
        """
        own = SHIPPED / f"{path}.npz"
        file = own if own.is_file() else Path(path)
        try:
            arrays = _read(file, "rules", "positions", "masks", "losing", "plies")
            rules = json.loads(str(arrays.pop("rules")))
        except (OSError, ValueError) as error:
            names = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.npz")))
            raise ValueError(
                f"{path} is no file of won positions ({error!s:.100}): expected one that "
                f"python -m training.blunders --won has written, or by name one of: {names}"
            ) from error
        if rules != json.loads(json.dumps([RULES_VERSION, ruleset.to_dict()])):
            raise ValueError(
                f"{path} holds positions of other rules than {ruleset.name!r}: expected a file "
                "made under these"
            )
        return cls(ruleset, **arrays)


def shipped(ruleset: Ruleset) -> WonPositions | None:
    """The positions that come with the project; None if there are none for these rules."""
    if ruleset != RULESETS.get(ruleset.name) or not (SHIPPED / f"{ruleset.name}.npz").is_file():
        return None
    return WonPositions.load(ruleset.name, ruleset)


class Solved(NamedTuple):
    """What became of a sample of positions."""

    won: WonPositions
    """Those that are won, if it is known who wins after each of their actions."""
    counts: dict[str, dict[str, int]]
    """By stage: how many are ``won``, ``lost`` (then no move is a mistake), and ``not solved``,
    because the limit was too low for the position or one of its actions."""


def solve(
    sample: Sample,
    ruleset: Ruleset,
    *,
    nodes: int,
    threads: int | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] = lambda solved: None,
) -> Solved:
    """Find the won positions of a sample. The answer does not depend on the threads.

    Args:
        sample: the positions.
        ruleset: the rules.
        nodes: positions that the solver visits for each of them, at most.
        threads: among which the work is divided; all cores by default.
        cache: a folder that keeps what has been solved, for the next call.
        progress: called with the number of positions that have just been solved.

    Raises:
        ValueError: a limit is out of range.
        OSError: the cache cannot be written.
    """
    judge = solver.Solver(ruleset, nodes=nodes, threads=threads)
    parts = []
    for low in range(0, len(sample.masks), _PART):
        part = slice(low, low + _PART)
        positions, masks = sample.positions[part], sample.masks[part]
        file = cache and cache / f"{_key(ruleset, nodes, positions)}.npz"
        found = _cached(file)
        if found is None:
            found = _judge(judge, positions, masks)
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, _packed(**found))
        parts.append(found)
        progress(len(masks))
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    won, lost = found["values"] == WIN, found["values"] == LOSS
    stages = _stages(sample.positions)
    return Solved(
        WonPositions(
            ruleset,
            sample.positions[won],
            sample.masks[won],
            found["losing"][won],
            found["plies"][won],
        ),
        {
            stage: {
                "won": int((won & (stages == stage)).sum()),
                "lost": int((lost & (stages == stage)).sum()),
                "not solved": int((~won & ~lost & (stages == stage)).sum()),
            }
            for stage in (Stage.NAMUA.value, Stage.MTAJI.value)
            if (stages == stage).any()
        },
    )


def _judge(judge: solver.Solver, positions: Words, masks: Words) -> dict[str, npt.NDArray[Any]]:
    """``values`` int8[B], 0 where some action is not solved though the position is won; ``losing``
    uint64[B]; and ``plies`` int16[B], to the win."""
    found = judge.judge(positions, masks)
    winning = np.empty(found.plies.shape, np.bool_)
    unpack_masks(found.winning, winning)
    plies = np.where(winning, found.plies, np.iinfo(np.int16).max).min(axis=1)
    complete = (found.winning | found.losing) == masks
    values = np.where(complete | (found.values == LOSS), found.values, 0)
    return {"values": values, "losing": found.losing, "plies": plies}


def _cached(file: Path | None) -> dict[str, npt.NDArray[Any]] | None:
    """What the cache holds; None if that is nothing, or cannot be read."""
    if file is None:
        return None
    try:
        return _read(file, "values", "losing", "plies")
    except (OSError, ValueError):
        return None


def _key(ruleset: Ruleset, nodes: int, positions: Words) -> str:
    """The name in the cache of what is found out about some positions."""
    said = json.dumps([RULES_VERSION, ruleset.to_dict(), nodes, _code()])
    return hashlib.sha256(said.encode() + positions.tobytes()).hexdigest()[:32]


@functools.cache
def _code() -> str:
    """A digest of the solver's source and weights; with them, what is left unsolved may change."""
    folder = Path(solver.__file__).parent
    files = [folder / "solver.py", *sorted(folder.glob("proof_*.py")), evaluation.FILE]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _packed(**arrays: Any) -> bytes:
    """Arrays as a file of numpy's."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _read(file: Path, *names: str) -> dict[str, npt.NDArray[Any]]:
    """Arrays of such a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none, or does not hold them.
    """
    try:
        with np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in names}
    except (EOFError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"no file of these arrays: {error}") from error


def _stages(positions: Words) -> npt.NDArray[np.str_]:
    store = positions[:, META] & _STORE
    return np.where(store != 0, Stage.NAMUA.value, Stage.MTAJI.value)
