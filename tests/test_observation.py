"""What each kind of observation holds, against the literal reference."""

from __future__ import annotations

import pickle
import random
from itertools import islice
from typing import Any

import numpy as np
import pytest

from agents.nets.captures import BEST_CAPTURE, CAPTURE_FEATURES, capture_features
from bao_env import RULESETS, BaoEnv, BaoVectorEnv, Engine, raw_env
from bao_env.engine.position import movers
from bao_env.observation import OBSERVATIONS, Observer, observe
from tests import reference
from tests.positions import batch_of, pack_texts, random_games, random_position
from tests.reference import FRONT, OPPONENT, SIDE, WINS

EVERY_RULESET = pytest.mark.parametrize("ruleset", list(RULESETS))
EVERY_KIND = pytest.mark.parametrize("kind", list(OBSERVATIONS))


def some_positions(ruleset: Any, count: int) -> list[str]:
    """Half of random games, half full of corner cases."""
    rng = random.Random(f"observations of {ruleset.name}")
    texts = list(islice(random_games(rng, ruleset), 3, 3 + count // 2))
    return texts + [random_position(rng, ruleset) for _ in range(count - len(texts))]


# --- the literal meaning of the columns -----------------------------------------------------------


def seeds_of(position: reference.Position, holes: list[reference.Hole]) -> int:
    return sum(position.holes[hole] for hole in holes)


def captured(before: str, after: str, rules: Any) -> int:
    """Seeds that the mover of ``before`` captures on the way to ``after``."""
    old = reference.parse(before, rules)
    opponent = OPPONENT[old.mover]
    if after == WINS[old.mover]:  # all that lay in their front row
        return seeds_of(old, FRONT[opponent])
    if after == WINS[opponent]:  # the mover has emptied their own front row, by a takasa
        return 0
    new = reference.parse(after, rules)
    taken = seeds_of(old, SIDE[opponent]) - seeds_of(new, SIDE[opponent])
    if new.pending is not None:  # Dutch I.a: still in their hole, but taken
        taken += new.holes[reference.FACING[new.pending]]
    return taken


def has_no_hole_to_play(text: str, rules: Any) -> bool:
    """Whether the mover has lost by rule 1.2, judged by their rows alone."""
    position = reference.parse(text, rules)
    player = position.mover
    if reference.in_namua(position, player):
        return not reference.filled_front(position, player)
    return all(position.holes[hole] < 2 for hole in SIDE[player])


def columns(text: str, rules: Any) -> np.ndarray:
    """The 256 columns of a position as counts."""
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


@EVERY_RULESET
def test_columns_match_the_reference(ruleset: str, thorough: bool) -> None:
    rules = RULESETS[ruleset]
    texts = some_positions(rules, 500 if thorough else 120)
    positions, masks = pack_texts(texts, rules)
    observer = Observer("planes+replies", rules, np.uint8)
    arrays = observer.empty(len(texts))
    observer.fill(positions, masks, movers(positions), arrays)
    for text, found in zip(texts, arrays["actions"], strict=True):
        np.testing.assert_array_equal(found, columns(text, rules), err_msg=text)
    assert arrays["actions"].reshape(-1, 4, 64).any(axis=(0, 2)).all()  # all groups were met


@EVERY_RULESET
def test_kinds_are_made_of_each_other(ruleset: str) -> None:
    """More games than the workspace holds at once, in both dtypes."""
    positions, masks = batch_of(ruleset, 2000, 9)
    viewers = movers(positions)
    found: dict[tuple[str, Any], Any] = {}
    for kind in OBSERVATIONS:
        for dtype in (np.float32, np.uint8):
            observer = Observer(kind, ruleset, dtype)
            arrays = observer.empty(len(positions))
            observer.fill(positions, masks, viewers, arrays)
            found[kind, dtype] = arrays
    for dtype in (np.float32, np.uint8):
        replies = found["replies", dtype]["board"]
        np.testing.assert_array_equal(found["board", dtype]["board"], replies[:, :52])
        np.testing.assert_array_equal(found["captures", dtype]["board"], replies[:, :180])
        both = found["planes+replies", dtype]
        np.testing.assert_array_equal(both["actions"], replies[:, 52:])
        np.testing.assert_array_equal(both["planes"], found["planes", dtype]["planes"])
    eighths, counts = found["replies", np.float32]["board"], found["replies", np.uint8]["board"]
    is_count = np.r_[np.ones(34), np.zeros(18), np.ones(64), np.zeros(64)].astype(bool)
    is_count = np.r_[is_count, np.ones(64, bool), np.zeros(64, bool)]
    np.testing.assert_array_equal(eighths, np.where(is_count, counts / 8, counts))


@EVERY_RULESET
def test_planes_show_the_board(ruleset: str) -> None:
    rules = RULESETS[ruleset]
    texts = some_positions(rules, 300)
    positions, masks = pack_texts(texts, rules)
    for viewer in (0, 1):
        viewers = np.full(len(texts), viewer, np.int8)
        boards = np.empty((len(texts), 52), np.uint8)
        observe(positions, boards, viewers)
        observer = Observer("planes", rules, np.uint8)
        arrays = observer.empty(len(texts))
        observer.fill(positions, masks, viewers, arrays)
        for text, planes, board in zip(texts, arrays["planes"], boards, strict=True):
            position = reference.parse(text, rules)
            me = "SN"[viewer]
            mine, theirs = SIDE[me], SIDE[OPPONENT[me]]
            # The opponent faces the viewer: their holes run from the viewer's right to the left.
            seen = [theirs[:7:-1], theirs[7::-1], mine[:8], mine[8:]]
            counts = np.array([[position.holes[hole] for hole in row] for row in seen])
            np.testing.assert_array_equal(planes[0], counts)
            for plane, step in enumerate((1, 2, 3, 4, 5, 6, 8, 10, 12, 15), 1):
                np.testing.assert_array_equal(planes[plane], counts >= step)
            houses = {reference.HOUSE[player] for player in "SN" if position.owned[player]}
            owned = [[hole in houses for hole in row] for row in seen]
            np.testing.assert_array_equal(planes[11], owned)
            for plane, hole in ((12, position.barred), (13, position.pending)):
                shown = hole if position.mover == me else None
                np.testing.assert_array_equal(
                    planes[plane], [[hole == shown for hole in row] for row in seen]
                )
            assert (planes[14] == position.stores[me]).all()
            assert (planes[15] == position.stores[OPPONENT[me]]).all()
            assert board[32] == position.stores[me]


@EVERY_RULESET
def test_networks_and_observations_agree_on_the_best_reply(ruleset: str) -> None:
    """The features of our networks are computed one position at a time."""
    engine = Engine(ruleset)
    positions, masks = batch_of(ruleset, 300, 10)
    observer = Observer("replies", ruleset, np.uint8)
    arrays = observer.empty(len(positions))
    observer.fill(positions, masks, movers(positions), arrays)
    features = np.zeros(CAPTURE_FEATURES, np.uint8)
    compared = 0
    for words, mask, board in zip(positions, masks, arrays["board"], strict=True):
        for action in np.flatnonzero((mask >> np.arange(64, dtype=np.uint64)) & np.uint64(1)):
            after, after_mask = words[None].copy(), np.array([mask])
            winner = np.full(1, -1, np.int8)
            engine.step(after, np.array([action]), after_mask, winner)
            if winner[0] < 0 and movers(after)[0] != movers(words[None])[0]:
                capture_features(engine.rules, after[0], features)
                assert board[180 + action] == features[BEST_CAPTURE]
                compared += 1
    assert compared > 500


# --- in the environments --------------------------------------------------------------------------


def leaves(observation: Any) -> dict[str, np.ndarray]:
    """The arrays of an observation, flat."""
    if isinstance(observation, dict):
        return {
            f"{key}.{name}": array
            for key, value in observation.items()
            for name, array in leaves(value).items()
        }
    return {"": np.asarray(observation)}


@EVERY_KIND
@pytest.mark.parametrize("flat", [False, True], ids=["dict", "flat"])
def test_environments_show_the_same(kind: Any, flat: bool) -> None:
    """The vector environment's rows are those of single environments, and lie in the space."""
    arguments: dict[str, Any] = {
        "opponent": "greedy",
        "seat": "south",
        "observation": kind,
        "flat": flat,
        "opening_plies": 0,
    }
    envs = BaoVectorEnv(3, **arguments)
    single: Any = BaoEnv(**arguments)
    seen, infos = envs.reset(seed=1)
    mine, info = single.reset(seed=1)
    ends = 0
    while ends < 3:
        assert seen in envs.observation_space
        assert mine in single.observation_space
        for key, array in leaves(mine).items():
            np.testing.assert_array_equal(leaves(seen)[key][0], array)
            assert array.dtype == leaves(seen)[key].dtype
        action = int(infos["action_mask"][0].argmax())
        seen, rewards, terminated, _, infos = envs.step(np.full(3, action))
        mine, reward, over, _, info = single.step(action)
        assert rewards[0] == reward
        if over:
            ends += 1
            for key, array in leaves(infos["final_obs"][0]).items():
                np.testing.assert_array_equal(array, leaves(mine)[key])
            mine, info = single.reset()
        assert terminated[0] == over


@EVERY_KIND
def test_aec_shows_both_agents(kind: Any) -> None:
    env = raw_env(observation=kind)
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    while not any(env.terminations.values()):
        for agent in env.agents:
            seen = env.observe(agent)
            assert seen in env.observation_space(agent)
            if agent != env.agent_selection and kind in ("captures", "replies"):
                assert not seen["observation"][52:].any()
        mask = env.observe(env.agent_selection)["action_mask"]
        env.step(int(rng.choice(np.flatnonzero(mask))))
    for agent in env.possible_agents:
        seen = env.observe(agent)
        if kind in ("captures", "replies"):
            assert not seen["observation"][52:].any()


def test_threads_make_no_difference() -> None:
    runs = []
    for threads in (1, 3):
        envs = BaoVectorEnv(1600, observation="replies", threads=threads, opening_plies=(0, 12))
        seen, _ = envs.reset(seed=5)
        for _ in range(5):
            seen, *_ = envs.step(envs.sample_legal_actions())
        runs.append(seen["observation"])
    np.testing.assert_array_equal(*runs)


def test_an_observer_can_be_copied_and_sent() -> None:
    observer = Observer("replies", "dutch", np.uint8)
    copy = pickle.loads(pickle.dumps(observer))
    positions, masks = batch_of("dutch", 50, 6)
    ours, theirs = observer.empty(50), copy.empty(50)
    observer.fill(positions, masks, movers(positions), ours)
    copy.fill(positions, masks, movers(positions), theirs)
    np.testing.assert_array_equal(ours["board"], theirs["board"])


def test_unknown_kinds_are_refused() -> None:
    for make in (BaoEnv, BaoVectorEnv, raw_env):
        with pytest.raises(ValueError, match="observation='boards': expected one of 'board'"):
            make(observation="boards")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="observation dtype int64"):
        Observer("board", dtype=np.int64)


# --- afterstates ----------------------------------------------------------------------------------


@EVERY_RULESET
def test_afterstates_are_where_the_actions_lead(ruleset: str) -> None:
    envs = BaoVectorEnv(100, ruleset=ruleset, observation="captures", opening_plies=(20, 40))
    envs.reset(seed=3)
    found = envs.afterstates()
    ends = 0
    for game, words in enumerate(envs.positions):
        rows = slice(*found.indptr[game : game + 2])
        mask = int(envs.masks[game])
        assert found.actions[rows].tolist() == [a for a in range(64) if mask >> a & 1]
        mover = movers(words[None])[0]
        for row in range(*found.indptr[game : game + 2]):
            after, after_mask = words[None].copy(), np.array([mask], np.uint64)
            winner = np.full(1, -1, np.int8)
            Engine(ruleset).step(after, found.actions[row : row + 1], after_mask, winner)
            np.testing.assert_array_equal(found.positions[row], after[0])
            assert found.masks[row] == after_mask[0]
            assert found.signs[row] == (1 if movers(after)[0] == mover else -1)
            result = 0 if winner[0] < 0 else 1 if winner[0] == mover else -1
            assert found.results[row] == result
            ends += result != 0
            observer = Observer("captures", ruleset)
            arrays = observer.empty(1)
            observer.fill(after, after_mask, movers(after), arrays)
            np.testing.assert_array_equal(found.observations[row], arrays["board"][0])
    assert found.indptr[-1] == len(found.actions) > 100
    assert ends
