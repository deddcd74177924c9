"""Define the settings of a training run, with defaults, meanings and bounds, and read them.

Settings come in tables. The common ones, :class:`TrainConfig`, are the keys at the top of a TOML
file. Each method has its own table (``[td]``, ``[search_guided]``), declared beside its algorithm
as a :class:`MethodConfig`. Defaults are in the code. A TOML file, yours or one that comes with the
package, overrides them, and ``--set key=value`` (``--set td.epochs=1``) overrides the file.
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

from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[2])  # of a wheel, and of a checkout
SHIPPED = {
    path.stem: path for folder in _FOLDERS for path in sorted((folder / "configs").glob("*.toml"))
}
"""The configurations that come with the package, by name."""


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
        """Return the environment steps of one update."""
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


def ruleset_settings(ruleset: Ruleset) -> dict[str, Any]:
    """Return the settings ``ruleset`` and ``rules`` that describe a rule set."""
    if ruleset.is_shipped:
        return {"ruleset": ruleset.name, "rules": {}}
    changed = {"name": ruleset.name, **ruleset.changed_switches()}
    return {"ruleset": Ruleset().name, "rules": changed}


S = TypeVar("S", bound=Settings)
C = TypeVar("C", bound=MethodConfig)
"""The type of a method's settings."""


def read_config(path: str | Path) -> dict[str, Any]:
    """Read the settings of a configuration: a TOML file, or a shipped one, such as ``quick``.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """
    file = Path(path) if os.path.isfile(path) else SHIPPED.get(str(path))
    if file is None:
        close = difflib.get_close_matches(Path(path).stem, SHIPPED, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
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


def override(settings: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
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


def check_settings(
    settings: Mapping[str, Any], methods: Mapping[str, type[MethodConfig]]
) -> tuple[TrainConfig, Any]:
    """Make the common settings and those of the chosen method; missing keys keep their defaults.

    Args:
        settings: plain values, those of each method in its own table.
        methods: the class of each method's table, by the method's name.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    names = [*TrainConfig.model_fields]
    names += [f"{name}.{key}" for name, table in methods.items() for key in table.model_fields]
    method = settings.get("method")
    if isinstance(method, str) and method not in methods:
        raise ConfigError(f"method={method!r:.200} should be one of {', '.join(methods)}")
    common = {key: value for key, value in settings.items() if key not in methods}
    config = _validate(TrainConfig, common, "", names)
    tables = {
        name: _validate(table, settings.get(name, {}), f"{name}.", names)
        for name, table in methods.items()
    }
    method_config = tables[config.method]
    method_config.check(config)
    return config, method_config


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
    raise ConfigError(f"{key.rstrip('.')}={fault['input']!r:.200} {should}")


def _suggestion(key: str, names: Sequence[str]) -> str:
    """Suggest the key most similar to an unknown one, possibly in another table."""
    ends = {name.rpartition(".")[2]: name for name in names}
    near = difflib.get_close_matches(key.rpartition(".")[2], ends, n=1, cutoff=0.75)
    return f"did you mean {ends[near[0]]!r}?" if near else "bao train --settings lists all keys"


def describe(table: type[Settings]) -> str:
    """Describe each setting of a table, with its default."""
    defaults = table().to_dict()
    lines = []
    for key, setting in table.model_fields.items():
        lines.append(f"  {key} = {json.dumps(defaults[key])}")  # which is also TOML
        words = (setting.description or "").replace("``", "").replace("\n", " ")
        lines.append(textwrap.fill(words, 88, initial_indent=" " * 8, subsequent_indent=" " * 8))
    return "\n".join(lines)
