"""Say how each table of the pages is measured; ``docs/results.py`` measures and prints them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bao_agents import analyse, load
from bao_agents.arena.elo import wilson_interval
from bao_agents.arena.games import play_games
from bao_agents.arena.openings import draw_openings, read_openings
from bao_agents.cli.main import main as bao
from bao_agents.nets.checkpoint import load_shared
from bao_agents.nets.legal_actions import best_legal_actions
from bao_agents.nets.player import NetworkAgent
from bao_agents.players.registry import parse
from bao_env import Board, Engine
from bao_env.compiled.compile import jit
from bao_env.engine.bits import ZERO, U, popcount
from bao_env.engine.position import META, NO_PIT, PackedPositions, barred_of
from bao_env.engine.ruleset import RULESETS
from bao_env.engine.sampling import random_actions, random_states
from bao_env.engine.starts import startable

EVALUATION = "evaluators/tables.npz"
"""The evaluation of alpha-beta, which also chooses balanced openings."""


@dataclass(frozen=True)
class Part:
    """A part of a table, which is measured at once."""

    command: str
    """What measures it: a command, or a call of a function of this file."""
    minutes: float
    """The minutes of one core that it takes."""
    measure: Callable[[Path], Any]
    """Measures it in a folder, where it may keep unfinished work, and returns plain values."""


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    parts: tuple[Part, ...]
    lines: Callable[[list[Any]], list[list[str]]]
    """Returns the cells, the heads first, given the results of the parts."""
    files: tuple[str, ...] = ()
    """The shipped files that decide the numbers, as the pages name them: ``guides/kibao``."""


# --- commands ---------------------------------------------------------------------------------


def run_bao(line: str, folder: Path, *more: str) -> None:
    """Run a ``bao`` command in a folder; what it prints goes to stderr.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
        RuntimeError: the command failed.
    """
    with chdir(folder), redirect_stdout(sys.stderr):
        status = bao([*shlex.split(line)[1:], *more])
    if status == 130:
        raise KeyboardInterrupt
    if status:
        raise RuntimeError(f"{line}: exit status {status}")


def json_of(line: str, folder: Path, *more: str) -> Any:
    """Run a ``bao`` command in a folder, and return the JSON that it writes."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "results.json")
        run_bao(line, folder, "--json", str(file), *more)
        return json.loads(file.read_text(encoding="utf-8"))


def interval(rate: float, low: float, high: float) -> str:
    """Return a share and its 95% interval as a cell, in percent."""
    return f"{100 * rate:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def share(count: int, trials: int) -> str:
    """Return a share of independent trials, with its 95% interval, as a cell."""
    return interval(count / trials, *wilson_interval(count / trials, trials))


