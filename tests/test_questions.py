"""Check questions with exact answers against the literal reference.

``python -m tests.test_questions FILE`` checks every question of a file.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bao_agents.questions import KINDS, make_questions, score
from bao_agents.search.solver.solver import Solver
from bao_env import Board
from bao_env.engine.ruleset import RULESETS
from tests import reference
from tests.conftest import Says
from tests.reference import ANTICLOCKWISE, BACK, CLOCKWISE, FRONT, HOUSE, NEXT, Hole, Start

# --- what the reference says ----------------------------------------------------------------------


class Recorder(reference.Move):
    """A move that remembers where it began and what it captured."""

    moves: ClassVar[list[Recorder]] = []

    def run(self, start: Start, capturing: bool) -> reference.Position:
        self.begin(start)
        return super().run(start, capturing)

    def resume(self, hole: Hole, direction: str) -> reference.Position:
        self.begin((hole, direction))
        return super().resume(hole, direction)

    def begin(self, start: Start) -> None:
        self.start: Start = start
        self.taken: list[str] = []
        Recorder.moves.append(self)

    def capture(self, hole: Hole, direction: str) -> tuple[Hole, bool]:
        captured = reference.FACING[hole]
        self.taken.append(f"{named(captured)} {self.holes[captured]}")
        return super().capture(hole, direction)


def named(hole: Hole) -> str:
    return f"{hole[0]}{hole[1]}"


def captures_first(position: reference.Position, rules: Any) -> bool:
    """Return whether a turn begins with captured seeds."""
    if position.pending is not None:
        return True
    namua = reference.in_namua(position, position.mover)
    return namua and bool(reference.captures(position, position.mover, rules))


def in_words(position: reference.Position, start: Start, house: bool, rules: Any) -> str:
    hole, direction = start
    if captures_first(position, rules):
        end = reference.kichwa_to_sow_from(position.mover, direction)
        text = f"{named(hole)} from {named(end)}"
    else:
        text = f"{named(hole)} towards {named(NEXT[direction][hole])}"
    return text + ", play the house" * house


def literal_moves(text: str, rules: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the position after each legal move in words, and what it captures."""
    position = reference.parse(text, rules)
    Recorder.moves = []
    with monkeypatch.context() as patch:
        patch.setattr(reference, "Move", Recorder)
        after = reference.moves_before_end(text, rules)
    first = captures_first(position, rules)
    found = {}
    for move in Recorder.moves:
        action = reference.action_number(move.start, int(move.play_house), first)
        if action in after:
            words = in_words(position, move.start, move.play_house, rules)
            found[words] = after[action], move.taken
    return found


def first_reason(text: str, rules: Any, move: str, legal: dict[str, Any]) -> str:
    """Return the letter of the first reason that forbids an illegal move."""
    position = reference.parse(text, rules)
    mover = position.mover
    house = move.endswith("the house")
    starts = {
        in_words(position, (hole, way), house, rules): (hole, way)
        for hole in FRONT[mover] + BACK[mover]
        for way in (CLOCKWISE, ANTICLOCKWISE)
    }
    hole, way = start = starts[move]
    namua, seeds = reference.in_namua(position, mover), position.holes[hole]
    waits = position.pending is not None
    captures, may_start = [], [start] if hole == position.pending else []
    if not waits:
        takasas = reference.namua_takasas if namua else reference.mtaji_takasas
        captures = reference.captures(position, mover, rules)
        may_start = captures or takasas(position, mover, rules)
    other_way = (hole, ANTICLOCKWISE if way == CLOCKWISE else CLOCKWISE)
    front, back = hole in FRONT[mover], hole in BACK[mover]
    reasons = {
        "A": waits and hole != position.pending,
        "B": house and move.removesuffix(", play the house") in legal,
        "C": start in may_start,
        "D": namua and back,
        "E": seeds == 0,
        "F": namua and other_way in captures,
        "G": bool(captures),
        "H": hole == position.barred,
        "I": not namua and seeds == 1,
        "J": rules.lone_kichwa_takasa == "illegal"
        and reference.filled_front(position, mover) == [hole]
        and NEXT[way][hole] not in FRONT[mover],
        "K": back and any(position.holes[other] >= 2 for other in FRONT[mover]),
        "L": hole == HOUSE[mover] and reference.house_is_full(position, mover, rules),
        "M": namua and front and seeds == 1,
        "N": reference.threatened_holes(position, mover, rules) == {hole},
    }
    return next(letter for letter, applies in reasons.items() if applies)


