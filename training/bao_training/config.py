"""Define the settings of a training run, with defaults, meanings and bounds, and read them.

Settings come in tables. The common ones, :class:`TrainConfig`, are the keys at the top of a TOML
file. Each method has its own table (``[td]``, ``[search_guided]``), a :class:`MethodConfig`.
Defaults are in the code. A TOML file, yours or one that comes with the package, overrides them, and
``--set key=value`` (``--set td.epochs=1``) overrides the file.

Nothing here needs torch, so that a wrong setting is refused at once.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from typing_extensions import override

from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.suggestions import did_you_mean

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[2])  # of a wheel, and of a checkout
SHIPPED = {
    path.stem: path for folder in _FOLDERS for path in sorted((folder / "configs").glob("*.toml"))
}
"""The configurations that come with the package, by name."""


S = TypeVar("S", bound="Settings")
C = TypeVar("C", bound="MethodConfig")
"""The type of a method's settings."""


class ConfigError(ValueError):
    """Raised for an unusable configuration; the message names the key and its allowed values."""


class Settings(BaseModel):
    """A frozen table of settings, each with a default and a docstring that ``--settings`` prints.

    Raises:
        pydantic.ValidationError: a key is unknown, or a value has the wrong type or is out of
            bounds.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _take_whole_floats(cls, value: Any) -> Any:
        """Accept a whole float for an integer, as in ``steps = 1e6``."""
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def to_dict(self) -> dict[str, Any]:
        """Return every setting as a plain value, for TOML or JSON."""
        return self.model_dump(mode="json")


class TrainConfig(Settings):
    """The common settings: the keys at the top of a configuration."""

    ruleset: str = "zanzibar"
    """The rule set to learn."""
    rules: dict[str, Any] = Field(default_factory=dict)
    """Rule switches that differ from that rule set (see ``bao_env.Ruleset``)."""
    method: str = "td"
    """Training method: ``td``, or ``search_guided``. The table of that name holds its settings;
    tables of other methods are checked but not used."""
    hidden: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65536)], ...],
        Field(strict=False, min_length=1, max_length=64),
    ] = (256, 128)
    """Units of each hidden layer."""
    start: str = ""
    """Start with the network of this checkpoint: a path, or the name of a shipped one. It must have
    the same shape. It may have been trained under other rules."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of all random numbers."""
    steps: int = Field(2_500_000, ge=1, le=10**15)
    """Environment steps (actions played) of the whole run."""
    workers: int = Field(2, ge=1, le=256)
    """Threads that play and learn side by side, one per core. The games are divided among them, so
    results depend on this number but not on the threads' timing."""
    envs: int = Field(1024, ge=1, le=1 << 20)
    """Games played at once, over all workers."""
    rollout: int = Field(32, ge=1, le=4096)
    """Actions played in each game between two updates."""
    minibatch: int = Field(2048, ge=1, le=1 << 24)
    """Decisions per gradient step, over all workers."""
    learning_rate: float = Field(1e-3, ge=0, le=1)
    """Adam's step size at the start."""
    final_learning_rate: float = Field(2e-5, ge=0, le=1)
    """Adam's step size at the end; it falls along a half cosine."""
    max_gradient: float = Field(0.5, ge=1e-6, le=1e6)
    """Norm to which gradients are clipped."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per ply; below 1, earlier wins count more."""
    opening_plies: int = Field(20, ge=0, le=MAX_OPENING_PLIES)
    """Games start after up to this many random actions."""
    max_plies: int = Field(500, ge=10, le=100_000)
    """A game that reaches this length is cut short, and counts as a draw."""
    bfloat16: bool = True
    """Compute in bfloat16 if the device supports it in hardware, else in float32. The weights stay
    float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """The device of the network; ``auto`` takes a GPU if there is one."""
    evaluate_every: int = Field(1_250_000, ge=0, le=10**15)
    """Environment steps between two evaluations against bots, the first before training; 0
    evaluates only at the end."""
    evaluate_pairs: int = Field(250, ge=1, le=10_000)
    """Pairs of games in each of these evaluations."""
    blunder_positions: str = ""
    """Won positions for the metric ``blunders``: each evaluation counts how often the network gives
    the win away. ``kujifunza`` and ``zanzibar`` are shipped; ``bao solve --sample`` writes such a
    file. If empty, blunders are not measured."""
    keep_every: int = Field(0, ge=0, le=10**15)
    """Environment steps between two saved generations of the network, ``step-STEPS.safetensors``;
    0 saves none."""
    checkpoint_every: float = Field(30.0, ge=0, le=1e9)
    """Seconds between two checkpoints. A resumed run continues from the last one."""

    @model_validator(mode="after")
    def _check(self) -> TrainConfig:
        if self.envs % self.workers or self.minibatch % self.workers:
            raise ValueError(
                f"envs={self.envs} and minibatch={self.minibatch} must be divisible by "
                f"workers={self.workers}"
            )
        if self.steps_per_update % self.minibatch:
            raise ValueError(
                f"envs * rollout = {self.steps_per_update} must be a multiple of "
                f"minibatch={self.minibatch}"
            )
        if self.ruleset.endswith(".toml"):
            raise ValueError(f"ruleset={self.ruleset!r}: give a rule file with --ruleset FILE")
        try:
            self.get_ruleset()
        except TypeError as error:
            raise ValueError(f"rules: {error}") from error
        return self

    @property
    def steps_per_update(self) -> int:
        """The environment steps of one update."""
        return self.envs * self.rollout

    def get_ruleset(self) -> Ruleset:
        """Return the rules to learn."""
        ruleset = get_ruleset(self.ruleset)
        return ruleset.replace(**self.rules) if self.rules else ruleset


class MethodConfig(Settings):
    """The settings of one training method, which has its own table in a configuration."""

    def check(self, config: TrainConfig) -> None:
        """Check that these settings fit the common ones.

        Raises:
            ConfigError: they do not.
        """
        del config  # a method may override this


class TdConfig(MethodConfig):
    """The table ``[td]``."""

    td_lambda: float = Field(0.7, ge=0, le=1)
    """Lambda of the returns: 0 learns only from the next position, 1 only from the result."""
    noise: float = Field(0.05, ge=0, le=10)
    """Scale of the Gumbel noise that is added to the values of actions during play."""
    exploration: float = Field(0.1, ge=0, le=1)
    """Probability of a random action at the start; it falls linearly during the run."""
    final_exploration: float = Field(0.02, ge=0, le=1)
    """Probability of a random action at the end."""
    max_cost: float = Field(0.1, ge=0, le=2)
    """A return ends at an action whose value is below that of the best action by more than this."""
    epochs: int = Field(2, ge=1, le=100)
    """Passes over each rollout."""


class SearchGuidedConfig(MethodConfig):
    """The table ``[search_guided]``."""

    nodes: int = Field(500, ge=1, le=10**9)
    """Nodes of each alpha-beta search."""
    buffer: int = Field(1_000_000, ge=1000, le=10**9)
    """Size of the replay buffer: the latest positions, over all workers. Each checkpoint holds it,
    65 bytes a position."""
    replay_ratio: float = Field(2.0, ge=0, le=1000)
    """How often the network learns from each position, on average."""
    nnue_replay_ratio: float = Field(4.0, ge=0, le=1000)
    """How often the NNUE learns from each position, on average. It learns in the
    network's steps."""
    value_weight: float = Field(1.0, ge=0, le=100)
    """Weight of the loss of the network's values; its policy's loss has weight 1."""
    search_value: float = Field(0.3, ge=0, le=1)
    """Weight of the search's value in the target of a value; the game's result has the rest."""

    @override
    def check(self, config: TrainConfig) -> None:
        learnable = 4 * config.minibatch + config.steps_per_update
        minimum = max(learnable, config.envs * config.max_plies)
        if self.buffer < minimum:
            raise ConfigError(
                f"search_guided.buffer={self.buffer} should be at least {minimum}: enough "
                "positions to learn from, and room for all positions of the games in progress"
            )


