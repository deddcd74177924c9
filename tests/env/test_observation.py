"""Test each kind of observation, against the reference and in the environments."""

from __future__ import annotations

from typing import Any

import numpy as np

from bao_env import RULESETS, BaoVectorEnv
from bao_env.engine.action import actions_of
from bao_env.engine.position import movers
from bao_env.notation import move_to_action
from bao_env.observation.observer import get_observer, make_observations
from tests import reference
from tests.positions import LONE_KICHWA, draw, pack_texts, some_positions
from tests.reference import FRONT, OPPONENT, SIDE, WINS
from tests.rulesets import EVERY_RULESET


def observe(kind: str, rules: Any, positions: Any, legal: Any, viewers: Any = None) -> Any:
    """Return observations as uint8, by default as the movers see the positions."""
    observer = get_observer(kind, rules, np.uint8)
    return make_observations(
        observer, positions, legal, movers(positions) if viewers is None else viewers
    )


# --- the literal meaning of the columns -----------------------------------------------------------


def seeds_in(position: reference.Position, holes: list[reference.Hole]) -> int:
    return sum(position.holes[hole] for hole in holes)


def captured(before: str, after: str, rules: Any) -> int:
    """Return the seeds that the mover of ``before`` captures on the way to ``after``."""
    position_before = reference.parse(before, rules)
    opponent = OPPONENT[position_before.mover]
    if after == WINS[position_before.mover]:  # all seeds of their front row
        return seeds_in(position_before, FRONT[opponent])
    if after == WINS[opponent]:  # the mover has emptied their own front row, by a takasa
        return 0
    position_after = reference.parse(after, rules)
    seeds = seeds_in(position_before, SIDE[opponent]) - seeds_in(position_after, SIDE[opponent])
    if position_after.pending is not None:  # Dutch I.a: still in their hole, but taken
        seeds += position_after.holes[reference.FACING[position_after.pending]]
    return seeds


def has_no_hole_to_play(text: str, rules: Any) -> bool:
    """Return whether the mover has lost by rule 1.2, judged only by their rows."""
    position = reference.parse(text, rules)
    player = position.mover
    if reference.in_namua(position, player):
        return not reference.filled_front(position, player)
    return all(position.holes[hole] < 2 for hole in SIDE[player])


def columns(text: str, rules: Any) -> np.ndarray:
    """Return the 256 columns of a position as counts."""
    out = np.zeros((4, 64), np.uint8)
    mover = text.split()[3]
    results = reference.legal_moves(text, rules)
    for action, after in reference.moves_before_end(text, rules).items():
        out[0, action] = captured(text, after, rules)
        out[1, action] = results[action] == WINS[mover]
        if results[action] in WINS.values() or after.split()[3] == mover:
            continue
        for reply in reference.moves_before_end(after, rules).values():
            out[2, action] = max(out[2, action], captured(after, reply, rules))
            wins = reply == WINS[OPPONENT[mover]]
            if not wins and reply not in WINS.values() and reply.split()[3] == mover:
                wins = has_no_hole_to_play(reply, rules)
            out[3, action] |= wins
    return out.reshape(-1)


ONE_WAY_WINS = "0,0,0,1,0,0,0,0/0,0,1,0,0,0,0,2/0,0,0,0,0,0,0,8/4,7,10,6,7,2,9,7 0,0 - S -"
"""South has only single seeds left; North's lone kichwa wins in one direction and loses in the
other."""


@EVERY_RULESET
def test_columns_match_the_reference(ruleset: str, thorough: bool, seed: int) -> None:
    rules = RULESETS[ruleset]
    texts = some_positions(rules, 500 if thorough else 120, seed)
    texts += [ONE_WAY_WINS] * (ruleset == "kujifunza")
    actions = observe("replies", rules, *pack_texts(texts, rules))[:, 52:]
    for text, row in zip(texts, actions, strict=True):
        np.testing.assert_array_equal(row, columns(text, rules), err_msg=text)
    assert actions.reshape(-1, 4, 64).any(axis=(0, 2)).all()  # all groups were met


