"""Test that files are replaced as a whole or not at all."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from bao_agents.cli.main import main
from bao_agents.support.files import HeldError, hold, write_atomically


def test_texts_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "Bao la Kiswahili \u2013 n\u0101mua\n")
    assert path.read_text(encoding="utf-8") == "Bao la Kiswahili \u2013 n\u0101mua\n"
    write_atomically(str(path), b"\x00\r\n\xff")
    assert path.read_bytes() == b"\x00\r\n\xff"
    assert list(tmp_path.iterdir()) == [path]


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


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "new"


def test_a_folder_that_cannot_be_opened_as_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, *args: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF])
def test_a_folder_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As on CIFS; the file itself must still be synced."""
    synced: list[None] = []
    fsync = os.fsync

    def refuse_folders(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(file)
        synced.append(None)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new" and synced == [None]


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
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    kind: type[Exception],
    message: str,
) -> None:
    """Each error is one line that names the folder; filelock 3.12 raises the last two."""

    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(kind, match=message), hold(tmp_path / "folder"):
        pass
    out = tmp_path / "other"
    assert main(["tournament", "random", "greedy", "--pairs", "1", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said


FULL = """
import os, resource, shutil, sys
from bao_agents.cli.main import main

if __name__ == "__main__":
    os.mkdir("out")
    assert main(sys.argv[1:]) == 0  # compiles
    shutil.rmtree("out")
    os.mkdir("out")
    sys.dont_write_bytecode = True  # Python would leave half a file
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, unlimited))
    sys.exit(main(sys.argv[1:]))
"""
"""Runs a command twice, the second time as if the disk were full."""
SMALL = """
steps = 1024
envs = 64
rollout = 8
minibatch = 64
evaluate_every = 0
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "match random greedy --pairs 2 --json out/new.json",
        "tournament random greedy --pairs 2 --out out/tournament",
        "solve --ruleset kujifunza --sample 9 --out out/values.npz",
        "blunders random --ruleset kujifunza --positions 9 --cache out --plot out/p.png",
        "train small.toml --run a --out out",
    ],
)
def test_full_disk_is_one_error_that_names_the_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "small.toml").write_text(SMALL)
    words = shlex.split(command)
    process = subprocess.run(
        [sys.executable, "full.py", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert process.returncode in (1, 2), process.stderr
    error = process.stderr.splitlines()[-1]
    assert "error: " in error and "File too large" in error and str(tmp_path / "out") in error
    assert not list(tmp_path.rglob("*.tmp"))
