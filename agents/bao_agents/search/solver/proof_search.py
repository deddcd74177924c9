"""Find the winner, the number of plies and a line of play, as far as the limits allow.

The search itself is :mod:`bao_agents.search.solver.proof_number`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bao_agents.evaluators.tables import load_tables
from bao_agents.search.limits import MAX_NODES, NEVER, nanoseconds
from bao_agents.search.sharing import search_in_threads
from bao_agents.search.solver.proof_number import (
    LOSS,
    PROOF_MEMORY,
    UNBOUNDED,
    UNKNOWN,
    WAYS,
    WIN,
    Table,
    prove,
)
from bao_env.engine.position import PackedPositions, Rows, packed_opening, turn_of
from bao_env.engine.ruleset import Ruleset
from bao_env.engine.successors import (
    ACTION,
    MAX_SUCCESSORS,
    RESULT,
    SUCCESSOR_WORDS,
    successors,
)

TABLE_BITS = 18
"""Size of the table of a short search: 2^18 slots, 20 MiB."""
GROW_NODES = 500_000
"""Positions visited before the table grows; it has space for about twice as many."""
_MOVED = 256
"""Entries that are copied at once when the table grows."""
EASY_NODES = 20_000
"""Positions that one thread visits before others help: about 20 milliseconds."""
_GLANCE = 1
"""With this limit of nodes, a search only reads the table."""


class Child(NamedTuple):
    """A position after a legal action."""

    action: int
    position: PackedPositions
    result: int
    """1 if the action wins at once, -1 if it loses at once, else 0."""
    sign: int
    """1 if the same player is to move again, else -1."""


class KnownAction(NamedTuple):
    """The results of a search for one action of its position."""

    action: int
    phi: int
    """The least number of positions that must still be decided to prove that the action loses.
    ``delta`` is the number for a proof that it wins
    (:mod:`bao_agents.search.solver.proof_number`)."""
    delta: int
    plies: int
    """Plies from after the action to the end of the game, in the proof found."""

    @property
    def value(self) -> int:
        """WIN, LOSS or UNKNOWN for the player who chooses the action."""
        return WIN if self.delta == 0 else LOSS if self.phi == 0 else UNKNOWN


class Distance(NamedTuple):
    """The distance of a proven win."""

    plies: int
    """Plies within which the winner can win."""
    is_shortest: bool
    """Whether the loser can hold out this long."""
    action: int | None
    """An action that wins within these plies or, for the loser, the action that is known to hold
    out longest. None if there is no action."""


class ProofSearch:
    """A proof-number search with a table and the limits of its current answer.

    Args:
        ruleset: the rules.
        table_bits: the table has up to 2^``table_bits`` slots of 80 bytes.
        threads: number of threads that search a hard position together. The winner does not depend
            on the number; the proof and its length may.
    """

    def __init__(self, ruleset: Ruleset, table_bits: int, threads: int = 1) -> None:
        self.nodes: int = 0
        """Positions visited so far for the current answer."""
        self._table: Table | None = None
        self._bits, self._most_bits = min(table_bits, TABLE_BITS), table_bits
        self._ruleset, self._rules = ruleset, ruleset.kernel
        self._limit: int | None = None
        self._deadline = NEVER
        self.threads: int = threads
        self._memories = np.zeros(threads, PROOF_MEMORY)
        self._last = 0
        """The thread whose memory has the last result."""
        self._rows = np.empty((MAX_SUCCESSORS, SUCCESSOR_WORDS), np.uint64)

    @classmethod
    def for_threads(cls, ruleset: Ruleset, table_bits: int, threads: int) -> list[ProofSearch]:
        """Return a search for each thread, compiled before any time limit starts."""
        searches = [cls(ruleset, table_bits) for _ in range(threads)]
        searches[0].get_ready()
        return searches

    def get_ready(self) -> None:
        """Compile the search before any time limit starts."""
        self.begin(1)
        self.prove(packed_opening(self._ruleset))

    def begin(self, nodes: int | None, deadline: int = NEVER, threads: int | None = None) -> None:
        """Set the limits of a new answer.

        Args:
            nodes: limit of positions to visit.
            deadline: see :mod:`bao_agents.search.limits`.
            threads: number of threads; None for all.
        """
        self.nodes, self._limit, self._deadline = 0, nodes, deadline
        self.threads = threads or len(self._memories)

    def expire(self) -> None:
        """End the current answer soon; after an interrupt this is called repeatedly."""
        self._deadline = 0
        self._memories["deadline"] = 0

    @property
    def table(self) -> Table:
        """The table of the search.

        Raises:
            MemoryError: there is no memory for the table.
        """
        if self._table is None:
            self._table = Table.empty(self._bits, load_tables(self._ruleset).cells)
        return self._table

    def clear(self) -> None:
        """Forget everything."""
        if self._bits > TABLE_BITS:  # a new small table is faster than clearing a large one
            self._table, self._bits = None, TABLE_BITS
        else:
            self.table.clear()

    def replace_table(self, table: Table) -> None:
        """Search with another table, such as one from a file."""
        self._table, self._bits = table, (len(table.keys) // WAYS).bit_length() - 1
        self.allow(self._bits)

    def allow(self, table_bits: int) -> None:
        """Let the table grow to 2^``table_bits`` slots."""
        self._most_bits = max(self._most_bits, table_bits)

    def _enlarge(self) -> None:
        """Enlarge the table to the allowed size; keep its size if there is no memory for that."""
        old = self.table
        try:
            empty = Table.empty(self._most_bits, old.cells)
        except MemoryError:
            self._most_bits = self._bits
            return
        # Each entry keeps its place within a slot, so no two entries collide. The first access to a
        # page of a large table takes long, so this is done in parts: Ctrl-C and deadlines come
        # between them, and the search then keeps the old table.
        used = np.flatnonzero(old.numbers)
        for begin in range(0, len(used), _MOVED):
            if nanoseconds() >= self._deadline:
                return
            part = used[begin : begin + _MOVED]
            keys = old.keys[part] ^ old.numbers[part]
            slots = (keys & np.uint64((1 << self._most_bits) - 1)).astype(np.int64)
            entries = slots * WAYS + part % WAYS
            empty.keys[entries] = old.keys[part]
            empty.numbers[entries] = old.numbers[part]
            empty.work[entries] = old.work[part]
        self._table = empty._replace(first_phi=old.first_phi, first_delta=old.first_delta)
        self._bits = self._most_bits

    @property
    def numbers(self) -> tuple[int, int]:
        """``phi`` and ``delta`` of the last position (:mod:`.proof_number`)."""
        memory = self._memories[self._last]
        return int(memory["phi"]), int(memory["delta"])

    @property
    def plies(self) -> int:
        """Plies to the end of the game in the last proof."""
        return int(self._memories["plies"][self._last])

    def prove(
        self,
        position: PackedPositions,
        bound: int = UNBOUNDED,
        attacker: int = 0,
        nodes: int | None = None,
    ) -> int:
        """Call :func:`prove` with the rest of the limits, or with ``nodes``.

        At first one thread searches with a small table. After :data:`EASY_NODES` all threads
        search together, and after :data:`GROW_NODES` the table is enlarged to the allowed size.

        Args:
            position: uint64[6].
            bound: the plies within which the attacker must win; UNBOUNDED for any number.
            attacker: 1 for the player to move, -1 for the other; 0 if the search is unbounded.
            nodes: the most positions to visit.
        """
        if nodes is None:
            left = MAX_NODES if self._limit is None else self._limit - self.nodes
            nodes = max(left, _GLANCE)
        self._memories["bound"], self._memories["attacker"] = bound, attacker
        steps = [(nodes, self.threads)]
        if self._bits < self._most_bits:
            steps.insert(0, (GROW_NODES, self.threads))
        if self.threads > 1:
            steps.insert(0, (EASY_NODES, 1))
        visited = 0
        for step_nodes, threads in steps:
            part = min(step_nodes, nodes - visited)
            if visited >= GROW_NODES and self._bits < self._most_bits:
                self._enlarge()
            value, count = self._prove_part(position, part, threads)
            visited += count
            self.nodes += count
            if value != UNKNOWN or count < part or visited >= nodes:
                break
        return value

    def _prove_part(self, position: PackedPositions, nodes: int, threads: int) -> tuple[int, int]:
        """Search until a thread has proven the position or the limits are reached.

        Args:
            position: the position.
            nodes: limit of positions to visit, shared by the threads.
            threads: number of threads.

        Returns:
            WIN, LOSS or UNKNOWN; and the number of positions visited.
        """
        table, memories = self.table, self._memories
        memories["is_shared"], memories["node_limit"] = threads > 1, -(-nodes // threads)
        memories["deadline"], self._last = self._deadline, 0
        if threads == 1:
            value = int(prove(self._rules, table, memories[0], position))
            return value, int(memories["nodes"][0])
        counts, proofs, failed = list[int](), list[tuple[int, int]](), list[BaseException]()

        def work(part: slice, thread: int) -> None:
            if proofs or failed:
                return
            try:
                value = int(prove(self._rules, table, memories[thread], position))
                counts.append(int(memories["nodes"][thread]))
                if value != UNKNOWN:
                    proofs.append((value, thread))
            except BaseException as error:
                failed.append(error)
                raise
            finally:
                if proofs or failed:
                    memories["deadline"] = 0

        search_in_threads(threads, 1, work, threads, self.expire, math.inf)
        if proofs:
            value, self._last = proofs[0]
            return value, sum(counts)
        # Let the first thread read the results of all threads.
        memories["is_shared"], memories["node_limit"] = 0, _GLANCE
        return int(prove(self._rules, table, memories[0], position)), sum(counts)

    def children(self, position: PackedPositions) -> list[Child]:
        """Return the positions after the legal actions, by action."""
        count = successors(self._rules, Rows.of(position), self._rows, 0)
        children = []
        for row in self._rows[:count]:
            after = np.zeros(6, np.uint64)
            after[:5] = row[:5]
            result = int(row[RESULT])
            sign = 1 if turn_of(after) == turn_of(position) else -1
            children.append(Child(int(row[ACTION]), after, result if result < 2 else -1, sign))
        return sorted(children, key=lambda child: child.action)

    def known(self) -> list[KnownAction]:
        """Return the results of the last search, even an unfinished one, for each action."""
        memory = self._memories[self._last]
        rows = slice(1, int(memory["frames"][0]["end"]))
        return [
            KnownAction(
                int(position[ACTION]), int(row["phi"]), int(row["delta"]), int(row["plies"])
            )
            for position, row in zip(memory["stack"][rows], memory["rows"][rows], strict=True)
        ]

    def distance(self, value: int) -> Distance:
        """Return the distance of the win in the last proof.

        Args:
            value: the proven value, WIN or LOSS.
        """
        return Distance(self.plies, self.plies <= 1, self._best(value))

    def bisect(self, position: PackedPositions, value: int, distance: Distance) -> Distance:
        """Return the shortest distance of the win that the limits allow to prove.

        Args:
            position: a proven position.
            value: its value, WIN or LOSS.
            distance: the distance in its first proof.
        """
        high, _, action = distance
        low = 0  # no win within `low`, a win within `high`
        while high - low > 1:
            middle = (low + high) // 2
            proven = self.prove(position, middle, value)
            if proven == UNKNOWN:
                break
            if proven == WIN:  # the mover wins in time, or delays the other side's win
                action = self._best(WIN)
            if proven == value:
                high = self.plies
            else:
                low = middle
        return Distance(high, high - low <= 1, action)

    def _best(self, value: int) -> int | None:
        """Return the quickest win or the slowest loss among the actions known to have ``value``."""
        actions = [action for action in self.known() if action.value == value]
        pick = min if value == WIN else max
        best = pick(actions, key=lambda action: action.plies, default=None)
        return best and best.action

    def line(self, position: PackedPositions, value: int, bound: int | None) -> tuple[int, ...]:
        """Return a line of the proof or, with a bound, of the shortest win.

        If the limits are reached, the line is cut short.
        """
        line: list[int] = []
        visited = set()
        while position.tobytes() not in visited:
            visited.add(position.tobytes())
            child = self._step(position, value, bound)
            if child is None:
                break
            value *= child.sign
            line.append(child.action)
            bound = None if bound is None else bound - 1
            if child.result:
                break
            position = child.position
        return tuple(line)

    def _step(self, position: PackedPositions, value: int, bound: int | None) -> Child | None:
        """Return the position after an action of the proof.

        Return None if there is no action, or if the limits do not suffice to find one.
        """
        children = self.children(position)
        for last_try in (False, True):
            options = []
            for child in children:
                plies = self._plies_after(child, value, bound)
                if plies is not None:
                    options.append((plies, child))
            if options and (value == WIN or len(options) == len(children)):
                pick = min if value == WIN else max
                return pick(options, key=lambda option: option[0])[1]
            if not last_try:  # the table has lost part of the proof: prove it again
                self.prove(position, bound or UNBOUNDED, 0 if bound is None else value)
        return None

    def _plies_after(self, child: Child, value: int, bound: int | None) -> int | None:
        """Return the plies to the end after an action that keeps the value.

        Return None if the table does not prove that the action keeps the value within the bound.

        Args:
            child: the position after the action.
            value: WIN or LOSS for the player who chooses the action.
            bound: plies left before the action.
        """
        after = value * child.sign

        def is_known(bound: int) -> bool:
            return self.prove(child.position, bound, after, _GLANCE) == after

        if child.result:
            return 0 if child.result == value else None
        if bound is None:
            return self.plies if is_known(UNBOUNDED) else None
        left = bound - 1
        if left == 0:
            return None if self.children(child.position) else 0  # 1.2: no legal move
        if not is_known(left):
            return None
        if value == WIN or left == 1:
            return left
        sooner = self.prove(child.position, left - 1, after)  # if so, others may last longer
        return None if sooner == UNKNOWN else left - 1 if sooner == after else left
