"""Prove who wins a position by one search that can be stopped and continued for days.

A file keeps the search: its whole table, and how the position's numbers grew. Its first line is a
:class:`Head` in JSON (``head -1 FILE``). The arrays ``keys``, ``numbers`` and ``work`` of the
:class:`~bao_agents.search.solver.proof_number.Table` follow, in little-endian byte order. A damaged
entry matches no position, since its key is stored XOR its numbers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bao_agents.exact.proof_split import ProofSplitter
from bao_agents.exact.proof_tree import Answer, Answers
from bao_agents.exact.solved_positions import names_rules, rules_of
from bao_agents.search.limits import deadline, nanoseconds
from bao_agents.search.memory import MEGABYTE, free_memory
from bao_agents.search.sharing import search_in_threads
from bao_agents.search.solver.proof_number import UNKNOWN, WAYS, Table
from bao_agents.search.solver.proof_search import ProofSearch
from bao_agents.search.solver.solver import DEFAULT_NODES, SLOT_BYTES, Solution, solution_of
from bao_agents.support.files import replace_file
from bao_agents.support.output import say
from bao_env.engine.position import PackedPositions, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.files import open_regular
from bao_env.notation.positions import format_position

FORMAT = 1
"""Version of the file format."""
SAVE_SECONDS = 1800.0
"""Seconds between two saves: to write 10 GB takes a minute or two."""
STEP_SECONDS = (1.0, 60.0)
"""Seconds of the first step and of the longest. The position's numbers are read after each step."""
GROWTH = 1.25
"""The curve gets its next point when the number of visited positions has grown by this factor.
The steps grow by it, too."""
_LONGEST_HEAD = 1 << 16
_CHUNK_BYTES = 1 << 24
_Count = Annotated[int, Field(ge=0, lt=1 << 62)]


class CurvePoint(NamedTuple):
    """The position's numbers at one time (:mod:`bao_agents.search.solver.proof_number`)."""

    visited: _Count
    """Positions visited so far."""
    phi: _Count
    delta: _Count


