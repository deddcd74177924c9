"""Make a ladder, on which players are rated, from a tournament of its anchors.

    python -m training.tournament ... --anchor random --out runs/bao-ladder-1
    python -m training.ladder runs/bao-ladder-1

writes ``agents/arena/ladders/bao-ladder-1.json``. Its openings differ from the
tournament's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agents import registry
from agents.arena.ladder import LADDERS, Anchor, Ladder, LadderError, answers, write_openings
from agents.arena.openings import draw_openings
from agents.files import write_atomically
from bao_env.engine.ruleset import Ruleset


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


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.ladder``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.ladder",
        description="Make a ladder of the players of a tournament, under the folder's name.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the tournament's --out")
    parser.add_argument("--openings", type=int, default=500, help="how many (default 500)")
    parser.add_argument(
        "--out", type=Path, default=LADDERS, metavar="DIR", help=f"default: {LADDERS}"
    )
    args = parser.parse_args(argv)
    name = args.folder.resolve().name
    path = args.out / f"{name}.json"
    try:
        if path.exists():
            raise LadderError(f"{path} exists, and a ladder never changes: use another name")
        report = json.loads((args.folder / "table.json").read_bytes())
        ladder = make_ladder(name, report, args.openings)
        write_atomically(path, ladder.model_dump_json(indent=1) + "\n")
    except (KeyError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{path}: {len(ladder.anchors)} anchors, {len(ladder.openings)} openings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
