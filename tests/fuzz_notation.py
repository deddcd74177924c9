"""Coverage-guided fuzzing of the readers, outside the test run.

    pip install atheris && python tests/fuzz_notation.py -max_total_time=60

No input may do anything but be read or be refused with NotationError.
"""

from __future__ import annotations

import contextlib
import sys
from types import FunctionType

import atheris

from bao_env.engine.ruleset import RULESETS
from bao_env.notation import (
    NotationError,
    format_position,
    move_to_action,
    moves,
    parse_position,
    positions,
    transcript,
)
from bao_env.notation.transcript import parse_transcripts, replay

# The readers alone: compiled kernel functions cannot carry coverage counters.
for module in (positions, moves, transcript):
    for function in list(vars(module).values()):
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            atheris.instrument_func(function)


def one(data: bytes) -> None:
    """Give one input to every reader."""
    text = data.decode("latin-1")
    try:
        assert format_position(parse_position(text, RULESETS["dutch"])) == text.strip()
    except NotationError:
        pass
    except AssertionError:
        if len(text.split()) in (5, 6):  # other spellings of the same position are read as well
            position = parse_position(text, RULESETS["dutch"])
            assert parse_position(format_position(position), RULESETS["dutch"]) == position
    for read in (move_to_action, parse_transcripts):
        try:
            games = read(text)
        except NotationError:
            continue
        if isinstance(games, list):
            for game in games:
                with contextlib.suppress(NotationError):
                    replay(game)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
