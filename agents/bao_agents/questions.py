"""Write questions about positions with exact answers, to train and measure language models.

    bao questions questions.jsonl --count 1000

There are five kinds: the board after a move, what a move captures, the legal moves, the first rule
that forbids a move, and who wins with perfect play, as proved by the solver. Kinds, rule sets and
levels occur equally often, as far as random games provide them. The same options give the same
file. Each line is a JSON object; :func:`score` judges an answer to it.

The level is 1 to 5. For the board and the captures it grows with the laps of the move (1, 2 to 3, 4
to 7, 8 to 15, more), for the legal moves with their number (1, 2, 3 to 4, 5 to 8, more), for the
winner with the plies of the proof (up to 2, 4, 6, 10, 20), and for the rule with how much of the
board it depends on.
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bao_agents.cli.files import write_atomically
from bao_agents.cli.options import Run, add_options, at_least, new_file
from bao_agents.progress import Progress
from bao_agents.search.solver.solver import Solver
from bao_env.board import Board
from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import SEAT_NAMES
from bao_env.notation.moves import why_illegal
from bao_env.notation.positions import hole_name
from bao_env.text_game import board_text, say_move
from bao_env.text_rules import rules_page
from bao_env.trace import EventKind

NODES = 20_000
"""Positions that the solver may visit for a proof."""
_PATIENCE = 25
"""After this many random games without a new question, missing levels are given up."""
_TRIED = 16
"""Actions per position that a question about a rule chooses from."""
_BOUNDS = {
    "board": (1, 3, 7, 15, 999),
    "captures": (1, 3, 7, 15, 999),
    "legal": (1, 2, 4, 8, 64),
    "winner": (2, 4, 6, 10, 20),
}
"""The upper bounds of the levels: laps, moves, or plies of a proof."""
_GROUPS = {"board": 5, "captures": 5, "legal": 5, "rule": 10, "winner": 10}
"""The number of groups, of equal size, in each kind: its levels; its rules, of which most rule sets
have about ten; and for the winner its levels, once for wins and once for losses of the mover."""

_RULES = {
    "Dutch I.a": (5, "another capture waits for its end"),
    "Donkers 2.5b, 1.5a": (5, "it plays the house, but the move has no such choice"),
    "Donkers 1.5a": (5, "the move never ends"),
    "Donkers 2.3, 2.4": (1, "in namua a move starts in the front row"),
    "empty": (1, "the hole is empty"),
    "Donkers 1.4b": (3, "at this hole captured seeds are sown from the other end"),
    "Donkers 1.7a": (3, "a capture is possible, and this is none"),
    "Donkers 4.1": (4, "takasia bars the hole"),
    "Donkers 3.3": (2, "the hole has a single seed, in mtaji"),
    "Donkers 2.4a": (4, "these rules forbid it to leave the front row empty"),
    "Donkers 3.5a": (2, "a takasa may not start in the back row while a front hole has two seeds"),
    "Donkers 2.4b": (4, "a takasa may not start from the house"),
    "Donkers 2.4c": (2, "the hole has a single seed, in namua"),
    "Dutch II": (5, "the hole is the only one that is threatened"),
}
"""The rules that forbid moves, in order: the level, and the rule in words."""
_SAME = {"Donkers 3.5b": "Donkers 2.4a", "Dutch I.b": "Donkers 2.4c"}
"""Rules with the same wording."""
_LETTERS = dict(zip(_RULES, "ABCDEFGHIJKLMN", strict=True))
_REASONS = "\n".join(f"{_LETTERS[rule]}: {words}" for rule, (_, words) in _RULES.items())

_ASKED = {
    "board": """{who} plays {move}. What is the board after the move? Give the seeds of A1 to A8, \
of B1 to B8, of a1 to a8, of b1 to b8, and of South's and North's store, as numbers, in one line:
Answer: A1 A2 ... A8 / B1 ... B8 / a1 ... a8 / b1 ... b8 / South North""",
    "captures": """{who} plays {move}. Which holes does the move capture, in their order, and how \
many seeds of each? Give each hole and its seeds, with commas between them, or the word nothing, \
in one line:
Answer: HOLE SEEDS, HOLE SEEDS""",
    "legal": """Which moves are legal? Name all of them, with semicolons between them, in one line:
