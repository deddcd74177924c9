"""Proven wins: find positions that alpha-beta has solved, and test players on them.

    python -m training.tools.tactics make --out tests/data/tactics-zanzibar.txt
    python -m training.tools.tactics test tests/data/tactics-zanzibar.txt search:zanzibar:200

A position belongs in the suite if the player to move can force a win within seven plies, and some
legal action is not known to win within nine. A player makes a mistake if a deeper search does not
find a forced win after the player's action. Each line of a suite is a position text, a semicolon,
the plies to the win, a semicolon, and the actions that keep a win within seven plies.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tabulate import tabulate
from tqdm import tqdm

from agents import registry
from agents.arena.elo import wilson_interval
from agents.arena.openings import draw_openings
from agents.search.alphabeta import AlphaBetaAgent
from agents.search.transposition import PROVEN, WIN
from bao_env.bots import Agent
from bao_env.engine.action import actions_of
from bao_env.engine.batch import Engine, random_actions, random_states
from bao_env.engine.kernel import legal_mask, play
from bao_env.engine.position import WORDS, pack, unpack
from bao_env.engine.ruleset import Ruleset
from bao_env.notation.positions import NotationError, format_position, parse_position
from bao_env.rule_files import RULESET_HELP, ruleset_argument

DEPTH = 7
CHECK_NODES = 500_000
"""Nodes of the search that checks whether an action that the suite does not list wins, too."""


@dataclass(frozen=True)
class Tactic:
    """A position that is won for the player to move, but not by every move."""

    words: npt.NDArray[np.uint64]
    """uint64[6]."""
    plies: int
    """Plies to the win with best play."""
    winning: tuple[int, ...]
    """Actions after which the win can still be forced within the suite's depth."""


def winning_actions(
    searcher: AlphaBetaAgent, ruleset: Ruleset, words: npt.NDArray[np.uint64]
) -> tuple[int, ...]:
    """The actions that win by force, at once or within the depth of ``searcher`` after them."""
    rules = ruleset.kernel_rules()
    found = []
    for action in actions_of(legal_mask(rules, words)):
        after = words.copy()
        result = int(play(rules, after, np.uint64(action)))
        if result == 0:
            again = unpack(after).mover == unpack(words).mover
            if not legal_mask(rules, after):
                result = -1 if again else 1  # the player to move there has lost (1.2)
            else:
                value = searcher.search(after).value
                result = int((value if again else -value) > PROVEN)
        if result == 1:
            found.append(action)
    return tuple(found)


