"""From a word to a player: ``"greedy"``, ``"alphabeta:6"``, ``"runs/quick/final.safetensors"``."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, Final

from agents.base import NamedPlayer
from bao_env.bots import Agent, GreedyAgent, RandomAgent
from bao_env.engine.ruleset import Ruleset, get_ruleset

CHECKPOINTS: Final = Path(__file__).with_name("checkpoints")
"""Where the shipped checkpoints lie; they are loaded by name, without the suffix."""

PLAYERS: Final = {
    "random": "uniformly random legal actions",
    "greedy": "the action that captures most seeds",
    "alphabeta:6": "alpha-beta search of 6 plies",
    "alphabeta:100ms": "the same for 100 milliseconds a move",
    "alphabeta:20000n": "the same for 20,000 nodes a move",
    "mcts:1000": "Monte Carlo tree search, 1,000 random playouts a move",
    "mcts:100ms": "the same for 100 milliseconds a move",
    "mcts:1000:greedy": "the same with greedy playouts",
    "runs/quick/final.safetensors": "a checkpoint, by its path, or by its name where it is shipped",
    "search:runs/best/final.safetensors:64": "a checkpoint with a search of 64 simulations a move",
    "guided:zanzibar:100ms": "alpha-beta guided by a checkpoint; also of 6 plies or 20000n",
    "package.module:function": "your own: called with ruleset= and seed=, returns an agent",
}
"""An example of every kind of player that :func:`load` knows, and what it is."""

KNOWN: Final = "; ".join(f"{name} ({what})" for name, what in PLAYERS.items())

_ALPHABETA: Final = re.compile(r"alphabeta:(\d{1,9}) ?(ms|n)?")
_MCTS: Final = re.compile(r"mcts:(\d{1,9}) ?(ms)?(:greedy|:random)?")
_SEARCH: Final = re.compile(r"search:(.+):(\d{1,9})")
_GUIDED: Final = re.compile(r"guided:(.+):(\d{1,9}) ?(ms|n)?")
_FUNCTION: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def shipped() -> list[str]:
    """Names of the checkpoints that come with the project."""
    return sorted(path.stem for path in CHECKPOINTS.glob("*.safetensors"))


def find_checkpoint(name: str) -> Path | None:
    """The file of a checkpoint given by path or by the name of a shipped one, if there is one."""
    if name in shipped():
        return CHECKPOINTS / f"{name}.safetensors"
    path = Path(name)
    return path if path.is_file() else None


def checkpoint_of(spec: str) -> Path | None:
    """The file of the checkpoint that a player plays with, if it has one."""
    parts = _SEARCH.fullmatch(spec) or _GUIDED.fullmatch(spec)
    return find_checkpoint(parts[1] if parts else spec)


def load(
    spec: str | os.PathLike[str],
    *,
    ruleset: str | Ruleset = "zanzibar",
    seed: int = 0,
    threads: int | None = None,
) -> NamedPlayer:
    """The player that ``spec`` names; :data:`PLAYERS` has an example of every kind.

    Args:
        spec: a bot with its limit, the path or name of a checkpoint, or ``module:function``.
        ruleset: the rules to be played; a checkpoint trained under others is refused.
        seed: of whatever the player draws.
        threads: on which a search shares out a batch; all cores by default.

    Raises:
        ValueError: nobody has that name, or the checkpoint cannot be used (a
            :class:`~agents.nets.checkpoint.CheckpointError` then says why).
    """
    name = os.fspath(spec)
    rules = get_ruleset(ruleset)
    if name == "random":
        return NamedPlayer(name, RandomAgent(seed))
    if name == "greedy":
        return NamedPlayer(name, GreedyAgent(rules))
    if name.startswith(("alphabeta:", "mcts:")):
        return NamedPlayer(name, _searcher(name, rules, seed, threads))
    if name.startswith(("search:", "guided:")):
        return NamedPlayer(name, _network_searcher(name, rules, threads))
    path = find_checkpoint(name)
    if path is not None:
        # Torch is slow to import and the bots don't need it.
        from agents.nets import checkpoint
        from agents.nets.policy import PolicyAgent

        network = checkpoint.load(path, rules).network
        return NamedPlayer(path.stem, PolicyAgent(network, rules, seed=seed))
    function = _FUNCTION.fullmatch(name)
    if function:
        return NamedPlayer(name, _own(function[1], function[2], rules, seed))
    raise ValueError(f"unknown player {name!r}: expected something like {', '.join(PLAYERS)}")


def _searcher(name: str, rules: Ruleset, seed: int, threads: int | None) -> Agent:
    alphabeta = _ALPHABETA.fullmatch(name)
    if alphabeta:
        from agents.search.alphabeta import AlphaBetaAgent

        return AlphaBetaAgent(rules, **_limit(alphabeta[1], alphabeta[2]), threads=threads)
    mcts = _MCTS.fullmatch(name)
    if mcts:
        from agents.search.mcts import MctsAgent

        limit, greedy = int(mcts[1]), mcts[3] == ":greedy"
        if mcts[2]:
            return MctsAgent(rules, seconds=limit / 1000, greedy=greedy, seed=seed, threads=threads)
        return MctsAgent(rules, simulations=limit, greedy=greedy, seed=seed, threads=threads)
    kind = name.partition(":")[0]
    examples = [example for example in PLAYERS if example.startswith(kind)]
    raise ValueError(f"player {name!r}: expected something like {', '.join(examples)}")


def _limit(number: str, unit: str | None) -> dict[str, Any]:
    """What limits an alpha-beta search: plies, milliseconds (ms) or nodes (n)."""
    if unit == "ms":
        return {"seconds": int(number) / 1000}
    return {"nodes" if unit == "n" else "depth": int(number)}


def _network_searcher(name: str, rules: Ruleset, threads: int | None) -> Agent:
    guided = _GUIDED.fullmatch(name)
    parts = guided or _SEARCH.fullmatch(name)
    if parts is None:
        raise ValueError(
            f"player {name!r}: expected search:CHECKPOINT:SIMULATIONS or guided:CHECKPOINT:LIMIT, "
            "the limit as in alphabeta:6, alphabeta:100ms or alphabeta:20000n"
        )
    path = find_checkpoint(parts[1])
    if path is None:
        raise ValueError(f"player {name!r}: there is no checkpoint {parts[1]!r}")
    from agents.nets import checkpoint
    from agents.search.gumbel_agent import SearchAgent

    network = checkpoint.load(path, rules).network
    if guided:
        from agents.search.alphabeta import AlphaBetaAgent

        limit = _limit(guided[2], guided[3])
        return AlphaBetaAgent(rules, **limit, network=network, threads=threads)
    return SearchAgent(network, rules, int(parts[2]), threads=threads)


def _own(module: str, function: str, rules: Ruleset, seed: int) -> Agent:
    try:
        agent = getattr(importlib.import_module(module), function)(ruleset=rules, seed=seed)
    except Exception as error:  # whatever somebody's own code raises
        raise ValueError(
            f"player {module}:{function} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(agent, "act", None)):
        raise ValueError(
            f"player {module}:{function} returned {agent!r}: expected an object with "
            "act(positions, masks)"
        )
    return agent
