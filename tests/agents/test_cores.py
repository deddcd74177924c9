"""Test how many cores and how much memory a process may use, and so how much a search uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bao_agents.search import memory
from bao_agents.search.limits import check_threads
from bao_agents.search.memory import default_memory, free_memory
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


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/b/memory.max": "max\n", "a/b/memory.current": "600\n"}, 5000),
        ({"a/b/memory.max": "1000\n", "a/b/memory.current": "600\n"}, 450),
        ({"a/memory.max": "900\n", "a/memory.current": "600\n"}, 350),
        (
            {"memory/c/memory.limit_in_bytes": "900", "memory/c/memory.usage_in_bytes": "700"},
            250,
        ),
        ({"a/b/memory.max": "1000\n", "a/b/memory.current": "2000\n"}, 0),
    ],
)
def test_the_memory_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    """Files that are cached count as free. A table takes a fourth by default."""
    for folder in ("memory/c", "a/b", "a"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "memory.stat").write_text("anon 7\ninactive_file 50\nslab 9\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "process").write_text("4:memory:/c\n2:cpu,cpuacct:/a\n0::/a/b\n")
    monkeypatch.setattr(module, "CGROUPS", tmp_path)
    monkeypatch.setattr(module, "PROCESS", tmp_path / "process")
    monkeypatch.setattr(memory, "_free_here", lambda: 5000)
    assert free_memory() == expected and default_memory() == expected // 4


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="Windows has no sysconf")
def test_the_memory_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux says how much is free; on macOS half of it counts as free, elsewhere four gigabytes."""
    report = "MemTotal:  9000 kB\nMemAvailable:  4321 kB\nBuffers:  7 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda _: report)
    assert memory._free_here() == 4321 * 1024
    monkeypatch.setattr(Path, "read_text", lambda _: "")
    pages = os.sysconf("SC_PHYS_PAGES")
    assert memory._free_here() == os.sysconf("SC_PAGE_SIZE") * pages // 2
    monkeypatch.delattr(os, "sysconf")
    assert memory._free_here() == 4 << 30