def find(ruleset: Ruleset, count: int, seed: int) -> list[Tactic]:
    """Positions from games between shallow searches, each with a forced win in one, three, five or
    seven plies that some legal action misses; equally many of each length, or all that it finds."""
    engine = Engine(ruleset)
    player = AlphaBetaAgent(ruleset, depth=2)
    prover = AlphaBetaAgent(ruleset, depth=DEPTH)
    keeper = AlphaBetaAgent(ruleset, depth=DEPTH - 1, threads=1)
    deeper = AlphaBetaAgent(ruleset, depth=DEPTH + 2, threads=1)
    lengths = range(1, DEPTH + 1, 2)
    per_length = -(-count // len(lengths))
    chosen: dict[int, list[Tactic]] = {plies: [] for plies in lengths}
    seen: set[bytes] = set()
    sequence = np.random.SeedSequence(seed)
    with tqdm(total=count, unit="position") as bar:
        for turn in range(60):
            openings = draw_openings(ruleset, 400, 8, seed + turn, None)
            positions = openings.positions.copy()
            masks = np.empty(len(positions), np.uint64)
            winners = np.empty(len(positions), np.int8)
            engine.legal_masks(positions, masks, winners)
            rng = random_states(len(positions), sequence.spawn(1)[0])
            strays = np.empty(len(positions), np.int64)
            for _ in range(120):
                going = np.flatnonzero(masks)
                if not len(going):
                    break
                values = np.zeros(len(positions), np.int64)
                values[going] = prover.values(positions[going], masks[going])
                for g in np.flatnonzero(values > PROVEN):
                    plies = int(WIN - values[g])
                    key = positions[g, :5].tobytes()
                    if key in seen or len(chosen.get(plies, ())) >= per_length:
                        continue
                    seen.add(key)
                    if plies not in chosen:
                        continue
                    winning = winning_actions(keeper, ruleset, positions[g])
                    if len(winning) == int(masks[g]).bit_count():
                        continue
                    # An action that wins after more than seven plies is not a mistake.
                    if len(winning_actions(deeper, ruleset, positions[g])) > len(winning):
                        continue
                    chosen[plies].append(Tactic(positions[g].copy(), plies, winning))
                    bar.update()
                actions = player.act(positions, masks)
                random_actions(masks, rng, strays)
                astray = rng % np.uint64(8) == 0  # now and then a move at random
                engine.step(positions, np.where(astray, strays, actions), masks, winners)
            if all(len(found) >= per_length for found in chosen.values()):
                break
    return [tactic for plies in chosen for tactic in chosen[plies]][:count]


def write(tactics: Iterable[Tactic], ruleset: Ruleset, path: Path) -> None:
    """Write a suite."""
    lines = [
        f"# Forced wins within {DEPTH} plies, rule set {ruleset.name}: training/tools/tactics.py"
    ]
    for tactic in tactics:
        text = format_position(unpack(tactic.words))
        lines.append(f"{text}; {tactic.plies}; {' '.join(map(str, tactic.winning))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path, ruleset: Ruleset) -> list[Tactic]:
    """Read a suite.

    Raises:
        ValueError: a line is malformed; the message names it.
    """
    tactics = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            text, plies, winning = line.split(";")
            words = np.empty(WORDS, np.uint64)
            pack(parse_position(text.strip(), ruleset), words)
            tactics.append(Tactic(words, int(plies), tuple(map(int, winning.split()))))
        except (ValueError, NotationError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    if not tactics:
        raise ValueError(f"{path} holds no positions: make a suite with the command 'make'")
    return tactics


def mistakes(player: Agent, tactics: list[Tactic], ruleset: Ruleset) -> npt.NDArray[np.bool_]:
    """Where a player throws the win away, bool[len(tactics)].

    An action that the suite does not list is not a mistake if a deeper search, of
    :data:`CHECK_NODES` nodes, proves that it also wins, only later.
    """
    positions = np.array([tactic.words for tactic in tactics])
    rules = ruleset.kernel_rules()
    masks = np.array([legal_mask(rules, words) for words in positions], np.uint64)
    actions = player.act(positions, masks)
    deeper = AlphaBetaAgent(ruleset, nodes=CHECK_NODES, threads=1)
    wrong = np.zeros(len(tactics), bool)
    for i, tactic in enumerate(tactics):
        action = int(actions[i])
        if action in tactic.winning:
            continue
        after = tactic.words.copy()
        result = int(play(rules, after, np.uint64(action)))
        again = unpack(after).mover == unpack(tactic.words).mover
        value = 0 if result else deeper.search(after).value
        wrong[i] = result != 1 and (value if again else -value) <= PROVEN
    return wrong


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.tools.tactics``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.tools.tactics",
        description="Make a suite of proven wins, or test players on one.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="find positions and write a suite")
    make.add_argument("--out", required=True, metavar="FILE")
    make.add_argument("--count", type=int, default=1000, help="positions (default 1000)")
    make.add_argument("--seed", type=int, default=0, help="(default 0)")
    test = commands.add_parser("test", help="count the mistakes of players")
    test.add_argument("suite", metavar="FILE")
    test.add_argument("players", nargs="+", metavar="PLAYER")
    for command in (make, test):
        command.add_argument(
            "--ruleset", type=ruleset_argument, default="zanzibar", help=RULESET_HELP
        )
    args = parser.parse_args(argv)
    try:
        if args.command == "make":
            if args.count < 1 or args.seed < 0:
                raise ValueError("--count must be positive, --seed not negative")
            tactics = find(args.ruleset, args.count, args.seed)
            write(tactics, args.ruleset, Path(args.out))
            print(f"{len(tactics)} positions in {args.out}")
            return 0
        tactics = read(Path(args.suite), args.ruleset)
        lengths = sorted({tactic.plies for tactic in tactics})
        rows = []
        for spec in args.players:
            player = registry.load(spec, ruleset=args.ruleset)
            wrong = mistakes(player, tactics, args.ruleset)
            low, high = wilson_interval(float(wrong.mean()), len(wrong))
            row = {"mistakes": player.name, "all": f"{wrong.mean():.1%}"}
            row["95 % interval"] = f"{low:.1%} to {high:.1%}"
            for plies in lengths:
                part = wrong[[tactic.plies == plies for tactic in tactics]]
                row[f"in {plies}"] = f"{part.mean():.1%}"
            rows.append(row)
        print(tabulate(rows, headers="keys", disable_numparse=True, stralign="right"))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
