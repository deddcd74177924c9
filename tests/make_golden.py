"""Make the recorded data of a rule set: a playthrough, perft numbers and the signature.

    python -m tests.make_golden kibao

It writes, under tests,

    playthroughs/NAME.txt    a random game to its end, ply by ply: the board, the observation, which
                             actions are legal and which rules forbid the others, and the events of
                             the move; its moves are the reference's
    data/pinned.json         perft numbers of the opening, and the signature of `bao_env.bench`

Draws are seeded. test_recorded compares all of it with the reference and the engine.

`conformance/NAME.jsonl` is not made here. These positions with all their moves, 600 for each rule
set, are an outside specification.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bao_agents.cli.perft import perft
from bao_env import NUM_ACTIONS, Board, action_to_move, raw_env
from bao_env.engine.position import packed_opening
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.engine.signature import signature
from bao_env.notation.moves import why_illegal
from tests import reference

DATA = Path(__file__).parent / "data"
PLAYTHROUGHS = Path(__file__).parent / "playthroughs"
MAX_PERFT = 10_000
"""New perft numbers stop at the first one above this."""


def playthrough_file(name: str) -> Path:
    """Return the path of a rule set's playthrough."""
    return PLAYTHROUGHS / f"{name}.txt"


def conformance_cases(name: str) -> list[dict[str, Any]]:
    """Return the positions that specify a rule set, each with the position after every move."""
    text = (DATA / "conformance" / f"{name}.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def all_recorded_numbers() -> dict[str, dict[str, Any]]:
    """Return the recorded numbers by rule set."""
    return json.loads((DATA / "pinned.json").read_text(encoding="ascii"))


def recorded_numbers(name: str) -> dict[str, Any]:
    """Return the signature and the perft numbers of a rule set."""
    return all_recorded_numbers()[name]


def playthrough(ruleset: Ruleset) -> str:
    """Return a random game as text, ply by ply, each move drawn from the reference's."""
    rng = random.Random(f"golden game of {ruleset.name}")
    north_begins = ruleset.first_player == "lot" and rng.random() < 0.5
    env = raw_env(ruleset=ruleset, dtype=np.uint8)
    env.reset(options={"first_player": int(north_begins)})
    board = Board(ruleset, int(north_begins))
    text = reference.opening(ruleset, "SN"[north_begins])
    lines = [f"# A random game of {ruleset.name}, written by python -m tests.make_golden."]
    while text not in reference.WINS.values():
        moves = reference.legal_moves(text, ruleset)
        action = rng.choice(sorted(moves))
        assert board.legal_actions == sorted(moves), text
        lines += _ply(board, env, action)
        text = moves[action]
        board.push(action)
        env.step(action)
    lines += ["", str(board), f"rewards: {env.rewards}", ""]
    assert text == reference.WINS["SN"[board.outcome().winner]]  # type: ignore[union-attr]
    return "\n".join(line.rstrip() for line in lines)


def _ply(board: Board, env: raw_env, action: int) -> list[str]:
    """Return the lines about a position and the action played there."""
    seen, *_ = env.last()
    forbidden: dict[str, list[int]] = {}
    for other in sorted({*range(NUM_ACTIONS)} - {*board.legal_actions}):
        rule = why_illegal(board.packed, board.ruleset, other).rule
        forbidden.setdefault(rule, []).append(other)
    assert np.flatnonzero(seen["action_mask"]).tolist() == board.legal_actions
    legal = [f"{legal} {board.move_text(legal)}" for legal in board.legal_actions]
    return [
        f"\n--- ply {board.ply}: {env.agent_selection}",
        str(board),
        f"position: {board.text()}",
        f"observation: {' '.join(map(str, seen['observation']))}",
        f"legal: {', '.join(legal)}",
        *(f"illegal by {rule}: {' '.join(map(str, other))}" for rule, other in forbidden.items()),
        f"action: {action} ({action_to_move(action)}, written {board.move_text(action)})",
        *(f"  {event}" for event in board.trace(action)),
    ]


def perft_numbers(ruleset: Ruleset, depth: int) -> list[int]:
    """Return the engine's perft numbers of the opening for the depths 1 to `depth`."""
    rules, position = ruleset.kernel, packed_opening(ruleset)
    return [perft(rules, position, length) for length in range(1, depth + 1)]


def engine_numbers(ruleset: Ruleset) -> dict[str, Any]:
    """Return the engine's signature and perft numbers."""
    depth = 1
    while perft_numbers(ruleset, depth)[-1] <= MAX_PERFT:
        depth += 1
    return {"signature": signature(ruleset), "perft": perft_numbers(ruleset, depth)}


def write_numbers(entries: dict[str, dict[str, Any]]) -> None:
    """Write pinned.json, one line for each rule set, in the order of `RULESETS`."""
    names = [name for name in RULESETS if name in entries]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entries[name])}" for name in names)
    (DATA / "pinned.json").write_text(f"{{\n{lines}\n}}\n", encoding="ascii")


def main(names: list[str]) -> None:
    """Write the data of some rule sets; run test_recorded and read the files before you commit."""
    for name in names:
        playthrough_file(name).write_text(playthrough(RULESETS[name]), encoding="ascii")
        write_numbers(all_recorded_numbers() | {name: engine_numbers(RULESETS[name])})


if __name__ == "__main__":
    main(sys.argv[1:])
