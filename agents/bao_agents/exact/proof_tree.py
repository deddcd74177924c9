"""Prove who wins a position that takes days, in pieces that survive a stop.

A tree of proof numbers (Allis 1994, "Searching for solutions in games and artificial intelligence")
stands above the solver. A *job* asks the solver about the leaf that promises the most, with a limit
of positions to visit. If that does not suffice, the leaf's actions become leaves, with the numbers
that the solver has for them. Each answer is a line of a file, and whoever has the file goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bao_agents.search.solver.proof_number import INFINITE, LOSS, PART, UNKNOWN, WIN
from bao_agents.search.solver.proof_search import Child, KnownAction, ProofSearch
from bao_agents.support.files import printable, write_atomically
from bao_env.engine.position import PLY, PackedPositions, to_packed, turn_of, unpack
from bao_env.engine.ruleset import RULES_VERSION, Ruleset
from bao_env.files import read_text
from bao_env.notation.positions import format_position, parse_position

TABLE_BITS = 22
"""The table of a process has 2^22 slots, 400 MB."""
_INFINITE = int(INFINITE)


class Answer(NamedTuple):
    """What a job found."""

    value: int
    """WIN, LOSS or UNKNOWN, for the player to move."""
    plies: int
    """Plies within which the winner can win; 0 if unknown."""
    visited: int
    """Positions visited."""
    actions: tuple[KnownAction, ...]
    """What the solver knows about each action, in ascending order; empty if the value is known."""


Answers = dict[str, Answer]
"""Answers by position, a position text."""


@cache
def _search(ruleset: Ruleset, table_bits: int) -> ProofSearch:
    """Return the search of this process, which keeps its table from one job to the next."""
    return ProofSearch(ruleset, table_bits)


def job(ruleset: Ruleset, position: str, nodes: int, table_bits: int = TABLE_BITS) -> Answer:
    """Ask the solver about a position, a text, with a limit of positions to visit."""
    search = _search(ruleset, table_bits)
    search.begin(nodes, None)
    value = search.prove(to_packed(parse_position(position, ruleset)))
    if value == UNKNOWN:
        return Answer(value, 0, search.nodes, tuple(sorted(search.known())))
    return Answer(value, search.plies, search.nodes, ())


# --- the file -------------------------------------------------------------------------------------


def line_of(position: str, answer: Answer) -> str:
    """Return an answer as a line of the file: a list in JSON, first the position."""
    return json.dumps([position, *answer]) + "\n"


def head_of(ruleset: Ruleset) -> str:
    """Return the first line of a file: the rules, since a position text does not name them."""
    return json.dumps([RULES_VERSION, ruleset.to_dict()]) + "\n"


def read_answers(file: Path, ruleset: Ruleset) -> Answers:
    """Return the answers of a file; none if it does not exist. A half-written last line is dropped.

    Raises:
        ValueError: it is about other rules, or a line is not an answer; the message names it.
        OSError: it cannot be read.
    """
    answers = {}
    text = read_text(file) if file.exists() else ""
    head, *lines = text.splitlines(keepends=True) or [""]
    if head.endswith("\n") and head != head_of(ruleset):
        raise ValueError(f"{file} is not a proof in pieces under the rules of {ruleset.name}")
    for number, line in enumerate(lines, 2):
        if not line.endswith("\n"):
            break
        try:
            position, value, plies, visited, rows = json.loads(line)
            actions = tuple(KnownAction(*map(int, row)) for row in rows)
            answers[position] = Answer(int(value), int(plies), int(visited), actions)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: {printable(str(error))}") from None
    return answers


# --- the tree -------------------------------------------------------------------------------------


class Node:
    """A position at some depth of the tree; its numbers are those of the player to move."""

    def __init__(self, position: PackedPositions, depth: int) -> None:
        self.position = position
        self.depth = depth
        self.phi: int = 1
        self.delta: int = 1
        self.plies = 0
        """Plies to the end of the game, once it is proved."""
        self.after: list[tuple[bool, Node]] = []
        """Whether the same player is to move after each action, and the node there; none yet in a
        leaf."""
        self.before: list[Node] = []
        """The nodes that have it in ``after``."""
        self.is_asked = False
        """Whether a job asks about it now."""

    @property
    def text(self) -> str:
        """The position as a text."""
        return format_position(unpack(self.position))

    @property
    def value(self) -> int:
        """WIN, LOSS or UNKNOWN, for the player to move."""
        return WIN if self.phi == 0 else LOSS if self.delta == 0 else UNKNOWN

    def sum_up(self) -> bool:
        """Compute its numbers from those after its actions; return whether they have changed."""
        old = self.phi, self.delta
        phis = [node.delta if again else node.phi for again, node in self.after]
        deltas = [node.phi if again else node.delta for again, node in self.after]
        self.phi = min(deltas)
        self.delta = min(max(phis) + (sum(phis) - max(phis)) // PART, _INFINITE)
        if self.phi == 0:
            wins = zip(deltas, self.after, strict=True)
            self.plies = 1 + min(node.plies for delta, (_, node) in wins if delta == 0)
        elif self.delta == 0:
            self.plies = 1 + max(node.plies for _, node in self.after)
        return (self.phi, self.delta) != old


class ProofTree:
    """The tree above the jobs.

    Args:
        ruleset: the rules.
        position: uint64[6], the position to prove.
        answers: what is known already.

    Raises:
        ValueError: an answer has other actions than its position.
    """

    def __init__(self, ruleset: Ruleset, position: PackedPositions, answers: Answers) -> None:
        self.answers = answers
        self._ruleset = ruleset
        self._search = ProofSearch(ruleset, 0)
        self._nodes: dict[tuple[int, int, bytes], Node] = {}
        self.root = Node(position, 0)
        self._take_known(self.root)

    @property
    def visited(self) -> int:
        """Positions that all jobs have visited."""
        return sum(answer.visited for answer in self.answers.values())

    def prove(
        self,
        file: Path,
        pool: Executor,
        jobs: int,
        nodes: int,
        table_bits: int = TABLE_BITS,
    ) -> Iterator[Answer]:
        """Prove the position; yield each answer once it is in the file.

        It ends early only if all lines that are left repeat a position.

        Args:
            file: gets the answers, those that are known included.
            pool: runs the jobs.
            jobs: the number of jobs at once.
            nodes: limit of positions to visit in a job.
            table_bits: each process's table has 2^``table_bits`` slots of 96 bytes.

        Raises:
            OSError: the file cannot be written.
        """
        known = [line_of(position, answer) for position, answer in self.answers.items()]
        write_atomically(file, "".join([head_of(self._ruleset), *known]))
        running: dict[Future[Answer], Node] = {}
        with file.open("a", encoding="ascii") as lines:
            while self.root.value == UNKNOWN:
                while len(running) < jobs and (leaf := self._pick(self.root, set())):
                    leaf.is_asked = True
                    running[pool.submit(job, self._ruleset, leaf.text, nodes, table_bits)] = leaf
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    leaf, answer = running.pop(future), future.result()
                    lines.write(line_of(leaf.text, answer))
                    lines.flush()
                    leaf.is_asked = False
                    self.answers[leaf.text] = answer
                    self._take_known(leaf)
                    yield answer

    def _pick(self, node: Node, line: set[bytes]) -> Node | None:
        """Return the leaf below ``node`` that promises the most proof for the least work.

        Return None if jobs ask about all leaves there; a position of ``line`` proves nothing.
        """
        if not node.after:
            return None if node.is_asked else node
        here = node.position[:PLY].tobytes()
        if here in line:
            return None
        ways = sorted(node.after, key=lambda way: way[1].phi if way[0] else way[1].delta)
        for _, after in ways:
            if after.value == UNKNOWN and (leaf := self._pick(after, line | {here})):
                return leaf
        return None

    def _take_known(self, node: Node) -> None:
        """Take the answers about a leaf and about the positions after it."""
        answer = self.answers.get(node.text)
        if answer is None:
            return
        if answer.value == UNKNOWN:
            known = {one.action: one for one in answer.actions}
            children = self._search.children(node.position)
            if known.keys() != {child.action for child in children}:
                raise ValueError(f"{node.text}: the answer has other actions than the position")
            for child in children:
                self._add(node, child, known[child.action])
            node.sum_up()
        else:
            node.plies = answer.plies
            node.phi, node.delta = (0, _INFINITE) if answer.value == WIN else (_INFINITE, 0)
        changed = [node]
        while changed:
            changed += [before for before in changed.pop().before if before.sum_up()]

    def _add(self, node: Node, child: Child, known: KnownAction) -> None:
        """Add the position after an action."""
        again = not child.result and turn_of(child.position) == turn_of(node.position)
        key = node.depth + 1, child.result, child.position.tobytes()
        after = self._nodes.get(key)
        if after is None:
            after = self._nodes[key] = Node(child.position, node.depth + 1)
            after.phi, after.delta, after.plies = known.phi, known.delta, known.plies
            if again:
                after.phi, after.delta = known.delta, known.phi
            if after.value == UNKNOWN:
                self._take_known(after)
        node.after.append((again, after))
        after.before.append(node)
