"""Test how many cores a process may use, and so how many threads a search has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bao_agents.search.limits import check_threads
from bao_agents.support import cores as module
from bao_agents.support.cores import cores


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu.max": "300000 100000\n", "a/cpu.max": "500000 100000\n"}, 3),
        ({"a/b/cpu.max": "200000 100000\n", "a/cpu.max": "max 100000\n"}, 2),
    ],
)
def test_the_quota_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    for folder in ("cpu/a", "a/b"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "process").write_text("4:memory:/c\n2:cpu,cpuacct:/a\n0::/a/b\n")
    monkeypatch.setattr(module, "CGROUPS", tmp_path)
    monkeypatch.setattr(module, "PROCESS", tmp_path / "process")
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert cores() == check_threads(None) == expected
    for slurm_cores, count in (("1", 1), ("99", expected), ("0", expected), ("x", expected)):
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", slurm_cores)
        assert cores() == count, slurm_cores
