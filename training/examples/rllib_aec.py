"""PPO of RLlib in self-play on the PettingZoo environment: one module for both seats.

python training/examples/rllib_aec.py
"""

from __future__ import annotations

import ray
from measure import OBSERVATION, report
from rllib_vector import player, settings, train

from bao_env.adapters.rllib import SHARED, self_play


def main() -> None:
    """Train for some ten minutes, then play."""
    ray.init("local", num_cpus=2, logging_level="ERROR", log_to_driver=False)
    config = settings().env_runners(num_envs_per_env_runner=16)
    config = self_play(config, hidden=256, observation=OBSERVATION, opening_plies=(0, 8))
    algorithm = config.build_algo()
    seconds = train(algorithm)
    choose = player(algorithm.get_module(SHARED))
    algorithm.stop()
    ray.shutdown()
    report("ray", "PPO, self-play, `bao_env.adapters.rllib.self_play`", seconds, choose)


if __name__ == "__main__":
    main()