def rows_of(first_cells: Iterable[str], results: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table, given the first cell of each and its other cells."""
    return [[first, *cells] for first, cells in zip(first_cells, results, strict=True)]


def match(line: str, minutes: float) -> Part:
    """Return a part that plays a match; its result is a cell for each opponent.

    Its games are kept as they end, so a match goes on where it was.
    """

    def play(folder: Path) -> list[str]:
        games = re.sub(r"[^\w.]+", "-", line)
        rows = json_of(line, folder, "--out", games)["results"]
        return [interval(row["score"], row["score_low"], row["score_high"]) for row in rows]

    return Part(line, minutes, play)


# --- speed, and the first minute --------------------------------------------------------------

SPEEDS = {
    "engine, batch 1": ("kernel", 1),
    "engine, batch 1,024": ("kernel", 1024),
    "engine, batch 16,384": ("kernel", 16384),
    "`BaoVectorEnv`, 16,384 games, float32, `SAME_STEP`": ("vector float32, SAME_STEP", 16384),
    "the same, `NEXT_STEP`, uint8": ("vector uint8, NEXT_STEP", 16384),
    "PettingZoo `raw_env`": ("AEC raw_env", 1),
}
"""The names and batches of the benchmark's cases, by the first cell of a row."""


def speed_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of the engine's speed."""
    million = {
        (case["name"], case["batch"], case["threads"]): case["plies_per_second"] / 1e6
        for case in results[0]["cases"]
    }
    lines = [["million plies a second", "1 thread", "2 threads"]]
    for row, case in SPEEDS.items():
        speeds = [million.get((*case, threads)) for threads in (1, 2)]
        lines.append([row, *("" if speed is None else f"{speed:.2g}" for speed in speeds)])
    return lines


STARTS = {
    "`BaoEnv()`, one step": "env = bao_env.BaoEnv(); observation, _ = env.reset(seed=1); "
    'env.step(int(observation["action_mask"].argmax()))',
    "`raw_env()`, one step": "env = bao_env.raw_env(); env.reset(seed=1); "
    'env.step(int(env.last()[0]["action_mask"].argmax()))',
    '`BaoVectorEnv(1024, opponent="greedy")`, one step': "envs = bao_env.BaoVectorEnv(1024, "
    'opponent="greedy"); envs.reset(seed=1); envs.step(envs.sample_legal_actions())',
    "`bao match greedy random --pairs 10`": "",
    "`bao match guided:1000n greedy --pairs 10`": "",
    "`bao train quick --set steps=32768`": "",
}
"""Python after ``import bao_env``, or nothing for a command, by the first cell of a row."""


def start(row: str, statements: str) -> Part:
    """Return a part that times a program in a new process, without compiled code and with it."""
    program = f"import bao_env; {statements}"
    words = ["-c", program] if statements else ["-m", "bao_agents", *shlex.split(row[1:-1])[1:]]

    def seconds(folder: Path) -> list[str]:
        spent = []
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_CACHE_DIR": cache, "BAO_ENV_QUIET": "1"}
            for _ in range(2):
                before = os.times()
                with tempfile.TemporaryDirectory() as empty:
                    command = [sys.executable, *words]
                    subprocess.run(command, cwd=empty, env=environment, check=True, stdout=2)
                after = os.times()
                spent.append(sum(after[2:4]) - sum(before[2:4]))
        return [f"{cold_or_warm:.1f}" for cold_or_warm in spent]

    return Part(f"python -c {shlex.quote(program)}" if statements else row[1:-1], 1, seconds)


# --- matches ----------------------------------------------------------------------------------

EIGHT = """name = "eight"
opening_front = [0, 0, 0, 0, 8, 2, 2, 0]
opening_store = 20
takasia = "none"
"""
"""A file of rules without shipped networks: more seeds in each house, and no takasia."""

LIMITS = {"3,000 nodes": ("3000n", 300, 1), "3 ms": ("3ms", 250, 2), "30 ms": ("30ms", 40, 2)}
"""The limit of both players, the pairs of games and their minutes, by the head of a column."""


def training_parts() -> tuple[Part, ...]:
    """Return a training and a match for each rule set, and for :data:`EIGHT`."""
    parts = []
    for name in (*RULESETS, "eight"):
        rules = "eight.toml" if name == "eight" else name
        line = f"bao train quick --run {name} --ruleset {rules}"

        def train(folder: Path, line: str = line) -> None:
            (folder / "eight.toml").write_text(EIGHT, encoding="utf-8")
            run_bao(line, folder, "--resume")

        parts.append(Part(line, 5, train))
        line = f"bao match guided:runs/{name}:3ms alphabeta:3ms --pairs 200 --seed 21"
        parts.append(match(line, 2))
    return tuple(parts)


def training_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of training in minutes."""
    names = [*(f"`{name}`" for name in RULESETS), "*eight*, against the tables of zanzibar"]
    return [["rule set", "points against `alphabeta:3ms`, %"], *rows_of(names, results[1::2])]


BOTS = "greedy alphabeta:2 alphabeta:4"
"""The opponents of the shipped networks without a search."""


def network_parts() -> tuple[Part, ...]:
    """Return the matches of each shipped network without a search."""
    return tuple(
        match(f"bao match {name} {BOTS} --ruleset {name} --pairs 1000 --seed 1", 2)
        for name in RULESETS
    )


def network_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of networks without a search."""
    names = [f"`{name}`" for name in RULESETS]
    return [["network", *(f"`{bot}`, %" for bot in BOTS.split())], *rows_of(names, results)]


def guide_parts() -> tuple[Part, ...]:
    """Return the matches of each shipped guide against alpha-beta, at each limit."""
    players = [
        (f"guided:{limit} alphabeta:{limit}", pairs, minutes)
        for limit, pairs, minutes in LIMITS.values()
    ]
    return tuple(
        match(f"bao match {names} --ruleset {rules} --pairs {pairs} --seed 21", minutes)
        for rules in RULESETS
        for names, pairs, minutes in players
    )


def guide_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of the shipped guides."""
    cells = iter(results)
    rows = [[f"`guides/{name}`", *(next(cells)[0] for _ in LIMITS)] for name in RULESETS]
    return [["guide", *(f"{limit}, %" for limit in LIMITS)], *rows]


# --- won games given away ---------------------------------------------------------------------

DECIDERS = "random greedy alphabeta:2 alphabeta:4 alphabeta:6 mcts:1000 NETWORK guided:2000n"
"""The players who are asked in won positions; NETWORK is the rule set's network alone."""


def blunders(ruleset: str, minutes: float) -> Part:
    """Return a part that counts won games given away; its result is a cell for each player."""
    line = f"bao blunders {DECIDERS.replace('NETWORK', ruleset)} --ruleset {ruleset}"

    def count(folder: Path) -> list[str]:
        results = json_of(line, folder)["results"]
        counts = [result["blunders"]["all"]["all"] for result in results]
        return [share(count["mistakes"], count["moves"]) for count in counts]

    return Part(line, minutes, count)


def blunder_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of won games given away."""
    names = [f"`{name}`" for name in DECIDERS.split()]
    names[names.index("`NETWORK`")] = "the shipped network"
    heads = ["player", "kujifunza: win given away, %", "zanzibar: win given away, %"]
    return [heads, *map(list, zip(names, *results, strict=True))]


# --- random games -----------------------------------------------------------------------------

_HOUSE_IS_PLAYED = U(0xAAAAAAAAAAAAAAAA)
"""The actions that play the house, as bits."""


@jit
def _count(rules, positions, legal, counts):
    """Count what occurs in the positions of running games.

    Args:
        rules: the :class:`KernelRules`.
        positions: uint64[B, 6].
        legal: uint64[B], the legal actions; 0 where a game is over.
        counts: int64[5], positions, legal actions, and the positions with a house choice, with a
            pit barred by takasia, and with an endless move; increased in place.
    """
    for game in range(positions.shape[0]):
        if legal[game] == ZERO:
            continue
        _, starts = startable(rules, positions[game])
        counts[0] += 1
        counts[1] += np.int64(popcount(legal[game]))
        counts[2] += np.int64((legal[game] & _HOUSE_IS_PLAYED) != ZERO)
        counts[3] += np.int64(barred_of(positions[game, META]) != NO_PIT)
        counts[4] += np.int64((starts & ~legal[game]) != ZERO)


def random_games(ruleset: str, games: int) -> list[str]:
    """Play random games to their ends, and return the cells of a rule set."""
    engine, batch = Engine(ruleset), 8192
    counts, south_wins = np.zeros(5, np.int64), 0
    sequence = np.random.SeedSequence(0)
    for played in range(0, games, batch):
        positions, legal, winners = engine.new_games(min(batch, games - played))
        actions = np.empty(len(legal), np.int64)
        rng = random_states(len(legal), sequence.spawn(1)[0])
        while legal.any():
            _count(engine.rules, positions, legal, counts)
            random_actions(legal, rng, actions)
            engine.step(positions, actions, legal, winners)
        south_wins += int((winners == 0).sum())
    plies = int(counts[0])
    legal_actions, houses, barred, endless = (counts[1:] / plies).tolist()
    mantissa, exponent = f"{endless:.1e}".split("e")
    return [
        f"{plies / games:.1f}",
        f"{legal_actions:.2f}",
        f"{100 * south_wins / games:.1f}",
        f"{100 * houses:.1f}" if engine.ruleset.house else "",
        f"{100 * barred:.2f}" if engine.ruleset.takasia == "zanzibar" else "",
        f"{mantissa}e{int(exponent)}",
    ]


def random_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of random games."""
    heads = ["rule set", "plies a game", "legal actions", "South wins, %", "house choices, %"]
    names = [f"`{name}`" for name in RULESETS]
    return [[*heads, "takasia, %", "an endless move"], *rows_of(names, results)]


# --- who begins, and with which move ----------------------------------------------------------


def policy_openings(count: int) -> PackedPositions:
    """Return different positions after eight plies drawn by the policy of zanzibar's network."""
    engine, rng = Engine(), np.random.default_rng(1)
    agent = NetworkAgent(
        load_shared(parse("zanzibar").path, engine.ruleset).network, engine.ruleset
    )
    positions, legal, winners = engine.new_games(3 * count)
    for _ in range(8):
        evaluation = agent.evaluate(positions, legal)
        noise = rng.gumbel(size=len(evaluation.logits)).astype(np.float32)
        actions = best_legal_actions(evaluation.logits + noise, evaluation.indptr, legal)
        engine.step(positions, actions, legal, winners)
    first = np.sort(np.unique(positions, axis=0, return_index=True)[1])
    return positions[first[legal[first] != 0]][:count]


def random_openings(count: int) -> PackedPositions:
    """Return positions after eight random plies."""
    return draw_openings(RULESETS["zanzibar"], count, 8, seed=1, balance=None).positions


def balanced_openings(count: int) -> PackedPositions:
    """Return positions of the balanced openings that ship."""
    return read_openings("balanced", RULESETS["zanzibar"], count, seed=1).positions


OPENINGS = {
    "drawn by the policy of the network `zanzibar`": (policy_openings, 800),
    "random": (random_openings, 800),
    "balanced openings": (balanced_openings, 2000),
}
"""The positions from which guided alpha-beta plays itself, and how many, by a row's first cell."""


def south_wins(openings: Callable[[int], PackedPositions], games: int) -> str:
    """Return South's share of wins where guided alpha-beta plays itself, as a cell."""
    positions = openings(games)
    player = load("guided:2000n", ruleset="zanzibar")
    first_players = np.zeros(len(positions), np.int8)
    winners = play_games((player, player), positions, first_players, Engine()).winners
    return share(int((winners == 0).sum()), len(positions))


def opening_lines(results: list[Any]) -> list[list[str]]:
    """Return the cells of the table of who begins."""
    rows = [
        [row, f"{games:,}", cell]
        for (row, (_, games)), cell in zip(OPENINGS.items(), results, strict=True)
    ]
    return [["positions", "games", "South wins, % (95% interval)"], *rows]


def first_moves() -> list[list[str]]:
    """Return each first move and its value as cells, best first."""
    board = Board()
    analysis = analyse(board, "guided:200000000n", lines=None, threads=1)
    return [[f"`{board.move_text(line.action)}`", f"{line.score:.2f}"] for line in analysis.lines]


# --- the tables -------------------------------------------------------------------------------


def called(command: str, minutes: float, call: Callable[[], Any]) -> Part:
    """Return a part that a function measures, without unfinished work."""
    return Part(command, minutes, lambda folder: call())


GUIDES = tuple(f"guides/{name}" for name in RULESETS)

TABLES: Mapping[str, Table] = {
    "speed": Table(
        (
            Part(
                "bao bench engine --batches 1 1024 16384 --threads 1 2",
                2,
                partial(json_of, "bao bench engine --batches 1 1024 16384 --threads 1 2"),
            ),
        ),
        speed_lines,
    ),
    "first-minute": Table(
        tuple(start(*row) for row in STARTS.items()),
        lambda results: [["", "cold", "warm"], *rows_of(STARTS, results)],
    ),
    "training": Table(training_parts(), training_lines, (EVALUATION,)),
    "networks": Table(network_parts(), network_lines, (EVALUATION, *RULESETS)),
    "guides": Table(guide_parts(), guide_lines, (EVALUATION, *GUIDES)),
    "blunders": Table(
        (blunders("kujifunza", 1), blunders("zanzibar", 1)),
        blunder_lines,
        (
            *("kujifunza", "zanzibar", "guides/kujifunza", "guides/zanzibar", EVALUATION),
            *("exact/won/kujifunza.npz", "exact/won/zanzibar.npz"),
        ),
    ),
    "random-games": Table(
        tuple(
            called(f"random_games({name!r}, 1_000_000)", 1, partial(random_games, name, 1_000_000))
            for name in RULESETS
        ),
        random_lines,
    ),
    "who-begins": Table(
        tuple(
            called(
                f"south_wins({openings.__name__}, {games})",
                1,
                partial(south_wins, openings, games),
            )
            for openings, games in OPENINGS.values()
        ),
        opening_lines,
        ("guides/zanzibar", "zanzibar", EVALUATION, "arena/balanced/zanzibar.tsv"),
    ),
    "first-moves": Table(
        (called("first_moves()", 3, first_moves),),
        lambda results: [["South's first move", "value, from -1 to 1"], *results[0]],
        ("guides/zanzibar",),
    ),
}
"""The tables that ``docs/results.py`` makes, by name."""
