"""Compare the environments, in random use, with what the contract says of games on a Board.

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
from tests.vector import DISABLED, NEXT, SAME, arrays_of, same

DOORS: dict[str, tuple[Any, dict[str, Any]]] = {
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
    """One game, and what an environment has to say about it."""

    def __init__(self, ruleset: str, arguments: dict[str, Any]) -> None:
        self.ruleset, self.arguments = RULESETS[ruleset], arguments
        self.opponent = GreedyAgent(ruleset) if arguments.get("opponent") else None
        self.observer = get_observer("replies", ruleset)

    def start(self, board: Board, learner: int | None) -> None:
        self.board, self.learner, self.reward = board.copy(), learner, 0
        self.actor = board.turn
        self.outcome = board.outcome()
        self.answer()

    def begin(self, options: dict[str, Any], shown: Board, seat: int) -> None:
        """Begin where an environment may, and as it shows if there is a choice."""
        given = {**self.arguments, **{k: v for k, v in options.items() if v is not None}}
        first = given.get("first_player")
        seats: list[int | None] = [None]
        if self.opponent:
            seats = [0, 1] if given.get("seat") is None else [given["seat"]]
        firsts = [0, 1] if self.ruleset.first_player == "lot" else [0]
        boards = [Board(self.ruleset, one) for one in (firsts if first is None else [first])]
        if given.get("position"):
            boards = [Board.from_text(given["position"], self.ruleset)]
        elif given["opening_plies"]:
            boards = [shown]
            assert given["opening_plies"] <= shown.ply
        for start in product(boards, seats):
            self.start(*start)
            if self.seat == seat and self.board.text() == shown.text():
                return
        raise AssertionError(f"a game may not begin so: {shown!r}")

    def play(self, action: int) -> None:
        """Play an action of whoever is to act, and the opponent's answers."""
        self.actor = self.board.turn
        if action in self.board.legal_actions:
            self.push(action)
            self.answer()
        else:
            self.outcome = Outcome(1 - self.actor, Termination.ILLEGAL_ACTION)
        winner = self.outcome and self.outcome.winner
        self.reward = 0 if winner is None else 1 if winner == self.actor else -1

    def push(self, action: int) -> None:
        self.board.push(action)
        late = self.board.ply >= self.arguments["max_plies"]
        self.outcome = self.board.outcome() or (CUT_SHORT if late else None)

    def answer(self) -> None:
        while self.opponent and self.board.turn != self.learner and not self.outcome:
            self.push(self.opponent.choose(self.board))

    @property
    def seat(self) -> int:
        return self.board.turn if self.learner is None else self.learner

    def legal(self, seat: int) -> list[int]:
        lost = self.outcome and self.outcome.reason is Termination.ILLEGAL_ACTION
        return [] if lost or seat != self.board.turn else self.board.legal_actions

    def seen(self, seat: int) -> dict[str, Any]:
        mask = np.zeros(64, np.int8)
        mask[self.legal(seat)] = 1
        bits = np.array([sum(1 << action for action in self.legal(seat))], np.uint64)
        view = make_observations(
            self.observer, self.board.packed[None], bits, np.array([seat], np.int8)
        )
        return {"observation": view[0], "action_mask": mask}

    def told(self) -> tuple[Any, ...]:
        """Return what a step returns."""
        infos: dict[str, Any] = {}
        if self.outcome:
            winner = -1 if self.outcome.winner is None else self.outcome.winner
            infos = {"winner": winner, "plies": self.board.ply}
            if self.outcome.reason is Termination.ILLEGAL_ACTION:
                infos["illegal"] = True
        if "opponent" in self.arguments:
            infos |= {"action_mask": self.seen(self.seat)["action_mask"], "seat": self.seat}
        cut = self.outcome == CUT_SHORT
        return self.seen(self.seat), self.reward, bool(self.outcome) and not cut, cut, infos


def told(env: Any, result: Any, game: int, actor: int) -> tuple[Any, ...]:
    """Return what an environment says of a game after a step, or a reset, which has no rewards."""
    if isinstance(env, raw_env):
        agent = env.possible_agents[actor]
        ends = env.terminations[agent], env.truncations[agent]
        return env.last()[0], env.rewards[agent], *ends, env.infos[agent]
    if isinstance(env, BaoEnv):
        return result if len(result) == 5 else (result[0], 0, False, False, result[1])
    seen, *values, infos = result
    rest = [array[game] for array in values] or [0, False, False]
    if "final_obs" in infos and infos["_final_obs"][game]:
        seen, infos = infos["final_obs"][game], infos["final_info"]
    else:
        seen = {key: rows[game] for key, rows in seen.items()}
    kept = [key for key in ("winner", "plies", "illegal", "action_mask", "seat") if key in infos]
    return seen, *rest, {key: infos[key][game] for key in kept if infos[f"_{key}"][game]}


def board_of(env: Any, game: int) -> Board:
    board: Board = env.board(game) if isinstance(env, BaoVectorEnv) else env.board
    return board


