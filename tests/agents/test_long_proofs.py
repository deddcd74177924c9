"""Test long proofs: in pieces, and by a search that a file keeps."""

from __future__ import annotations

import errno
import inspect
import json
import os
import random
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import bao_agents
from bao_agents.cli.main import main
from bao_agents.exact import proof_tree, resumable_search
from bao_agents.exact.proof_tree import Answer, Node, ProofTree, read_answers
from bao_agents.exact.resumable_search import ResumableSearch
from bao_agents.search.solver import proof_search
from bao_agents.search.solver.proof_number import PART, UNKNOWN, WIN
from bao_agents.search.solver.proof_search import KnownAction, ProofSearch
from bao_env import RULESETS, Board
from bao_env.engine.layout import SOUTH
from bao_env.engine.position import PackedPositions, packed_opening, to_packed, turn_of, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import format_position, parse_position
from tests import check_pieces, prove_openings
from tests.check_pieces import prove_again, value_of
from tests.conftest import Capsys, Fails, Says
from tests.positions import STUCK, draw

SHIPPED = Path(bao_agents.__file__).parent / "search/solver/proofs/malawi.jsonl"


def prove(
    ruleset: Ruleset, position: PackedPositions, file: Path, *, answers: int = 2**62
) -> ProofTree:
    """Continue a proof, in pieces of 200 positions, until it has this many more answers."""
    tree = ProofTree(ruleset, position, read_answers(file, ruleset))
    with ThreadPoolExecutor(1) as pool:
        for answer in islice(tree.prove(file, pool, 1, 200), answers):
            assert file.read_text().endswith(
                f"\n{json.dumps(answer)}\n"
            )  # even if it is killed now
    return tree


def plies_of(node: Node) -> int:
    """Return within how many plies the winner of a proven position can win."""
    if not node.after:
        return node.plies
    plies = [plies_of(after) for after in node.after if after.winner == node.winner]
    return 1 + (min(plies) if node.winner == turn_of(node.position) else max(plies))


