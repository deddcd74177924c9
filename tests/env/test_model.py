"""Compare the environments, in random use, with the contract, by games on a Board.

Each game of an environment has a model: a board, the learner's seat, and how the game ended.
"""

from __future__ import annotations

import copy
import pickle
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from bao_env import (
    RULESETS,
    BaoEnv,
    BaoVectorEnv,
    Board,
    GreedyAgent,
    IllegalMoveError,
    Ruleset,
    raw_env,
)
from bao_env.game import CUT_SHORT, Outcome, Termination
from bao_env.observation.observer import get_observer, make_observations
from tests.rulesets import EVERY_RULESET
from tests.vector import DISABLED, NEXT, SAME, arrays_of

ENVIRONMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "aec": (raw_env, {}),
    "self-play": (BaoEnv, {"opponent": None}),
    "learner": (BaoEnv, {"opponent": "greedy"}),
    **{
        f"vector-{mode.value}-{opponent}": (
            BaoVectorEnv,
            {"num_envs": 3, "autoreset_mode": mode, "opponent": opponent},
        )
        for mode in (NEXT, SAME, DISABLED)
        for opponent in (None, "greedy")
    },
}
SEATS: Any = (None, 0, 1)


class Model:
    """A model of one game, which says what the environment has to return."""

    def __init__(self, ruleset: str, arguments: dict[str, Any]) -> None:
        self.ruleset, self.arguments = RULESETS[ruleset], arguments
        self.opponent = GreedyAgent(ruleset) if arguments.get("opponent") else None
        self.observer = get_observer("replies", ruleset)

    def start(self, board: Board, learner: int | None) -> None:
        self.board, self.learner, self.reward = board.copy(), learner, 0
        self.actor = board.turn
        self.outcome = board.outcome()
        self.answer()

    def begin(self, options: dict[str, Any], env_board: Board, env_seat: int) -> None:
        """Begin the model of a game as the environment has begun it; check that it may begin so."""
        arguments = {**self.arguments, **{k: v for k, v in options.items() if v is not None}}
        first = arguments.get("first_player")
        seats: list[int | None] = [None]
        if self.opponent:
            seats = [0, 1] if arguments.get("seat") is None else [arguments["seat"]]
        firsts = [0, 1] if self.ruleset.first_player == "random" else [0]
        boards = [Board(self.ruleset, seat) for seat in (firsts if first is None else [first])]
        if arguments.get("position"):
            boards = [Board.from_text(arguments["position"], self.ruleset)]
        elif arguments["opening_plies"]:
            boards = [env_board]
            assert arguments["opening_plies"] <= env_board.ply
        for start in product(boards, seats):
            self.start(*start)
            if self.seat == env_seat and self.board.text() == env_board.text():
                return
        raise AssertionError(f"a game may not begin so: {env_board!r}")

    def play(self, action: int) -> None:
        """Play an action of the player to act, and the opponent's answers."""
        self.actor = self.board.turn
        if action in self.board.legal_actions:
            self.push(action)
            self.answer()
            if not self.outcome and self.board.ply >= self.arguments["max_plies"]:
                self.outcome = CUT_SHORT
        else:
            self.outcome = Outcome(1 - self.actor, Termination.ILLEGAL_ACTION)
        winner = self.outcome and self.outcome.winner
        self.reward = 0 if winner is None else 1 if winner == self.actor else -1

    def push(self, action: int) -> None:
        self.board.push(action)
        self.outcome = self.board.outcome()

    def answer(self) -> None:
        while self.opponent and self.board.turn != self.learner and not self.outcome:
            self.push(self.opponent.choose(self.board))

    @property
    def seat(self) -> int:
        return self.board.turn if self.learner is None else self.learner

    def legal(self, seat: int) -> list[int]:
        lost = self.outcome and self.outcome.reason is Termination.ILLEGAL_ACTION
        return [] if lost or seat != self.board.turn else self.board.legal_actions

    def observation(self, seat: int) -> dict[str, Any]:
        mask = np.zeros(64, np.int8)
        mask[self.legal(seat)] = 1
        bits = np.array([sum(1 << action for action in self.legal(seat))], np.uint64)
        view = make_observations(
            self.observer, self.board.packed[None], bits, np.array([seat], np.int8)
        )
        return {"observation": view[0], "action_mask": mask}

    def step_result(self) -> tuple[Any, ...]:
        infos: dict[str, Any] = {}
        if self.outcome:
            winner = -1 if self.outcome.winner is None else self.outcome.winner
            infos = {"winner": winner, "plies": self.board.ply}
            if self.outcome.reason is Termination.ILLEGAL_ACTION:
                infos["illegal"] = True
        if "opponent" in self.arguments:
            mask = self.observation(self.seat)["action_mask"]
            infos |= {"action_mask": mask, "seat": self.seat}
        cut = self.outcome == CUT_SHORT
        return self.observation(self.seat), self.reward, bool(self.outcome) and not cut, cut, infos


