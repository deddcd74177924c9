"""Search literally, for comparison with the fast searches."""

from __future__ import annotations

import numpy as np

from bao_agents.evaluators.nnue import NO_NNUE, Evaluator, position_value
from bao_agents.evaluators.tables import load_tables
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint_files import GUIDES
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN, WIN_VALUE
from bao_agents.search.limits import Limit
from bao_agents.search.mcts import MctsAgent
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN, WIN
from bao_agents.search.solver.solver import Solver
from bao_env import Board
from bao_env.engine.action import actions_of
from bao_env.engine.bits import U
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.position import Rows, movers, turn_of, unpack
from bao_env.engine.ruleset import KernelRules, Ruleset, get_ruleset
from bao_env.engine.starts import startable
from tests.positions import draw


def tables_evaluator(ruleset: Ruleset) -> Evaluator:
    """Return the evaluator of a full search, which reads the fitted tables."""
    return Evaluator(load_tables(ruleset), NO_NNUE)


def minimax(
    rules: KernelRules,
    evaluator: Evaluator,
    position: np.ndarray,
    depth: int,
    extends: bool = False,
    saved: int = 0,
    ply: int = 0,
) -> tuple[int, list[int]]:
    """Return the value of a position and its best actions, by a full search.

    Args:
        rules: the rules to play by.
        evaluator: evaluates the positions at the horizon.
        position: the position.
        depth: plies to search.
        extends: use the extensions of agents/bao_agents/search/alphabeta/reductions.py.
        saved: half plies that forced actions have saved.
        ply: plies from the root.
    """
    best, actions = ply - WIN_VALUE, list[int]()
    legal = actions_of(legal_of(rules, position))
    starts = {action >> 1 for action in legal}  # pit and direction
    if extends and ply > 0 and not (depth == 1 and len(starts) > 1):
        saved += {1: 2, 2: 1}.get(len(legal), 0)
    for action in legal:
        after = position.copy()
        result = int(play(rules, after, U(action)))
        waits = unpack(after).pending is not None
        plies = (depth - 1 if depth > 1 or not waits else 1) + saved // 2
        if result:
            value = WIN_VALUE - ply - 1 if result == 1 else ply + 1 - WIN_VALUE
        elif plies:
            value = minimax(rules, evaluator, after, plies, extends, saved % 2, ply + 1)[0]
            value = value if waits else -value
        elif startable(rules, after)[1]:
            value = -int(position_value(evaluator, Rows.of(after)))
        else:
            value = WIN_VALUE - ply - 1
        if value > best or not actions:
            best, actions = value, []
        if value == best:
            actions.append(action)
    return best, actions


def wins_by(name: str, judge: AlphaBetaAgent, position: np.ndarray, action: int) -> bool:
    """Return whether an action wins at once, or a search proves that it does."""
    after = position.copy()
    result = play(get_ruleset(name).kernel, after, U(action))
    sign = 1 if movers(after[None]) == movers(position[None]) else -1
    return bool(result == 1 or sign * judge.search(after).value > PROVEN)


def solved_values(solver: Solver, positions: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Return the winner of each position, solving one position at a time.

    Returns:
        int8[N], WIN for the player to move, LOSS, or UNKNOWN, also where no action is legal.
    """
    values = np.full(len(legal), UNKNOWN, np.int8)
    for i in np.flatnonzero(legal):
        winner = solver.solve(positions[i]).winner
        if winner is not None:
            values[i] = WIN if winner == turn_of(positions[i]) else LOSS
    return values


def search_signature(name: str) -> dict[str, list[list[int]]]:
    """Return the results of searches of a few positions from random games, down to the nodes.

    Returns:
        action, value, depth and nodes of alpha-beta, plain to a depth, and guided by the rule set's
        network if it has one; the actions of a game that it remembers; and the action of Monte
        Carlo tree search.
    """
    positions, legal = draw(name, 8, (8, 36), seed=11)
    searches = {
        "alphabeta:7": AlphaBetaAgent(name, Limit(plies=7), threads=1),
        "alphabeta:20000n": AlphaBetaAgent(name, Limit(nodes=20_000), threads=1),
    }
    file = GUIDES / f"{name}.safetensors"
    if file.exists():
        guide = checkpoint.load(file)
        searches["guided:40000n"] = AlphaBetaAgent(
            name, Limit(nodes=40_000), guide=guide, threads=1
        )
    results = {
        search: [list(map(int, agent.search(position)[:4])) for position in positions]
        for search, agent in searches.items()
    }
    agent, board = AlphaBetaAgent(name, Limit(nodes=3_000), threads=1), Board(name)
    game: list[int] = []
    while len(game) < 16 and board.outcome() is None:
        game += agent.act(*board.batch(), games=np.array([1])).tolist()
        board.push(game[-1])
    results["a game of alphabeta:3000n"] = [game]
    playouts = MctsAgent(name, Limit(nodes=400), seed=1, threads=1)
    results["mcts:400"] = [[int(action)] for action in playouts.act(positions, legal)]
    return results


def reachable_values(
    rules: KernelRules, position: np.ndarray, max_positions: int
) -> dict[bytes, tuple[np.ndarray, int]] | None:
    """Return who wins each position that play can reach, by retrograde analysis.

    The analysis works back from the ends of games, and uses no search.

    Args:
        rules: the rules to play by.
        position: where play begins.
        max_positions: the most positions.

    Returns:
        each position with WIN, LOSS or, where play may go on for ever, UNKNOWN for its mover; None
        if there are more positions.
    """
    successors: dict[bytes, list[tuple[bytes, int]]] = {}
    values: dict[bytes, int] = {}
    before: dict[bytes, list[bytes]] = {}
    positions = {_key(position): position}
    waiting = [position]
    while waiting:
        position = waiting.pop()
        key, after_key = _key(position), b""
        successors[key] = []
        for action in actions_of(legal_of(rules, position)):
            after = position.copy()
            result = int(play(rules, after, U(action)))
            sign = 1 if movers(after[None]) == movers(position[None]) else -1
            if result:
                after_key, sign = b"won" if result == 1 else b"lost", 1
            else:
                after_key = _key(after)
                if after_key not in positions:
                    positions[after_key] = after
                    waiting.append(after)
            successors[key].append((after_key, sign))
            before.setdefault(after_key, []).append(key)
        if len(positions) > max_positions:
            return None
    values[b"won"], values[b"lost"] = WIN, LOSS
    decided = [b"won", b"lost", *(key for key in positions if not successors[key])]
    values |= {key: LOSS for key in decided[2:]}  # 1.2: no legal move
    while decided:
        for key in before.get(decided.pop(), []):
            if key in values:
                continue
            results = {sign * values.get(after, UNKNOWN) for after, sign in successors[key]}
            if WIN in results or results == {LOSS}:
                values[key] = WIN if WIN in results else LOSS
                decided.append(key)
    return {key: (position, values.get(key, UNKNOWN)) for key, position in positions.items()}


def _key(position: np.ndarray) -> bytes:
    """Return a position without its ply."""
    return position[:5].tobytes()
