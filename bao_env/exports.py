"""Gather the public names of the package; :mod:`bao_env` imports them on first use."""

from bao_env.board import Board, Outcome
from bao_env.bots import Agent, GreedyAgent, RandomAgent
from bao_env.engine.action import NUM_ACTIONS, IllegalMoveError
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.ruleset import RULESETS, Ruleset, get_ruleset
from bao_env.envs.aec import env, raw_env
from bao_env.envs.single import BaoEnv
from bao_env.envs.vector import BaoVectorEnv
from bao_env.notation.positions import action_to_move, move_to_action
from bao_env.observation.observer import Observer
from bao_env.rule_files import load_ruleset
from bao_env.self_play import OpponentPool, PolicyAgent

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
    "env",
    "get_ruleset",
    "load_ruleset",
    "move_to_action",
    "raw_env",
]