def result_of(env: Any, result: Any, game: int, actor: int) -> tuple[Any, ...]:
    """Return one game's result of a step, or of a reset, which has no rewards."""
    if isinstance(env, raw_env):
        agent = env.possible_agents[actor]
        ends = env.terminations[agent], env.truncations[agent]
        return env.last()[0], env.rewards[agent], *ends, env.infos[agent]
    if isinstance(env, BaoEnv):
        return result if len(result) == 5 else (result[0], 0, False, False, result[1])
    observations, *arrays, infos = result
    reward_and_ends = [array[game] for array in arrays] or [0, False, False]
    if "final_obs" in infos and infos["_final_obs"][game]:
        observation, infos = infos["final_obs"][game], infos["final_info"]
    else:
        observation = {key: rows[game] for key, rows in observations.items()}
    keys = ("winner", "plies", "illegal", "action_mask", "seat")
    game_infos = {key: infos[key][game] for key in keys if key in infos and infos[f"_{key}"][game]}
    return observation, *reward_and_ends, game_infos


def board_of(env: Any, game: int) -> Board:
    board: Board = env.board(game) if isinstance(env, BaoVectorEnv) else env.board
    return board


def compare_result(env: Any, result: Any, game: int, model: Model) -> None:
    """Compare an environment's result of a reset or a step with the model of a game."""
    actual, expected = result_of(env, result, game, model.actor), model.step_result()
    names = ("observation", "reward", "terminated", "truncated", "infos")
    np.testing.assert_equal(
        dict(zip(names, actual, strict=True)), dict(zip(names, expected, strict=True))
    )
    if expected[3]:
        assert expected[0]["action_mask"].any(), "nothing to bootstrap from"


def compare_state(env: Any, game: int, model: Model) -> None:
    """Compare the board, the mask and a sampled action; with two agents, also what the other agent
    sees."""
    board = board_of(env, game)
    assert board == Board.from_packed(model.board.packed, model.ruleset, model.outcome)
    if model.outcome:
        assert Board.from_transcript(board.transcript()) == board
    legal = model.legal(model.seat)
    assert np.flatnonzero(np.atleast_2d(env.action_masks())[game]).tolist() == legal
    assert np.atleast_1d(env.sample_legal_actions())[game] in (legal or [0])
    if isinstance(env, raw_env):
        actor, waiting = (env.possible_agents[seat] for seat in (model.actor, 1 - model.actor))
        assert env.agent_selection == env.possible_agents[model.board.turn]
        assert env.last()[1] == env.rewards[env.agent_selection]
        for seat, agent in enumerate(env.possible_agents):
            np.testing.assert_equal(env.observe(agent), model.observation(seat))
        np.testing.assert_equal(env.state(), env.observe(env.agent_selection)["observation"])
        illegal = {"illegal": True} if "illegal" in env.infos[actor] else {}
        assert env.rewards[waiting] == (0 if illegal else -model.reward)
        np.testing.assert_equal(env.infos[waiting] | illegal, env.infos[actor])
        assert env.terminations[waiting] == env.terminations[actor]
        assert env.truncations[waiting] == env.truncations[actor]


def compare_arrays(env: Any, result: Any) -> None:
    """Check that the returned arrays are the caller's: nothing else refers to them."""
    arrays = [*arrays_of(result), env.positions, env.legal]
    assert not any(np.shares_memory(*pair) for pair in combinations(arrays, 2))
    for array in arrays:
        array.fill(1)


def draw_position(rng: np.random.Generator, ruleset: Ruleset) -> str:
    """Return a position in which no opponent can win before the learner."""
    board = Board(ruleset)
    if rng.random() < 0.5:
        board.push(int(rng.choice(board.legal_actions)))
    return board.text()


def draw_options(rng: np.random.Generator, model: Model, games: int) -> dict[str, Any]:
    """Draw the options of a reset: the seat, and either positions or who begins."""
    options: dict[str, Any] = {"first_player": rng.choice(SEATS)}
    if rng.random() < 0.3:
        texts = [draw_position(rng, model.ruleset) for _ in range(games)]
        options = {"position": texts if games > 1 and rng.random() < 0.5 else texts[0]}
    return {**options, **({"seat": rng.choice(SEATS)} if model.opponent else {})}