@pytest.mark.parametrize("ruleset", RULESETS.values(), ids=RULESETS)
def test_pieces_prove_what_one_search_proves(
    ruleset: Ruleset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each stop the file is damaged at its end; the next call continues from the undamaged
    part."""
    monkeypatch.setattr(proof_tree, "TABLE_BITS", 8)
    compared = 0
    search = ProofSearch(ruleset, 16)
    for i, position in enumerate(draw(ruleset.name, 24, (20, 40), seed=5)[0]):
        file = tmp_path / f"{i}.jsonl"
        search.table.clear()
        search.begin(10_000)
        value = search.prove(position)
        if value == UNKNOWN or search.nodes < 2_000:
            continue
        prove(ruleset, position, file, answers=4)
        file.write_text(file.read_text()[:-9])
        root = prove(ruleset, position, file).root
        answers = read_answers(file, ruleset)
        assert len(answers) > 4
        assert len(file.read_text().splitlines()) == 1 + len(answers)  # none is searched twice
        proved, leaves = value_of(root.text, answers, ruleset)
        mover = turn_of(position)
        assert proved == value
        assert root.winner == (mover if value == WIN else 1 - mover)
        assert root.plies == plies_of(root)
        assert len(list(prove_again(leaves, ruleset))) == len(leaves) > 1
        compared += 1
    assert compared > 1


def test_a_job_gets_the_most_promising_open_leaf() -> None:
    """It gets no position that is decided, repeated or given to another job."""
    ruleset = RULESETS["kujifunza"]
    position = packed_opening(ruleset)
    tree = ProofTree(ruleset, position, {})
    decided, asked_leaf = Node(position, (1, 0)), Node(position, (2, 2), is_asked=True)
    leaf, later = Node(position, (3, 1)), Node(position, (4, 1))
    inner = Node(position, after=[decided, tree.root, later, leaf, asked_leaf])
    tree.root.after = [inner]
    assert tree._pick(tree.root, []) == [tree.root, inner, leaf]
    assert (tree.root.numbers, inner.numbers) == ((1, 1), (1, 2 + 3 // PART))
    for node in (leaf, later):
        node.is_asked = True
    assert tree._pick(tree.root, []) == []
    stuck = Node(to_packed(parse_position(STUCK, RULESETS["zanzibar"])))
    stuck.sum_up()
    assert (stuck.numbers, stuck.plies) == ((1, 0), 0)


def test_command_line_of_pieces(says: Says, fails: Fails, tmp_path: Path) -> None:
    file = tmp_path / "kujifunza.jsonl"
    lines = says(f"solve --ruleset kujifunza --pieces {file} --nodes 300 --threads 1").splitlines()
    assert lines[0].startswith("South wins within ") and len(lines) == 17
    won = [line for line in lines[1:] if "South wins within " in line]
    assert file.read_bytes().count(b"\n") > 3  # the head, and an answer of each piece
    assert 0 < len(won) <= 4  # SOLVED.md: only A3R, A6L, A3L and A6R win
    assert all(line.startswith(("A3", "A6")) for line in won)
    root, *after = (int(line.split()[-2]) for line in (lines[0].partition("(")[0] + " ", *won))
    assert root == min(after)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]  # no lock is left
    refusal = f"{file} exists and is not a proof in pieces under the rules of malawi"
    assert refusal in fails(f"solve --ruleset malawi --pieces {file}")
    assert (
        says(f"solve '{STUCK}' --pieces {file}") == "North wins in 0 plies (0 positions visited)\n"
    )


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda answer: answer[:-1] + b"\0\n", ""),
        (lambda answer: (answer + b"\0" * 2**16).replace(b"]]", b""), ""),
        (lambda answer: answer.replace(b'"2,', b'",2,'), "row A: expected 8 counts"),
        (lambda answer: answer.replace(b'"2,', b'"9,'), "seeds"),
        (lambda answer: re.sub(rb"\[\[.*?\], ", b"[", answer), "the legal actions of its position"),
        (lambda answer: re.sub(rb"\[\[\d+", b"[[63", answer), "the legal actions of its position"),
        (lambda answer: answer.replace(b", 0]", b", -1]"), "a number is below 0"),
        (lambda answer: answer.replace(b'", ', b'", -'), "a number is below 0"),
        (lambda answer: re.sub(rb"(\[\[\d+), \d+, \d+", rb"\1, 0, 0", answer), "both players win"),
    ],
)
def test_a_damaged_answer_is_refused(
    damage: Callable[[bytes], bytes], fault: str, tmp_path: Path, fails: Fails
) -> None:
    ruleset, file = RULESETS["kujifunza"], tmp_path / "pieces"
    prove(ruleset, packed_opening(ruleset), file, answers=1)
    head, answer = file.read_bytes().splitlines(keepends=True)
    damaged = head + damage(answer)
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    refusal = fails(f"solve --ruleset kujifunza --pieces {file.as_posix()}")
    assert f"{file}, line 2: " in refusal and fault in refusal and refusal.count("\n") == 1
    assert file.read_bytes() == damaged


def test_an_answer_of_another_proof_is_refused(tmp_path: Path, fails: Fails) -> None:
    """Both are proofs under the same rules, of the opening and of a position after three plies."""
    ruleset, files = RULESETS["kujifunza"], [tmp_path / "first", tmp_path / "second"]
    moved = Board(ruleset)
    for _ in range(3):
        moved.push(moved.legal_actions[0])
    for file, position in zip(files, (packed_opening(ruleset), moved.packed), strict=True):
        prove(ruleset, position, file, answers=2)
    file, (_, *other_answers) = files[0], files[1].read_bytes().splitlines(keepends=True)
    refusal = fails(f"solve --ruleset kujifunza --pieces {files[1]}")
    assert f"{files[1]}, line 2: " in refusal and "choose another name" in refusal
    answers = file.read_bytes()
    answers += answers.splitlines(keepends=True)[-1]  # the same answer may be there twice
    file.write_bytes(answers + b"".join(other_answers))
    line = f"line {len(answers.splitlines()) + 1}: "  # one answer may be the proof
    assert f"{file}, {line}" in fails(f"solve --ruleset kujifunza --pieces {file}")
    with pytest.raises(ValueError, match=line):
        check_pieces.main([str(file), "kujifunza"])


def test_a_line_of_answers_may_be_longer_than_the_stack() -> None:
    ruleset, rng = RULESETS["zanzibar"], random.Random(1)
    board, search, answers = Board(ruleset), ProofSearch(ruleset, 0), dict[str, Answer]()
    while len(answers) < 100 and not board.is_game_over():
        actions = [KnownAction(child.action, 1, 1, 0) for child in search.children(board.packed)]
        answers[board.text()] = Answer(board.text(), 1, actions)
        board.push(rng.choice(board.legal_actions))
    assert len(answers) > 40
    ProofTree(ruleset, packed_opening(ruleset), answers)  # compiles
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 30)
    try:
        tree = ProofTree(ruleset, packed_opening(ruleset), answers)
        tree.check_file(Path("there is no foreign answer"))
    finally:
        sys.setrecursionlimit(limit)


def test_a_proof_in_pieces_may_be_longer_than_files_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reader of these has to hold the whole file in memory."""
    ruleset, file = RULESETS["kujifunza"], tmp_path / "pieces"
    prove(ruleset, packed_opening(ruleset), file, answers=1)
    answers = read_answers(file, ruleset)
    monkeypatch.setattr("bao_env.files.MAX_BYTES", 100)
    monkeypatch.setattr("bao_env.files.read_bytes.__defaults__", (100,))
    monkeypatch.setattr("bao_env.files.read_text.__defaults__", (100,))
    assert read_answers(file, ruleset) == answers and len(answers) == 1


def test_openings_are_searched_through_a_link(tmp_path: Path, capsys: Capsys) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for limit in ("1", "200"):
        prove_openings.main([str(link), "kujifunza", "1", limit])
    assert link.is_symlink() and len(read_answers(target, RULESETS["kujifunza"])) == 17


@pytest.mark.parametrize("option", ["--pieces", "--table"])
@pytest.mark.parametrize("content", ['{"thesis": 1}', '{"thesis": 1}\n', "\n", "[[1"])
def test_another_file_is_not_replaced(
    content: str, option: str, tmp_path: Path, fails: Fails
) -> None:
    file = tmp_path / "report.json"
    file.write_text(content)
    refusal = fails(f"solve --ruleset kujifunza {option} {file}")
    assert re.search(f"{file} exists and is not a .*proof", refusal)
    assert file.read_text() == content


def test_a_table_and_a_proof_in_pieces_are_not_confused(
    tmp_path: Path, says: Says, fails: Fails
) -> None:
    files = {option: tmp_path / option for option in ("--pieces", "--table")}
    command = "solve --ruleset kujifunza --memory 20"
    for option, file in files.items():
        says(f"{command} --nodes 2000 {option} {file}")
    for option, file in zip(files, reversed(files.values()), strict=True):
        content = file.read_bytes()
        assert f"{file} exists and is not a " in fails(f"{command} {option} {file}")
        assert file.read_bytes() == content
    foreign = f"{command} --moves A1R --table {tmp_path}/new --pieces {files['--pieces']}"
    assert "choose another name" in fails(foreign)


@pytest.mark.parametrize("option", ["--pieces", "--table"])
def test_a_link_leads_to_the_file(option: str, tmp_path: Path, says: Says) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    says(f"solve --ruleset kujifunza --memory 20 --nodes 2000 {option} {link}")
    assert link.is_symlink() and target.stat().st_size > 0


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_goes_on_from_its_file(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped many times, it proves what a search at one go proves, and takes hardly longer."""
    for name_of_size, size in (("EASY_NODES", 1), ("TABLE_BITS", 4), ("GROW_NODES", 100)):
        monkeypatch.setattr(proof_search, name_of_size, size)
    ruleset, compared = RULESETS["malawi"], 0
    for i, position in enumerate(draw("malawi", 40, (24, 40), seed=5)[0]):
        plain = ProofSearch(ruleset, 16)
        plain.begin(20_000)
        value = plain.prove(position)
        if value == UNKNOWN or plain.nodes < 3_000:
            continue
        file, stops = tmp_path / f"{i}.table", 0
        while True:
            search = ResumableSearch(ruleset, position, file, 16, threads)
            list(search.run(nodes=search.visited + 400))
            search.save()
            if search.value != UNKNOWN:
                break
            stops += 1
            assert 400 * stops <= search.visited <= 401 * stops
        assert search.value == value and 0 in search.numbers
        assert search.visited == search.curve[-1].visited < 2 * plain.nodes
        *visits, last = (point.visited for point in search.curve)
        growth = [after / before for before, after in pairwise(visits)]
        assert len(visits) > 3 and min(growth) >= 1.25 and last > visits[-1]
        compared += 1
    assert compared > 2


def test_steps_of_a_search_grow_to_a_minute_and_saves_are_rare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ruleset = RULESETS["kujifunza"]
    search = ResumableSearch(ruleset, packed_opening(ruleset), tmp_path / "table", 4, 1)
    clock, steps, saves = 0.0, list[float](), [0.0]

    def step(nodes: int | None, end: float) -> None:
        nonlocal clock
        steps.append(end - clock)
        clock = end

    monkeypatch.setattr(search, "_step", step)
    monkeypatch.setattr(search, "save", lambda: saves.append(clock))
    monkeypatch.setattr(resumable_search, "deadline", lambda seconds: clock + seconds)
    monkeypatch.setattr(resumable_search, "nanoseconds", lambda: clock)
    monkeypatch.setattr(resumable_search, "time", SimpleNamespace(monotonic=lambda: clock))
    assert len(list(search.run(seconds=9000.0))) == len(steps) and clock == 9000
    *full_steps, last = steps
    assert full_steps == pytest.approx([min(1.25**i, 60.0) for i in range(len(full_steps))])
    assert 0 < last <= 60
    assert [1800 <= end - begin < 1860 for begin, end in pairwise(saves)] == [True] * 4


def test_command_line_of_a_table(
    says: Says, fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals, even two, and limits save the table; a damaged one is refused, and stays as it
    is."""

    def terminate(file: int) -> None:
        if os.fstat(file).st_size > 1 << 20:
            signal.raise_signal(signal.SIGTERM)

    file, search = tmp_path / "malawi.table", ResumableSearch.run
    hangup = getattr(signal, "SIGHUP", signal.SIGTERM)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), hangup))

    def search_and_hang_up(*args: Any, **limits: Any) -> Iterator[None]:
        for number, _ in enumerate(search(*args, **limits)):
            if number == 0:
                timer.start()
            yield

    handler = signal.getsignal(signal.SIGTERM)
    hangup_handler = signal.signal(hangup, signal.SIG_DFL)  # nohup ignores the signal
    begin = f"solve --ruleset malawi --memory 20 --seconds 60 --table {file}"
    try:
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", terminate)
            patch.setattr(ResumableSearch, "run", search_and_hang_up)
            stopped = fails(begin, status=130)
            assert f"saving {file}: another Ctrl-C loses the work since" in stopped
            assert "run the same command" in stopped
    finally:
        signal.signal(hangup, hangup_handler)
    assert signal.getsignal(signal.SIGTERM) is handler
    visited = json.loads(file.read_bytes().split(b"\n")[0])["visited"]
    assert visited > 0
    unknown = says(f"solve --ruleset malawi --table {file} --threads 1 --nodes {visited + 1000}")
    assert unknown == f"unknown ({visited + 1000:,} positions visited)\n"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    content = file.read_bytes()
    for damaged, fault in ((content[:-1], "1 bytes too few"), (content + b"a", "1 bytes too many")):
        file.write_bytes(damaged)
        assert f"{file} is damaged: it has {fault}" in fails(
            f"solve --ruleset malawi --table {file}"
        )
        assert file.read_bytes() == damaged
    file.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(resumable_search, "free_memory", lambda: 3 << 20)
        refusal = f"{file} needs 20 megabytes, but only 3 are free"
        assert refusal in fails(f"solve --ruleset malawi --table {file}")
    refusal = f"{file} is the table of another position"
    assert refusal in fails(f"solve --ruleset malawi --moves A6R --table {file}")
    assert "table of a proof under the rules of dutch" in fails(
        f"solve --ruleset dutch --table {file}"
    )


