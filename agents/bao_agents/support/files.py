"""Find the documentation, replace files atomically, lock folders, and quote foreign files."""

from __future__ import annotations

import errno
import glob
import os
import platform
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:  # slow to import and rarely needed
    from pydantic import ValidationError


def pages_folder() -> Path:
    """Return the folder of the documentation: in the installed package, or the repository."""
    packages = Path(__file__).parents[2]
    installed = packages / "bao_training" / "pages"
    return installed if installed.exists() else packages.parent


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Replace a file by ``data``, in UTF-8 if it is text; see :func:`replace_file`.

    The bytes of a file's name that are not UTF-8 are written as escapes, as in the output.
    """
    with replace_file(path) as file:
        file.write(data.encode(errors="backslashreplace") if isinstance(data, str) else data)


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Replace a file with what the block writes.

    At any moment ``path`` holds either the old content or the new. After an exception in the block
    it holds the old one.

    Args:
        path: the file; its folder must exist. The new file has the permissions of the old one. A
            symbolic link is replaced, and its target stays as it is.

    Raises:
        OSError: the file cannot be written, or is not a regular file but, for example, a device.
            The old file stays unchanged, and the error names it.
    """
    path = Path(path).absolute()
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file: choose another name")
    keeps_mode = path.exists() and not path.is_symlink()
    mode = stat.S_IMODE(path.stat().st_mode) & 0o777 if keeps_mode else 0o666
    # In the same folder: a file cannot be renamed across file systems.
    temporary = path.with_name(_temporary_name(path.name, secrets.token_hex(_MARK_BYTES)))
    try:
        # "x" creates the file: it opens none that exists, and no link.
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            if keeps_mode:  # restores permissions that the umask has removed
                temporary.chmod(mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno:  # name the file that the caller knows, not the temporary one
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    # The file is complete. Not every system can make its new name survive a crash too: Windows
    # cannot open folders, and CIFS and some FUSE file systems cannot sync them.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


_MARK_BYTES = 4
"""Random bytes in the name of a temporary file."""


def _temporary_name(name: str, mark: str) -> str:
    """Return the name of the temporary file that will replace the file ``name``."""
    return f".{name}.{mark}.tmp"


def remove_unfinished(folder: Path, name: str) -> None:
    """Remove the temporary files that killed processes have left instead of some files.

    Args:
        folder: the folder.
        name: the pattern (``glob``) of the files. Only the caller may replace them.

    Raises:
        OSError: a temporary file cannot be removed.
    """
    pattern = Path(name)
    any_mark = "[0-9a-f]" * (2 * _MARK_BYTES)
    for unfinished in folder.glob(str(pattern.with_name(_temporary_name(pattern.name, any_mark)))):
        unfinished.unlink(missing_ok=True)


_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
"""The errors that a file system without locks reports."""


class HeldError(ValueError):
    """Raised when another process is writing into a folder, or continues a file."""


_MARKS = {".lock": b"", ".holder": b"process "}
"""The files of :func:`hold`, each with what it begins with; the first one is empty."""


def _is_mark(file: Path) -> bool:
    """Return whether :func:`hold` has written a file with the name of one of its own."""
    begin = _MARKS[file.name]
    try:
        with file.open("rb") as content:
            return content.read(len(begin) or 1) == begin
    except FileNotFoundError:  # its process has just ended
        return True


@contextmanager
def hold(folder: Path, *names: str, file: Path | None = None) -> Iterator[None]:
    """Hold the lock on ``folder`` until the end of the block.

    The operating system releases the lock when the process ends for any reason. What killed
    processes have left in the folder is removed first.

    Args:
        folder: the folder; created if it is missing.
        names: patterns (``glob``) of the files that only a process with the lock writes. Their
            temporary files are removed; others may belong to a process that runs.
        file: what the error message says is in use; None for the folder.

    Raises:
        HeldError: another process holds the lock; the message names the process.
        OSError: the folder cannot be made or written, has a link to another folder or a lock of
            another program, or its file system has no locks.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        # filelock 3.12 follows a link, and empties the file that it finds there.
        if entry.is_symlink() and (entry.is_dir() or entry.name == ".lock"):
            raise OSError(f"{entry} is a link to elsewhere: remove it, or choose another folder")
        # filelock 3 empties the lock, and the holder is replaced and removed.
        if entry.name in _MARKS and not (entry.is_symlink() or _is_mark(entry)):
            raise OSError(f"{entry} is a file of another program: choose another folder")
    holder = folder / ".holder"
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        try:
            with holder.open("rb") as holder_file:
                holder_name = holder_file.read(200).decode(errors="replace").strip()
        except OSError:  # filelock 3.12 cannot distinguish a held lock from a failed one
            holder_name = "another process, or its file system has no locks"
        raise HeldError(
            f"{file or folder} is in use by {holder_name}: wait until it has ended, or choose "
            f"another {'file' if file else 'folder'}"
        ) from None
    except (OSError, NotImplementedError) as error:  # filelock 3.12 raises the latter
        number = getattr(error, "errno", errno.ENOSYS)
        if number not in _NO_LOCKS:
            raise
        reason = f"its file system has no locks ({os.strerror(number)}): choose another folder"
        raise OSError(number, reason, str(folder)) from error
    try:
        time = datetime.now().astimezone().isoformat(" ", "seconds")
        for name in (holder.name, *names):
            remove_unfinished(folder, name)
        write_atomically(holder, f"process {os.getpid()} on {platform.node()}, since {time}\n")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


_TRIES = 100
"""Attempts to make a lock in a folder that other processes remove."""


@contextmanager
def hold_file(file: Path) -> Iterator[Path]:
    """Hold the lock on a file that a command continues, as :func:`hold` does for a folder.

    The lock is in a folder beside the file. This folder is removed with the lock.

    Yields:
        the file to read and replace: the target if ``file`` is a symbolic link.

    Raises:
        HeldError, OSError: see :func:`hold`.
    """
    if file.is_symlink():
        file = Path(os.path.realpath(file))
    folder = file.with_name(file.name + ".lock")
    with ExitStack() as lock:
        for tries_left in reversed(range(_TRIES)):
            try:
                lock.enter_context(hold(folder, file=file))
                break
            # Another process has just removed the folder with its lock.
            except (FileNotFoundError, FileExistsError):
                if not tries_left:
                    raise
        try:
            remove_unfinished(file.parent, glob.escape(file.name))
            yield file
        finally:
            with suppress(OSError):  # Windows cannot remove an open file: both stay
                (folder / ".lock").unlink()
            lock.close()
            with suppress(OSError):
                folder.rmdir()


_LONGEST_LINE = 1 << 16


def read_lines(file: Path, is_head: Callable[[bytes], bool], what: str) -> Iterator[bytes]:
    """Yield the whole lines, without the first, of a file that a command continues.

    A half-written last line is dropped. A missing or empty file has no lines. The file may have any
    length, since the command itself has written it. Its lines are short: 64 KiB without a line
    break come as one line.

    Args:
        file: the file. The command may replace it, so this checks that a command wrote it.
        is_head: returns whether a line is the first line of such a file.
        what: the kind of file that is expected, for the error message.

    Raises:
        ValueError: the file is of another kind.
        OSError: the file cannot be read.
    """
    from bao_env.files import open_regular  # bao --help, which needs this module, needs no engine

    if not file.exists():
        return
    with open_regular(file) as lines:
        head = lines.readline(_LONGEST_LINE)
        if head and not (head.endswith(b"\n") and is_head(head)):
            raise ValueError(f"{file} exists and is not {what}: choose another name")
        while line := lines.readline(_LONGEST_LINE):
            if line.endswith(b"\n") or len(line) == _LONGEST_LINE:
                yield line


def printable(text: str) -> str:
    """Return a text with its control characters escaped, so that a terminal may show it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def fault(error: ValidationError) -> str:
    """Return the location and the message of the first validation error in a file's content."""
    first = error.errors()[0]
    return ": ".join(map(str, (*first["loc"], first["msg"])))
