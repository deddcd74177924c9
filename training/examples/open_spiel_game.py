"""Train OpenSpiel's DQN on the game ``python_bao``, registered by ``bao_env.adapters.open_spiel``.

python training/examples/open_spiel_game.py
"""

from __future__ import annotations

import time
from collections import deque
from itertools import count
from typing import Any

import numpy as np
import torch
from open_spiel.python import rl_environment
from open_spiel.python.pytorch.dqn import DQN
from tqdm import tqdm

import bao_env.adapters.open_spiel  # noqa: F401 - registers the game
from bao_env import GreedyAgent
from measure import OBSERVATION, SEED, report

STEPS, HORIZON = 160_000, 3
"""Total steps, and actions from a position to the one whose value it learns from."""
STEPS_A_GRADIENT = 32
"""High on purpose: rewards are noisy, and replaying them often overfits."""


class MultiStepDQN(DQN):
    """OpenSpiel's DQN with a falling learning rate and transitions that span several actions, which
    makes results travel faster."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._recent: deque[tuple[Any, int]] = deque()
        gradients = STEPS // STEPS_A_GRADIENT
        self._rate = torch.optim.lr_scheduler.LinearLR(self._optimizer, 1.0, 0.01, gradients)

    def learn(self) -> float | None:
        """See OpenSpiel's ``DQN``."""
        loss = super().learn()
        if loss is not None:
            self._rate.step()
        return loss

    def add_transition(self, prev_time_step: Any, prev_action: int, time_step: Any) -> None:
        """See OpenSpiel's ``DQN``."""
        self._recent.append((prev_time_step, prev_action))
        while self._recent and (len(self._recent) == HORIZON or time_step.last()):
            super().add_transition(*self._recent.popleft(), time_step)


def main() -> None:
    """Train for some minutes, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    np.random.seed(SEED)  # noqa: NPY002 - OpenSpiel's DQN draws from numpy's global generator
    environment = rl_environment.Environment("python_bao", observation=OBSERVATION)
    agent = MultiStepDQN(
        player_id=0,
        state_representation_size=environment.observation_spec()["info_state"][0],
        num_actions=environment.action_spec()["num_actions"],
        hidden_layers_sizes=[256, 256],
        batch_size=256,
        replay_buffer_capacity=100_000,
        learning_rate=1e-3,
        update_target_network_every=6400,
        learn_every=STEPS_A_GRADIENT,
        discount_factor=0.99**HORIZON,
        epsilon_end=0.05,
        epsilon_decay_duration=10_000,
        epsilon_decay_schedule_str="linear",
        optimizer_str="adam",
        loss_str="mse",
        seed=SEED,
    )
    opponent, rng = GreedyAgent(), np.random.default_rng(SEED)
    start = time.process_time()
    bar = tqdm(total=STEPS, unit="step", unit_scale=True)
    for game in count():
        agent.player_id = game % 2  # the observation is the player's own: one network, both seats
        step = environment.reset()
        random_plies = rng.integers(9)  # first, so one memorised line cannot win
        while not step.last():
            player = step.current_player()
            if random_plies:
                random_plies -= 1
                action = rng.choice(step.observations["legal_actions"][player])
            elif player == agent.player_id:
                action = agent.step(step).action
            else:
                state = environment.get_state.single_game
                action = opponent.act(state.positions, state.legal)[0]
            step = environment.step([action])
        agent.step(step)
        bar.update(min(agent.step_counter, STEPS) - bar.n)
        if agent.step_counter >= STEPS:
            break
    bar.close()
    seconds = time.process_time() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        rows = zip(observations, masks, strict=True)
        return np.array([agent.act_epsilon_greedy(o, np.flatnonzero(m), 0.0)[0] for o, m in rows])

    report(
        "open_spiel",
        "DQN against greedy, game `python_bao` of `bao_env.adapters.open_spiel`",
        seconds,
        choose,
    )


if __name__ == "__main__":
    main()
