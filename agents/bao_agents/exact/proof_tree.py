"""Prove who wins a position by a search of many days, which can be stopped and continued.

A tree of proof numbers (Allis 1994, "Searching for solutions in games and artificial intelligence")
stands above the solver. A *job* runs the solver on the most promising leaf, with a limit of
positions to visit. The solver's answer about the leaf's actions is written to a file as one line.
The positions after these actions become leaves, unless they are proven. A later run reads the file
and continues from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from bao_agents.exact.solved_positions import names_rules, rules_of
from bao_agents.search.solver.proof_number import PART
from bao_agents.search.solver.proof_search import KnownAction, ProofSearch
from bao_agents.support.files import fault, read_lines, replace_file
from bao_env.engine.position import PackedPositions, to_packed, turn_of, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.files import open_regular
from bao_env.notation.positions import format_position, parse_position

TABLE_BITS = 22
"""Size of the table of a process that runs jobs: 2^22 slots, 335 MB."""


class Answer(NamedTuple):
    """The result of a job; each line of the file is one, as a list in JSON."""

    position: str
    """The position as a text."""
    visited: int
    """Positions visited."""
    actions: list[KnownAction]
    """What the solver knows about each action, in ascending order."""


Answers = dict[str, Answer]
"""Answers by position."""
_ANSWER = TypeAdapter(Answer)
_Append = Callable[[Answer], None]


_search = cache(ProofSearch)
"""The search of this process, which keeps its table from one job to the next."""


def job(
    ruleset: Ruleset, position: str, nodes: int, bits: int = TABLE_BITS, threads: int = 1
) -> Answer:
    """Run the solver on a position.

    Args:
        ruleset: the rules.
        position: the position as a text.
        nodes: limit of positions to visit.
        bits: the table has 2^``bits`` slots.
        threads: the number of threads that search the position together.
    """
    search = _search(ruleset, bits, threads)
    search.begin(nodes)
    search.prove(to_packed(parse_position(position, ruleset)))
    return Answer(position, search.nodes, sorted(search.known()))


def head_of(ruleset: Ruleset) -> str:
    """Return the first line of a file: the rules, since a position text does not name them."""
    return json.dumps(rules_of(ruleset))


def read_answers(file: Path, ruleset: Ruleset) -> Answers:
    """Return the answers in a file; none if the file does not exist.

    An incomplete last line is dropped.

    Raises:
        ValueError: the file is of another kind or for other rules, or a line is not an answer; the
            message names it.
        OSError: the file cannot be read.
    """

    def is_head(line: bytes) -> bool:  # the head of a table (--table) has more entries
        return names_rules(line, ruleset) and json.loads(line).keys() == rules_of(ruleset).keys()

    what = f"a proof in pieces under the rules of {ruleset.name}"
    search, answers = ProofSearch(ruleset, 0), {}
    for number, line in enumerate(read_lines(file, is_head, what), 2):
        try:
            answer = _ANSWER.validate_json(line)
            _check(answer, search, ruleset)
        except ValidationError as error:
            raise ValueError(f"{file}, line {number}: {fault(error)}") from None
        except ValueError as error:
            raise ValueError(f"{file}, line {number}: {error}") from None
        answers[answer.position] = answer
    return answers


def _check(answer: Answer, search: ProofSearch, ruleset: Ruleset) -> None:
    """Check that an answer is about a position and each of its legal actions.

    Raises:
        ValueError: it is not, or its numbers are impossible.
    """
    children = search.children(to_packed(parse_position(answer.position, ruleset)))
    if [action.action for action in answer.actions] != [child.action for child in children]:
        raise ValueError("its actions are not the legal actions of its position")
    numbers = [(action.phi, action.delta) for action in answer.actions]
    plies = [action.plies for action in answer.actions]
    if min([answer.visited, *plies, *map(min, numbers)]) < 0 or (0, 0) in numbers:
        raise ValueError("a number is below 0, or says that both players win")


@contextmanager
def continue_file(file: Path, ruleset: Ruleset, answers: Answers) -> Iterator[_Append]:
    """Write the answers known so far to a file; yield a function that appends an answer.

    Raises:
        OSError: the file cannot be written, also from that function.
    """
    with replace_file(file) as whole:
        whole.write(f"{head_of(ruleset)}\n".encode())
        whole.writelines(f"{json.dumps(answer)}\n".encode() for answer in answers.values())
    with file.open("a", encoding="ascii") as lines:
        yield lambda answer: print(json.dumps(answer), file=lines, flush=True)


@dataclass(eq=False)
class Node:
    """A position of the tree."""

    position: PackedPositions
    """The packed position, uint64[6]."""
    numbers: tuple[int, int] = (1, 1)
    """For each seat, the least number of positions that must still be decided to prove that it
    wins (:mod:`bao_agents.search.solver.proof_number`)."""
    plies: int = 0
    """Plies within which the winner can win, once the winner is proven."""
    after: list[Node] = field(default_factory=list)
    """The nodes after its actions, in ascending order of the actions; none in a leaf."""
    is_asked: bool = False
    """Whether the node has been given to a job."""

    @property
    def text(self) -> str:
        """The position as a text."""
        return format_position(unpack(self.position))

    @property
    def winner(self) -> int | None:
        """The seat that is proven to win."""
        return self.numbers.index(0) if 0 in self.numbers else None

    def sum_up(self) -> None:
        """Compute the numbers of this node from the nodes after its actions."""
        mover = turn_of(self.position)
        win = min((node.numbers[mover] for node in self.after), default=1)
        replies = [node.numbers[1 - mover] for node in self.after]
        loss = max(replies, default=0)
        loss += (sum(replies) - loss) // PART
        self.numbers = (loss, win) if mover else (win, loss)
        if self.winner is not None:
            plies = [node.plies for node in self.after if node.winner == self.winner]
            pick = min if self.winner == mover else max
            self.plies = 1 + pick(plies, default=-1)


class ProofTree:
    """The tree above the jobs.

    Args:
        ruleset: the rules.
        position: uint64[6], the position to prove.
        answers: the answers known so far (:func:`read_answers` checks them); the answers of the
            jobs are added.
    """

    def __init__(self, ruleset: Ruleset, position: PackedPositions, answers: Answers) -> None:
        self.root: Node = Node(position)
        self._answers = answers
        self._ruleset = ruleset
        self._search = ProofSearch(ruleset, 0)
        self._nodes = {self.root.text: self.root}
        self._expand(self.root)

    def check_file(self, file: Path) -> None:
        """Check that all answers that a file had are about positions of this tree.

        Raises:
            ValueError: the file has an answer about another position; the message names its line.
        """
        foreign = next((text for text in self._answers if text not in self._nodes), None)
        if foreign is None:
            return
        with open_regular(file) as lines:  # an answer may be there twice
            number = next(
                number
                for number, line in enumerate(lines, 1)
                if number > 1 and json.loads(line)[0] == foreign
            )
        raise ValueError(
            f"{file}, line {number}: the answers above do not lead to this position from "
            f"{self.root.text!r:.300}: give the position that the proof is of, or choose another "
            "name"
        )

    def prove(self, file: Path, pool: Executor, jobs: int, *settings: int) -> Iterator[Answer]:
        """Prove the position; yield each answer once it has been written to the file.

        This ends without a proof only if every remaining line of play repeats a position.

        Args:
            file: the file to write, with all answers, including the known ones.
            pool: runs the jobs.
            jobs: the number of jobs to run at the same time.
            settings: the other arguments of :func:`job`, starting with ``nodes``.

        Raises:
            OSError: the file cannot be written.
        """
        running: dict[Future[Answer], list[Node]] = {}
        with continue_file(file, self._ruleset, self._answers) as append:
            while self.root.winner is None:
                while len(running) < jobs and (line := self._pick(self.root, [])):
                    line[-1].is_asked = True
                    running[pool.submit(job, self._ruleset, line[-1].text, *settings)] = line
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    line, answer = running.pop(future), future.result()
                    append(answer)
                    self._answers[answer.position] = answer
                    self._expand(line.pop())
                    for node in reversed(line):
                        node.sum_up()
                    yield answer

    def _pick(self, node: Node, line: list[Node]) -> list[Node]:
        """Return the line to the most promising leaf below ``node``.

        Args:
            node: the node to start from.
            line: the nodes before it. Repeating one of them proves nothing.

        Returns:
            the nodes from the root to the leaf; none if every leaf there has been given to a job.
        """
        line = [*line, node]
        if not node.after:
            return [] if node.is_asked else line
        node.sum_up()  # the nodes after it may have changed through another line
        mover = turn_of(node.position)
        for after in sorted(node.after, key=lambda after: after.numbers[mover]):
            if node.winner is None and after.winner is None and after not in line:
                if leaf_line := self._pick(after, line):
                    return leaf_line
                node.sum_up()
        return []

    def _expand(self, node: Node) -> None:
        """Add the nodes below a leaf, as far as there are answers about them.

        A line of answers may be longer than Python's stack, so this does not call itself.
        """
        line = [(node, iter(self._add_after(node)))]
        while line:
            parent, children = line[-1]
            leaves = (after for after in children if after.winner is None and not after.after)
            if (leaf := next(leaves, None)) is not None:
                line.append((leaf, iter(self._add_after(leaf))))
                continue
            line.pop()
            if parent.after or parent.text in self._answers:
                parent.sum_up()

    def _add_after(self, node: Node) -> list[Node]:
        """Add the nodes after a leaf's actions, if there is an answer about it; return them."""
        answer = self._answers.get(node.text)
        if answer is None:
            return []
        children = self._search.children(node.position)
        for child, action in zip(children, answer.actions, strict=True):
            numbers = action.delta, action.phi
            if turn_of(node.position):
                numbers = action.phi, action.delta
            after = Node(child.position, numbers, action.plies)
            if after.winner is None:
                after = self._nodes.setdefault(after.text, after)
            node.after.append(after)
        return node.after
