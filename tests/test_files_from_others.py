"""Test that files from others run nothing and write nothing, whatever they contain.

Each row of the table in docs/files.md has a reader here. Randomly changed copies of a good file
must be read, or be refused with a readable error. An audit hook watches what Python does meanwhile.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_agents.arena.ladder import load_ladder
from bao_agents.arena.openings import BALANCED, read_openings
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.resumable import read_part
from bao_agents.exact.proof_tree import head_of, read_answers
from bao_agents.exact.resumable_search import ResumableSearch
from bao_agents.exact.solved_positions import SHIPPED, SolvedPositions
from bao_agents.nets.checkpoint_files import GUIDES
from bao_env import RULESETS, Board, get_ruleset, load_ruleset
from bao_env.files import read_text
from bao_env.notation.game_record import replay
from bao_env.notation.transcript import parse_transcripts
from tests.positions import OPENING, played
from tests.processes import ROOT


class Kind(NamedTuple):
    """A kind of file."""

    good: Callable[[], bytes]
    """Returns the content of a good file."""
    read: Callable[[Path], object]
    """Reads a file, and uses everything in it that could have an effect."""
    file: str = "forged"
    """Its name."""


def _read_position(path: Path) -> None:
    board = Board.from_text(read_text(path))
    for action in board.legal_actions[:4]:
        board.trace(action)


def _read_transcript(path: Path) -> None:
    for game in parse_transcripts(read_text(path)):
        replay(game)


def _small_ladder() -> bytes:
    ladder = json.loads(load_ladder().model_dump_json())
    ladder |= {"name": "small", "openings": ladder["openings"][:4]}
    ladder["anchors"] = [
        anchor for anchor in ladder["anchors"] if anchor["player"] in ("random", "greedy")
    ]
    return json.dumps(ladder).encode()


def _read_ladder(path: Path) -> None:
    load_ladder(str(path)).changed()


def _record() -> bytes:
    record = {"points": [[1.0, 0.5]], "plies": [[9, 9]], "moves": [9, 9], "seconds": [0.1, 0.1]}
    return json.dumps(record | {"faults": [[], []], "commit": "1234567"}).encode()


def _read_record(path: Path) -> None:
    read_part(path, lambda file: Pairs.from_json(read_text(file)))


def _solved() -> bytes:
    folder = Path("solved.npz")
    SolvedPositions.load(str(SHIPPED / "kujifunza.npz"))[:5].save(folder)
    return folder.read_bytes()


def _read_checkpoint(path: Path) -> None:
    pytest.importorskip("torch")
    from bao_agents.nets import checkpoint

    checkpoint.load(path, get_ruleset("kujifunza"), arrays=True)


def _read_settings(path: Path) -> None:
    pytest.importorskip("torch")
    from bao_training.run_settings import load_config

    load_config(path)


def _note() -> bytes:
    pytest.importorskip("torch")
    from bao_training.run_settings import load_config
    from bao_training.train import make_trainer

    trainer = make_trainer(*load_config(None, ["envs=64", "hidden=[8]"]))
    return json.dumps({"config": trainer.settings()}).encode()


def _read_note(path: Path) -> None:
    from bao_training.config import config_from_dict
    from bao_training.run_settings import read_note

    note = read_note(path.parent)
    assert note
    config_from_dict(note["config"])


def _read_metrics(path: Path) -> None:
    pytest.importorskip("torch")
    from bao_training.plot import Curves
    from bao_training.run_tables import read_lines

    Curves(read_lines([str(path)])).draw()


def _proof() -> bytes:
    line = f'["{OPENING}", 9, [[20, 1, 2, 0], [22, 3, 4, 5], [24, 7, 8, 9], [26, 0, 9, 8]]]'
    return "\n".join([head_of(RULESETS["zanzibar"]), line, ""]).encode()


def _search(path: Path) -> ResumableSearch:
    return ResumableSearch(RULESETS["kujifunza"], Board("kujifunza").packed, path, 4, 1)


def _table() -> bytes:
    search = _search(Path("kujifunza.table"))
    list(search.run(nodes=100))
    search.save()
    return Path("kujifunza.table").read_bytes()


def _read_table(path: Path) -> None:
    list(_search(path).run(nodes=200))


KINDS = {
    "rule file": Kind(lambda: b'base = "kibao"\nhouse_min = 8\nsow_limit = 500\n', load_ruleset),
    "position": Kind(OPENING.encode, _read_position),
    "transcript": Kind(lambda: played("kujifunza", 1).transcript().encode(), _read_transcript),
    "openings": Kind(
        lambda: b"".join(BALANCED.read_bytes().splitlines(True)[:3]),
        lambda path: read_openings(path, "zanzibar", 1, seed=1),
    ),
    "ladder": Kind(_small_ladder, _read_ladder),
    "results of an event": Kind(_record, _read_record),
    "proof in pieces": Kind(_proof, lambda path: read_answers(path, RULESETS["zanzibar"])),
    "table of a proof": Kind(_table, _read_table),
    "solved positions": Kind(_solved, lambda path: SolvedPositions.load(str(path))),
    "checkpoint": Kind((GUIDES / "kujifunza.safetensors").read_bytes, _read_checkpoint),
    "settings": Kind((ROOT / "configs" / "quick.toml").read_bytes, _read_settings),
    "note of a run": Kind(_note, _read_note, "run.json"),
    "metrics": Kind(lambda: b"update,steps,value_loss\n1,10,0.5\n2,20,0.4\n", _read_metrics),
}

# --- what Python does ---------------------------------------------------------------------------

RUNS = {"os.exec", "os.posix_spawn", "os.system", "pickle.find_class", "subprocess.Popen"}
RUNS |= {"ctypes.dlopen", "marshal.loads", "socket.connect", "os.fork"}
CHANGES = {"os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
_seen: list[str] | None = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None or sys.is_finalizing():
        return
    writes = (
        event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    )
    target = str(arguments[0]) if arguments else ""
    if (event in RUNS or event in CHANGES or writes) and "__pycache__" not in target:
        _seen.append(f"{event} {target}")


@cache
def _hook() -> None:
    sys.addaudithook(_watch)  # cannot be removed again


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what Python runs, writes or changes in a block, as audit events."""
    global _seen
    _hook()
    events: list[str] = []
    _seen = events
    try:
        yield events
    finally:
        _seen = None


