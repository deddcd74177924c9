"""The learners of the benchmark, by name; to add one, write its ``train`` and give it a row.

All networks have two layers of 256 units, except ``alphazero``, which has the layers of its
configuration.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bao_agents.nets.policy import NetworkAgent

from bao_env.bots import Agent
from bao_env.self_play import Choose, PolicyAgent
from bao_training.train import load_config, make_trainer

Report = Callable[[int, Agent], None]
"""Called after each update with the steps so far and the current player."""

CONFIGS = Path(__file__).parents[3] / "configs"
OBSERVATIONS = ("board", "captures", "replies", "planes")
"""Those of :mod:`bao_env.observation.observer` that are one array."""
ENCODINGS = ("own-board", "moves", "own-replies")
"""Inputs of our own networks: ``network_kind`` ``board``, ``moves`` and ``replies``. They are not
the observations of those names, but say more (:mod:`bao_agents.nets.features`)."""
_VECTOR = {"games": 512, "rollout": 32, "hidden": 256}


@dataclass(frozen=True)
class Learner:
    """A way to train a player."""

    title: str
    """Title in tables."""
    distribution: str
    """What must be installed, by its name for pip; its module has the same name."""
    observations: tuple[str, ...]
    """Observations that it can read."""
    train: Callable[[str, int, int, Report], None]
    """Train on an observation, with a seed and a number of steps. The last argument is called after
    every update."""
    share: float = 1.0
    """Share of the benchmark's steps that it trains for: less than 1 if steps are slow."""

    @property
    def is_installed(self) -> bool:
        """Whether its library is installed."""
        return find_spec(self.distribution.replace("-", "_")) is not None


def _example(module: str, **options: Any) -> Callable[[str, int, int, Report], None]:
    """Return the ``train`` of a module, which is imported when it trains."""

    def train(observation: str, seed: int, steps: int, report: Report) -> None:
        def after_update(done: int, choose: Choose) -> None:
            report(done, PolicyAgent(choose, observation))

        import_module(module).train(observation, seed, steps, after_update, **options)

    return train


def _ours(config_file: str) -> Callable[[str, int, int, Report], None]:
    def train(observation: str, seed: int, steps: int, report: Report) -> None:
        kind = observation.removeprefix("own-")
        overrides = [f"network_kind={kind}", f"seed={seed}", f"steps={steps}", "workers=1"]
        trainer = make_trainer(*load_config(CONFIGS / config_file, overrides))
        while trainer.steps < steps:
            trainer.train_update()
            network = copy.deepcopy(trainer.network).cpu()
            report(trainer.steps, NetworkAgent(network, trainer.ruleset))

    return train


LEARNERS: dict[str, Learner] = {
    "td": Learner("our TD(lambda)", "torch", ("moves", "own-replies"), _ours("quick.toml")),
    "ppo": Learner("our PPO", "torch", ENCODINGS[:2], _ours("ppo.toml")),
    "selfplay": Learner(
        "PPO in CleanRL's pattern, both sides",
        "torch",
        OBSERVATIONS,
        _example("training.examples.cleanrl_vector", past_selves=False, **_VECTOR),
    ),
    "cleanrl": Learner(
        "PPO in CleanRL's pattern, against past selves",
        "torch",
        OBSERVATIONS,
        _example("training.examples.cleanrl_vector", past_selves=True, **_VECTOR),
    ),
    "sb3": Learner(
        "MaskablePPO of SB3, against past selves",
        "sb3-contrib",
        OBSERVATIONS,
        _example("training.examples.sb3_vector", **_VECTOR),
    ),
    "alphazero": Learner(
        "our search-guided self-play", "torch", ENCODINGS[:2], _ours("zanzibar.toml")
    ),
    "torchrl-dqn": Learner(
        "DQN of TorchRL, against past selves",
        "torchrl",
        OBSERVATIONS,
        _example("training.examples.torchrl_dqn", hidden=_VECTOR["hidden"]),
        share=0.2,
    ),
    "dqn": Learner(
        "DQN of Tianshou, against past selves",
        "tianshou",
        OBSERVATIONS,
        _example("bao_training.lab.benchmark.dqn", hidden=_VECTOR["hidden"]),
        share=0.2,
    ),
}
"""Learners by name, in the order of training: the cheaper ones first."""