@pytest.mark.parametrize("ruleset", ["kujifunza", "malawi", "dutch"])
def test_the_proof_of_a_table_is_split_into_pieces(
    ruleset: str, tmp_path: Path, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after some answers, it goes on; a table that has lost its entries proves them
    again."""
    rules = RULESETS[ruleset]
    split, compared = ResumableSearch.split, 0
    for i, position in enumerate(draw(ruleset, 40, (20, 36), seed=5)[0]):
        plain = ProofSearch(rules, 16)
        plain.begin(20_000)
        value = plain.prove(position)
        if value == UNKNOWN or plain.nodes < 2_000:
            continue
        table, file = tmp_path / f"{i}.table", tmp_path / f"{i}.jsonl"
        text = format_position(unpack(position))
        command = f"solve '{text}' --ruleset {ruleset} --table {table} --pieces {file} --nodes 100"

        def stop(search: ResumableSearch, *arguments: Any) -> Iterator[Answer]:
            yield from islice(split(search, *arguments), 3)
            search._search.clear()
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(ResumableSearch, "split", stop)
            assert main(shlex.split(command)) == 130
        assert len(read_answers(file, rules)) == 3
        says(command)
        answers = read_answers(file, rules)
        proved, leaves = value_of(text, answers, rules)
        assert proved == value
        small = ProofSearch(rules, 16)
        for leaf, leaf_value in leaves.items():
            small.clear()
            small.begin(100)
            assert small.prove(to_packed(parse_position(leaf, rules))) == leaf_value
        compared += 1
        if compared == 2:
            break
    assert compared == 2


def test_malawi_is_won(thorough: bool, seed: int) -> None:
    """The test proves some of the pieces again, chosen by the seed. All would take an hour."""
    ruleset = RULESETS["malawi"]
    answers = read_answers(SHIPPED, ruleset)
    value, leaves = value_of(Board("malawi").text(), answers, ruleset)
    assert value == WIN
    tree = ProofTree(ruleset, packed_opening(ruleset), answers)
    assert tree.root.winner == SOUTH and tree.root.plies == 123
    part = Random(seed).sample(sorted(leaves.items()), 8 if thorough else 2)
    assert len(list(prove_again(dict(part), ruleset))) == len(part)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_proven_table_is_only_read(threads: int, says: Says, tmp_path: Path) -> None:
    """It gives the proof again, even if the limit is lower than what the proof took."""
    file = tmp_path / "kujifunza.table"
    command = f"solve --ruleset kujifunza --threads {threads} --memory 20 --table {file}"
    proof = says(command)
    assert proof.startswith("South wins within ")
    content, inode = file.read_bytes(), file.stat().st_ino
    for limit in ("", "--nodes 1", "--seconds 1"):
        assert says(f"{command} {limit}") == proof
    assert (file.read_bytes(), file.stat().st_ino) == (content, inode)


def test_a_full_disk_hides_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A failed save does not end a search, and its proof is printed before the error."""
    disk_full = errno.ENOSPC, "No space left on device"

    def fail_for_tables(file: int) -> None:
        if os.fstat(file).st_size > 1 << 20:
            raise OSError(*disk_full)

    monkeypatch.setattr("os.fsync", fail_for_tables)
    monkeypatch.setattr(resumable_search, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(resumable_search, "STEP_SECONDS", (0.01, 0.01))
    file, ruleset = tmp_path / "table", RULESETS["malawi"]
    search = ResumableSearch(ruleset, packed_opening(ruleset), file, 16, 1)
    assert len(list(islice(search.run(), 3))) == 3
    assert capsys.readouterr().err.count("the search goes on, but could not be saved: ") == 2
    assert 1 <= len(list(islice(search.run(seconds=0.05), 1000))) < 100 and search.value == UNKNOWN
    command = f"solve --ruleset kujifunza --memory 20 --table {file.as_posix()}"
    assert main(command.split()) == 2
    output = capsys.readouterr()
    assert output.out.startswith("South wins within ")
    assert output.err.splitlines()[-1] == f"error: {file}: {disk_full[1]}"
    assert not list(tmp_path.iterdir())
