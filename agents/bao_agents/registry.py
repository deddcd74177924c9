"""Load a player by name: ``"greedy"``, ``"alphabeta:6"``, ``"runs/quick/final.safetensors"``.

:data:`KINDS` is the one table of players. It defines the names that :func:`load` takes, the lists
in help and errors, and the players that the board in a browser offers. To add a bot, write it in
a file of its own and give it a row.
"""

from __future__ import annotations

import argparse
import difflib
import operator
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bao_agents import plugins
from bao_agents.base import Budget, LoadRequest, NamedPlayer, OnBoard, PlayerKind, PlayerSpec
from bao_env.bots import Agent
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.options import Run

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork

CHECKPOINTS = Path(__file__).with_name("checkpoints")
"""Folder of the shipped checkpoints; they are loaded by name, without the suffix."""
GUIDES = CHECKPOINTS / "guides"
"""Folder of the small networks that guide alpha-beta instead of the shipped ones of that name."""

# --- loaders: each imports only what its player needs ---------------------------------------------


def _agent(name: str, *arguments: str) -> Callable[[LoadRequest], Agent]:
    """Return the loader of a class of players.

    Args:
        name: the class, ``package.module:name``, imported when it is first needed.
        arguments: its other arguments besides the limit, as attributes of the request.
    """

    def load(request: LoadRequest) -> Agent:
        make = pkgutil.resolve_name(name)
        given = {argument: getattr(request, argument) for argument in arguments}
        agent: Agent = make(**given, **request.limit)
        return agent

    return load


