"""Run calls that are refused, and write the error of each below it.

A file in recorded/refused has the calls of an entry point. Each call stands above a line ``!`` with
the error that it raises; other lines prepare the calls; ``each`` makes a call at several entry
points. To add a call, write it above a line ``!`` and run ``python -m tests.record NAME``. Write
``...`` for the rest of an error if another library words it or if it lists names.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import pickle
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bao_agents.cli.main import main
from tests.processes import ROOT


def files() -> dict[Path, int]:
    """Return all paths in the working folder, with the time at which each file was written.

    Locks are left out, because filelock before 4.0 writes a file to hold a lock.
    """
    paths = [path for path in Path().rglob("*") if path.name != ".lock"]
    return {path: path.stat().st_mtime_ns if path.is_file() else 0 for path in paths}


def bao(line: str) -> None:
    """Run ``bao`` with the words of a line; it must print no result and write no file.

    Raises:
        SystemExit: always, with the last line of its stderr.
    """
    before = files()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(shlex.split(line))
    assert (status, out.getvalue(), files()) == (2, "", before), line
    raise SystemExit(err.getvalue().splitlines()[-1])


def each(calls: Sequence[Callable[..., Any]], *values: Any, **arguments: Any) -> None:
    """Make several calls with the same arguments; all of them must refuse in the same words.

    Raises:
        Exception: always, the error of the last call; the first one may raise a broader type.
    """
    errors: list[Exception] = []
    for call in calls:
        try:
            call(*values, **arguments)
        except Exception as error:  # noqa: BLE001 (any refusal)
            errors.append(error)
    assert len(errors) == len(calls) and len({*map(str, errors)}) == 1, errors
    assert all(isinstance(error, type(errors[0])) for error in errors), errors
    raise errors[-1]


def held(names: dict[str, Any]) -> dict[str, bytes]:
    """Return the state of the objects that a text has prepared."""
    return {
        name: pickle.dumps(value)
        for name, value in names.items()
        if not (name.startswith("__") or callable(value) or inspect.ismodule(value))
    }


def refusal(call: str, names: dict[str, Any]) -> str:
    """Run lines that are refused, and return the error. No object may change."""
    before = held(names)
    try:
        exec(call, names)
    except (AssertionError, NameError):  # a mistake in the text, not a refusal
        raise
    except SystemExit as error:
        message = str(error)
    except Exception as error:  # noqa: BLE001 (any refusal)
        message = f"{type(error).__name__}: {error}"
    else:
        raise AssertionError(f"this is not refused: {call}")
    assert held(names) == before, call
    assert message.isascii() and "\n" not in message and len(message) < 1000, message
    return message.replace(f"{ROOT}/", "").replace(str(Path.cwd()), ".")


def answered(text: str) -> str:
    """Return a text with the errors that its calls raise now, in an empty working folder."""
    names: dict[str, Any] = {"bao": bao, "each": each}

    def answer(match: re.Match[str]) -> str:
        lines, recorded = match.groups()
        if not recorded:
            exec(lines, names)
            return lines
        line = f"! {refusal(lines, names)}\n"
        start = recorded.removesuffix("...\n")
        return lines + (recorded if start != recorded and line.startswith(start) else line)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return re.sub(r"((?:[^!\n].*\n)+)(!.*\n)?", answer, text)
