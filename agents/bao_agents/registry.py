"""Load a player by name: ``"greedy"``, ``"alphabeta:6"``, ``"runs/quick"``.

:data:`KINDS` is the one table of players. It defines the names that :func:`load` accepts and the
lists in help and errors. To add a bot, write it in a new file, and give it a loader and a row.
"""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bao_agents import plugins
from bao_agents.base import LoadRequest, NamedPlayer, PlayerKind, PlayerSpec
from bao_agents.nets.checkpoint_files import find_checkpoint, find_guide, shipped
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.ruleset import Ruleset, get_ruleset

if TYPE_CHECKING:
    from bao_agents.nets.network import PolicyNetwork

# --- loaders: each imports only what its player needs ---------------------------------------------


def _load_random(request: LoadRequest) -> NamedPlayer:
    return NamedPlayer(request.name, RandomAgent(request.seed))


def _load_greedy(request: LoadRequest) -> NamedPlayer:
    return NamedPlayer(request.name, GreedyAgent(request.ruleset))


def _load_alphabeta(request: LoadRequest) -> NamedPlayer:
    from bao_agents.search.alphabeta.player import AlphaBetaAgent

    spec = request.spec
    agent = AlphaBetaAgent(
        request.ruleset,
        depth=spec.count,
        seconds=spec.seconds,
        nodes=spec.nodes,
        threads=request.threads,
    )
    return NamedPlayer(request.name, agent)


def _load_mcts(request: LoadRequest) -> NamedPlayer:
    from bao_agents.search.mcts import MctsAgent

    agent = MctsAgent(
        request.ruleset,
        simulations=request.spec.count,
        seconds=request.spec.seconds,
        seed=request.seed,
        threads=request.threads,
    )
    return NamedPlayer(request.name, agent)


def _load_network(request: LoadRequest) -> NamedPlayer:
    from bao_agents.nets.policy import NetworkAgent

    agent = NetworkAgent(request.network(), request.ruleset)
    return NamedPlayer(request.name, agent, agent)


def _load_search(request: LoadRequest) -> NamedPlayer:
    from bao_agents.nets.policy import NetworkAgent
    from bao_agents.search.gumbel.player import SearchAgent

    network, rules = request.network(), request.ruleset
    agent = SearchAgent(network, rules, request.spec.budget, threads=request.threads)
    return NamedPlayer(request.name, agent, NetworkAgent(network, rules))


def _load_guided(request: LoadRequest) -> NamedPlayer:
    from bao_agents.nets.policy import NetworkAgent
    from bao_agents.search.alphabeta.player import AlphaBetaAgent

    spec, rules = request.spec, request.ruleset
    network = request.read_network(spec.path or find_guide(rules.name), rules)
    agent = AlphaBetaAgent(
        rules,
        depth=spec.count,
        seconds=spec.seconds,
        nodes=spec.nodes,
        network=network,
        threads=request.threads,
    )
    return NamedPlayer(request.name, agent, NetworkAgent(network, rules))


def _load_solver(request: LoadRequest) -> NamedPlayer:
    from bao_agents.search.solver.player import SolverAgent

    spec = request.spec
    agent = SolverAgent(
        request.ruleset, seconds=spec.seconds, nodes=spec.nodes, threads=request.threads
    )
    return NamedPlayer(request.name, agent)


