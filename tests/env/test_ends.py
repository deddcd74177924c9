"""Test that every environment and adapter ends a game as the contract says (bao_env.envs).

Each plays one game under the same arguments: to a win, until it is cut short, and to an illegal
action.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

from bao_env import NORTH, BaoEnv, BaoVectorEnv, Board, Ruleset, env, raw_env
from bao_env.game import Termination

MAX_PLIES = 3


class End(NamedTuple):
    """The end of a game, as an environment tells it."""

    seat: int
    """Who played the last action."""
    reward: float
    """Theirs."""
    terminated: bool
    truncated: bool
    infos: dict[str, Any]
    mask: Any
    """The last mask."""


Choose = Callable[[Any], int]
"""A function that chooses an action by a mask, int8[64]."""


def play_aec(choose: Choose, make: Any = raw_env, **options: Any) -> End:
    aec: Any = make(**options)
    aec.reset(seed=1)
    while not (aec.terminations[aec.agent_selection] or aec.truncations[aec.agent_selection]):
        agent = aec.agent_selection
        aec.step(choose(aec.observe(agent)["action_mask"]))
    ends = aec.terminations[agent], aec.truncations[agent]
    (other,) = {*aec.agents} - {agent}
    assert ends == (aec.terminations[other], aec.truncations[other])
    assert {**aec.infos[other], "illegal": True} == {**aec.infos[agent], "illegal": True}
    assert "illegal" not in aec.infos[other]
    seen = [aec.observe(player)["action_mask"] for player in (agent, other)]
    seat = int(agent[-1])
    return End(seat, aec.rewards[agent], *ends, aec.infos[agent], np.maximum(*seen))


def play_wrapped(choose: Choose, **options: Any) -> End:
    return play_aec(choose, env, **options)


def play_single(choose: Choose, **options: Any) -> End:
    game = BaoEnv(None, **options)
    seen, info = game.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
        assert np.array_equal(info["action_mask"], seen["action_mask"])
        seat = info["seat"]
        seen, reward, terminated, truncated, info = game.step(choose(info["action_mask"]))
    assert np.array_equal(info["action_mask"], seen["action_mask"])
    assert info["action_mask"] is not seen["action_mask"]
    return End(seat, reward, terminated, truncated, info, info["action_mask"])


def play_vector(choose: Choose, mode: str = "NextStep", **options: Any) -> End:
    games = BaoVectorEnv(2, opponent=None, autoreset_mode=mode, **options)
    seen, infos = games.reset(seed=1)
    while True:
        seat, mask = infos["seat"][0], infos["action_mask"][0]
        seen, rewards, terminated, truncated, infos = games.step([choose(mask)] * 2)
        if terminated[0] or truncated[0]:
            break
    if mode == "SameStep":
        seen, infos = seen | infos["final_obs"][0], infos["final_info"]
        mask = seen["action_mask"]
    else:
        mask = seen["action_mask"][0]
    assert np.array_equal(mask, infos["action_mask"][0])
    found: dict[str, Any] = {
        key: infos[key][0] for key in ("winner", "plies", "illegal") if key in infos
    }
    assert all(infos[f"_{key}"][0] for key in found)
    return End(seat, rewards[0], bool(terminated[0]), bool(truncated[0]), found, mask)


def play_same_step(choose: Choose, **options: Any) -> End:
    return play_vector(choose, "SameStep", **options)


def play_disabled(choose: Choose, **options: Any) -> End:
    return play_vector(choose, "Disabled", **options)


def play_sb3(choose: Choose, **options: Any) -> End:
    pytest.importorskip("stable_baselines3")
    from bao_env.adapters.sb3 import SB3VecEnv

    games = SB3VecEnv(2, "random", **options)
    games.seed(1)
    games.reset()
    seat = games.reset_infos[0]["seat"]
    while True:
        mask = games.env_method("action_masks")[0]
        _, rewards, dones, infos = games.step(np.array([choose(mask)] * 2))
        if dones[0]:
            info = infos[0]
            mask = info["terminal_observation"]["action_mask"]
            cut = info["TimeLimit.truncated"]
            found = {key: info[key] for key in ("winner", "plies", "illegal") if key in info}
            return End(seat, float(rewards[0]), not cut, cut, found, mask)


def play_open_spiel(choose: Choose, **options: Any) -> End:
    pyspiel = pytest.importorskip("pyspiel")
    import bao_env.adapters.open_spiel  # noqa: F401

    options.pop("opening_plies")
    state = pyspiel.load_game("python_bao", options).new_initial_state()
    while not state.is_terminal():
        seat = state.current_player()
        state.apply_action(choose(np.array(state.legal_actions_mask())))
    rewards = state.returns()
    cut = rewards == [0, 0]
    found = {"winner": -1 if cut else int(np.argmax(rewards)), "plies": state.move_number()}
    return End(seat, rewards[seat], not cut, cut, found, state.legal_actions_mask())


PLAYED = [
    *(play_aec, play_wrapped, play_single, play_vector, play_same_step, play_disabled),
    *(play_sb3, play_open_spiel),
]
EVERYWHERE = pytest.mark.parametrize("play", PLAYED, ids=[play.__name__[5:] for play in PLAYED])


def random_moves() -> Choose:
    rng = np.random.default_rng(1)
    return lambda mask: int(rng.choice(np.flatnonzero(mask)))


@EVERYWHERE
def test_a_win(play: Callable[..., End]) -> None:
    """Also on the last ply before the game would be cut short."""
    plies = play(random_moves(), opening_plies=0).infos["plies"]
    end = play(random_moves(), opening_plies=0, max_plies=plies)
    winner = end.infos["winner"]
    assert (end.terminated, end.truncated, "illegal" in end.infos) == (True, False, False)
    assert winner in (0, 1) and end.infos["plies"] == plies > 10
    assert end.reward == (1 if winner == end.seat else -1)
    assert not np.any(end.mask)


@EVERYWHERE
def test_a_game_that_is_cut_short(play: Callable[..., End]) -> None:
    end = play(random_moves(), max_plies=MAX_PLIES, opening_plies=0)
    assert (end.terminated, end.truncated, end.reward) == (False, True, 0)
    infos = {key: end.infos[key] for key in ("winner", "plies")}
    assert infos == {"winner": -1, "plies": MAX_PLIES} and "illegal" not in end.infos


@EVERYWHERE
def test_an_illegal_action(play: Callable[..., End]) -> None:
    """OpenSpiel's own check refuses it."""
    if play is play_open_spiel:
        pytest.skip("OpenSpiel refuses illegal actions")
    end = play(lambda mask: 63, opening_plies=0)
    assert (end.terminated, end.truncated, end.reward) == (True, False, -1)
    assert end.infos["winner"] == 1 - end.seat and end.infos["illegal"]
    assert not np.any(end.mask)


