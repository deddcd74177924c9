"""Print how often South wins if guided alpha-beta plays itself, with the 95% interval.

Under the rules of a TOML file, which have no guide, plain alpha-beta plays itself.

python docs/known.py strong 2000 600            # the positions, nodes a move, games
python docs/known.py random 2000 600 malawi     # and the rules, by name or TOML file

Games begin at positions after eight plies, which are ``random`` or drawn by the policy of
zanzibar's network (``strong``), or at the positions of a file of openings, such as ``balanced``.
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
from bao_env import Engine, load_ruleset

kind, nodes, count, *names = sys.argv[1:]
count, rules = int(count), names[0] if names else "zanzibar"
engine = Engine(load_ruleset(rules) if rules.endswith(".toml") else rules)
if kind == "strong":
    rng = np.random.default_rng(1)
    network = load_shared(parse("zanzibar").path, engine.ruleset).network
    agent = NetworkAgent(network, engine.ruleset)
    positions, legal, winners = engine.new_games(3 * count)
    for _ in range(8):
        outputs = agent.evaluate(positions, legal)
        logits = outputs.logits + rng.gumbel(size=len(outputs.logits)).astype(np.float32)
        engine.step(positions, best_legal_actions(logits, outputs.indptr, legal), legal, winners)
    different = np.sort(np.unique(positions, axis=0, return_index=True)[1])
    positions = positions[different[legal[different] != 0]][:count]
elif kind == "random":
    positions = draw_openings(engine.ruleset, count, 8, seed=1, balance=None).positions
else:
    positions = read_openings(kind, engine.ruleset, count, seed=1).positions

kind = "alphabeta" if rules.endswith(".toml") else "guided"
player = load(f"{kind}:{nodes}n", ruleset=engine.ruleset)
south = np.zeros(len(positions), np.int8)
share = (play_games((player, player), positions, south, engine).winners == 0).mean()
print(share, *wilson_interval(share, len(positions)))
