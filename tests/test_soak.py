"""The soak repeats random tests and reports the seed of a failure."""

from __future__ import annotations

from tests import soak
from tests.conftest import Capsys


def test_soak_prints_the_seeds_of_failures(capfd: Capsys) -> None:
    good = "tests/test_notation.py::test_readers_raise_only_notation_errors"
    assert soak.main(["0", good, "--seed", "3"]) == 0
    assert "seed 3: passed" in capfd.readouterr().out
    assert soak.main(["0", "tests/missing.py", "--seed", "5"]) == 1
    assert "failed seeds: 5" in capfd.readouterr().out
