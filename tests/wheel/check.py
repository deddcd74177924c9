"""Use an installed wheel as its users do; ``tests/wheel/run`` starts this, with the same
arguments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path

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
    """Import all packages, with warnings as errors; none may come from a checkout."""
    program = (
        "import bao_env, bao_agents, bao_training, bao_agents.cli.main as c; print(c.__file__)"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    imported_from = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert imported_from.startswith(sys.prefix), imported_from


def description() -> None:
    """Check that the package index shows the README without the parts that only a clone needs."""
    text = metadata("bao_env")["Description"]
    assert "`pip install bao_env`" in text and "pip install 'bao_env[train]' && bao train" in text
    assert not re.search(r"<!--|pip install -e|\]\((?!http|#)", text), text


def pages() -> None:
    """Check that the guides and examples that ``bao --help`` names have working links."""
    index = re.search(r"The guides begin with (.+)/docs/index\.md", bao("--help"))
    assert index is not None
    followed = 0
    for page in Path(index[1]).rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (page.parent / link).exists(), (page, link)
            followed += 1
    assert followed > 200, followed


PLAY_EVERYTHING = """
from numba.core import event
import bao_env

class Count(event.Listener):
    def on_start(self, event):
        print(event.data["dispatcher"])
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
env = bao_env.env()
env.reset(seed=1)
env.step(int(env.last()[0]["action_mask"].argmax()))
envs = bao_env.BaoVectorEnv(8, opponent="greedy", observation="replies", threads=2)
envs.reset(seed=1)
envs.step(envs.sample_legal_actions())

import bao_agents
from bao_agents.players.registry import PLAYERS
from bao_training.run_settings import load_config
from bao_training.train import make_trainer
board = bao_env.Board()
board.move_text("A7L")
for name in PLAYERS:
    if not name.startswith(("runs/", "pipe:", "package.")):
        bao_agents.load(name).choose(board)
settings = load_config("quick", ["envs=64", "minibatch=64", "hidden=[8]"])
make_trainer(*settings).train_update()
"""
"""Code that uses everything and prints what it compiles."""


def warm_up() -> None:
    """Check that after ``bao warm-up`` nothing is compiled."""
    bao("warm-up")
    command = [sys.executable, "-c", PLAY_EVERYTHING]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def environments() -> None:
    """Run each kind of environment under its checker, and a vector environment against a named
    player."""
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


def version() -> None:
    """The version names the commit of the checkout, not of the repository around it."""
    assert bao("--version").endswith(f", commit {os.environ['BAO_COMMIT']}\n")


def players() -> None:
    """Try players without a network."""
    assert "alphabeta:6" in bao("players")
    assert "greedy" in bao("match", "alphabeta:2", "greedy", "--pairs", "5")
    report = json.loads(bao("rate", "greedy", "--precision", "200", "--json", "-"))
    assert report["made_with"]["commit"] == os.environ["BAO_COMMIT"]


def train() -> None:
    """Train for seconds, and again from the run; the network plays by the name of its run and by
    its path."""
    assert "quick" in bao("train")
    small = ("steps=20_000", "envs=256", "evaluate_pairs=1", "search_guided.nodes=20")
    bao("train", "quick", *(word for setting in small for word in ("--set", setting)))
    bao("train", "runs/quick", "--run", "again")
    weights, weights_again = (
        Path("runs", name, "final.safetensors") for name in ("quick", "again")
    )
    assert weights.read_bytes() == weights_again.read_bytes()
    made_with = json.loads(Path("runs/again/run.json").read_text(encoding="utf-8"))["made_with"]
    assert made_with["commit"] == os.environ["BAO_COMMIT"]
    for name in ("runs/quick", "runs/quick/final.safetensors", "zanzibar"):
        bao("match", name, "random", "--pairs", "5")


def play() -> None:
    """Ask the web board for a page."""
    command = ["bao", "play", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}api/setup", timeout=60) as answer:
            assert "zanzibar" in answer.read().decode()
        server.terminate()


def render() -> None:
    """Draw a game as an animated GIF."""
    Path("game.txt").write_text("1: 6L*;\n")
    bao("replay", "game.txt", "--gif", "game.gif")


def without(extra: str) -> Callable[[], None]:
    """Return a check that commands say how to install a missing extra."""

    def check() -> None:
        Path("game.txt").write_text("1: 6L*;\n")
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
        "description": description,
        "version": version,
        "pages": pages,
        **({"warm-up": warm_up} if "--warm-up" in sys.argv else {}),
        "environments": environments,
        "players": players,
        **{n: c if n in sys.argv else without(n) for n, c in CHECKS.items()},
    }.items():
        start = time.perf_counter()
        check()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
