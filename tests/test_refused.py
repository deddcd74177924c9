"""Compare what is refused, and how, with the recorded texts, one for each entry point."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bao_agents.cli.main import main
from tests.record import ENTRY_POINTS, compare


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_refusals_are_as_recorded(entry_point: str) -> None:
    """A refused call changes no object of its text, and a refused command writes no file."""
    compare("refused", entry_point)


@settings(max_examples=40)
@given(
    st.sampled_from(
        [
            "{}",
            "match {}",
            "match greedy {}",
            "match guided:{}:5",
            "match greedy --openings {}",
            "match greedy --ruleset {}",
            "match greedy --pairs {}",
            "match greedy --json {}",
            "match greedy --format {}",
            "match greedy --path {}",
            "match {}:make",
            "match greedy --pairs 1 pipe:{}",
            "tournament greedy {}",
            "rate greedy --ladder {}",
            "solve {}",
            "replay {}",
            "replay start --move {}",
            "curve {}",
            "blunders {}",
            "play {} --no-browser",
        ]
    ),
    st.text("aZ9:/=,.*\u0175\u4e2d", min_size=1, max_size=3),
)
@example("curve {}", "/:*")
def test_long_words_give_short_errors(line: str, piece: str) -> None:
    """An error quotes little of a word of 100,000 characters."""
    word = "x" + piece * (100_000 // len(piece))
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        assert main([part.replace("{}", word) for part in line.split()]) == 2
    assert len(stderr.getvalue()) < 3000, stderr.getvalue()[:200]
    assert stderr.getvalue().startswith("error: ")