Answer: MOVE; MOVE""",
    "rule": f"""{{who}} may not play {{move}}. Which is the first reason in this list that applies?
{_REASONS}
Give its letter in one line:
Answer: LETTER""",
    "winner": """Who wins if both play perfectly, South or North? Answer in one line:
Answer: PLAYER""",
}
"""The last paragraph of the prompt of each kind."""
KINDS = tuple(_ASKED)


class Question(NamedTuple):
    """A question and its answer."""

    kind: str
    """One of :data:`KINDS`."""
    ruleset: str
    level: int
    """1 to 5."""
    position: str
    """The position text."""
    move: str
    """The move in question, in words; empty if there is none."""
    prompt: str
    answer: str


_Found = tuple[int, str, str]
"""What a position yields: the size that decides the level (for a rule, the level itself); the
answer; and the move in words, if there is one."""


# --- the kinds: each finds a question in a position, or None --------------------------------------


def _find_on_a_move(board: Board, kind: str, rng: np.random.Generator) -> _Found | None:
    """Find the board after a random legal move, or what it captures."""
    action = int(rng.choice(board.legal_actions))
    events = board.trace(action)
    kinds = [event.kind for event in events]
    if EventKind.FRONT_ROW_EMPTY in kinds:
        return None
    if kind == "board":
        south, north = events[-1].counts
        rows = (south[:8], south[8:], north[:8], north[8:], events[-1].store)
        answer = " / ".join(" ".join(map(str, row)) for row in rows)
    else:
        captures = [event for event in events if event.kind is EventKind.CAPTURE]
        taken = [f"{hole_name(event.seat, event.pits[0])} {event.seeds}" for event in captures]
        if not taken and rng.random() < 0.8:  # a takasa: too easy to occur often
            return None
        answer = ", ".join(taken) or "nothing"
    move = say_move(board.words, board.ruleset, action)
    return kinds.count(EventKind.SOW), answer, move


def _find_rule(
    board: Board, rng: np.random.Generator, made: Counter[tuple[object, ...]]
) -> _Found | None:
    """Find a rule that forbids a move: of those that forbid one here, the rarest so far."""
    forbidden = {}
    for action in map(int, rng.permutation(NUM_ACTIONS)[:_TRIED]):
        if action not in board.legal_actions:
            words, rule = why_illegal(board.words, board.ruleset, action)
            rule = "empty" if words.endswith("is empty") else _SAME.get(rule, rule)
            if rule == "Donkers 2.5b, 1.5a" or not action & 1:  # else the house is beside the point
                forbidden[rule] = action
    if not forbidden:
        return None
    rule = min(forbidden, key=lambda rule: (made["rule", _LETTERS[rule]], rule))
    move = say_move(board.words, board.ruleset, forbidden[rule])
    return _RULES[rule][0], _LETTERS[rule], move


def _find_winner(board: Board, solver: Solver) -> _Found | None:
    """Find who wins, if the solver can prove it and the win is not too far away."""
    if board.position.store[board.turn] > 4:
        return None
    solver.clear()
    found = solver.solve(board.words)
    if found.winner is None or found.plies is None or found.plies > _BOUNDS["winner"][-1]:
        return None
    return found.plies, SEAT_NAMES[found.winner], ""


# --- making them ----------------------------------------------------------------------------------


def make_questions(count: int, rulesets: Sequence[Ruleset], seed: int) -> list[Question]:
    """Return different questions in a random order.

    Args:
        count: their number; fewer if random games do not provide enough.
        rulesets: the rule sets, in equal shares.
        seed: the same arguments and seed give the same questions.
    """
    questions: list[Question] = []
    with Progress(total=count, unit="question") as bar:
        for i, ruleset in enumerate(rulesets):
            for question in _of_ruleset((count + i) // len(rulesets), ruleset, seed):
                questions.append(question)
                bar.update()
    order = np.random.default_rng(seed).permutation(len(questions))
    return [questions[i] for i in order]


def _of_ruleset(count: int, ruleset: Ruleset, seed: int) -> Iterator[Question]:
    """Yield the questions of one rule set.

    Each kind has an equal share, and each group an equal share of its kind. If games do not provide
    enough of a group, the others make up for it.
    """
    rng = np.random.default_rng([seed, zlib.crc32(ruleset.name.encode())])
    solver = Solver(ruleset, nodes=NODES, table_bits=12)
    left = {kind: (count + i) // len(KINDS) for i, kind in enumerate(KINDS)}
    shares = {kind: -(-left[kind] // _GROUPS[kind]) for kind in KINDS}
    made: Counter[tuple[object, ...]] = Counter()
    seen = set()
    for in_groups in (True, False):
        idle = 0
        while any(left.values()) and idle < _PATIENCE:
            idle += 1
            for board in _random_game(ruleset, rng):
                open_kinds = [kind for kind in KINDS if left[kind]]
                if not open_kinds:
                    return
                kind = str(rng.choice(open_kinds))
                question = _ask(kind, board, rng, solver, made)
                if question is None or question in seen:
                    continue
                group: tuple[object, ...] = (kind, question.level)
                if kind == "rule":
                    group = (kind, question.answer)
                elif kind == "winner":
                    group = (*group, question.answer == SEAT_NAMES[board.turn])
                if in_groups and made[group] >= shares[kind]:
                    continue
                seen.add(question)
                made[group] += 1
                left[kind] -= 1
                idle = 0
                yield question


def _random_game(ruleset: Ruleset, rng: np.random.Generator) -> Iterator[Board]:
    """Yield the board before each move of a random game."""
    board = Board(ruleset, int(rng.integers(2)))
    while board.outcome() is None:
        yield board
        board.push(int(rng.choice(board.legal_actions)))


def _ask(
    kind: str,
    board: Board,
    rng: np.random.Generator,
    solver: Solver,
    made: Counter[tuple[object, ...]],
) -> Question | None:
    """Return a question of a kind; None if the position is not suitable."""
    if kind == "legal":
        moves = [say_move(board.words, board.ruleset, action) for action in board.legal_actions]
        found: _Found | None = (len(moves), "; ".join(moves), "")
    elif kind == "rule":
        found = _find_rule(board, rng, made)
    elif kind == "winner":
        found = _find_winner(board, solver)
    else:
        found = _find_on_a_move(board, kind, rng)
    if found is None:
        return None
    size, answer, move = found
    level = 1 + bisect_left(_BOUNDS[kind], size) if kind in _BOUNDS else size
    asked = _ASKED[kind].format(who=SEAT_NAMES[board.turn], move=move)
    prompt = f"{rules_page(board.ruleset)}\n\n{board_text(board.position)}\n\n{asked}"
    return Question(kind, board.ruleset.name, level, board.text(), move, prompt, answer)


# --- judging answers ------------------------------------------------------------------------------


def score(question: Mapping[str, Any], answer: str) -> float:
    """Return 1.0 if an answer is right, else 0.0.

    Case, signs and spaces do not matter, nor does the order of legal moves.

    Args:
        question: a line of the file, with ``kind`` and ``answer``.
        answer: any text; only the line after the last ``Answer:`` counts.
    """
    given = re.findall(r"answer\W{0,5}:\W*([^\n]*)", answer[-4000:].lower())
    return float(bool(given) and _read(given[-1]) == _read(question["answer"].lower()))


def _read(answer: str) -> list[list[str]]:
    """Return the words and numbers of the parts between semicolons, in alphabetical order."""
    return sorted(words for part in answer.split(";") if (words := re.findall(r"\w+", part)))


# --- the command ----------------------------------------------------------------------------------


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao questions``: write questions with exact answers."""
    parser.add_argument("file", type=new_file, metavar="FILE", help="the file, as JSON lines")
    parser.add_argument(
        "--count", type=at_least(1), default=1000, help="number of questions (default: 1000)"
    )
    add_options(parser, "seed", ruleset=None)
    parser.epilog = "Without --ruleset, all rule sets have equal shares."
    return _run


def _run(args: argparse.Namespace) -> None:
    rulesets = [args.ruleset] if args.ruleset else list(RULESETS.values())
    questions = make_questions(args.count, rulesets, args.seed)
    lines = [json.dumps(question._asdict()) + "\n" for question in questions]
    write_atomically(args.file, "".join(lines))
    print(f"{args.file}: {len(questions):,} questions")
