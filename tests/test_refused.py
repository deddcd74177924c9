"""Compare what is refused, and how, with the texts in ``refused/``, one for each door.

Such a text has calls, each above the error that it raises, and lines that prepare them. To add a
call, write it above a line ``!`` and run ``python -m tests.test_refused [DOOR ...]``, which fills
in the errors. Read the difference before you commit it. Write ``...`` for the rest of an error that
another library words.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import pickle
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bao_agents.cli.main import main
from tests.processes import ROOT

FOLDER = ROOT / "tests" / "refused"
DOORS = sorted(file.stem for file in FOLDER.glob("*.txt"))


def files() -> dict[Path, int]:
    """Return all paths in the working folder; of files, when they were written."""
    found = Path().rglob("*")
    return {path: path.stat().st_mtime_ns if path.is_file() else 0 for path in found}


def bao(line: str) -> None:
    """Run ``bao`` with the words of a line, which prints no result and writes no file.

    Raises:
        SystemExit: always, with the last line of its stderr.
    """
    before = files()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(shlex.split(line))
    assert (status, out.getvalue(), files()) == (2, "", before), line
    raise SystemExit(err.getvalue().splitlines()[-1])


def held(names: dict[str, Any]) -> dict[str, bytes]:
    """Return the state of the objects that a text has prepared."""
    return {
        name: pickle.dumps(value)
        for name, value in names.items()
        if not (name.startswith("__") or callable(value) or inspect.ismodule(value))
    }


def refusal(call: str, names: dict[str, Any]) -> str:
    """Run lines that are refused, and return the error. No object changes."""
    before = held(names)
    try:
        exec(call, names)
    except (AssertionError, NameError):  # the text is wrong
        raise
    except SystemExit as error:
        said = str(error)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    else:
        raise AssertionError(f"this is not refused: {call}")
    assert held(names) == before, call
    assert said.isascii() and "\n" not in said and len(said) < 1000, said
    return said.replace(f"{ROOT}/", "").replace(str(Path.cwd()), ".")


def answered(text: str) -> str:
    """Return a text with the errors that its calls raise now."""
    names: dict[str, Any] = {"bao": bao}

    def answer(found: re.Match[str]) -> str:
        lines, recorded = found.groups()
        if not recorded:
            exec(lines, names)
            return lines
        said = f"! {refusal(lines, names)}\n"
        begun = recorded.removesuffix("...\n")
        return lines + (recorded if begun != recorded and said.startswith(begun) else said)

    return re.sub(r"((?:[^!\n].*\n)+)(!.*\n)?", answer, text)


@pytest.mark.parametrize("door", DOORS)
def test_refusals_are_as_recorded(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing changes meanwhile: no object of the text and, by a command, no file."""
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / f"{door}.txt").read_text(encoding="ascii")
    assert answered(text).splitlines() == text.splitlines()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            "{}",
            "match {}",
            "match greedy {}",
            "match search:{}:5",
            "match greedy --openings {}",
            "match greedy --ruleset {}",
            "match greedy --pairs {}",
            "match greedy --json {}",
            "match greedy --format {}",
            "match greedy --path {}",
            "match {}:make",
            "match greedy --pairs 1 pipe:{}",
            "tournament greedy {}",
            "rate greedy --ladder {}",
            "solve {}",
            "replay {}",
            "replay start --move {}",
            "curve {}",
            "blunders {}",
            "play {} --no-browser",
        ]
    ),
    st.text("aZ9:/=,.*\u0175\u4e2d", min_size=1, max_size=3),
)
@example("curve {}", "/:*")
def test_long_words_give_short_errors(line: str, piece: str) -> None:
    """An error quotes little of a word of 100,000 characters."""
    word = "x" + piece * (100_000 // len(piece))
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert main([part.replace("{}", word) for part in line.split()]) == 2
    assert len(said.getvalue()) < 5000, said.getvalue()[:200]  # the usage comes with it


if __name__ == "__main__":
    for door in sys.argv[1:] or DOORS:
        file = FOLDER / f"{door}.txt"
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            file.write_text(answered(file.read_text(encoding="ascii")), encoding="ascii")