METHOD_CONFIGS: dict[str, type[MethodConfig]] = {
    "td": TdConfig,
    "search_guided": SearchGuidedConfig,
}
"""The settings of each training method, by the value of ``method``."""


def ruleset_settings(ruleset: Ruleset) -> dict[str, Any]:
    """Return the settings ``ruleset`` and ``rules`` that describe a rule set."""
    if ruleset.is_shipped:
        return {"ruleset": ruleset.name, "rules": {}}
    switches = ruleset.to_dict()  # lists, as in run.json
    changed = {"name": ruleset.name} | {key: switches[key] for key in ruleset.changed_switches()}
    return {"ruleset": Ruleset().name, "rules": changed}


def read_config(path: str | Path) -> dict[str, Any]:
    """Read the settings of a configuration: a TOML file, or a shipped one, such as ``quick``.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    file = Path(path) if os.path.isfile(path) else SHIPPED.get(str(path))
    if file is None:
        hint = did_you_mean(Path(path).stem, SHIPPED)
        raise ConfigError(
            f"there is no configuration {str(path)!r:.200}{hint}: expected a TOML file, the folder "
            f"of a run, or one of {', '.join(SHIPPED)}"
        )
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def apply_overrides(settings: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return settings, overridden by ``key=value`` strings with TOML values.

    A key may be in a table: ``td.epochs=1``. A value that is not TOML counts as a string.

    Raises:
        ConfigError: an override is not of that form.
    """
    changed = dict(settings)
    for text in overrides:
        if not re.match(r"\w+(\.\w+)* *=", text):
            raise ConfigError(f"--set {text:.100}: expected key=value")
        try:
            assigned = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):  # a string without quotes
            key, _, value = text.partition("=")
            assigned = tomllib.loads(f"{key} = {json.dumps(value.strip())}")
        for name, value in assigned.items():
            table = changed.get(name)
            is_table = isinstance(table, dict) and isinstance(value, dict)
            changed[name] = table | value if is_table else value
    return changed


