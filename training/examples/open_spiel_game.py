"""DQN of OpenSpiel on the game ``python_bao``, registered by ``bao_env.adapters.open_spiel``.

python -m training.examples.open_spiel_game
"""

from __future__ import annotations

import time

import numpy as np
import torch
from open_spiel.python import rl_environment
from open_spiel.python.pytorch.dqn import DQN
from tqdm import trange

import bao_env.adapters.open_spiel  # noqa: F401 - registers the game
from training.examples.measure import OBSERVATION, SEED, report

GAMES = 2500


def main() -> None:
    """Train for about a minute, then play."""
    torch.set_num_threads(1)  # so small a network gains nothing from more
    np.random.seed(SEED)  # noqa: NPY002 - OpenSpiel's DQN draws from numpy's global generator
    environment = rl_environment.Environment("python_bao", observation=OBSERVATION)
    agent = DQN(
        player_id=0,
        state_representation_size=environment.observation_spec()["info_state"][0],
        num_actions=environment.action_spec()["num_actions"],
        hidden_layers_sizes=[128, 128],
        batch_size=128,
        replay_buffer_capacity=50_000,
        learning_rate=5e-4,
        update_target_network_every=1000,
        learn_every=3,
        discount_factor=0.97,
        epsilon_end=0.05,
        epsilon_decay_duration=GAMES * 5,
        epsilon_decay_schedule_str="linear",
        optimizer_str="adam",
        loss_str="huber",
        gradient_clipping=10.0,
        seed=SEED,
    )
    rng = np.random.default_rng(SEED)
    start = time.perf_counter()
    for game in trange(GAMES, unit="game"):
        agent.player_id = game % 2  # the observation is the player's own: one network, both seats
        step = environment.reset()
        while not step.last():
            player = step.observations["current_player"]
            if player == agent.player_id:
                action = agent.step(step).action
            else:
                action = rng.choice(step.observations["legal_actions"][player])
            step = environment.step([action])
        agent.step(step)
    seconds = time.perf_counter() - start

    def choose(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        rows = zip(observations, masks, strict=True)
        return np.array([agent.act_epsilon_greedy(o, np.flatnonzero(m), 0.0)[0] for o, m in rows])

    report("open_spiel", "DQN, game `python_bao` of `bao_env.adapters.open_spiel`", seconds, choose)


if __name__ == "__main__":
    main()