def is_won(text: str, winner: str, rules: Any, solver: Solver) -> bool:
    """Return whether a player wins, by a proof in which the reference makes every reply."""
    if text in reference.WINS.values():
        return text[0] == winner
    moves = reference.legal_moves(text, rules)
    if not moves:
        return text.split()[3] != winner
    if text.split()[3] != winner:
        return all(is_won(after, winner, rules, solver) for after in moves.values())
    line = solver.solve(Board.from_text(text, rules).words).line
    return bool(line) and is_won(moves[line[0]], winner, rules, solver)


def check(question: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rules, text = RULESETS[question["ruleset"]], question["position"]
    kind, move, answer = question["kind"], question["move"], question["answer"]
    legal = literal_moves(text, rules, monkeypatch)
    if kind == "board":
        after = reference.parse(legal[move][0], rules)
        rows = [[after.holes[row, n] for n in range(1, 9)] for row in "ABab"]
        rows.append(list(after.stores.values()))
        assert answer == " / ".join(" ".join(map(str, row)) for row in rows), question
    elif kind == "captures":
        assert answer == (", ".join(legal[move][1]) or "nothing"), question
    elif kind == "legal":
        assert sorted(answer.split("; ")) == sorted(legal), question
    elif kind == "rule":
        assert move not in legal and first_reason(text, rules, move, legal) == answer, question
        assert f"\n{answer}: " in question["prompt"]
    else:
        assert is_won(text, answer[0], rules, Solver(rules, nodes=2_000_000, table_bits=16)), (
            question
        )


# --- tests ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    made = make_questions(250, list(RULESETS.values()), seed=3)
    return [question._asdict() for question in made]


def test_answers_are_those_of_the_reference(
    questions: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for question in questions:
        check(question, monkeypatch)


def test_questions_are_balanced_and_different(questions: list[dict[str, Any]]) -> None:
    assert len({(q["prompt"]) for q in questions}) == 250
    cells = Counter((q["kind"], q["ruleset"]) for q in questions)
    assert set(cells.values()) == {10} and len(cells) == 25
    levels = Counter((q["kind"], q["level"]) for q in questions if q["kind"] != "rule")
    assert len(levels) == 20 and set(levels.values()) == {10}
    winners = Counter((q["answer"][0] == q["position"].split()[3]) for q in questions
                      if q["kind"] == "winner")  # fmt: skip
    assert winners[True] == winners[False] == 25
    rules = Counter(q["answer"] for q in questions if q["kind"] == "rule")
    assert len(rules) >= 9 and max(rules.values()) <= 10


def test_scores(questions: list[dict[str, Any]]) -> None:
    rng = np.random.default_rng(1)
    for question in questions:
        kind, answer = question["kind"], question["answer"]
        for text in (f"Answer: {answer}", f"Answer: x\nHmm.\n**ANSWER:** {answer.upper()}.\nYes."):
            assert score(question, text) == 1.0, question
        others = [q["answer"] for q in questions if q["kind"] == kind]
        others = [other for other in others if other.lower() != answer.lower()]
        for text in (answer, "", "Answer:", f"Answer: {rng.choice(others)}", question["prompt"]):
            assert score(question, text) == 0.0, (question, text)
        if kind == "legal":
            assert score(question, f"Answer: {'; '.join(reversed(answer.split('; ')))}") == 1.0


def test_the_command_writes_the_same_file_again(tmp_path: Path, says: Says) -> None:
    texts = []
    for name in "ab":
        says(f"questions {tmp_path / name} --count 15 --ruleset malawi --seed 5")
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    lines = [json.loads(line) for line in texts[0].splitlines()]
    assert Counter(line["kind"] for line in lines) == dict.fromkeys(KINDS, 3)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        done = 0
        for line in Path(sys.argv[1]).read_text().splitlines():
            check(json.loads(line), patch)
            done += 1
    print(f"{done:,} questions agree with the reference")