DOORS: dict[str, Callable[..., Any]] = {
    "aec": raw_env,
    "single": partial(BaoEnv, None),
    "vector": partial(BaoVectorEnv, 2, opponent=None, autoreset_mode="Disabled"),
    "next step": partial(BaoVectorEnv, 2, opponent=None, autoreset_mode="NextStep"),
}


@pytest.mark.parametrize("make", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("reason", Termination)
def test_a_board_tells_the_end_and_its_transcript_too(make: Any, reason: Termination) -> None:
    cut = reason is Termination.CUT_SHORT
    environment = make(ruleset="kujifunza", **({"max_plies": 7} if cut else {}))
    many = isinstance(environment, BaoVectorEnv)
    for seed in range(300):
        environment.reset(seed=seed)
        for ply in count():
            board = environment.board(0) if many else environment.board
            if board.is_game_over():
                break
            action = environment.sample_legal_actions()
            if reason is Termination.ILLEGAL_ACTION and ply == 5:
                action = np.full(2, 63) if many else 63
            mover = board.turn
            environment.step(action)
        found = board.outcome()
        if found is not None and found.reason is reason:
            break
    assert found is not None
    assert found.reason is reason and board.legal_actions == [] and (found.winner is None) == cut
    if reason is Termination.ILLEGAL_ACTION:
        assert found.winner == 1 - mover and str(found).endswith(" wins: illegal action")
    back = Board.from_transcript(board.transcript())
    assert back == board and back.outcome() == found
    assert eval(repr(board), {"Board": Board, "Ruleset": Ruleset}) == board
    moves = Board.from_text("start", "zanzibar", "A7L 5R").transcript()
    for end, winner in (("cut short", None), ("Illegal action", NORTH)):
        outcome = Board.from_transcript(f"end: {end}\n{moves}").outcome()
        assert outcome is not None and outcome.winner == winner