class Head(BaseModel):
    """The first line of a file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    rules_version: int
    ruleset: dict[str, Any]
    position: str
    slot_bits: Annotated[int, Field(ge=0, le=48)]
    """The table has 2^``slot_bits`` slots."""
    visited: _Count
    """Positions visited so far."""
    curve: list[CurvePoint]


class ResumableSearch:
    """Search for a proof, and keep the search in a file.

    Args:
        ruleset: the rules.
        position: uint64[6], the position to prove.
        file: the file; if it exists, the search goes on from there.
        slot_bits: the table has up to 2^``slot_bits`` slots, or more if the file has more.
        threads: number of threads that search the position together.

    Raises:
        ValueError: the file holds no search of this position, is damaged, or needs more memory
            than is free.
        OSError: the file cannot be read.
        MemoryError: there is no memory for the table.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        position: PackedPositions,
        file: Path,
        slot_bits: int,
        threads: int,
    ) -> None:
        self.visited: int = 0
        """Positions visited so far."""
        self.curve: list[CurvePoint] = []
        """How the position's numbers grew."""
        self.value = UNKNOWN
        """WIN, LOSS or UNKNOWN for the player to move."""
        self._ruleset, self._position, self._file = ruleset, position, file
        self._saved_visited = 0
        self._search = ProofSearch(ruleset, slot_bits, threads)
        self._search.get_ready()
        if file.exists():
            self._read()

    @property
    def numbers(self) -> tuple[int, int]:
        """``phi`` and ``delta`` of the position after the last step."""
        return self._search.numbers

    def run(self, *, seconds: float | None = None, nodes: int | None = None) -> Iterator[None]:
        """Search until the position is proven or a limit is reached; yield after each step.

        The file is saved from time to time. If that fails, the search says so and goes on. Call
        :meth:`save` at the end, also after an exception.

        Args:
            seconds: time limit.
            nodes: the most positions to visit, including those of earlier runs.
        """
        end, saved_at = deadline(seconds), time.monotonic()
        step_seconds, most_seconds = STEP_SECONDS
        while self.value == UNKNOWN and (nodes is None or self.visited < nodes):
            step_end = min(end, deadline(step_seconds))
            step_seconds = min(GROWTH * step_seconds, most_seconds)
            nodes_left = None if nodes is None else nodes - self.visited
            try:
                self._step(nodes_left, step_end)
            finally:
                self.visited += self._search.nodes
            if self.value != UNKNOWN or self.visited >= GROWTH * self._recorded:
                self.curve.append(CurvePoint(self.visited, *self.numbers))
            yield
            late = nanoseconds() >= step_end or (nodes is not None and self.visited >= nodes)
            if not late or nanoseconds() >= end:  # it stops early if all lines of play repeat
                return
            if time.monotonic() >= saved_at + SAVE_SECONDS:
                try:
                    self.save()
                except OSError as error:
                    say(f"the search goes on, but could not be saved: {error}")
                saved_at = time.monotonic()

    @property
    def _recorded(self) -> int:
        """Positions visited at the last point of the curve."""
        return self.curve[-1].visited if self.curve else 0

    def _step(self, nodes: int | None, end: int) -> None:
        """Continue the search in another thread, so that this one can be interrupted."""
        search = self._search
        search.begin(nodes, end)

        def work(part: slice, thread: int) -> None:
            self.value = search.prove(self._position)

        search_in_threads(1, 1, work, 1, search.expire, math.inf)

    def solution(self) -> Solution:
        """Return the result so far, with a line of the proof."""
        self._search.begin(DEFAULT_NODES)
        return solution_of(self._search, self._position, self.value)._replace(nodes=self.visited)

    def split(self, nodes: int, answers: Answers) -> Iterator[Answer]:
        """Split the finished proof into pieces that others can check.

        Args:
            nodes: the most positions to visit for a piece.
            answers: see :meth:`~bao_agents.exact.proof_split.ProofSplitter.split`.
        """
        return ProofSplitter(self._search, self._ruleset, nodes).split(self._position, answers)

    def save(self) -> None:
        """Write the file, unless it holds this state already.

        At any moment it holds either the old state or the new, so this needs space for both.

        Raises:
            OSError: the file cannot be written; it stays as it was.
        """
        if self.visited == self._saved_visited:
            return
        table = self._search.table
        head = Head(
            **rules_of(self._ruleset),
            position=self._text,
            slot_bits=(len(table.keys) // WAYS).bit_length() - 1,
            visited=self.visited,
            curve=self.curve,
        )
        with replace_file(self._file) as file:
            file.write(head.model_dump_json().encode() + b"\n")
            for chunk in _chunks(table):
                file.write((chunk if sys.byteorder == "little" else chunk.byteswap()).data)
        self._saved_visited = self.visited

    def _read(self) -> None:
        """Continue from the file; see :class:`ResumableSearch`."""
        with open_regular(self._file) as file:
            line = file.readline(_LONGEST_HEAD)
            if not line:  # an empty file
                return
            head = self._check_head(line)
            table_bytes = SLOT_BYTES << head.slot_bits
            extra_bytes = self._file.stat().st_size - file.tell() - table_bytes
            if extra_bytes:
                raise ValueError(
                    f"{self._file} is damaged: it has {abs(extra_bytes):,} bytes too "
                    f"{'many' if extra_bytes > 0 else 'few'}"
                )
            if table_bytes > (free := free_memory()):
                raise ValueError(
                    f"{self._file} needs {table_bytes // MEGABYTE:,} megabytes, but "
                    f"only {free // MEGABYTE:,} are free"
                )
            table = Table.empty(head.slot_bits, self._search.table.cells)
            for chunk in _chunks(table):
                file.readinto(chunk.data)
                if sys.byteorder == "big":
                    chunk.byteswap(inplace=True)
        self._search.replace_table(table)
        self.visited, self.curve = head.visited, head.curve
        self._saved_visited = self.visited
        self._search.begin(1)  # this only reads the table, which may have the proof
        self.value = self._search.prove(self._position)

    def _check_head(self, line: bytes) -> Head:
        """Return the first line of the file; check that it is from a search of this position."""
        what = f"a table of a proof under the rules of {self._ruleset.name}"
        try:
            head = Head.model_validate_json(line)
        except ValidationError:
            head = None
        if head is None or not names_rules(line, self._ruleset):
            raise ValueError(f"{self._file} exists and is not {what}: choose another name")
        if head.position != self._text:
            raise ValueError(
                f"{self._file} is the table of another position, {head.position!r:.300}: give that "
                "position, or choose another name"
            )
        return head

    @property
    def _text(self) -> str:
        return format_position(unpack(self._position))


def _chunks(table: Table) -> Iterator[npt.NDArray[Any]]:
    """Yield the arrays of a table in chunks, in the order in which a file stores them."""
    for array in (table.keys, table.numbers, table.work):
        size = _CHUNK_BYTES // array.itemsize
        for low in range(0, len(array), size):
            yield array[low : low + size]
