"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bao_env.files import write_atomically


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


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "nowhere" / "file", "text")
