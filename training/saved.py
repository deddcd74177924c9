"""What a run believes of its checkpoint: nothing that has not been checked here or by its owner.

First the plain values (:class:`RunState`), then names, types and shapes of all arrays
(:func:`check_layout`), then what is in them: the optimiser's here, games and buffers where they are
(:class:`training.games.Games`, :class:`training.alphazero.ReplayBuffer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agents.nets.checkpoint import Arrays

Layout = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Type and shape of arrays, by name."""
ADAM: Final = ("step", "exp_avg", "exp_avg_sq")
"""What torch's Adam keeps of each parameter: a count, and means of its gradient and its square."""


def _below(bits: int) -> AfterValidator:
    """That a number fits into so many bits."""

    def check(value: int) -> int:
        if not 0 <= value < 1 << bits:
            raise ValueError(f"expected 0 to 2**{bits} - 1")
        return value

    return AfterValidator(check)


def _odd(value: int) -> int:
    if not value & 1:
        raise ValueError("expected an odd number")
    return value


class _Plain(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Pcg64Words(_Plain):
    state: Annotated[int, _below(128)]
    inc: Annotated[int, _below(128), AfterValidator(_odd)]


class GeneratorState(_Plain):
    """The state of a numpy generator, as numpy names its parts."""

    bit_generator: Literal["PCG64"]
    state: _Pcg64Words
    has_uint32: Annotated[int, _below(1)]
    uinteger: Annotated[int, _below(32)]


class RunState(_Plain):
    """The plain values that a run resumes from, beside its settings."""

    update: int = Field(ge=0)
    """Updates done."""
    steps: int
    """Environment steps played."""
    seconds: float = Field(ge=0)
    """Time taken."""
    learnt: bool
    """Whether the optimiser has taken a step, and so has a state."""
    generator: GeneratorState
    """The trainer's."""
    workers: list[GeneratorState]
    """Each worker's."""


def read_state(info: Mapping[str, Any]) -> RunState:
    """The plain values of a checkpoint.

    Raises:
        ValueError: one is missing or not as expected.
    """
    try:
        return RunState.model_validate(dict(info))
    except ValidationError as error:
        fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    raise ValueError(f"info.{place}: {fault['msg']}")


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with ``prefix``, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def layout_of(arrays: Arrays) -> Layout:
    """Types and shapes of arrays."""
    return {name: (array.dtype, array.shape) for name, array in arrays.items()}


def check_layout(found: Layout, expected: Layout) -> None:
    """Compare types and shapes of a checkpoint's arrays with those that its run would write.

    Raises:
        ValueError: an array is missing, unknown, or of another type or shape.
    """
    if missing := sorted(expected.keys() - found.keys()):
        raise ValueError(f"it has no array {missing[0]!r}")
    if unknown := sorted(found.keys() - expected.keys()):
        raise ValueError(f"it has an array {unknown[0]!r:.200}, which this run does not know")
    for name, (dtype, shape) in expected.items():
        if found[name] != (dtype, shape):
            its_dtype, its_shape = found[name]
            raise ValueError(
                f"{name}: {its_dtype}{list(its_shape)}"[:200] + f", expected {dtype}{list(shape)}"
            )


def require(name: str, *checks: tuple[object, str]) -> None:
    """Check the content of an array.

    Args:
        name: of the array.
        checks: pairs of a condition and what it expects, in words.

    Raises:
        ValueError: a condition is false.
    """
    for holds, expected in checks:
        if not holds:
            raise ValueError(f"{name}: expected {expected}")


def check_adam(arrays: Arrays, parameters: int) -> None:
    """Check the optimiser's arrays ``adam.I.*`` for a number of parameters.

    Raises:
        ValueError: they hold what Adam would not have written.
    """
    for i in range(parameters):
        (step,), mean, square = (arrays[f"adam.{i}.{part}"] for part in ADAM)
        require(
            f"adam.{i}.step",
            (np.isfinite(step) and step >= 1 and step % 1 == 0, "a whole number from 1"),
            (step == arrays["adam.0.step"][0], "the same step for all parameters"),
        )
        require(f"adam.{i}.exp_avg", (np.isfinite(mean).all(), "finite numbers"))
        require(
            f"adam.{i}.exp_avg_sq",
            (np.isfinite(square).all() and (square >= 0).all(), "finite numbers from 0"),
        )


def adam_layout(shapes: Iterable[tuple[int, ...]]) -> Layout:
    """The optimiser's arrays for parameters of these shapes; a checkpoint has no scalars."""
    float32 = np.dtype(np.float32)
    return {
        f"adam.{i}.{part}": (float32, (1,) if part == "step" else shape)
        for i, shape in enumerate(shapes)
        for part in ADAM
    }
