"""Play a random game of a rule set and write it down, ply by ply.

At each ply the text has the board, its position text, the observation, the legal actions, the rule
that forbids each other action, and the events of the move. The moves are the reference's, so a game
also compares the reference with the engine, the environment and the explanations.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import groupby

import numpy as np

from bao_env import NUM_ACTIONS, Board, action_to_move, raw_env
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.moves import why_illegal
from tests import reference


def playthrough(ruleset: Ruleset) -> str:
    """Return a random game as text, each move drawn from the reference's."""
    rng = random.Random(f"golden game of {ruleset.name}")
    north_begins = ruleset.first_player == "random" and rng.random() < 0.5
    env = raw_env(ruleset=ruleset, dtype=np.uint8)
    env.reset(options={"first_player": int(north_begins)})
    board = Board(ruleset, int(north_begins))
    text = reference.opening(ruleset, "SN"[north_begins])
    lines = [f"# A random game of {ruleset.name}, written by python -m tests.record."]
    while text not in reference.WINS.values():
        moves = reference.legal_moves(text, ruleset)
        action = rng.choice(sorted(moves))
        assert board.legal_actions == sorted(moves), text
        lines += _ply(board, env, action)
        text = moves[action]
        board.push(action)
        env.step(action)
    lines += ["", str(board), f"rewards: {env.rewards}", ""]
    assert text == reference.WINS["SN"[board.outcome().winner]]  # type: ignore[union-attr, index]
    return "\n".join(line.rstrip() for line in lines)


def _names(actions: Iterable[int]) -> str:
    """Return the names of actions in ascending order; the name of a hole stands for all four of its
    actions."""
    names: list[str] = []
    for _, of_hole in groupby(actions, lambda action: action // 4):
        moves = [action_to_move(action) for action in of_hole]
        names += [moves[0][:2]] if len(moves) == 4 else moves
    return " ".join(names)


def _ply(board: Board, env: raw_env, action: int) -> list[str]:
    """Return the lines about a position and the action played there."""
    observation, *_ = env.last()
    forbidden: dict[str, list[int]] = {}
    for illegal in sorted({*range(NUM_ACTIONS)} - {*board.legal_actions}):
        rule = why_illegal(board.packed, board.ruleset, illegal).rule
        forbidden.setdefault(rule, []).append(illegal)
    assert np.flatnonzero(observation["action_mask"]).tolist() == board.legal_actions
    legal = [f"{action_to_move(legal)} {board.move_text(legal)}" for legal in board.legal_actions]
    return [
        f"\n--- ply {board.ply}: {env.agent_selection}",
        str(board),
        f"position: {board.text()}",
        f"observation: {' '.join(map(str, observation['observation']))}",
        f"legal: {', '.join(legal)}",
        *(f"illegal by {rule}: {_names(actions)}" for rule, actions in forbidden.items()),
        f"action: {action} ({action_to_move(action)}, written {board.move_text(action)})",
        *(f"  {event}" for event in board.trace(action)),
    ]
