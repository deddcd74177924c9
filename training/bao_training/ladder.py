"""Make a ladder, on which players are rated, from a tournament of its anchors.

    bao tournament ... --anchor random --out runs/bao-ladder-1
    bao ladder runs/bao-ladder-1

writes ``agents/bao_agents/arena/ladders/bao-ladder-1.json``. Its openings differ from the
tournament's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bao_agents import registry
from bao_agents.arena.ladder import LADDERS, Anchor, Ladder, LadderError, answers, write_openings
from bao_agents.arena.openings import draw_openings

from bao_env.engine.ruleset import Ruleset
from bao_env.files import write_atomically
from bao_env.options import Run, add_options, at_least


def make_ladder(name: str, report: dict[str, Any], openings: int) -> Ladder:
    """Make a ladder of the players of a tournament.

    Args:
        name: name of the ladder.
        report: the tournament's ``table.json``.
        openings: number of openings.

    Raises:
        KeyError: ``report`` is not the JSON of a tournament.
        LadderError: no player has Elo 0, or one plays differently now.
        ValueError: a player is unknown, or there are too few openings.
    """
    settings = report["settings"]
    if report["anchor"] is None:
        raise LadderError("the tournament has no player with Elo 0: play it with --anchor NAME")
    ruleset = Ruleset.from_dict(settings["ruleset"])
    seed = settings["seed"] + 1
    drawn = draw_openings(ruleset, openings, settings["opening_plies"], seed, settings["balance"])
    anchors = []
    for row in report["players"]:
        spec = settings["players"][row["player"]]
        player = registry.load(spec, ruleset=ruleset, threads=1)
        anchors.append(
            Anchor(
                player=spec,
                elo=round(row["elo"], 1),
                low=round(row["elo_low"], 1),
                high=round(row["elo_high"], 1),
                games=row["games"],
                ms_a_move=round(row["ms_a_move"], 4),
                answers=answers(player, drawn, ruleset),
            )
        )
    return Ladder(
        name=name,
        rules=ruleset.to_dict(),
        engine_signature=settings["made_with"]["engine_signature"],
        tournament={key: settings[key] for key in settings if key != "ruleset"},
        openings_seed=seed,
        anchors=tuple(sorted(anchors, key=lambda anchor: anchor.elo)),
        openings=write_openings(drawn),
    )


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao ladder``: make a ladder of the players of a tournament, under the folder's name."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the tournament's --out")
    parser.add_argument("--openings", type=at_least(1), default=500, help="how many (default: 500)")
    add_options(parser, out=LADDERS)
    return _run


def _run(args: argparse.Namespace) -> None:
    name = args.folder.resolve().name
    path = args.out / f"{name}.json"
    if path.exists():
        raise LadderError(f"{path} exists, and a ladder never changes: use another name")
    table = args.folder / "table.json"
    try:
        ladder = make_ladder(name, json.loads(table.read_bytes()), args.openings)
    except (KeyError, TypeError, RecursionError) as error:
        raise LadderError(f"{table} is no table of a tournament") from error
    write_atomically(path, ladder.model_dump_json(indent=1) + "\n")
    print(f"{path}: {len(ladder.anchors)} anchors, {len(ladder.openings)} openings")
