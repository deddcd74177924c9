"""Test that a resumed run keeps its history, also columns that it does not know."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_training.metrics import Metrics


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-9, 9).map(lambda x: round(x, 6)), min_size=3, max_size=9),
    st.integers(1, 9),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_another_program_may_save_the_metrics(
    values: list[float], update: int, encoding: str, end: str, cut: bool
) -> None:
    """All rows until the checkpoint stay, also an added column; only the last can be cut."""
    head = ["update", "note", "td_loss", "steps"]
    rows = [[str(i), "x", str(v), str(64 * i)] for i, v in enumerate(values)]
    kept = [row for row in rows if int(row[0]) <= update]
    lines = [",".join(row) for row in [head, *rows]] + ["99" if cut else ""]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        purged: list[int] = []

        def writer(folder: str, purge_step: int) -> io.StringIO:
            purged.append(purge_step)
            return io.StringIO()

        patch.setattr("bao_training.metrics.SummaryWriter", writer)
        file = Path(name) / "metrics.csv"
        file.write_bytes(end.join(lines).encode(encoding))
        Metrics(Path(name), ["update", "steps", "td_loss"], update, 640).close()
        with open(file, newline="", encoding="utf-8") as table:
            found = list(csv.DictReader(table))
    assert [[row[column] for column in head] for row in found] == kept and purged == [641]
