"""Test ``import bao_env``: its names, what it registers, and what it must not import."""

from __future__ import annotations

import re

import pettingzoo
import pytest

import bao_agents
import bao_env
from tests.processes import ROOT, python

LIBRARIES = {"torch", "jax", "tensorflow", "matplotlib", "PIL", "pygame"}
HEAVY = (
    LIBRARIES
    | {"numba.cuda", "cuda", "cupy"}  # importing numba.cuda looks for a driver
    | {"tqdm", "bao_agents", "bao_training", "bao_env.adapters"}
)
MAIN = "from bao_agents.cli.main import main; main"
BOT = "import bao_agents, bao_env; bao_agents.load('alphabeta:1').choose(bao_env.Board())"


def imported(statement: str) -> set[str]:
    """Return what a fresh Python has imported after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    return {*python(program, PYTHONWARNINGS="error").stdout.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("statement", "packages"),
    [
        ("import bao_env; bao_env.Board; bao_env.BaoVectorEnv(2)", HEAVY),
        (f"{MAIN}(['--help'])", {"torch", "numba", "bao_env"}),
        (f"{MAIN}(['train', '--settings']); {MAIN}('train --set stepz=1'.split())", {"torch"}),
        (BOT, LIBRARIES),
    ],
    ids=["environments", "help", "settings and refused settings", "bot without a network"],
)
def test_imports_are_light(statement: str, packages: set[str]) -> None:
    assert not packages & imported(statement)


def test_imports_are_seen() -> None:
    assert {"bao_agents", "numba.cuda"} <= imported("import bao_agents, numba.cuda")


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None  # its import fails\n"


def test_a_guided_search_does_without_torch() -> None:
    match = f"{MAIN}('match guided:20n greedy --pairs 1 --threads 1'.split())"
    assert "guided" in python(WITHOUT_TORCH + match).stdout


def test_a_board_does_without_torch() -> None:
    """The board has guided players; it offers networks only if torch is installed."""
    pytest.importorskip("starlette")
    program = """
import asyncio
from bao_agents.play.api import POSTS, Lobby
from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app
create_app(Roster())
lobby = Lobby(Roster())
lobby.setup()
async def play():
    game = await POSTS["/api/games"](lobby, "me", {"seats": ["guided:1ms", "human"]})
    for request in ("bot", "hints"):
        values = {"name": game["id"], "ply": 0}
        await POSTS["/api/games/{name}/" + request](lobby, "me", values)
asyncio.run(play())
"""
    python(WITHOUT_TORCH + program)


def test_a_debugger_steps_through_the_rules() -> None:
    """With NUMBA_DISABLE_JIT=1 everything is plain Python, and no warning appears."""
    program = """
import numpy as np, bao_env
from bao_env.engine.kernel import begin_action
from bao_env.engine.position import Rows
board = bao_env.Board("dutch")
while not board.is_game_over() and board.ply < 40:
    board.push(board.legal_actions[-1])
for make in (bao_env.raw_env, bao_env.BaoEnv, lambda: bao_env.BaoVectorEnv(2, opponent="greedy")):
    env = make()
    env.reset(seed=1)
    env.step(env.sample_legal_actions())
rows = Rows.of(bao_env.Board().packed)
print(rows)
print(begin_action(bao_env.get_ruleset("zanzibar").kernel, rows, np.uint64(26))[1])
"""
    done = python(program, PYTHONWARNINGS="error", NUMBA_DISABLE_JIT="1")
    rows, hand = done.stdout.splitlines()
    assert rows.startswith("front 0 0 0 0 6 2 2 0, back 0 0 0 0 0 0 0 0, other_front 0 0 0 0 6")
    assert hand.endswith("3 seeds from pit 7 up")


def test_version_is_that_of_the_changelog() -> None:
    """The version is defined only in `bao_env.__version__`, where the build reads it."""
    newest = re.search(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest[1] == bao_env.__version__


def test_players_are_listed() -> None:
    assert {"analyse", "load", "review", "solve"} <= {*dir(bao_agents)}


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has no registry yet")
def test_pettingzoo_registration() -> None:
    env = pettingzoo.make("aec", "bao/bao-v0", ruleset="dutch", max_plies=3)
    assert isinstance(env.unwrapped, bao_env.raw_env)
    assert env.unwrapped.ruleset.name == "dutch"
    env.reset()
    assert env.agent_selection == "player_0"
