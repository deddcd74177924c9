"""Load a player by name: ``"greedy"``, ``"alphabeta:6"``, ``"runs/quick"``.

:data:`KINDS` is the one table of players. It defines the names that :func:`load` accepts, the lists
in help and error messages, and the players that the board offers. To add a bot, write it in a new
file, and add a loader and a row here.
"""

from __future__ import annotations

import operator
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bao_agents.nets.checkpoint_files import OWN_CODE, beside, find_checkpoint, shipped
from bao_agents.players import plugins
from bao_agents.players.faults import PlayerFault
from bao_agents.players.names import Kind, PlayerName, Setting, Unit
from bao_agents.players.pipe import PipeAgent, read_time
from bao_agents.players.player import NamedPlayer
from bao_env.board import Board
from bao_env.bots import Agent, GreedyAgent, RandomAgent, as_agent, settle_rules
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.player_packages import load_from_packages, packages
from bao_env.suggestions import did_you_mean

if TYPE_CHECKING:
    from bao_agents.nets.checkpoint import Checkpoint

# --- loaders: each imports only what its player needs ---------------------------------------------


def _random(name: PlayerName, setting: Setting) -> Agent:
    return RandomAgent(setting.seed)


def _greedy(name: PlayerName, setting: Setting) -> Agent:
    return GreedyAgent(setting.ruleset)


def _alphabeta(name: PlayerName, setting: Setting, guide: Checkpoint | None = None) -> Agent:
    from bao_agents.search.alphabeta.player import AlphaBetaAgent

    return AlphaBetaAgent(setting.ruleset, name.limit, guide=guide, **setting.resources)


def _guided(name: PlayerName, setting: Setting) -> Agent:
    return _alphabeta(name, setting, setting.checkpoint(name))


def _mcts(name: PlayerName, setting: Setting) -> Agent:
    from bao_agents.search.mcts import MctsAgent

    return MctsAgent(setting.ruleset, name.limit, seed=setting.seed, **setting.resources)


def _solver(name: PlayerName, setting: Setting) -> Agent:
    from bao_agents.search.solver.player import SolverAgent

    return SolverAgent(setting.ruleset, name.limit, **setting.resources)


def _network(name: PlayerName, setting: Setting) -> Agent:
    from bao_agents.nets.player import NetworkAgent

    return NetworkAgent(setting.checkpoint(name).network, setting.ruleset)


def _pipe(name: PlayerName, setting: Setting) -> Agent:
    seconds, margin = read_time(name.text, name.parts.get("TIME"))
    command = name.parts["COMMAND"]
    return PipeAgent(
        command, setting.ruleset, setting.seed, seconds=seconds, margin=margin, **setting.resources
    )


def _function(name: PlayerName, setting: Setting) -> Agent:
    make = plugins.find(name.function)
    options = {"file": name.parts["FILE"]} if "FILE" in name.parts else {}
    if not options and plugins.needs_file(make):
        raise ValueError(
            f"player {name!s:.200} needs a file, such as its weights: {name!s:.200}@FILE"
        )
    plugins.check_parameters(name.function, make, ["ruleset", "seed", *options])
    try:
        player = make(ruleset=setting.ruleset, seed=setting.seed, **options)
    except plugins.ERRORS as error:
        raise ValueError(
            f"player {name!s:.200} cannot be loaded: {type(error).__name__}: {error!s:.400}"
        ) from error
    agent = as_agent(player)
    if agent is None:
        raise ValueError(
            f"player {name!s:.200} returned {player!r:.200}: expected an object with "
            "act(positions, legal), or a function of positions and legal actions"
        )
    settle_rules(agent, setting.ruleset)
    return agent


def _package(name: PlayerName, setting: Setting) -> Agent:
    from bao_agents.search.limits import check_threads

    threads = check_threads(setting.threads)
    return load_from_packages(
        name.text, setting.ruleset, setting.seed, threads, except_package="bao_agents"
    )


# --- the table ----------------------------------------------------------------------------------

_NODES = {"n": Unit("nodes")}
_TIME = {"ms": Unit("ms", 1, 5_000, 500), "s": Unit("s")}

