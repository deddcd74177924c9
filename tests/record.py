"""Make the recorded files, which tests compare with what the code does now.

    python -m tests.record              all files
    python -m tests.record kibao        the files of a rule set
    python -m tests.record engine       the refused calls of an entry point

Run it if a test tells you to and the change is intended. Read the difference before you commit it.

    recorded/playthroughs/NAME.txt    a random game of a rule set, ply by ply (tests/playthrough.py)
    recorded/numbers/NAME.json        the engine's signature, perft numbers of its opening, and what
                                      searches find in a few positions (tests/searches.py)
    recorded/refused/NAME.txt         refused calls, each with its error (tests/refusals.py)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bao_agents.cli.perft import perft
from bao_env.engine.position import packed_opening
from bao_env.engine.ruleset import RULESETS
from bao_env.engine.signature import signature
from tests.playthrough import playthrough
from tests.refusals import answered
from tests.searches import search_signature

FOLDER = Path(__file__).parent / "recorded"
ENTRY_POINTS = sorted(file.stem for file in (FOLDER / "refused").iterdir())
"""The names of the files with refused calls."""
MAX_PERFT = 100_000
"""Perft numbers stop at the first one above this."""


def numbers(name: str) -> str:
    """Return the engine's signature, perft numbers and the searches' signature of a rule set."""
    ruleset = RULESETS[name]
    position = packed_opening(ruleset)
    counts = [perft(ruleset.kernel, position, 1)]
    while counts[-1] <= MAX_PERFT:
        counts.append(perft(ruleset.kernel, position, len(counts) + 1))
    recorded = {
        "signature": signature(ruleset),
        "perft": counts,
        "searches": search_signature(name),
    }
    return json.dumps(recorded) + "\n"


def refusals(entry_point: str) -> str:
    """Return the calls of an entry point with the errors that they raise now."""
    return answered((FOLDER / "refused" / f"{entry_point}.txt").read_text(encoding="ascii"))


MAKERS: dict[str, Callable[[str], str]] = {
    "playthroughs": lambda name: playthrough(RULESETS[name]),
    "numbers": numbers,
    "refused": refusals,
}
"""For each folder, the function that makes the text of a file from its name."""


def recorded_file(folder: str, name: str) -> Path:
    """Return the path of a recorded file."""
    return FOLDER / folder / f"{name}.{'json' if folder == 'numbers' else 'txt'}"


def recorded_numbers(name: str) -> dict[str, Any]:
    """Return the recorded numbers of a rule set."""
    return json.loads(recorded_file("numbers", name).read_text(encoding="ascii"))


def compare(folder: str, name: str) -> None:
    """Check that a recorded file equals the text that its maker makes now.

    Raises:
        AssertionError: the file differs or is missing; the message names the command that makes it.
    """
    file = recorded_file(folder, name)
    recorded = file.read_text(encoding="ascii") if file.exists() else ""
    text = MAKERS[folder](name)
    assert text.splitlines() == recorded.splitlines(), (
        f"recorded/{folder}/{file.name} differs. If this is intended, run "
        f"python -m tests.record {name}, and read the difference before you commit it"
    )


def main(names: list[str]) -> None:
    """Make the files of some rule sets and entry points, or all."""
    unknown = {*names} - {*RULESETS, *ENTRY_POINTS}
    if unknown:
        expected = ", ".join([*RULESETS, *ENTRY_POINTS])
        sys.exit(f"expected rule sets or entry points, of {expected}; not {unknown}")
    for folder, make in MAKERS.items():
        for name in ENTRY_POINTS if folder == "refused" else RULESETS:
            if not names or name in names:
                recorded_file(folder, name).write_text(make(name), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
