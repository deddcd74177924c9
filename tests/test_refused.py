"""Test commands that are refused: the error says why, and nothing is started."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Fails


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench perf", "there is no command 'bench': did you mean 'bench engine'"),
        ("foo", "there is no command 'foo'; bao --help lists all"),
        ("bench perft x", "argument depth: 'x': expected a whole number of at least 1"),
        ("bench perft 3 --ruleset chess", "unknown rule set 'chess'"),
        ("bench perft 3 --ruleset no.toml", "no.toml: No such file"),
        ("bench perft 3 --position nonsense", "fields"),
        ("solve nonsense", "fields"),
        (f"bench engine --batches {10**15}", "too little memory: Unable to allocate"),
        ("bench train --set env=3", "unknown key 'env'; did you mean 'envs'"),
        ("replay none.txt", "none.txt: No such file or directory"),
        ("match no/such.safetensors", "there is no such file"),
        ("match greedy --path nowhere", "--path nowhere: there is no such folder"),
        ("match nobody", "unknown player 'nobody'"),
        ("match zanzibar --ruleset kibao", "trained under rule set 'zanzibar', not 'kibao'"),
        ("match greedy --sprt 10 0", "elo0"),
        ("match greedy --pairs 1 --games /", "'/': expected the name of a file"),
        ("match greedy --pairs 1 --games=", "'': expected the name of a file"),
        ("match greedy --opening-plies 41", "'41': expected a whole number from 0 to 40"),
        ("rate random --threads 1000000000000", "expected a whole number from 1 to 1024"),
        ("train --out runs --run ../x", "expected the name of a folder"),
        ("train --out runs --run ..", "expected the name of a folder"),
        (f"train --out runs --run {'x' * 300}", "expected the name of a folder"),
        ("tournament --out new random", "needs two players"),
        ("tournament --out new random random", "two players are called 'random'"),
        ("tournament --out new random =", "expected PLAYER or NAME=PLAYER"),
        ("tournament --out new random a|b=greedy", "a name must not contain"),
        ("tournament --out new random a\x07b=greedy", "a name must not contain"),
        ("tournament --out new random gredy", "unknown player 'gredy'"),
        ("tournament --out new random greedy --anchor me", "--anchor me: no player"),
        ("tournament --out new random greedy --opening-plies 1", "fewer than 500 different"),
        ("rate gready", "did you mean 'greedy'"),
        ("rate kibao", "trained under rule set 'kibao', not 'zanzibar' .* is for zanzibar"),
        ("rate greedy --ladder chess", "no ladder 'chess': expected .* a file, or bao-ladder-"),
        ("rate greedy --card no/where", "argument --card: there is no folder no: make it first"),
        ("match greedy --json no/where", "argument --json: there is no folder no"),
        ("rate greedy --precision 0", "expected a number of at least 0.1"),
        ("blunders", "nothing to do"),
        ("blunders --won new.npz --plot new.png", "nothing to do"),
        ("blunders --won new.npz --sources own", "not own"),
        ("blunders gready", "did you mean 'greedy'"),
        ("blunders zanzibar --ruleset kujifunza", "trained under"),
        ("blunders greedy --plies 500 600", "fewer than 1000 different positions"),
        ("blunders greedy --positions 0", "'0': expected a whole number of at least 1"),
        ("blunders greedy --sources elsewhere", "invalid choice"),
        ("solve --sample 0 --out new.npz", "'0': expected a whole number of at least 1"),
        ("solve --sample 4 --players nobody greedy --out new.npz", "unknown player 'nobody'"),
        ("solve --sample 4 --out .", "'.': expected the name of a file"),
        ("solve --sample 4 --out none/new.npz", "there is no folder none: make it first"),
        ("play --no-browser --host ''", "--host '': expected an address"),
        ("play --no-browser nope:x", "nope:x cannot be imported"),
        ("play --no-browser --port 99999999", "cannot listen on 127.0.0.1 port 99999999"),
        ("play --no-browser --host 203.0.113.1", "cannot listen on 203.0.113.1"),
        ("play --no-browser --checkpoints nowhere", "nowhere is not a folder"),
    ],
)
def test_what_is_refused(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    monkeypatch.chdir(tmp_path)
    error = fails(line)
    assert re.search(message, error) and "Traceback" not in error
    assert re.match(rf"error: |bao {line.split()[0]}[ \w]*: error: ", error.splitlines()[-1])
    assert not list(tmp_path.iterdir())