KINDS = (
    Kind("random", "random", {"random": "uniformly random legal actions"}, _random, searches=False),
    Kind(
        "greedy",
        "greedy",
        {"greedy": "the action that captures most seeds"},
        _greedy,
        searches=False,
    ),
    Kind(
        "alphabeta",
        "alphabeta:LIMIT",
        {
            "alphabeta:6": "alpha-beta search of 6 plies",
            "alphabeta:100ms": "the same for 100 milliseconds a move",
            "alphabeta:20000n": "the same for 20,000 nodes a move",
        },
        _alphabeta,
        {"": Unit("plies", 1, 10, 4), **_TIME, **_NODES},
    ),
    Kind(
        "mcts",
        "mcts:LIMIT",
        {
            "mcts:1000": "Monte Carlo tree search, 1,000 random playouts a move",
            "mcts:100ms": "Monte Carlo tree search for 100 milliseconds a move",
        },
        _mcts,
        {"": Unit("playouts", 2, 100_000, 1000), "ms": Unit("ms"), "s": Unit("s")},
    ),
    Kind(
        "network",
        "CHECKPOINT",
        {
            "zanzibar": "a shipped checkpoint by its name: its network, without a search",
            "runs/quick": "a run by its folder, or a checkpoint by its path",
        },
        _network,
        searches=False,
        needs_torch=True,
    ),
    Kind(
        "guided",
        "guided:LIMIT",
        {
            "guided:100ms": "alpha-beta, guided by a small network, for 100 milliseconds a move",
            "guided:6": "the same for 6 plies",
            "guided:20000n": "the same for 20,000 nodes a move",
        },
        _guided,
        {"": Unit("plies"), **_TIME, **_NODES},
        has_guide=True,
    ),
    Kind(
        "guided-by",
        "guided:CHECKPOINT:LIMIT",
        {"guided:zanzibar:100ms": "the same, guided by a checkpoint"},
        _guided,
        {"": Unit("plies"), **_TIME, **_NODES},
    ),
    Kind(
        "solver",
        "solver:LIMIT",
        {
            "solver:1s": "plays a move proven best within a second, else alpha-beta's choice",
            "solver:500ms": "the same for 500 milliseconds a move",
            "solver:200000n": "the same for 200,000 nodes a move",
        },
        _solver,
        {**_TIME, **_NODES},
    ),
    Kind(
        "pipe",
        "pipe:[TIME:]COMMAND",
        {
            "pipe:COMMAND": "a program that speaks the protocol of docs/engine-protocol.md",
            "pipe:2s:COMMAND": "the same with 2 seconds a move, not 60; 2s+50ms waits 50 ms more",
        },
        _pipe,
        is_foreign=True,
    ),
    Kind(
        "function",
        "MODULE:FUNCTION[@FILE]",
        {
            "package.module:function": "your own: called with ruleset= and seed=, returns an agent",
            "package.module:function@FILE": "the same, also called with file=, such as its weights",
        },
        _function,
        is_foreign=True,
    ),
)
"""The kinds of player. If several match a name, the first one is taken."""

PACKAGE = Kind("package", "NAME", {}, _package, is_foreign=True)
"""The players of other packages (:mod:`bao_env.player_packages`), which may have any name."""

PLAYERS = {name: meaning for kind in KINDS for name, meaning in kind.examples.items()}
"""Examples of every kind of player that :func:`load` accepts, each with its meaning."""

# --- looking players up -------------------------------------------------------------------------

_LISTED = 10
"""Most runs that an error message lists."""


def parse(
    name: str,
    checkpoints: Mapping[str, Path] | None = None,
    *,
    ask_packages: bool = True,
) -> PlayerName:
    """Parse the name of a player.

    Args:
        name: the name.
        checkpoints: the only checkpoints that may play, by name, as for visitors of the board.
            Players that run foreign code are then unknown. By default any checkpoint may play.
        ask_packages: whether an unknown name may belong to a player of another package.

    Raises:
        ValueError: no player has that name, or the checkpoint does not exist.
    """
    kinds = [kind for kind in KINDS if checkpoints is None or not kind.is_foreign]
    find = find_checkpoint if checkpoints is None else checkpoints.get
    available = shipped() if checkpoints is None else list(checkpoints)
    head, colon, _ = name.partition(":")
    akin = [kind for kind in kinds if head and kind.head == head]
    for kind in akin if akin and colon else [kind for kind in kinds if not kind.head]:
        parsed = kind.match(name)
        if parsed is None:
            continue
        if not kind.has_checkpoint:
            return parsed
        path = find(parsed.checkpoint)
        if path is not None:
            return replace(parsed, path=path)
        if kind.head:
            runs = beside(parsed.checkpoint) if checkpoints is None else []
            raise _no_checkpoint(parsed, available, runs)
    is_command = checkpoints is None and _is_command(name)
    is_path = name.endswith(".safetensors") or os.sep in name
    if checkpoints is None and is_path and not is_command:
        raise _no_file(name)
    if ask_packages and checkpoints is None and packages(except_package="bao_agents"):
        return PlayerName(PACKAGE, name)
    if is_command:
        command = f"pipe:{name[:80]}"
        raise ValueError(f"unknown player {name[:80]!r} (did you mean {command!r}?)")
    runs = beside(name) if checkpoints is None else []
    raise _unknown(name, kinds, akin, [*available, *runs])


