"""Test ``docs/results.py``: stopped runs go on, and the pages have what it measured."""

from __future__ import annotations

import os
import re
import runpy
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from bao_agents.support.files import HeldError
from docs import results
from docs.measurements import TABLES, Part, Table
from docs.results import PAGES, Results, head_of, shipped_file, with_table
from tests.conftest import Capsys
from tests.processes import python

MEASURED = [
    pytest.param(name, text, id=name)
    for page in PAGES
    for name, text in re.findall(
        r"<!-- measured (\S+) -->\n(.*?)<!-- end -->", page.read_text(encoding="utf-8"), re.DOTALL
    )
]


def log_of(folder: Path) -> list[str]:
    """Return the names of the parts that were measured, in their order."""
    return (folder / "log").read_text(encoding="utf-8").split()


def make_table(folder: Path, killed: str = "") -> Table:
    """Return a table of three parts, which log their names in a folder.

    Args:
        folder: the folder of the log.
        killed: the part that kills the process instead of ending.
    """

    def make(name: str) -> Part:
        def measure(_: Path) -> str:
            with (folder / "log").open("a", encoding="utf-8") as log:
                print(name, file=log)
            if name == killed:
                os.kill(os.getpid(), signal.SIGKILL)
            return name.upper()

        return Part(f"measure {name}", 1, measure)

    parts = tuple(map(make, ("first", "second", "third")))
    return Table(parts, lambda cells: [["a", "b", "c"], cells], ("guides/kibao",))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from tests.test_results import Results, make_table; "
        f"folder = Path({str(tmp_path)!r}); "
        "Results('tiny', make_table(folder, 'second'), folder).measure()"
    )
    python(program, status=-signal.SIGKILL)
    after = Results("tiny", make_table(tmp_path), tmp_path)
    assert [part.command for part in after.missing()] == ["measure second", "measure third"]
    after.measure()
    assert log_of(tmp_path) == ["first", "second", "second", "third"]
    assert "| FIRST | SECOND | THIRD |\n" in after.markdown()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"result": 1}', "[" * 100_000, "\xff"])
def test_a_damaged_result_is_measured_again(tmp_path: Path, content: str) -> None:
    tiny = Results("tiny", make_table(tmp_path), tmp_path)
    tiny.measure()
    (tiny.folder / "1.json").write_text(content, encoding="latin-1")
    assert [part.command for part in tiny.missing()] == ["measure second"]
    tiny.measure()
    assert log_of(tmp_path) == ["first", "second", "third", "second"]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "stopped: run the same command to continue"),
        (HeldError("in use"), 2, "error: in use"),
    ],
)
def test_a_run_that_ends_early_says_why(
    error: BaseException,
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    def fail(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr("bao_agents.support.files.hold", fail)
    monkeypatch.setattr("bao_agents.support.provenance.current_commit", lambda: "1234abc")
    monkeypatch.setattr(sys, "argv", ["results.py", "blunders", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(results.__file__, run_name="__main__")
    assert end.value.code == status and capsys.readouterr().err.endswith(f"\n{message}\n")


def test_results_of_something_else_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(tmp_path)
    tiny = Results("tiny", table, tmp_path)
    tiny.measure()
    tiny.measure()
    assert not tiny.missing() and len(log_of(tmp_path)) == 3

    def missing(table: Table) -> int:
        return len(Results("tiny", table, tmp_path).missing())

    other_command = replace(table.parts[2], command="measure less")
    assert missing(replace(table, parts=(*table.parts[:2], other_command))) == 1
    changed = tmp_path / "changed"
    changed.write_bytes(shipped_file("guides/kibao").read_bytes() + b" ")
    with monkeypatch.context() as patch:
        patch.setattr(results, "shipped_file", lambda name: changed)
        assert missing(table) == 3
    monkeypatch.setattr(results, "current_commit", lambda: "other")
    assert missing(table) == 3


def test_the_list_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    table = make_table(Path())
    monkeypatch.setattr(results, "TABLES", {"tiny": replace(table, parts=90 * table.parts)})
    monkeypatch.setattr(sys, "argv", ["results.py", "--list"])
    results.main()
    output = capsys.readouterr()
    assert "270 of 270 parts missing, 270 minutes" in output.err
    assert "about 4.5 hours of one core" in output.err and not output.out


def test_pages_are_checked_before_hours_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(results, "PAGES", [page])
    monkeypatch.setattr(results, "TABLES", {"tiny": make_table(tmp_path)})
    monkeypatch.setattr(results, "current_commit", lambda: "1234abc")
    arguments = ["results.py", "--write", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    page.write_text("<!-- measured tiny -->\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no <!-- end --> after <!-- measured tiny -->"):
        results.main()
    assert not (tmp_path / "log").exists()
    page.write_text("a page\n", encoding="utf-8")
    results.main()
    output = capsys.readouterr()
    assert "tiny: no page has <!-- measured tiny -->, so the table is only printed" in output.err
    assert "| FIRST | SECOND | THIRD |\n" in output.out


def test_code_without_a_commit_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr(results, "current_commit", lambda: "1234abcd-dirty")
    monkeypatch.setattr(results.Results, "measure", lambda _: pytest.fail("measured"))
    monkeypatch.setattr(sys, "argv", ["results.py", "blunders"])
    with pytest.raises(SystemExit):
        results.main()
    assert "commit your changes, then measure" in capsys.readouterr().err


def test_a_table_takes_the_place_of_the_old_one() -> None:
    page = "before\n<!-- measured tiny -->\nold\n<!-- end -->\n<!-- measured other -->\n"
    new = "<!-- measured tiny -->\nnew\n<!-- end -->"
    assert with_table(page, "tiny", new) == f"before\n{new}\n<!-- measured other -->\n"
    assert with_table(page, "unknown", new) == page
    with pytest.raises(ValueError, match="no <!-- end --> after <!-- measured other -->"):
        with_table(page, "other", new)
    with pytest.raises(ValueError, match="no <!-- end --> after <!-- measured tiny -->"):
        with_table(page.replace("<!-- end -->\n", "") + "<!-- end -->", "tiny", new)


@pytest.mark.parametrize(("name", "text"), MEASURED)
def test_pages_have_the_commands_and_files_of_today(name: str, text: str) -> None:
    """``test_documents`` compares the digests."""
    table = TABLES[name]
    commands = " ".join(head_of(name, table, []).split()).partition("`python")[2]
    assert commands in " ".join(text.split()), f"run python docs/results.py --write {name}"
    assert set(re.findall(r"`([\w./]+)`\s+`[0-9a-f]{16}`", text)) == set(table.files)
