"""Test proofs in pieces."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from bao_agents.exact import proof_tree
from bao_agents.exact.proof_tree import ProofTree, read_answers
from bao_agents.search.solver.proof_number import UNKNOWN, WIN
from bao_agents.search.solver.proof_search import ProofSearch
from bao_env import RULESETS
from bao_env.engine.position import PackedPositions, turn_of
from bao_env.engine.ruleset import Ruleset
from tests.check_pieces import prove_again, value_of
from tests.conftest import Fails, Says
from tests.positions import STUCK, draw


def prove(
    ruleset: Ruleset, position: PackedPositions, file: Path, *, answers: int = 2**62
) -> ProofTree:
    """Continue a proof, in pieces of 200 positions, until it has this many more answers."""
    tree = ProofTree(ruleset, position, read_answers(file, ruleset))
    with ThreadPoolExecutor(1) as pool:
        for _ in islice(tree.prove(file, pool, 1, 200), answers):
            pass
    return tree


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
        proved, leaves = value_of(root.text, answers, ruleset)
        mover = turn_of(position)
        assert proved == value
        assert root.winner == (mover if value == WIN else 1 - mover)
        assert len(list(prove_again(leaves, ruleset))) == len(leaves) > 1
        compared += 1
    assert compared > 1


def test_command_line(says: Says, fails: Fails, tmp_path: Path) -> None:
    file = tmp_path / "kujifunza.jsonl"
    lines = says(f"solve --ruleset kujifunza --pieces {file} --nodes 300 --threads 1").splitlines()
    assert lines[0].startswith("South wins within ") and len(lines) == 17
    won = [line for line in lines[1:] if "South wins within " in line]
    assert 0 < len(won) <= 4  # SOLVED.md: only A3R, A6L, A3L and A6R win
    assert all(line.startswith(("A3", "A6")) for line in won)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]  # no lock is left
    refusal = f"{file} exists and is not a proof in pieces under the rules of malawi"
    assert refusal in fails(f"solve --ruleset malawi --pieces {file}")
    file.write_text(file.read_text().replace("]]", "", 1))
    assert (
        says(f"solve '{STUCK}' --pieces {file}") == "North wins in 0 plies (0 positions visited)\n"
    )
    assert f"{file}, line 2: " in fails(f"solve --ruleset kujifunza --pieces {file}")


@pytest.mark.parametrize("content", ['{"thesis": 1}', '{"thesis": 1}\n', "\n", "[[1"])
def test_another_file_is_not_replaced(content: str, tmp_path: Path, fails: Fails) -> None:
    file = tmp_path / "report.json"
    file.write_text(content)
    refusal = fails(f"solve --ruleset kujifunza --pieces {file}")
    assert f"{file} exists and is not a proof" in refusal
    assert file.read_text() == content
