"""Bao la Kiswahili for reinforcement learning.

==============================  ======================================================
``bao_env.env``, ``raw_env``    PettingZoo: two agents (:mod:`bao_env.envs.aec`)
``bao_env.BaoEnv``              Gymnasium: one game, against an opponent or in self-play
``bao_env.BaoVectorEnv``        Gymnasium: thousands of games at once
``bao_env.Engine``              the batch engine beneath them: arrays in, arrays out
``bao_env.Board``               one game for people: moves by name, undo, pictures
==============================  ======================================================

Importing the package registers ``bao/Bao-v0`` with Gymnasium, and ``bao/bao-v0`` with PettingZoo if
it has a registry.
``gymnasium.make("bao_env:bao/Bao-v0")`` does the import itself.
"""

import gymnasium
import pettingzoo

from bao_env.board import Board, Outcome
from bao_env.bots import Agent, GreedyAgent, RandomAgent
from bao_env.checks import check_agent, check_observer
from bao_env.engine.action import NUM_ACTIONS, IllegalMoveError
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset, load_ruleset
from bao_env.envs.aec import env, raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.notation.positions import action_to_move, move_to_action
from bao_env.observation.observer import Observer
from bao_env.self_play import OpponentPool, PolicyAgent

__version__ = "0.1.0"

__all__ = [
    "NORTH",
    "NUM_ACTIONS",
    "RULESETS",
    "SOUTH",
    "Agent",
    "BaoEnv",
    "BaoVectorEnv",
    "Board",
    "Engine",
    "GreedyAgent",
    "IllegalMoveError",
    "Observer",
    "OpponentPool",
    "Outcome",
    "PolicyAgent",
    "RandomAgent",
    "Ruleset",
    "action_to_move",
    "check_agent",
    "check_observer",
    "env",
    "get_ruleset",
    "load_ruleset",
    "move_to_action",
    "raw_env",
]

gymnasium.register(
    "bao/Bao-v0",
    entry_point="bao_env.envs.single:BaoEnv",
    vector_entry_point="bao_env.envs.vector:make_vec",
)
if hasattr(pettingzoo, "register"):  # new in PettingZoo 1.27
    pettingzoo.register("aec", "bao/bao-v0", entry_point="bao_env.envs.aec:env")
