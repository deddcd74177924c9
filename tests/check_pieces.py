"""Check a proof in pieces (``bao solve --pieces``) by the literal rules and a second search.

    python -m tests.check_pieces FILE RULESET [SHARE [PLIES]]

The file holds the results of searches of positions: numbers for each action, where a 0 means that
the winner is known. The check derives the winner of the file's first position from the results of
the others, with the moves of ``tests/reference.py``. Then it proves again the positions on which
the proof rests: a random SHARE of them (all by default). Each is searched from an empty table, and
without the evaluation, so in another order. The seeds in the stores alone say how hard a new
position looks.

With PLIES the file holds results about openings (``tests/prove_openings.py``). The check counts the
positions after up to so many plies whose winner these results prove.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bao_agents.exact.proof_tree import Answer, Answers, ProofTree, read_answers
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN, WIN
from bao_agents.search.solver.proof_search import ProofSearch
from bao_env.engine.layout import NUM_SEEDS
from bao_env.engine.position import to_packed
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation.positions import parse_position
from tests.reference import OPPONENT, WINS, legal_moves, opening

Leaves = dict[str, int]
"""Positions that a proof rests on, with their values for the player to move."""


def value_of(position: str, answers: Answers, ruleset: Ruleset) -> tuple[int, Leaves]:
    """Return the value of a position for the player to move, and the leaves of its proof."""
    return _value_of(position, answers, ruleset, {})


def _value_of(
    position: str,
    answers: Answers,
    ruleset: Ruleset,
    proven: dict[str, tuple[int, Leaves]],
) -> tuple[int, Leaves]:
    if position in proven:
        return proven[position]
    proven[position] = UNKNOWN, {}  # a position that repeats proves nothing
    if position not in answers:
        return proven[position]
    claims = {claim.action: claim.value for claim in answers[position].actions}
    values, proofs = [], []
    for action, after in legal_moves(position, ruleset).items():
        mover, leaves = position.split()[3], Leaves()
        if after in WINS.values():
            value = WIN if after == WINS[mover] else LOSS
        else:
            sign = 1 if after.split()[3] == mover else -1
            value = claims.get(action, UNKNOWN)
            leaves = {after: sign * value}
            if value == UNKNOWN:
                value, leaves = _value_of(after, answers, ruleset, proven)
                value *= sign
        values.append(value)
        proofs.append(leaves)
    if WIN in values:
        proven[position] = WIN, proofs[values.index(WIN)]
    elif set(values) <= {LOSS}:
        proven[position] = (
            LOSS,
            {text: value for leaves in proofs for text, value in leaves.items()},
        )
    return proven[position]


def openings(ruleset: Ruleset, plies: int) -> Iterator[set[str]]:
    """Yield the different positions after each number of plies from the opening."""
    level = {opening(ruleset)}
    yield level
    for _ in range(plies):
        level = {text for before in level for text in legal_moves(before, ruleset).values()}
        level -= set(WINS.values())
        yield level


def count_openings(answers: Answers, ruleset: Ruleset, plies: int) -> Leaves:
    """Print how many openings the answers decide; return the leaves of their proofs."""
    levels, all_leaves = list(openings(ruleset, plies)), Leaves()
    answers = {text: Answer(text, 0, []) for level in levels for text in level} | answers
    proven: dict[str, tuple[int, Leaves]] = {}
    for ply, level in enumerate(levels):
        wins = dict.fromkeys(WINS, 0)
        for text in level:
            value, leaves = _value_of(text, answers, ruleset, proven)
            mover = text.split()[3]
            if value != UNKNOWN:
                wins[mover if value == WIN else OPPONENT[mover]] += 1
                all_leaves |= leaves
        print(f"after {ply} plies: {len(level)} positions, won by {wins}", flush=True)
    return all_leaves


def prove_again(leaves: Leaves, ruleset: Ruleset) -> Iterator[str]:
    """Prove each leaf by a search of its own; yield the position after each.

    Raises:
        AssertionError: a leaf has another value.
    """
    search = ProofSearch(ruleset, 20)
    by_stores = 64 * 1.08 ** np.arange(NUM_SEEDS + 1)  # no evaluation
    search.table.first_phi[:] = search.table.first_delta[:] = by_stores[:, None]
    for text, value in leaves.items():
        search.table.clear()
        search.begin(None)
        assert search.prove(to_packed(parse_position(text, ruleset))) == value, text
        yield text


def main(argv: list[str]) -> int:
    """Check a file."""
    ruleset = RULESETS[argv[1]]
    answers = read_answers(Path(argv[0]), ruleset)
    if len(argv) > 3:
        leaves = count_openings(answers, ruleset, int(argv[3]))
    else:
        root = next(iter(answers))
        tree = ProofTree(ruleset, to_packed(parse_position(root, ruleset)), answers)
        tree.check_file(Path(argv[0]))  # no line of another proof, which would not be checked
        value, leaves = value_of(root, answers, ruleset)
        words = {WIN: "the player to move wins", LOSS: "the other player wins", UNKNOWN: "unknown"}
        print(f"{root}: {words[value]}; {len(leaves)} leaves", flush=True)
    share = int(argv[2]) if len(argv) > 2 else len(leaves)
    drawn = dict(random.Random(1).sample(sorted(leaves.items()), min(share, len(leaves))))
    for count, text in enumerate(prove_again(drawn, ruleset), 1):
        print(f"proved again: {count} of {len(drawn)}, {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
