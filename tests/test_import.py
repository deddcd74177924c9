"""What ``import bao_env`` brings, and what it must not."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import pettingzoo
import pytest

import bao_env


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light():
    """Neither torch nor CUDA nor drawing libraries come along, and nothing is printed."""
    program = """
import sys, bao_env
heavy = {"torch", "jax", "tensorflow", "matplotlib", "PIL", "pygame", "tqdm"}
found = sorted(heavy & set(sys.modules))
assert not found, found
assert "bao_env.engine.cuda" not in sys.modules
drivers = sorted(name for name in sys.modules if name.startswith("numba.cuda.cudadrv.driver"))
assert not drivers, drivers
assert not {"agents", "training"} & set(sys.modules)
assert not [name for name in sys.modules if name.startswith("bao_env.adapters")]
"""
    assert run(program) == ""


def test_all_names_are_there():
    assert len(set(bao_env.__all__)) == len(bao_env.__all__) > 15
    for name in bao_env.__all__:
        assert getattr(bao_env, name) is not None
    assert bao_env.__version__ == "0.1.0"
    assert bao_env.NUM_ACTIONS == 64
    assert (bao_env.SOUTH, bao_env.NORTH) == (0, 1)
    assert bao_env.action_to_move(bao_env.move_to_action("A6L")) == "A6L"
    assert bao_env.get_ruleset("malawi") is bao_env.RULESETS["malawi"]
    assert issubclass(bao_env.IllegalMoveError, ValueError)


def test_gymnasium_registration():
    spec = gymnasium.spec("bao/Bao-v0")
    assert spec.entry_point == "bao_env.envs.single:BaoEnv"
    assert spec.vector_entry_point == "bao_env.envs.vector:BaoVectorEnv"
    assert spec.max_episode_steps is None


def test_gymnasium_imports_the_package_by_itself():
    program = """
import gymnasium
env = gymnasium.make("bao_env:bao/Bao-v0", opponent="greedy")
print(type(env.unwrapped).__name__)
envs = gymnasium.make_vec("bao_env:bao/Bao-v0", num_envs=2)
print(type(envs).__name__)
"""
    assert run(program).split() == ["BaoEnv", "BaoVectorEnv"]


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo has no registry yet")
def test_pettingzoo_registration():
    env = pettingzoo.make("aec", "bao/bao-v0", ruleset="dutch", max_plies=3)
    assert isinstance(env.unwrapped, bao_env.raw_env)
    assert env.unwrapped.ruleset.name == "dutch"
    env.reset()
    assert env.agent_selection == "player_0"
