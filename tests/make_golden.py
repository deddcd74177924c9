"""Make the recorded data of a rule set, or check it: what the literal reference says, in files.

    python -m tests.make_golden kibao            # what is missing; nothing is overwritten
    python -m tests.make_golden kibao --check    # is what is there still true?

For each rule set there are, under tests/data,

    golden/NAME.txt            a random game to its end, as a transcript
    conformance/NAME.jsonl     600 positions with all their moves and what each leads to: 300 of
                               random games, 300 made up of corner cases
    pinned.json                perft numbers of the opening, and the signature of `bao_env.bench`

Games, positions and moves are the reference's own. Perft numbers are the engine's, which must
agree with the reference's; the signature is a hash over what the engine does, so no second
implementation can confirm it. All draws are seeded: a second run makes the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from itertools import islice
from pathlib import Path
from typing import TypedDict

from bao_env import Board
from bao_env.bench import signature
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import packed_opening
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation import action_to_move
from bao_env.notation.transcript import parse_transcripts, replay
from bao_env.perft import perft
from tests import reference
from tests.positions import random_games, random_position

DATA = Path(__file__).parent / "data"
CASES = 600
"""Positions in a conformance file."""
MAX_PERFT_POSITIONS = 10_000
"""New perft numbers go as deep as no level before the last has more positions than this."""
CHECKED_PERFT_DEPTH = 4
"""Depth to which `--check` lets the reference count as well."""


class Pinned(TypedDict):
    """Numbers of one rule set in pinned.json."""

    signature: str
    """`bao_env.bench.signature`: hexadecimal digits."""
    perft: list[int]
    """Action sequences of length 1, 2, ... from the opening."""


class Case(TypedDict):
    """A line of a conformance file."""

    ruleset: str
    position: str
    moves: dict[str, str]
    """Every legal action by name, and the position after it, 'S wins' or 'N wins'."""


class DataError(ValueError):
    """Recorded data is missing or is not what the rules say."""


# --- reading ----------------------------------------------------------------------------------


def golden_file(name: str, data: Path = DATA) -> Path:
    """Where the recorded game of a rule set is."""
    return data / "golden" / f"{name}.txt"


def conformance_file(name: str, data: Path = DATA) -> Path:
    """Where the recorded positions of a rule set are."""
    return data / "conformance" / f"{name}.jsonl"


def read(file: Path, name: str) -> str:
    """The text of a recorded file.

    Raises:
        DataError: there is none.
    """
    if not file.exists():
        raise DataError(f"{file} is missing; make it: python -m tests.make_golden {name}")
    return file.read_text(encoding="ascii")


def conformance_cases(name: str, data: Path = DATA) -> list[Case]:
    """The recorded positions of a rule set.

    Raises:
        DataError: there are none.
    """
    return [json.loads(line) for line in read(conformance_file(name, data), name).splitlines()]


def all_pinned(data: Path = DATA) -> dict[str, Pinned]:
    """The pinned numbers of every rule set that has some."""
    file = data / "pinned.json"
    return json.loads(file.read_text(encoding="ascii")) if file.exists() else {}


def pinned(name: str, data: Path = DATA) -> Pinned:
    """The pinned numbers of a rule set.

    Raises:
        DataError: there are none.
    """
    entries = all_pinned(data)
    if name not in entries:
        raise DataError(
            f"{data / 'pinned.json'} has no {name!r}; add it: python -m tests.make_golden {name}"
        )
    return entries[name]


# --- making -----------------------------------------------------------------------------------


def make_golden(ruleset: Ruleset) -> str:
    """The transcript of a random game, every move of it drawn from those of the reference."""
    rng = random.Random(f"golden game of {ruleset.name}")
    north_begins = ruleset.first_player == "lot" and rng.random() < 0.5
    board = Board(ruleset, NORTH if north_begins else SOUTH)
    text = reference.opening(ruleset, "SN"[north_begins])
    while text not in reference.WINS.values():
        moves = reference.legal_moves(text, ruleset)
        action = rng.choice(sorted(moves))
        text = moves[action]
        board.push(action)
    return board.transcript({"title": f"a random game of {ruleset.name}", "final": board.text()})


def make_case(text: str, ruleset: Ruleset) -> Case:
    """A position with all its moves, by the reference."""
    moves = sorted(reference.legal_moves(text, ruleset).items())
    named = {action_to_move(action): after for action, after in moves}
    return {"ruleset": ruleset.name, "position": text, "moves": named}


def make_conformance(ruleset: Ruleset) -> str:
    """Different positions with their moves, `CASES` of them, a line of JSON each."""
    rng = random.Random(f"conformance of {ruleset.name}")
    texts: dict[str, None] = {}  # a set that keeps its order
    games = random_games(rng, ruleset)
    while len(texts) < CASES // 2:
        # About one position in three, so that fewer of them are neighbours.
        texts.setdefault(next(islice(games, rng.randrange(5), None)))
    while len(texts) < CASES:
        texts.setdefault(random_position(rng, ruleset))
    return "".join(json.dumps(make_case(text, ruleset)) + "\n" for text in texts)


def perft_numbers(ruleset: Ruleset, depth: int) -> list[int]:
    """Perft of the opening by the engine, for the depths 1 to `depth`."""
    rules, words = ruleset.kernel_rules(), packed_opening(ruleset)
    return [perft(rules, words, length) for length in range(1, depth + 1)]


def make_pinned(ruleset: Ruleset, min_depth: int = 1) -> Pinned:
    """The engine's signature and its perft numbers, which the reference confirms.

    Args:
        ruleset: the rules.
        min_depth: perft goes at least so deep; the reference confirms what it can count in a
            minute.

    Raises:
        DataError: engine and reference differ.
    """
    depth = 1
    while perft_numbers(ruleset, depth)[-1] <= MAX_PERFT_POSITIONS:
        depth += 1
    numbers = perft_numbers(ruleset, max(depth, min_depth))
    check_perft(ruleset, numbers, depth)
    return {"signature": signature(ruleset), "perft": numbers}


def write_pinned(entries: dict[str, Pinned], data: Path) -> None:
    """Write pinned.json, a line for each rule set, in the order of `RULESETS`."""
    names = sorted(entries, key=lambda name: [*RULESETS, *entries].index(name))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entries[name])}" for name in names)
    (data / "pinned.json").write_text(f"{{\n{lines}\n}}\n", encoding="ascii")


# --- checking ---------------------------------------------------------------------------------


def check_golden(text: str, ruleset: Ruleset) -> None:
    """Walk through a recorded game with engine and reference side by side.

    Raises:
        DataError: they differ, or the game does not end as its head says.
    """
    [game] = parse_transcripts(text)
    if game.get("ruleset") != ruleset.name:
        raise DataError(f"the game is of {game.get('ruleset')!r}, not of {ruleset.name!r}")
    played = replay(game)
    board = Board(ruleset, played.start.mover)
    for ply, action in enumerate(played.actions):
        moves = reference.legal_moves(board.text(), ruleset)
        if sorted(moves) != board.legal_actions:
            raise DataError(f"ply {ply}, {board.text()}: {sorted(moves)} != {board.legal_actions}")
        board.push(action)
        outcome = board.outcome()
        after = board.text() if outcome is None else f"{'SN'[outcome.winner or 0]} wins"
        if moves[action] != after:
            raise DataError(f"ply {ply}, action {action}: {moves[action]} != {after}")
    if board.outcome() is None or board.text() != game.get("final"):
        raise DataError(f"the game ends in {board.text()!r}, not in {game.get('final')!r}")


def check_conformance(cases: list[Case], ruleset: Ruleset, every: int = 1) -> None:
    """Compare recorded positions, or one in `every` of them, with the reference.

    Raises:
        DataError: they differ, or are fewer than 600.
    """
    if len(cases) < CASES:
        raise DataError(f"{len(cases)} recorded positions: expected at least {CASES}")
    for case in cases[::every]:
        expected = make_case(case["position"], ruleset)
        if case != expected:
            raise DataError(f"recorded {case}, but the reference says {expected}")


def check_perft(ruleset: Ruleset, numbers: list[int], depth: int) -> None:
    """Compare perft numbers with the reference's, which counts to `depth`.

    Raises:
        DataError: they differ.
    """
    counted = reference.perft(reference.opening(ruleset), ruleset, depth)
    if counted != numbers[:depth]:
        raise DataError(f"perft: {numbers[:depth]} here, {counted} by the reference")


def check_pinned(entry: Pinned, ruleset: Ruleset) -> None:
    """Compare pinned numbers with the engine's, and the first of them with the reference's.

    Raises:
        DataError: they differ.
    """
    found: Pinned = {
        "signature": signature(ruleset),
        "perft": perft_numbers(ruleset, len(entry["perft"])),
    }
    if entry != found:
        raise DataError(f"pinned: {entry}, but the engine says {found}")
    check_perft(ruleset, entry["perft"], CHECKED_PERFT_DEPTH)


def check(ruleset: Ruleset, data: Path = DATA, every: int = 1) -> None:
    """Check what is recorded of a rule set.

    Args:
        ruleset: the rules.
        data: the folder of the files.
        every: of the recorded positions, check one in so many.

    Raises:
        DataError: something is missing or untrue.
    """
    check_golden(read(golden_file(ruleset.name, data), ruleset.name), ruleset)
    check_conformance(conformance_cases(ruleset.name, data), ruleset, every)
    check_pinned(pinned(ruleset.name, data), ruleset)


# --- the command ------------------------------------------------------------------------------


def make(ruleset: Ruleset, data: Path, force: bool) -> None:
    """Write what is missing of a rule set; with `force`, write everything anew.

    Raises:
        DataError: engine and reference differ.
    """
    for file, maker in (
        (golden_file(ruleset.name, data), make_golden),
        (conformance_file(ruleset.name, data), make_conformance),
    ):
        if file.exists() and not force:
            print(f"{file}: kept (--force makes it anew)")
            continue
        text = maker(ruleset)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
        print(f"{file}: written")
    entries = all_pinned(data)
    where = f"{data / 'pinned.json'}, {ruleset.name}"
    if ruleset.name in entries and not force:
        print(f"{where}: kept (--force makes it anew)")
        return
    depth = len(entries[ruleset.name]["perft"]) if ruleset.name in entries else 1
    write_pinned(entries | {ruleset.name: make_pinned(ruleset, depth)}, data)
    print(f"{where}: written")


def main(argv: list[str] | None = None) -> int:
    """Command line of `python -m tests.make_golden`."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.make_golden",
        description="Make the recorded data of a rule set from the literal reference.",
        epilog="Read what it wrote before you commit it: from then on the tests hold you to it.",
    )
    parser.add_argument(
        "rulesets", nargs="+", choices=list(RULESETS), metavar="RULESET", help=", ".join(RULESETS)
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; is what is there true?")
    what.add_argument("--force", action="store_true", help="overwrite what is there")
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="FOLDER", help="in place of tests/data"
    )
    args = parser.parse_args(argv)
    try:
        for name in args.rulesets:
            if args.check:
                check(RULESETS[name], args.data)
                print(f"{name}: true")
            else:
                make(RULESETS[name], args.data, args.force)
    except ValueError as error:  # what cannot be read at all raises its reader's own
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
