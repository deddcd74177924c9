"""PPO of RLlib in self-play on the PettingZoo environment: one module for both seats.

python -m training.examples.rllib_aec
"""

from __future__ import annotations

import ray

from bao_env.adapters.rllib import SHARED, self_play
from training.examples.measure import report
from training.examples.rllib_vector import player, settings, train


def main() -> None:
    """Train for a minute, then play."""
    ray.init("local", num_cpus=2, logging_level="ERROR", log_to_driver=False)
    # One game at a time is slow: learn more from less.
    config = settings().training(
        train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=8
    )
    algorithm = self_play(config).build_algo()
    seconds = train(algorithm)
    choose = player(algorithm.get_module(SHARED))
    algorithm.stop()
    ray.shutdown()
    report("ray", "PPO, self-play, `bao_env.adapters.rllib.self_play`", seconds, choose)


if __name__ == "__main__":
    main()
