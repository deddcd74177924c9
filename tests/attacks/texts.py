"""Texts that were damaged."""

from __future__ import annotations

import contextlib
import json
import random
from functools import partial
from pathlib import Path

from bao_env.board import Board
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.notation import (
    move_to_action,
    parse_transcripts,
    read_move,
    replay,
)
from bao_env.rule_files import load_ruleset
from tests.attacks.engine import random_batch
from tests.attacks.hostile import mutated
from tests.attacks.limits import GIB, SECONDS, limit_memory, within
from tests.make_golden import DATA
from tests.positions import random_position


def _read_move(board: Board, text: str) -> None:
    with contextlib.suppress(ValueError):
        move_to_action(text)
    read_move(text, board.words, board.ruleset)


def _read_position(ruleset: Ruleset, text: str) -> None:
    board = Board.from_text(text, ruleset)
    assert Board.from_text(board.text(), ruleset) == board
    assert board.legal_moves or board.outcome() is not None


def _read_transcript(ruleset: Ruleset, text: str) -> None:
    for game in parse_transcripts(text):
        replay(game)
        replay(game, ruleset, strict=False)


def _read_rules(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    ruleset = load_ruleset(path)
    assert Ruleset.from_dict(json.loads(json.dumps(ruleset.to_dict()))) == ruleset
    random_batch(Engine(ruleset), 8, 30, 1)


def toml(ruleset: Ruleset) -> str:
    """A rule set as a file."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in ruleset.to_dict().items())


def texts(rng: random.Random, folder: Path) -> None:
    """Every text is read, or refused with a ValueError, in a short time."""
    games = [path.read_text(encoding="utf-8") for path in sorted(DATA.glob("golden/*.txt"))]
    games += [path.read_text(encoding="utf-8") for path in sorted(DATA.glob("games/*.txt"))]
    name = rng.choice(list(RULESETS))
    ruleset = RULESETS[name]
    random_batch(Engine(ruleset), 8, 10, 1)  # compiles
    board = Board(ruleset)
    _read_position(ruleset, board.text())
    limit_memory(2 * GIB)
    for _ in range(1500):
        kind = rng.choice(("position", "move", "transcript", "rules"))
        position = random_position(rng, ruleset)
        spelled = [board.move_text(m, s) for m in board.legal_moves for s in ("donkers", "kibao")]
        source, read = {
            "position": (position, partial(_read_position, ruleset)),
            "move": (
                rng.choice([*spelled, *board.legal_moves]),
                partial(_read_move, board),
            ),
            "transcript": (rng.choice(games), partial(_read_transcript, ruleset)),
            "rules": (toml(ruleset), partial(_read_rules, folder / "rules.toml")),
        }[kind]
        text = mutated(rng, source, rng.choice((position, toml(ruleset), rng.choice(games))))
        try:
            with within(SECONDS), contextlib.suppress(ValueError):
                read(text)
        except Exception as error:
            raise AssertionError(f"{kind} {text[:2000]!r}") from error
        if rng.random() < 0.05:
            with contextlib.suppress(ValueError):
                board = Board.from_text(position, ruleset)
            if not board.legal_moves:
                board = Board(ruleset)