def _load_function(request: LoadRequest) -> NamedPlayer:
    name = str(request.spec)
    make = plugins.find(name)
    try:
        agent = make(ruleset=request.ruleset, seed=request.seed)
    except Exception as error:  # foreign code may raise anything
        raise ValueError(
            f"player {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(agent, "act", None)):
        raise ValueError(
            f"player {name} returned {agent!r}: expected an object with act(positions, legal)"
        )
    return NamedPlayer(request.name, agent)


def _load_pipe(request: LoadRequest) -> NamedPlayer:
    from bao_agents.pipe import PipeAgent, split_limit

    seconds, command = split_limit(request.spec.name.removeprefix("pipe:"))
    agent = PipeAgent(command, request.ruleset, request.seed, request.threads, seconds)
    return NamedPlayer(agent.name, agent)


# --- the table ----------------------------------------------------------------------------------

_SEARCH_UNITS = ("", "ms", "n")

KINDS = (
    PlayerKind("random", "random", {"random": "uniformly random legal actions"}, _load_random),
    PlayerKind("greedy", "greedy", {"greedy": "the action that captures most seeds"}, _load_greedy),
    PlayerKind(
        "alphabeta",
        "alphabeta:{budget}",
        {
            "alphabeta:6": "alpha-beta search of 6 plies",
            "alphabeta:100ms": "the same for 100 milliseconds a move",
            "alphabeta:20000n": "the same for 20,000 nodes a move",
        },
        _load_alphabeta,
        _SEARCH_UNITS,
    ),
    PlayerKind(
        "mcts",
        "mcts:{budget}",
        {
            "mcts:1000": "Monte Carlo tree search, 1,000 random playouts a move",
            "mcts:100ms": "Monte Carlo tree search for 100 milliseconds a move",
        },
        _load_mcts,
        ("", "ms"),
    ),
    PlayerKind(
        "network",
        "{checkpoint}",
        {
            "zanzibar": "a shipped checkpoint by its name: its network alone",
            "runs/quick": "a run by its folder, or a checkpoint by its path",
        },
        _load_network,
    ),
    PlayerKind(
        "search",
        "search:{checkpoint}:{budget}",
        {"search:zanzibar:64": "a checkpoint with a search of 64 simulations a move"},
        _load_search,
    ),
    PlayerKind(
        "guided",
        "guided:{budget}",
        {
            "guided:100ms": "alpha-beta, guided by a small network, for 100 milliseconds a move",
            "guided:6": "the same for 6 plies",
            "guided:20000n": "the same for 20,000 nodes a move",
        },
        _load_guided,
        _SEARCH_UNITS,
    ),
    PlayerKind(
        "guided-by",
        "guided:{checkpoint}:{budget}",
        {"guided:zanzibar:100ms": "the same, guided by a checkpoint"},
        _load_guided,
        _SEARCH_UNITS,
    ),
    PlayerKind(
        "solver",
        "solver:{budget}",
        {
            "solver:1s": "plays perfectly what it can prove in a second, else alpha-beta's choice",
            "solver:500ms": "the same for 500 milliseconds a move",
            "solver:200000n": "the same for 200,000 nodes a move",
        },
        _load_solver,
        ("s", "ms", "n"),
    ),
    PlayerKind(
        "pipe",
        "pipe:{command}",
        {
            "pipe:COMMAND": "a program that speaks the protocol of docs/engine-protocol.md",
            "pipe:2s:COMMAND": "the same with 2 seconds a move, or 500ms; by default it has 60",
        },
        _load_pipe,
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
"""Examples of every kind of player that :func:`load` accepts, each with its meaning."""

# --- looking players up -------------------------------------------------------------------------


def parse(
    spec: str,
    checkpoints: Mapping[str, Path] | None = None,
    kinds: Sequence[PlayerKind] | None = None,
) -> PlayerSpec:
    """Parse the name of a player.

    Args:
        spec: the name.
        checkpoints: the checkpoints that may play, by name; by default the shipped ones and any
            path.
        kinds: the kinds that may play, by default all of them.

    Raises:
        ValueError: no player has that name, or the checkpoint does not exist.
    """
    names: Sequence[str] = shipped()
    find: Callable[[str], Path | None] = find_checkpoint
    if checkpoints is not None:
        names, find = list(checkpoints), checkpoints.get
    kinds = KINDS if kinds is None else kinds
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
            return replace(found, path=path)
        if kind.head:
            raise ValueError(
                f"player {spec[:80]!r}: there is no checkpoint {found.checkpoint[:80]!r}"
                f"{_closest(found.checkpoint, names)}; by name there are: {', '.join(names)}"
            )
    if checkpoints is None and (spec.endswith(".safetensors") or os.sep in spec):
        folder = " has no checkpoint" if os.path.isdir(spec) else ": there is no such file"
        raise ValueError(f"player {spec[:200]!r}{folder}")
    examples: list[str] = []
    for kind in akin or kinds:
        by_name = checkpoints is not None and kind.spelling == "{checkpoint}"
        some = list(kind.examples) if akin else list(kind.examples)[:1]
        examples += names if by_name else some
    meant = ""
    if not akin:
        heads = {kind.spelling.partition(":")[0] for kind in kinds}
        meant = _closest(head, [*(h for h in sorted(heads) if "{" not in h), *names], colon + rest)
    raise ValueError(
        f"unknown player {spec[:80]!r}{meant}: expected something like {', '.join(examples)}"
    )


def _closest(word: str, names: Sequence[str], rest: str = "") -> str:
    """Return a hint, "did you mean ...?", or an empty string."""
    found = difflib.get_close_matches(word, names, 1)
    return f" (did you mean {found[0] + rest!r}?)" if found else ""


def display_name(spec: str) -> str:
    """Return a player's name for tables: ``search:quick:64`` for ``search:runs/quick:64``."""
    try:
        return parse(spec).title
    except ValueError:
        return spec


def checkpoint_of(spec: str) -> Path | None:
    """Return the file of a player's checkpoint; None if it has none."""
    try:
        return parse(spec).path
    except ValueError:
        return None


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
        spec: a bot with its limit; a checkpoint's path or name, or the folder of its run; or
            ``module:function``.
        ruleset: the rules to play; a checkpoint trained under others is refused.
        seed: the seed of the player's random choices.
        threads: the number of threads of a search; all cores by default.

    Raises:
        ValueError: no player has that name, or the checkpoint cannot be used (a
            :class:`~bao_agents.nets.checkpoint.CheckpointError`).
        ImportError: the player needs torch, which is not installed.
    """
    return make(parse(os.fspath(spec)), ruleset=ruleset, seed=seed, threads=threads)


def make(
    spec: PlayerSpec,
    *,
    ruleset: str | Ruleset,
    seed: int,
    threads: int | None,
    read: Callable[[Path, Ruleset], PolicyNetwork] = read_network,
) -> NamedPlayer:
    """Make a player whose name has been parsed; see :func:`load`.

    Args:
        spec: the parsed name.
        ruleset, seed, threads: as for :func:`load`.
        read: returns the network of a checkpoint.
    """
    rules = get_ruleset(ruleset)
    if not 0 <= operator.index(seed) < 1 << 64:
        raise ValueError(f"seed={seed}: expected 0 to 2**64 - 1")
    try:
        return spec.kind.load(LoadRequest(spec, spec.title, rules, seed, threads, read))
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        words = f"a network needs {error.name}: pip install 'bao_env[train]'"
        raise ModuleNotFoundError(words, name=error.name) from error