def begin(env: Any, result: Any, game: int, model: Model, options: dict[str, Any]) -> None:
    """Begin where the environment may begin; where it has a choice, follow the environment."""
    seat = env.board.turn if isinstance(env, raw_env) else np.ravel(result[-1]["seat"])[game]
    if not isinstance(options.get("position", ""), str):
        options = {**options, "position": options["position"][game]}
    model.begin(options, board_of(env, game), seat)
    compare_state(env, game, model)


def reset(env: Any, models: list[Model], over: Any, rng: np.random.Generator) -> None:
    """Reset the games that are over."""
    options = draw_options(rng, models[0], len(models))
    mask = {"reset_mask": over} if isinstance(env, BaoVectorEnv) else {}
    result = env.reset(options=options | mask)
    for game in np.flatnonzero(over).tolist():
        begin(env, result, game, models[game], options)
        compare_result(env, result, game, models[game])


def draw_actions(
    env: Any, models: list[Model], over: Any, strict: bool, rng: np.random.Generator
) -> list[Any]:
    """Draw a legal action for each game; or, for all games, an illegal one, which strict
    environments refuse. All environments refuse actions outside the action space."""
    integer: Any = (int, np.int8, np.uint64)[rng.integers(3)]
    actions = [integer(rng.choice(model.legal(model.seat) or [0])) for model in models]
    illegal = [
        int(rng.choice([*{*range(-1, 65)} - {*model.legal(model.seat)}])) for model in models
    ]
    running = [action for action, is_over in zip(illegal, over, strict=True) if not is_over]
    outside = [action for action in running if not 0 <= action < 64]
    refused = [] if strict and over[0] else running if strict else outside
    if refused:
        with pytest.raises(IllegalMoveError, match=rf"{refused[0]}\b.*legal"):
            env.step(illegal if isinstance(env, BaoVectorEnv) else illegal[0])
    elif not strict and rng.random() < 0.05:
        return illegal
    return actions


def act(env: Any, models: list[Model], over: Any, actions: list[Any]) -> None:
    """Play a step; ``over``, bool[B], says which games are over, and changes."""
    mode = env.metadata.get("autoreset_mode", DISABLED)
    result = env.step(actions if isinstance(env, BaoVectorEnv) else actions[0])
    for game, (model, action) in enumerate(zip(models, actions, strict=True)):
        if over[game]:
            begin(env, result, game, model, {})
        else:
            model.play(action)
        compare_result(env, result, game, model)
        over[game] = bool(model.outcome)
        if over[game] and mode is SAME:
            begin(env, (result[0], result[-1]), game, model, {})
            over[game] = False
        compare_state(env, game, model)
    compare_arrays(env, result)


def copy_and_play(env: Any, rng: np.random.Generator) -> Any:
    """Copy an environment, play on in one of the two, and return the other."""
    twin = copy.deepcopy(env) if rng.random() < 0.5 else pickle.loads(pickle.dumps(env))
    env, twin = (env, twin) if rng.random() < 0.5 else (twin, env)
    twin.step(twin.sample_legal_actions())
    return env


@EVERY_RULESET
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_do_what_the_contract_says(name: str, ruleset: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, fixed = ENVIRONMENTS[name]
    for _ in range(3):
        arguments: dict[str, Any] = {
            **fixed,
            "max_plies": rng.choice([8, 30, 500]),
            "opening_plies": rng.choice([0, 0, 3]),
            "first_player": rng.choice(SEATS),
            **({"seat": rng.choice(SEATS)} if fixed.get("opponent") else {}),
        }
        strict = rng.random() < 0.5
        illegal = "raise" if strict else "lose"
        env = kind(ruleset=ruleset, observation="replies", illegal=illegal, **arguments)
        models = [Model(ruleset, arguments) for _ in range(fixed.get("num_envs", 1))]
        over = np.ones(len(models), bool)
        for _ in range(50):
            manual = env.metadata.get("autoreset_mode", DISABLED) is DISABLED
            if over.any() and (manual or over.all()):
                reset(env, models, over, rng)
                over[:] = False
            if rng.random() < 0.1:
                env = copy_and_play(env, rng)
            act(env, models, over, draw_actions(env, models, over, strict, rng))
            if kind is raw_env and over[0]:
                for _ in range(rng.integers(3)):
                    with pytest.raises(ValueError, match="None"):
                        env.step(0)
                    env.step(None)