def check_state(env: Any, game: int, model: Model) -> None:
    """Compare the board, the mask, a sample and, of two agents, what the other one is told."""
    board = board_of(env, game)
    assert board == Board.from_packed(model.board.packed, model.ruleset, model.outcome)
    if model.outcome:
        assert Board.from_transcript(board.transcript()) == board
    legal = model.legal(model.seat)
    assert np.flatnonzero(np.atleast_2d(env.action_masks())[game]).tolist() == legal
    assert np.atleast_1d(env.sample_legal_actions())[game] in (legal or [0])
    if isinstance(env, raw_env):
        actor, other = (env.possible_agents[seat] for seat in (model.actor, 1 - model.actor))
        assert env.agent_selection == env.possible_agents[model.board.turn]
        for seat, agent in enumerate(env.possible_agents):
            assert same(env.observe(agent), model.seen(seat))
        lost = "illegal" in env.infos[actor]
        assert env.rewards[other] == (0 if lost else -model.reward)
        assert same({**env.infos[other], **({"illegal": True} if lost else {})}, env.infos[actor])
        assert env.terminations[other] == env.terminations[actor]
        assert env.truncations[other] == env.truncations[actor]


def draw_position(rng: np.random.Generator, ruleset: Ruleset) -> str:
    """Return a position in which no opponent can win before the learner."""
    board = Board(ruleset)
    if rng.random() < 0.5:
        board.push(int(rng.choice(board.legal_actions)))
    return board.text()


def draw_options(rng: np.random.Generator, model: Model) -> dict[str, Any]:
    """Draw the options of a reset: a position or who begins, and the seat."""
    options: dict[str, Any] = {"first_player": rng.choice(SEATS)}
    if rng.random() < 0.3:
        options = {"position": draw_position(rng, model.ruleset)}
    return {**options, **({"seat": rng.choice(SEATS)} if model.opponent else {})}


def use(env: Any, models: list[Model], strict: bool, rng: np.random.Generator) -> None:
    """Play on an environment at random, and compare all that it says with the models."""
    vector = isinstance(env, BaoVectorEnv)
    mode = env.metadata.get("autoreset_mode", DISABLED)

    def check(result: Any, game: int) -> None:
        model = models[game]
        assert same(told(env, result, game, model.actor), model.told())

    def begin(result: Any, game: int, options: dict[str, Any]) -> None:
        model = models[game]
        seat = env.board.turn if isinstance(env, raw_env) else np.ravel(result[-1]["seat"])[game]
        model.begin(options, board_of(env, game), seat)
        check_state(env, game, model)

    over = np.ones(len(models), bool)
    for _ in range(50):
        if over.any() and (mode is DISABLED or over.all()):
            options = draw_options(rng, models[0])
            result = env.reset(options=options | ({"reset_mask": over} if vector else {}))
            for game in np.flatnonzero(over).tolist():
                begin(result, game, options)
                check(result, game)
            over[:] = False
        if rng.random() < 0.1:
            twin = copy.deepcopy(env) if rng.random() < 0.5 else pickle.loads(pickle.dumps(env))
            env, twin = (env, twin) if rng.random() < 0.5 else (twin, env)
            twin.step(twin.sample_legal_actions())
        integer: Any = (int, np.int8, np.uint64)[rng.integers(3)]
        actions = [integer(rng.choice(model.legal(model.seat) or [0])) for model in models]
        wrong = [
            int(rng.choice([*{*range(-1, 65)} - {*model.legal(model.seat)}])) for model in models
        ]
        if strict:
            if not over[0]:
                with pytest.raises(IllegalMoveError, match=rf"{wrong[0]}\b.*legal"):
                    env.step(wrong if vector else wrong[0])
        elif rng.random() < 0.05:
            actions = wrong
        result = env.step(actions if vector else actions[0])
        for game, (model, action) in enumerate(zip(models, actions, strict=True)):
            if over[game]:
                begin(result, game, {})
            else:
                model.play(action)
            check(result, game)
            over[game] = bool(model.outcome)
            if over[game] and mode is SAME:
                begin((result[0], result[-1]), game, {})
                over[game] = False
            check_state(env, game, model)
        returned = [*arrays_of(result), env.positions, env.legal]
        for array, other in combinations(returned, 2):
            assert not np.shares_memory(array, other)
        for array in returned:  # they are the caller's
            array.fill(1)
        if isinstance(env, raw_env) and over[0]:
            for _ in range(rng.integers(3)):
                with pytest.raises(ValueError, match="None"):
                    env.step(0)
                env.step(None)


@EVERY_RULESET
@pytest.mark.parametrize("door", DOORS)
def test_environments_do_what_the_contract_says(door: str, ruleset: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, own = DOORS[door]
    for _ in range(3):
        arguments: dict[str, Any] = {
            **own,
            "max_plies": rng.choice([8, 30, 500]),
            "opening_plies": rng.choice([0, 0, 3]),
            "first_player": rng.choice(SEATS),
            **({"seat": rng.choice(SEATS)} if own.get("opponent") else {}),
        }
        strict = rng.random() < 0.5
        illegal = "raise" if strict else "lose"
        env = kind(ruleset=ruleset, observation="replies", illegal=illegal, **arguments)
        use(env, [Model(ruleset, arguments) for _ in range(own.get("num_envs", 1))], strict, rng)