def _load_function(request: LoadRequest) -> Agent:
    name = str(request.spec)
    make = plugins.find(name)
    try:
        agent = make(ruleset=request.ruleset, seed=request.seed)
    except Exception as error:  # the function is not ours: it may raise anything
        raise ValueError(
            f"player {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(agent, "act", None)):
        raise ValueError(
            f"player {name} returned {agent!r}: expected an object with act(positions, legal)"
        )
    return agent


# --- the table ----------------------------------------------------------------------------------

_ALPHABETA = _agent(
    "bao_agents.search.alphabeta.player:AlphaBetaAgent", "ruleset", "network", "threads"
)
_SOLVER = _agent("bao_agents.search.solver.player:SolverAgent", "ruleset", "network", "threads")
_TREE_LIMITS = {"": "simulations", "ms": "milliseconds"}
_ALPHABETA_LIMITS = {"": "depth", "ms": "milliseconds", "n": "nodes"}
_SOLVER_LIMITS = {"s": "seconds", "ms": "milliseconds", "n": "nodes"}
_MILLISECONDS = Budget(1, 5_000, 500, {"en": "Milliseconds", "sw": "Milisekunde"})

KINDS = (
    PlayerKind(
        "random",
        "random",
        {"random": "uniformly random legal actions"},
        _agent("bao_env.bots:RandomAgent", "seed"),
        on_board={"": OnBoard({"en": "Random", "sw": "Wa kubahatisha"})},
    ),
    PlayerKind(
        "greedy",
        "greedy",
        {"greedy": "the action that captures most seeds"},
        _agent("bao_env.bots:GreedyAgent", "ruleset"),
        on_board={"": OnBoard({"en": "Greedy", "sw": "Mlafi"})},
    ),
    PlayerKind(
        "alphabeta",
        "alphabeta:{budget}",
        {
            "alphabeta:6": "alpha-beta search of 6 plies",
            "alphabeta:100ms": "the same for 100 milliseconds a move",
            "alphabeta:20000n": "the same for 20,000 nodes a move",
        },
        _ALPHABETA,
        limits=_ALPHABETA_LIMITS,
        on_board={
            "": OnBoard(
                {"en": "Alpha-beta, by depth", "sw": "Alpha-beta, kwa kina"},
                Budget(1, 10, 4, {"en": "Plies", "sw": "Kina"}),
            ),
            "ms": OnBoard(
                {"en": "Alpha-beta, by time", "sw": "Alpha-beta, kwa muda"}, _MILLISECONDS
            ),
        },
    ),
    PlayerKind(
        "mcts",
        "mcts:{budget}",
        {
            "mcts:1000": "Monte Carlo tree search, 1,000 random playouts a move",
            "mcts:1000:greedy": "the same with greedy playouts",
            "mcts:100ms": "Monte Carlo tree search for 100 milliseconds a move",
        },
        _agent("bao_agents.search.mcts:MctsAgent", "ruleset", "greedy", "seed", "threads"),
        limits=_TREE_LIMITS,
        options=("greedy", "random"),
        on_board={
            "": OnBoard(
                {"en": "Monte Carlo tree search", "sw": "Utafutaji wa Monte Carlo"},
                Budget(2, 100_000, 1000, {"en": "Playouts", "sw": "Majaribio"}),
            )
        },
    ),
    PlayerKind(
        "network",
        "{checkpoint}",
        {
            "zanzibar": "a shipped checkpoint by its name: its network alone",
            "runs/quick/final.safetensors": "a checkpoint by its path, here and below",
        },
        _agent("bao_agents.nets.policy:NetworkAgent", "network", "ruleset"),
        on_board={"": OnBoard({"en": "Network {checkpoint}", "sw": "Mtandao {checkpoint}"})},
        gives_hints=True,
    ),
    PlayerKind(
        "search",
        "search:{checkpoint}:{budget}",
        {"search:zanzibar:64": "a checkpoint with a search of 64 simulations a move"},
        _agent("bao_agents.search.gumbel.player:SearchAgent", "network", "ruleset", "threads"),
        limits={"": "simulations"},
        on_board={
            "": OnBoard(
                {
                    "en": "Network {checkpoint} with search",
                    "sw": "Mtandao {checkpoint} na utafutaji",
                },
                Budget(2, 2_000, 64, {"en": "Simulations", "sw": "Majaribio"}),
            )
        },
        gives_hints=True,
    ),
    PlayerKind(
        "guided",
        "guided:{checkpoint}:{budget}",
        {
            "guided:zanzibar:6": "alpha-beta search of 6 plies, guided by a checkpoint",
            "guided:zanzibar:100ms": "the same for 100 milliseconds a move",
            "guided:zanzibar:20000n": "the same for 20,000 nodes a move",
        },
        _ALPHABETA,
        limits=_ALPHABETA_LIMITS,
        reads_guide=True,
        on_board={
            "ms": OnBoard(
                {
                    "en": "Network {checkpoint}, alpha-beta",
                    "sw": "Mtandao {checkpoint}, alpha-beta",
                },
                _MILLISECONDS,
            )
        },
    ),
    PlayerKind(
        "solver",
        "solver:{budget}",
        {
            "solver:1s": "plays perfectly what it can prove in a second, else alpha-beta's choice",
            "solver:500ms": "the same for 500 milliseconds a move",
            "solver:200000n": "the same for 200,000 nodes a move",
        },
        _SOLVER,
        limits=_SOLVER_LIMITS,
        on_board={
            "ms": OnBoard({"en": "Solver, alpha-beta", "sw": "Mtatuzi, alpha-beta"}, _MILLISECONDS)
        },
    ),
    PlayerKind(
        "guided-solver",
        "solver:{checkpoint}:{budget}",
        {
            "solver:zanzibar:1s": "the same, with alpha-beta guided by a checkpoint",
            "solver:zanzibar:500ms": "the same for 500 milliseconds a move",
            "solver:zanzibar:200000n": "the same for 200,000 nodes a move",
        },
        _SOLVER,
        limits=_SOLVER_LIMITS,
        reads_guide=True,
        on_board={
            "ms": OnBoard(
                {"en": "Network {checkpoint}, solver", "sw": "Mtandao {checkpoint}, mtatuzi"},
                _MILLISECONDS,
            )
        },
    ),
    PlayerKind(
        "function",
        "{module}:{function}",
        {
            "package.module:function": "your own: called with ruleset= and seed=, returns an agent",
        },
        _load_function,
    ),
)
"""Every kind of player. If several match a name, the first is taken."""

PLAYERS = {example: what for kind in KINDS for example, what in kind.examples.items()}
"""Examples of every kind of player that :func:`load` takes, each with its meaning."""

# --- looking players up -------------------------------------------------------------------------


def shipped() -> list[str]:
    """Return the names of the shipped checkpoints."""
    return sorted(path.stem for path in CHECKPOINTS.glob("*.safetensors"))


def find_checkpoint(name: str) -> Path | None:
    """Return a checkpoint's file, by its path or its shipped name; None if there is none."""
    if name in shipped():
        return CHECKPOINTS / f"{name}.safetensors"
    return Path(name) if os.path.isfile(name) else None  # also False if the path is invalid


def parse(spec: str, checkpoints: Mapping[str, Path] | None = None) -> PlayerSpec:
    """Parse the name of a player.

    Args:
        spec: the name.
        checkpoints: the files by name that the board in a browser allows, which has not all kinds;
            by default the shipped ones and any path.

    Raises:
        ValueError: no player has that name, or the checkpoint does not exist.
    """
    names: Sequence[str] = shipped()
    find: Callable[[str], Path | None] = find_checkpoint
    kinds: Sequence[PlayerKind] = KINDS
    if checkpoints is not None:
        names, find = list(checkpoints), checkpoints.get
        kinds = [kind for kind in KINDS if kind.on_board]
    head, colon, rest = spec.partition(":")
    akin = [kind for kind in kinds if head and kind.head == head]
    for kind in akin if akin and colon else [kind for kind in kinds if not kind.head]:
        found = kind.match(spec)
        if found is None:
            continue
        if found.checkpoint is None:
            return found
        path = find(found.checkpoint)
        if path is not None:
            guide = GUIDES / path.name
            if kind.reads_guide and path.parent == CHECKPOINTS and guide.exists():
                path = guide
            return replace(found, path=path)
        if kind.head:
            raise ValueError(
                f"player {spec[:80]!r}: there is no checkpoint {found.checkpoint[:80]!r}"
                f"{_closest(found.checkpoint, names)}; by name there are: {', '.join(names)}"
            )
    if checkpoints is None and (spec.endswith(".safetensors") or os.sep in spec):
        raise ValueError(f"player {spec[:200]!r}: there is no such file")
    examples: list[str] = []
    for kind in akin or kinds:
        by_name = checkpoints is not None and kind.spelling == "{checkpoint}"
        examples += names if by_name else kind.examples
    meant = ""
    if not akin:
        heads = {kind.spelling.partition(":")[0] for kind in kinds}
        meant = _closest(head, [*(h for h in sorted(heads) if "{" not in h), *names], colon + rest)
    raise ValueError(
        f"unknown player {spec[:80]!r}{meant}: expected something like {', '.join(examples)}"
    )


def _closest(word: str, names: Sequence[str], rest: str = "") -> str:
    """Return the question whether the most similar name was meant, or an empty text."""
    found = difflib.get_close_matches(word, names, 1)
    return f" (did you mean {found[0] + rest!r}?)" if found else ""


def checkpoint_of(spec: str) -> Path | None:
    """Return the file of a player's checkpoint; None if it has none."""
    try:
        return parse(spec).path
    except ValueError:
        return None


def allow_architecture(name: str) -> None:
    """Let checkpoints use a custom architecture: import ``package.module:name``.

    Raises:
        ValueError: it cannot be imported.
        ImportError: torch is not installed.
    """
    from bao_agents.nets.network import allow_architecture

    allow_architecture(name)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao players``: list the players."""
    return _print_players


def _print_players(args: argparse.Namespace) -> None:
    width = max(map(len, PLAYERS))
    for example, meaning in PLAYERS.items():
        print(f"{example:{width}}  {meaning}")
    print(f"\nshipped checkpoints: {', '.join(shipped())}")


def read_network(path: Path, ruleset: Ruleset) -> PolicyNetwork:
    """Return the network of a checkpoint.

    Raises:
        CheckpointError: the checkpoint cannot be used under these rules.
        ImportError: torch is not installed.
    """
    from bao_agents.nets import checkpoint

    return checkpoint.load(path, ruleset).network


def load(
    spec: str | os.PathLike[str],
    *,
    ruleset: str | Ruleset = "zanzibar",
    seed: int = 0,
    threads: int | None = None,
) -> NamedPlayer:
    """Load the player that ``spec`` names; :data:`PLAYERS` has examples of every kind.

    Args:
        spec: a bot with its limit, the path or name of a checkpoint, or ``module:function``.
        ruleset: the rules to play; a checkpoint trained under others is refused.
        seed: the seed of the player's random choices.
        threads: the number of threads of a search; all cores by default.

    Raises:
        ValueError: no player has that name, or the checkpoint cannot be used (a
            :class:`~bao_agents.nets.checkpoint.CheckpointError`).
        ImportError: the player needs torch, which is not installed.
    """
    name = os.fspath(spec)
    found = parse(name)
    rules = get_ruleset(ruleset)
    if not 0 <= operator.index(seed) < 1 << 64:
        raise ValueError(f"seed={seed}: expected 0 to 2**64 - 1")
    network = evaluator = None
    if found.path is not None:
        from bao_agents.nets.policy import NetworkAgent

        network = read_network(found.path, rules)
        evaluator = NetworkAgent(network, rules)
        if found.checkpoint == name:
            name = found.path.stem
    agent = found.kind.load(LoadRequest(found, rules, seed, threads, network))
    return NamedPlayer(name, agent, evaluator)