def config_from_dict(settings: Mapping[str, Any]) -> tuple[TrainConfig, Any]:
    """Make the common settings and those of the chosen method; missing keys keep their defaults.

    Args:
        settings: plain values, those of each method in its own table.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    names = [*TrainConfig.model_fields]
    names += [
        f"{name}.{key}" for name, table in METHOD_CONFIGS.items() for key in table.model_fields
    ]
    method = settings.get("method")
    if isinstance(method, str) and method not in METHOD_CONFIGS:
        raise ConfigError(f"method={method!r:.200} should be one of {', '.join(METHOD_CONFIGS)}")
    common = {key: value for key, value in settings.items() if key not in METHOD_CONFIGS}
    config = _validate(TrainConfig, common, "", names)
    tables = {
        name: _validate(table, settings.get(name, {}), f"{name}.", names)
        for name, table in METHOD_CONFIGS.items()
    }
    method_config = tables[config.method]
    method_config.check(config)
    return config, method_config


def config_to_dict(config: TrainConfig, method_config: MethodConfig) -> dict[str, Any]:
    """Return all settings as plain values, the method's in its table."""
    return config.to_dict() | {config.method: method_config.to_dict()}


def _validate(table: type[S], settings: Any, prefix: str, names: Sequence[str]) -> S:
    """Make a table from plain values; ``prefix`` and ``names`` are for the error message."""
    try:
        return table.model_validate(settings)
    except ValidationError as error:
        faults = error.errors()
    # Report an unknown key first: other faults may follow from it.
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    key = prefix + ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        raise ConfigError(f"unknown key {key!r:.200}; {_suggestion(key, names)}")
    if fault["type"] == "value_error":  # from one of our checks, which names the keys
        raise ConfigError(f"{fault['ctx']['error']!s:.400}")
    should = re.sub("^(Input|Tuple) should", "should", fault["msg"]).replace("tuple", "list")
    if fault["type"] == "model_type":
        should = "should be a table"
    if fault["type"] == "tuple_type":
        should = "should be a list, such as [256, 128]"
    raise ConfigError(f"{key.rstrip('.')}={fault['input']!r:.200} {should}")


def _suggestion(key: str, names: Sequence[str]) -> str:
    """Suggest the key most similar to an unknown one, possibly in another table."""
    ends = {name.rpartition(".")[2]: name for name in names}
    near = difflib.get_close_matches(key.rpartition(".")[2], ends, n=1, cutoff=0.75)
    return f"did you mean {ends[near[0]]!r}?" if near else "bao train --settings lists all keys"


def describe_settings() -> str:
    """Describe all settings, with their defaults, table by table."""
    tables = [f"settings:\n{_describe(TrainConfig)}"]
    tables += [
        f"settings of [{name}]:\n{_describe(table)}" for name, table in METHOD_CONFIGS.items()
    ]
    return "\n\n".join(tables)


def _describe(table: type[Settings]) -> str:
    """Describe each setting of a table, with its default."""
    defaults = table().to_dict()
    lines = []
    for key, setting in table.model_fields.items():
        lines.append(f"  {key} = {json.dumps(defaults[key])}")  # which is also TOML
        words = (setting.description or "").replace("``", "").replace("\n", " ")
        lines.append(textwrap.fill(words, 88, initial_indent=" " * 8, subsequent_indent=" " * 8))
    return "\n".join(lines)
