"""Every setting of a training run: a default, what it means, and where it may be changed.

Defaults stand here; a TOML file in ``configs/`` overrides them; ``--set key=value`` on
the command line overrides that. An unknown key or a wrong type is an error.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.nets.network import NetworkConfig
from bao_env.engine.ruleset import Ruleset, get_ruleset


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and what it takes."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of :mod:`training.train`."""

    ruleset: str = "zanzibar"
    """Name of the rule set to learn."""
    rules: dict[str, Any] = field(default_factory=dict)
    """Rule switches that differ from that rule set (``bao_env.Ruleset``)."""
    method: str = "ppo"
    """``ppo``, or ``gumbel``: self-play guided by search (:mod:`training.searchplay`)."""
    network: str = "moves"
    """What the network sees: the ``board``, or the board after each of the legal ``moves``
    (:mod:`agents.nets.network`)."""
    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer."""
    architecture: str = "mlp"
    """Name of the network's trunk (:data:`agents.nets.network.ARCHITECTURES`)."""
    seed: int = 0
    """Of everything that is drawn."""
    steps: int = 50_000_000
    """Environment steps (actions played) at which the run is finished."""
    workers: int = 2
    """Threads that play and learn side by side, each with one core's work. Results depend
    on this number (the games are divided among them), not on their timing."""
    envs: int = 2048
    """Games played at once, over all workers."""
    rollout: int = 32
    """Actions played in each game between two updates."""
    minibatch: int = 4096
    """Decisions of one gradient step, over all workers."""
    epochs: int = 2
    """Passes over each rollout."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    final_learning_rate: float = 5e-5
    """Adam's step size at the end; in between it falls in a half cosine."""
    gamma: float = 0.998
    """Discount a ply: below 1, a sooner win counts more."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantages."""
    clip: float = 0.2
    """PPO's epsilon."""
    value_weight: float = 1.0
    """Weight of the value loss."""
    entropy_weight: float = 0.03
    """Weight of the entropy bonus at the start; it falls with the learning rate."""
    max_gradient: float = 0.5
    """Norm to which gradients are clipped."""
    pool_games: float = 0.2
    """Share of the games that are played against past selves."""
    rival: str = ""
    """ppo: play against this checkpoint (a path, or the name of a shipped one) instead of past
    selves; it plays the actions it likes best. With ``pool_games = 1`` the run trains an adversary
    against it."""
    start: str = ""
    """Begin with the network of this checkpoint, which must be of the same kind and shape."""
    pool_size: int = 8
    """Past selves kept: the untrained one, and others, each replaced at random by newer ones."""
    pool_every: int = 20
    """Updates between two new past selves."""
    opening_plies: int = 20
    """Games start with up to so many random actions, which are not learnt from."""
    max_plies: int = 500
    """A game that reaches this length is cut off as a draw."""
    bfloat16: bool = True
    """Compute the network in bfloat16 where the device is fast at it; weights stay float32."""
    device: str = "auto"
    """``cpu``, ``cuda``, or ``auto``: a GPU if there is one."""
    simulations: int = 24
    """gumbel: simulations of each search."""
    buffer: int = 1_000_000
    """gumbel: latest positions that are learnt from, over all workers."""
    passes: float = 2.0
    """gumbel: how often each position is learnt from, on average."""
    search_value: float = 0.3
    """gumbel: share of the search's own value in the result to expect, the rest is who won; and
    weight of the search's values of actions that were not played (``moves``)."""
    evaluate_every: int = 10_000_000
    """Environment steps between two evaluations against the trainer's baseline bots; 0 = at the
    end only."""
    evaluate_pairs: int = 250
    """Paired games of each of those evaluations."""
    keep_every: int = 0
    """Environment steps between two generations of the network that are kept beside the last one,
    as ``step-STEPS.safetensors``; 0 keeps none."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints. A resumed run goes on from the last one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for key, low, high in _BOUNDS:
            value = getattr(self, key)
            if not low <= value <= high:
                raise ConfigError(f"{key}={value}: expected {low:g} to {high:g}")
        if self.envs % self.workers or self.minibatch % self.workers:
            raise ConfigError(f"envs and minibatch must be divisible by workers={self.workers}")
        if (self.envs * self.rollout) % self.minibatch:
            raise ConfigError(
                f"envs * rollout = {self.envs * self.rollout} must be a multiple of "
                f"minibatch={self.minibatch}"
            )
        if self.method not in ("ppo", "gumbel"):
            raise ConfigError(f"method={self.method!r}: expected ppo or gumbel")
        if self.method == "gumbel" and self.buffer < 4 * self.minibatch + self.envs * self.rollout:
            raise ConfigError(
                f"buffer={self.buffer}: expected at least 4 * minibatch + envs * rollout = "
                f"{4 * self.minibatch + self.envs * self.rollout}"
            )
        if self.method == "gumbel" and self.buffer < self.envs * self.max_plies:
            raise ConfigError(
                f"buffer={self.buffer}: expected at least envs * max_plies = "
                f"{self.envs * self.max_plies}, so that no game outlives its positions"
            )
        if self.device not in ("auto", "cpu", "cuda"):
            raise ConfigError(f"device={self.device!r}: expected auto, cpu or cuda")
        try:
            self.network_config()
            self.get_ruleset()
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def network_config(self) -> NetworkConfig:
        """Shape of the network."""
        return NetworkConfig(self.network, self.hidden, self.architecture)

    def get_ruleset(self) -> Ruleset:
        """The rules to learn."""
        ruleset = get_ruleset(self.ruleset)
        return ruleset.replace(**self.rules) if self.rules else ruleset

    def to_dict(self) -> dict[str, Any]:
        """Plain values of every setting."""
        return {
            k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()
        }


_BOUNDS: tuple[tuple[str, float, float], ...] = (
    ("seed", 0, 2**63),
    ("steps", 1, 1e15),
    ("workers", 1, 256),
    ("envs", 1, 1 << 20),
    ("rollout", 1, 4096),
    ("minibatch", 1, 1 << 24),
    ("epochs", 1, 100),
    ("learning_rate", 0, 1),
    ("final_learning_rate", 0, 1),
    ("gamma", 0, 1),
    ("gae_lambda", 0, 1),
    ("clip", 0, 1),
    ("value_weight", 0, 100),
    ("entropy_weight", 0, 10),
    ("max_gradient", 1e-6, 1e6),
    ("pool_games", 0, 1),
    ("pool_size", 2, 1000),
    ("pool_every", 1, 1_000_000),
    ("opening_plies", 0, 1000),
    ("max_plies", 10, 100_000),
    ("simulations", 2, 100_000),
    ("buffer", 1000, 1e9),
    ("passes", 0, 1000),
    ("search_value", 0, 1),
    ("evaluate_every", 0, 1e15),
    ("evaluate_pairs", 1, 10_000),
    ("keep_every", 0, 1e15),
    ("checkpoint_every", 0, 1e9),
)


def load_config(path: str | Path | None = None, overrides: Sequence[str] = ()) -> TrainConfig:
    """Defaults, then a TOML file, then ``key=value`` strings with TOML values.

    Raises:
        ConfigError: an unreadable file, an unknown key, a wrong type or a bad value.
    """
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is no valid TOML: {error}") from error
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override}: expected key=value")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = text.strip()
    return config_from_dict(settings)


def config_from_dict(settings: Mapping[str, Any]) -> TrainConfig:
    """A configuration from plain values; missing keys keep their defaults.

    Raises:
        ConfigError: an unknown key, a wrong type or a bad value.
    """
    defaults = TrainConfig().to_dict()
    checked: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in defaults:
            raise ConfigError(f"unknown key {key!r}; the keys are {', '.join(defaults)}")
        kind = type(defaults[key])
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ConfigError(
                f"{key}={value!r}: expected a {kind.__name__}, like {defaults[key]!r}"
            )
        checked[key] = tuple(value) if kind is list else value
    return TrainConfig(**checked)
