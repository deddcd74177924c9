"""Test that files are replaced as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import Mock

import filelock
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bao_agents.nets.checkpoint_files import GUIDES
from bao_agents.support.files import HeldError, hold, hold_file, replace_file, write_atomically
from bao_agents.support.provenance import UNKNOWN, current_commit, facts, provenance
from bao_env import RULESETS
from docs.measurements import Part, Table
from docs.results import Results
from tests.conftest import Says


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(f"os.{step}", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_replaced(tmp_path: Path) -> None:
    """A run's folder may come from a stranger, and contain links to files of the user."""
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").read_text() == "new" and not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "old"


def test_a_report_may_name_a_file_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    """It comes after the work, and holds the command."""
    write_atomically(tmp_path / "report", "bao match --csv a\udcff.csv")
    assert (tmp_path / "report").read_bytes() == rb"bao match --csv a\udcff.csv"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@given(mode=st.integers(0, 0o777), umask=st.integers(0, 0o777))
def test_permissions_are_kept(
    tmp_path_factory: pytest.TempPathFactory, mode: int, umask: int
) -> None:
    """A new file has Python's usual permissions."""
    folder = tmp_path_factory.mktemp("modes")
    before = os.umask(umask)
    try:
        (folder / "old").touch()
        (folder / "old").chmod(mode)
        (folder / "plain").touch()
        for name in ("old", "new"):
            write_atomically(folder / name, "")
    finally:
        os.umask(before)
    old, new, plain = ((folder / name).stat().st_mode for name in ("old", "new", "plain"))
    assert (stat.S_IMODE(old), new) == (mode, plain)


def test_a_held_folder_leads_nowhere_else(tmp_path: Path) -> None:
    target, folder = tmp_path / "target", tmp_path / "folder"
    target.write_text("old")
    folder.mkdir()
    (folder / ".holder").symlink_to(target)
    with hold(folder):
        assert "process" in (folder / ".holder").read_text()
    for name, to in ((".lock", target), ("tensorboard", tmp_path)):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)
        with pytest.raises(OSError, match="a link to elsewhere: remove it"), hold(folder):
            pass
        (folder / name).unlink()
    for name in (".lock", ".holder"):
        (folder / name).write_text("foreign")
        with pytest.raises(OSError, match="a file of another program"), hold(folder):
            pass
        assert (folder / name).read_text() == "foreign"
        (folder / name).unlink()
    assert target.read_text() == "old" and not list(folder.iterdir())


def test_a_file_is_held_by_one_under_all_its_names(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    with hold_file(link) as file:
        assert file == target
        refusal = f"{target} is in use by process .* choose another file"
        for name in (link, target):
            with pytest.raises(HeldError, match=refusal), hold_file(name):
                pass
    assert list(tmp_path.iterdir()) == [link]


_unfinished: list[AbstractContextManager[BinaryIO]] = []
"""Writes that never end. Without a reference to them they would remove their files."""


def kill_writes(*files: Path) -> set[Path]:
    """Begin to replace files, and leave the temporary files behind."""
    before = {path for file in files for path in file.parent.iterdir()}
    for file in files:
        _unfinished.append(replace_file(file))
        _unfinished[-1].__enter__()
    return {path for file in files for path in file.parent.iterdir()} - before


def test_a_held_file_loses_what_killed_writes_have_left(tmp_path: Path) -> None:
    file = tmp_path / "a[b]"
    foreign_files = {".ab.01234567.tmp", ".a[b].c.01234567.tmp", ".a[b].tmp", "a[b]"}
    for name in foreign_files:
        (tmp_path / name).touch()
    assert len(kill_writes(file) | kill_writes(file)) == 2
    with hold_file(file):
        assert {path.name for path in tmp_path.iterdir()} == {*foreign_files, "a[b].lock"}


def test_commands_remove_what_killed_writes_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """Each removes them from its folder when it continues there, but no file of another process."""
    match, values = tmp_path / "match", tmp_path / "values.csv"
    parts, tables = tmp_path / "values.csv.parts", tmp_path / current_commit() / "a"
    table = Results(
        "a", Table((Part("b", 1, lambda folder: 2),), lambda cells: [cells], ()), tmp_path
    )

    def run_commands() -> None:
        says(f"match random greedy --pairs 1 --threads 1 --out {match}")
        says(f"solve --ruleset kujifunza --sample 4 --nodes 20000 --threads 1 --out {values}")
        table.measure()

    run_commands()
    [result], [part] = (match / "results").glob("*/*.json"), parts.glob("*.npz")
    left = kill_writes(
        match / "table.json", match / ".holder", result, values, part, tables / "0.json"
    )
    foreign_files = kill_writes(match / "games.txt", tmp_path / "new", parts / "a.csv")
    assert len(left) == 6 and len(foreign_files) == 3
    run_commands()
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in foreign_files)


