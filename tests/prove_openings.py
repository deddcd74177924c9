"""Prove who wins the positions of the first plies, as far as a limit of positions allows.

    python -m tests.prove_openings FILE RULESET PLIES LIMIT...

This searches each position after up to PLIES plies whose winner is not yet proven, and visits at
most LIMIT positions; then those that are left, with the next LIMIT. The file gets each result, as
in a proof in pieces (``bao solve --pieces``), and the same command goes on from it. This counts
what is proven, and proves SHARE of the positions again:

    python -m tests.check_pieces FILE RULESET SHARE PLIES
"""

from __future__ import annotations

import sys
from pathlib import Path

from bao_agents.exact.proof_tree import Answer, continue_file, job, read_answers
from bao_agents.search.solver.proof_number import UNKNOWN
from bao_agents.support.files import hold_file
from bao_env.engine.ruleset import RULESETS
from tests.check_pieces import openings, value_of

TABLE_BITS = 23
"""The table has 2^23 slots, 670 MB."""


def hardness(answer: Answer) -> int:
    """Return the least number of positions that a proof of a result still needs."""
    return min((min(action.phi, action.delta) for action in answer.actions), default=0)


def main(argv: list[str]) -> int:
    """Search the openings."""
    ruleset, plies, limits = RULESETS[argv[1]], int(argv[2]), argv[3:]
    levels = list(openings(ruleset, plies))
    with hold_file(Path(argv[0])) as file:
        answers = read_answers(file, ruleset)
        with continue_file(file, ruleset, answers) as append:
            answers = {text: Answer(text, 0, []) for level in levels for text in level} | answers
            for limit in map(int, limits):
                for level in reversed(levels):
                    for text in sorted(level, key=lambda text: hardness(answers[text])):
                        if answers[text].visited >= limit:
                            continue
                        if value_of(text, answers, ruleset)[0] == UNKNOWN:
                            answers[text] = job(ruleset, text, limit, TABLE_BITS)
                            append(answers[text])
                print(f"searched with a limit of {limit:,}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