# --- the tests ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_forged_files_are_read_or_refused(name: str, data: st.DataObject) -> None:
    content = good(name)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 100)) | st.just(len(content)))
    new = data.draw(st.binary(max_size=8) | st.text(max_size=8).map(str.encode))
    new = data.draw(st.sampled_from([new, content[:start], b"\xff" * (end - start)]))
    read(name, content[:start] + new + content[end:])


def read(name: str, content: bytes) -> None:
    """Read a file, or check that it is refused, and that nothing runs or is written."""
    path = Path(KINDS[name].file)
    path.write_bytes(content)
    with watched() as events:
        try:
            KINDS[name].read(path)
        except (ValueError, OSError, RecursionError) as error:
            assert "\x1b" not in str(error)
    assert events == []


def test_a_pickle_in_an_archive_is_not_loaded() -> None:
    archive = io.BytesIO()
    with np.load(io.BytesIO(good("solved positions"))) as arrays:
        np.savez(archive, **{**arrays, "metadata": np.array([Path()])})
    read("solved positions", archive.getvalue())


@pytest.mark.parametrize("name", KINDS)
def test_endless_files_are_refused(name: str) -> None:
    """The files are a link to an endless device, and a pipe into which nobody writes."""
    path = Path(KINDS[name].file)
    for make in (lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path)):
        path.unlink(missing_ok=True)
        make()
        with pytest.raises((ValueError, OSError), match=r"regular file|no configuration") as error:
            KINDS[name].read(path)
        assert path.name in str(error.value)
    path.unlink()


@cache
def good(name: str) -> bytes:
    """Return a good file; reading it first compiles and imports everything that the test needs."""
    content, path = KINDS[name].good(), Path(KINDS[name].file)
    path.write_bytes(content)
    KINDS[name].read(path)
    with suppress(ValueError):  # to list the legal moves takes more functions than to read one
        Board().push("no move")
    return content


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work in an empty folder."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("files"))
    yield
    os.chdir(before)


def test_the_watch_sees_what_a_file_could_do() -> None:
    with watched() as events:
        os.system("true")
        Path("written").write_text("")
    assert [event.split()[0] for event in events] == ["os.system", "open"]


def test_the_page_has_a_row_for_each_kind() -> None:
    table = (ROOT / "docs" / "files.md").read_text().split("|---|\n")[1]
    rows = re.findall(r"^\| ([a-z ]+)", table, re.MULTILINE)
    assert [row.strip() for row in rows] == list(KINDS)