@pytest.mark.parametrize("failures", [1, 3, 10_000])
def test_a_lock_folder_that_disappears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """The process that held the file removes the folder just before another makes its lock."""
    acquire, calls = filelock.FileLock.acquire, list[None]()

    def fail_at_first(lock: filelock.FileLock, *args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) > failures:
            return acquire(lock, *args, **options)
        Path(lock.lock_file).parent.rmdir()
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", lock.lock_file)

    monkeypatch.setattr(filelock.FileLock, "acquire", fail_at_first)
    with pytest.raises(FileNotFoundError) as error, hold_file(tmp_path / "file"):
        raise FileNotFoundError("of the block")
    assert ("of the block" in str(error.value)) == (failures < 10)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_folder_that_cannot_be_opened_or_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """On Windows and CIFS a folder cannot be synced; the file itself must still be synced."""
    sizes: list[int] = []
    original = getattr(os, call)

    def refuse_folders(file: str | int, *args: Any, **options: Any) -> Any:
        if os.path.isdir(file):
            raise PermissionError(errno.EACCES, "Permission denied")
        sizes.append(os.fstat(int(file)).st_size if call == "fsync" else 3)
        return original(file, *args, **options)

    monkeypatch.setattr(os, call, refuse_folders)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new" and sizes == [3]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_new_name_survives_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced after the file, and closed again."""
    descriptors = Path("/proc/self/fd")
    fsync, synced = os.fsync, list[str]()

    def note(file: int) -> None:
        synced.append((descriptors / str(file)).readlink().suffix)
        fsync(file)

    monkeypatch.setattr(os, "fsync", note)
    before = len([*descriptors.iterdir()])
    write_atomically(tmp_path / "file", b"new")
    assert synced == [".tmp", ""] and len([*descriptors.iterdir()]) == before


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (OSError(errno.ENOLCK, "No locks available"), OSError, "its file system has no locks"),
        (OSError(errno.ENOTSUP, "Not supported"), OSError, "choose another folder"),
        (filelock.Timeout("lock"), HeldError, "or its file system has no locks: wait until"),
        (PermissionError(errno.EACCES, "Permission denied"), PermissionError, "Permission denied"),
    ],
)
def test_file_systems_without_locks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[Exception],
    message: str,
) -> None:
    """filelock 3.12 raises the last two errors."""

    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(kind, match=message), hold(tmp_path / "folder"):
        pass


FULL = """
import contextlib, io, os, resource, shutil, sys
from pathlib import Path
from bao_agents.cli.main import main

if __name__ == "__main__":
    for line in sys.argv[1:]:
        os.mkdir("out")
        assert main(line.split()) == 0, line  # compiles
        shutil.rmtree("out")
    sys.dont_write_bytecode = True  # Python would leave half a file
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, unlimited))
    for line in sys.argv[1:]:
        os.mkdir("out")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = main(line.split())
        error = said.getvalue().splitlines()[-1]
        assert status in (1, 2) and "error: " in error and "File too large" in error, error
        assert os.path.abspath("out") in error and not [*Path().rglob("*.tmp")], error
        shutil.rmtree("out")
"""
"""Runs commands twice, the second time as if the disk were full."""
SMALL = """
steps = 1024
envs = 64
rollout = 8
minibatch = 64
evaluate_every = 0
"""


@pytest.mark.slow
def test_full_disk_is_one_error_that_names_the_file(tmp_path: Path) -> None:
    commands = (
        "match random greedy --pairs 2 --json out/new.json",
        "tournament random greedy --pairs 2 --out out/tournament",
        "solve --ruleset kujifunza --sample 9 --out out/values.npz",
        "blunders random --ruleset kujifunza --json out/new.json",
        "train small.toml --run a --out out",
    )
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "small.toml").write_text(SMALL)
    command = [sys.executable, "full.py", *commands]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_record_says_what_made_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package names the commit that built it; a record that leaves out the machine is the same on
    every machine."""
    guide = GUIDES / "kibao.safetensors"
    rules = RULESETS["kibao"].replace(name="mine")
    command = ["bao", "match", "a b"]
    record = provenance(rules, networks={"guided:3": guide}, seed=7, command=command)
    lines = facts(json.loads(json.dumps(record)))
    assert lines["rules"].startswith("mine (own rules), version 1, engine ")
    assert lines["networks"] == f"guided:3 {hashlib.sha256(guide.read_bytes()).hexdigest()[:16]}"
    assert (lines["seed"], lines["command"]) == ("7", "bao match 'a b'")
    assert "Python 3." in lines["machine"] and "numba " in lines["versions"]
    short = facts(provenance(RULESETS["kibao"], with_machine=False))
    assert list(short) == ["rules", "commit", "versions"] and short["commit"] == lines["commit"]
    (tmp_path / "COMMIT").write_text("1234abcd\n")
    monkeypatch.setattr("bao_env.__file__", str(tmp_path / "__init__.py"))
    current_commit.cache_clear()
    assert current_commit() == "1234abcd"
    (tmp_path / "COMMIT").unlink()
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # as in a hook of another repository
    current_commit.cache_clear()
    assert current_commit() == lines["commit"]
    source = Path("agents", "bao_agents", "support", "provenance.py")
    (tmp_path / ".git").mkdir()
    run = Mock()
    run.return_value.stdout = "12ab-dirty\n"
    with monkeypatch.context() as patch:
        patch.setattr("bao_agents.support.provenance.__file__", str(tmp_path / source))
        patch.setattr(subprocess, "run", run)
        current_commit.cache_clear()
        assert current_commit() == "12ab-dirty"
    command = ["git", "-C", str(tmp_path), "describe", "--always", "--dirty"]
    assert run.call_args.args == (command,) and run.call_args.kwargs["check"]
    copy = Path(__file__).parent / source
    monkeypatch.setattr("bao_agents.support.provenance.__file__", str(copy))
    current_commit.cache_clear()
    assert current_commit() == UNKNOWN
    current_commit.cache_clear()