@EVERY_RULESET
def test_both_dtypes_show_the_same(ruleset: str) -> None:
    """The test observes more games than fit into the workspace at once, in both dtypes."""
    positions, legal = draw(ruleset, 2000, 9)
    viewers = movers(positions)
    all_replies = []
    for dtype in (np.float32, np.uint8):
        board, replies = (
            make_observations(get_observer(kind, ruleset, dtype), positions, legal, viewers)
            for kind in ("board", "replies")
        )
        np.testing.assert_array_equal(board, replies[:, :52])
        all_replies.append(replies)
    eighths, counts = all_replies
    is_count = np.repeat([True, False, True, False, True, False], [34, 18, 64, 64, 64, 64])
    np.testing.assert_array_equal(eighths, np.where(is_count, counts / 8, counts))


@EVERY_RULESET
def test_board_and_planes_match_the_reference(ruleset: str, seed: int) -> None:
    rules = RULESETS[ruleset]
    texts = some_positions(rules, 120, seed)
    positions, legal = pack_texts(texts, rules)
    for viewer in (0, 1):
        viewers = np.full(len(texts), viewer, np.int8)
        boards, all_planes = (
            observe(kind, rules, positions, legal, viewers) for kind in ("board", "planes")
        )
        for text, board, planes in zip(texts, boards, all_planes, strict=True):
            position = reference.parse(text, rules)
            me, opponent = "SN"[viewer], "NS"[viewer]
            mine, theirs = SIDE[me], SIDE[opponent]
            # The opponent faces the viewer: their holes run from the viewer's right to the left.
            rows = [theirs[:7:-1], theirs[7::-1], mine[:8], mine[8:]]
            counts = np.array([[position.holes[hole] for hole in row] for row in rows])
            houses = {reference.HOUSE[player] for player in "SN" if position.owned[player]}
            own = position.mover == me
            marks = [position.barred if own else None, position.pending if own else None]
            stores = [position.stores[me], position.stores[opponent]]
            expected = [
                *counts[[2, 3, 1, 0]].ravel(),
                *stores,
                *(position.owned[player] for player in (me, opponent)),
                *(hole == mark for mark in marks for hole in mine[:8]),
            ]
            np.testing.assert_array_equal(board, expected)
            np.testing.assert_array_equal(planes[0], counts)
            for plane, step in enumerate((1, 2, 3, 4, 5, 6, 8, 10, 12, 15), 1):
                np.testing.assert_array_equal(planes[plane], counts >= step)
            marked = [[[hole in houses for hole in row] for row in rows]]
            marked += [[[hole == mark for hole in row] for row in rows] for mark in marks]
            np.testing.assert_array_equal(planes[11:14], marked)
            assert (planes[14] == stores[0]).all() and (planes[15] == stores[1]).all()


# --- afterstates ----------------------------------------------------------------------------------


@EVERY_RULESET
def test_afterstates_are_where_the_actions_lead(ruleset: str) -> None:
    envs = BaoVectorEnv(
        100,
        ruleset=ruleset,
        observation="replies",
        dtype=np.uint8,
        opening_plies=(20, 40),
        opponent=None,
    )
    envs.reset(seed=3)
    afterstates = envs.afterstates()
    expected = []
    for game in range(100):
        board = envs.board(game)
        for action in board.legal_actions:
            after = board.copy()
            after.push(action)
            sign = 1 if after.turn == board.turn else -1
            outcome = after.outcome()
            result = 0 if outcome is None else 1 if outcome.winner == board.turn else -1
            expected.append((game, action, after.packed, after.legal_actions, sign, result))
    games, actions, positions, legal, signs, results = zip(*expected, strict=True)
    np.testing.assert_array_equal(np.diff(afterstates.indptr), np.bincount(games, minlength=100))
    np.testing.assert_array_equal(afterstates.actions, actions)
    np.testing.assert_array_equal(afterstates.positions, positions)
    np.testing.assert_array_equal(afterstates.signs, signs)
    np.testing.assert_array_equal(afterstates.results, results)
    assert tuple(map(actions_of, afterstates.legal)) == legal and any(results)
    observations = observe("replies", ruleset, afterstates.positions, afterstates.legal)
    np.testing.assert_array_equal(afterstates.observations, observations)


def test_an_action_that_loses_at_once() -> None:
    envs = BaoVectorEnv(1, ruleset="kujifunza", opponent=None)
    envs.reset(options={"position": LONE_KICHWA})
    afterstates = envs.afterstates()
    lost = afterstates.actions == move_to_action("A1L")
    np.testing.assert_array_equal(afterstates.results, -lost.astype(int))
    assert lost.any()
