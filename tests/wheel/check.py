"""Use an installed wheel as its users do; ``tests/wheel/run`` starts it. Arguments: the extras."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test

import bao_env


def bao(*words: str) -> str:
    """Run a command and return what it prints; it must succeed."""
    done = subprocess.run(["bao", *words, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, f"bao {' '.join(words)}: {done.stderr}"
    return done.stdout


def imports() -> None:
    """Import all packages, with warnings as errors, and none from a checkout."""
    program = "import bao_env, bao_agents, bao_training, bao_training.cli as c; print(c.__file__)"
    command = [sys.executable, "-W", "error", "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.startswith(sys.prefix), found


def environments() -> None:
    """Each kind of environment under its checker; a vector against a player by its name."""
    api_test(bao_env.env(), num_cycles=100)
    check_env(gymnasium.make("bao_env:bao/Bao-v0").unwrapped, skip_render_check=True)
    envs = gymnasium.make_vec("bao_env:bao/Bao-v0", num_envs=8, opponent="alphabeta:2")
    assert isinstance(envs.unwrapped, bao_env.BaoVectorEnv)
    envs.reset(seed=1)
    results: list[float] = []
    for _ in range(60):
        _, rewards, ended, _, _ = envs.step(envs.unwrapped.sample_legal_actions())
        results += rewards[ended].tolist()
    assert len(results) > 8 and np.mean(results) < 0, results


def players() -> None:
    """Players without a network."""
    assert "alphabeta:6" in bao("players")
    assert "greedy" in bao("match", "alphabeta:2", "greedy", "--pairs", "5")
    report = json.loads(bao("rate", "greedy", "--precision", "200", "--json", "-"))
    assert report["made_with"]["commit"] == "unknown"  # not that of the repository around it


def train() -> None:
    """Train for seconds; the network plays by its run and by its path."""
    assert "quick" in bao("train")
    bao("train", "quick", "--set", "steps=20_000", "--set", "envs=256")
    for name in ("runs/quick", "runs/quick/final.safetensors", "zanzibar"):
        bao("match", name, "random", "--pairs", "5")


def play() -> None:
    """The web board answers."""
    command = ["bao", "play", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}api/setup", timeout=60) as answer:
            assert "zanzibar" in answer.read().decode()
        server.terminate()


def render() -> None:
    """A game as an animated GIF."""
    with open("game.txt", "w") as file:
        file.write("1: 6L*;\n")
    bao("replay", "game.txt", "--gif", "game.gif")


def without(extra: str) -> Callable[[], None]:
    """Return the check that commands say how to install their missing extra."""

    def check() -> None:
        with open("game.txt", "w") as file:
            file.write("1: 6L*;\n")
        for words in {
            "train": ("train quick", "match zanzibar greedy"),
            "play": ("play",),
            "render": ("replay game.txt --gif game.gif",),
        }[extra]:
            command = ["bao", *words.split(), "--quiet"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert f"pip install 'bao_env[{extra}]'" in done.stderr, done.stderr
            assert done.returncode == 2 and done.stderr.count("\n") == 1

    return check


CHECKS = {"train": train, "play": play, "render": render}

if __name__ == "__main__":
    for name, check in {
        "imports": imports,
        "environments": environments,
        "players": players,
        **{n: c if n in sys.argv else without(n) for n, c in CHECKS.items()},
    }.items():
        begun = time.perf_counter()
        check()
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
