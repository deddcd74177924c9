"""Print South's share of wins where guided alpha-beta plays itself, with its 95% interval.

python docs/known.py strong 2000 600     # the positions, nodes a move, games

The positions are those after eight plies that the shipped network's policy draws (``strong``) or
that are ``random``, or those of a file, as ``balanced``.
"""

import sys

import numpy as np

from bao_agents import load
from bao_agents.arena.elo import wilson_interval
from bao_agents.arena.games import play_games
from bao_agents.arena.openings import draw_openings, read_openings
from bao_agents.nets.checkpoint import load_shared
from bao_agents.nets.legal_actions import best_legal_actions
from bao_agents.nets.player import NetworkAgent
from bao_agents.players.registry import parse
from bao_env import Engine

kind, nodes, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
engine = Engine()
if kind == "strong":
    rng = np.random.default_rng(1)
    network = load_shared(parse("zanzibar").path, engine.ruleset).network
    agent = NetworkAgent(network, engine.ruleset)
    positions, legal, winners = engine.new_games(3 * count)
    for _ in range(8):
        found = agent.evaluate(positions, legal)
        logits = found.logits + rng.gumbel(size=len(found.logits)).astype(np.float32)
        engine.step(positions, best_legal_actions(logits, found.indptr, legal), legal, winners)
    first = np.sort(np.unique(positions, axis=0, return_index=True)[1])  # all different
    positions = positions[first[legal[first] != 0]][:count]
elif kind == "random":
    positions = draw_openings("zanzibar", count, 8, seed=1, balance=None).positions
else:
    positions = read_openings(kind, "zanzibar", count, seed=1).positions

player, south = load(f"guided:{nodes}n"), np.zeros(len(positions), np.int8)
share = (play_games((player, player), positions, south, engine).winners == 0).mean()
print(share, *wilson_interval(share, len(positions)))