def _is_command(name: str) -> bool:
    """Return whether a name is the command of a program, to which ``pipe:`` was not added."""
    program, space, _ = name.partition(" ")
    return bool(space and program and shutil.which(program))


def _no_checkpoint(
    parsed: PlayerName, checkpoints: Sequence[str], runs: Sequence[str]
) -> ValueError:
    """Return the error for a missing checkpoint, given the names of those that may be meant."""
    checkpoint = parsed.checkpoint
    return ValueError(
        f"player {parsed.text[:80]!r}: there is no checkpoint {checkpoint[:80]!r}"
        f"{did_you_mean(checkpoint, [*checkpoints, *runs])}; "
        f"known checkpoints: {', '.join(checkpoints)}"
    )


def _no_file(name: str) -> ValueError:
    """Return the error for a path at which there is no checkpoint."""
    if os.path.isdir(name):
        return ValueError(f"player {name[:200]!r} has no checkpoint that can be read")
    near = beside(name)
    advice = did_you_mean(name, near)
    if near and os.path.dirname(name):
        advice += f"; the same folder has: {', '.join(near[:_LISTED])}"
    if ".py" in name:
        advice += f"; {OWN_CODE}"
    return ValueError(f"player {name[:200]!r}: no such file, or it cannot be read{advice}")


def _unknown(
    name: str, kinds: Sequence[Kind], akin: Sequence[Kind], checkpoints: Sequence[str]
) -> ValueError:
    """Return the error for a name of no kind; ``akin`` are the kinds with the same first word."""
    examples = [list(kind.examples)[: None if akin else 1] for kind in akin or kinds]
    hint = ""
    if not akin:
        head, colon, tail = name.partition(":")
        heads = {kind.form.partition(":")[0] for kind in kinds}
        hint = did_you_mean(head, filter(str.islower, sorted(heads)), colon + tail)
        hint = hint or did_you_mean(name, checkpoints)
    return ValueError(
        f"unknown player {name[:80]!r}{hint}: expected something like "
        f"{', '.join(chain.from_iterable(examples))}"
    )


def load(
    player: str | os.PathLike[str] | PlayerName,
    *,
    ruleset: str | Ruleset = "zanzibar",
    seed: int = 0,
    threads: int | None = None,
    memory: int | None = None,
) -> NamedPlayer:
    """Load a player by its name; :data:`PLAYERS` has examples of every kind.

    >>> import bao_agents, bao_env
    >>> player = bao_agents.load("alphabeta:4", ruleset="kujifunza")
    >>> board = bao_env.Board("kujifunza")
    >>> board.push(player.choose(board))
    >>> board.move_stack
    [20]

    Args:
        player: a bot with its limit; a checkpoint's path or name, or the folder of its run; or
            ``module:function``.
        ruleset: the rules to play by; a checkpoint trained under other rules raises an error.
        seed: the seed of the player's random choices.
        threads: the number of threads of a search; all cores by default.
        memory: the most megabytes of a search's tables. By default, the limit of the search decides
            their size, up to a part of the machine's free memory.

    Raises:
        ValueError: no player has that name, or the checkpoint cannot be used (a
            :class:`~bao_agents.nets.checkpoint.CheckpointError`).
        ImportError: the player needs torch, which is not installed.
    """
    name = player if isinstance(player, PlayerName) else parse(os.fspath(player))
    rules = get_ruleset(ruleset)
    if not 0 <= operator.index(seed) < 1 << 64:
        raise ValueError(f"seed={seed}: expected 0 to 2**64 - 1")
    try:
        agent = name.kind.load(name, Setting(rules, seed, threads, memory))
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = "a network needs torch: pip install 'bao_env[train]'"
        raise ModuleNotFoundError(message, name=error.name) from error
    return NamedPlayer(agent.name if isinstance(agent, PipeAgent) else name.title, agent, rules)


def load_ours(name: str, **options: Any) -> NamedPlayer:
    """Load a player of this package; this is the package's entry point for players."""
    return load(parse(name, ask_packages=False), **options)


@cache
def warm_up(player: str | PlayerName, ruleset: Ruleset) -> None:
    """Compile what a player needs, so that its first move takes no longer than the others.

    A separate player of this name makes the move, so no random numbers of others are used up. Its
    fault loses no game.

    Args:
        player: the name for :func:`load`.
        ruleset: the rules.
    """
    parsed = parse(player) if isinstance(player, str) else player
    if not parsed.kind.is_program:
        loaded_player = load(parsed, ruleset=ruleset)
        with suppress(PlayerFault):
            loaded_player.choose(Board(ruleset))
