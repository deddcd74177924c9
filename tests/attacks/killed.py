"""Programs that are killed: what they have saved is enough to go on as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.attacks.limits import ROOT, wait_until

KINDS_OF_DEATH: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def start(*words: str) -> subprocess.Popen[bytes]:
    """A program of the project, in a process of its own; its messages are the attack's."""
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


def finish(*words: str) -> float:
    """Run a program to its end, which must be a good one; returns the seconds it took."""
    begun = time.monotonic()
    status = start(*words).wait()
    assert status == 0, f"{words[0]} ended with status {status}"
    return time.monotonic() - begun


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def ended(processes: list[int]) -> bool:
    """Whether none of them runs; one that has ended may stay in the table for a while."""
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z":
                return False
    return True


def written(file: Path) -> int:
    """When a file was last written; 0 if it is not there."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def kill_some(rng: random.Random, seconds: float, saved: Path, *words: str) -> None:
    """Start a program a few times, and kill it each time at a random moment.

    Args:
        rng: draws the moments: any, or soon after the program has saved something.
        seconds: what the program takes if it is left alone.
        saved: the file that it writes again and again.
        words: its module and arguments.
    """
    for _ in range(rng.randint(2, 4)):
        before = written(saved)
        process = start(*words)
        wait = rng.uniform(0.1, 1.0) * seconds
        if rng.random() < 0.7:
            while process.poll() is None and written(saved) == before:
                time.sleep(0.002)
            wait = rng.expovariate(5.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        family = children(process.pid)
        process.send_signal(rng.choice(KINDS_OF_DEATH))
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            raise AssertionError("it did not end within a minute of a signal") from None
        wait_until(partial(ended, family), 15, f"{words[0]} left a process behind")


METHODS: Final = {
    "ppo": ("ppo.opponent_pool_every=2", "ppo.opponent_pool_share=0.5", "minibatch=256"),
    "alphazero": ("alphazero.simulations=4", "alphazero.buffer=4000", "minibatch=64"),
}


def training(rng: random.Random, folder: Path) -> None:
    """A run that is killed and resumed ends bit for bit as one that is left alone."""
    from safetensors.numpy import load_file

    method = rng.choice(list(METHODS))
    settings = [f"method={method}", f"seed={rng.randrange(1000)}", "hidden=[16]", "envs=32"]
    settings += ["rollout=16", "steps=8192", "max_plies=150", "checkpoint_every=0"]
    settings += ["evaluate_every=2000", "evaluate_pairs=2", *METHODS[method]]
    words = [word for setting in settings for word in ("--set", setting)]
    alone = finish("training.train", "--runs", str(folder), "--run", "alone", *words)
    killed = ("training.train", "--runs", str(folder), "--run", "killed", "--resume", *words)
    kill_some(rng, alone, folder / "killed" / "last.safetensors", *killed)
    finish(*killed)
    one, other = (load_file(folder / name / "final.safetensors") for name in ("alone", "killed"))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=f"{method}: {name}")


def tournament(rng: random.Random, folder: Path) -> None:
    """A tournament that is killed and continued has the results of one that is left alone."""
    players = ["random", "greedy", "alphabeta:2", f"mcts:{rng.choice((2, 8, 50))}"]
    options = ["--pairs", "120", "--seed", str(rng.randrange(1000)), "--processes", "2"]
    words = ["training.tournament", *rng.sample(players, 3), *options, "--out"]

    def results(name: str) -> dict[tuple[str, str, int], Any]:
        lines = (folder / name / "results.jsonl").read_text().splitlines()
        whole = [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"]
        return {(w["first"], w["second"], w["unit"]): (w["points"], w["plies"]) for w in whole}

    alone = finish(*words, str(folder / "alone"))
    saved = folder / "killed" / "results.jsonl"
    kill_some(rng, alone, saved, *words, str(folder / "killed"))
    finish(*words, str(folder / "killed"))
    assert results("alone") == results("killed")
    tables = [json.loads((folder / n / "table.json").read_text()) for n in ("alone", "killed")]
    assert tables[0]["pairings"] == tables[1]["pairings"]
