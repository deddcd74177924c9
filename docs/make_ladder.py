"""Make a ladder from the players of a tournament, and print its file.

bao tournament random greedy alphabeta:1 --anchor random --out runs/ladder
python docs/make_ladder.py NAME runs/ladder/table.json 500 > NAME.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bao_agents.arena.ladder import Anchor, Ladder, LadderError, choices_digest
from bao_agents.arena.openings import draw_openings, write_openings
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_env.engine.ruleset import Ruleset


def make_ladder(name: str, report: dict[str, Any], openings: int) -> Ladder:
    """Make a ladder from the players of a tournament; its openings differ from the tournament's.

    Args:
        name: the name of the ladder.
        report: the tournament's ``table.json``.
        openings: the number of openings.

    Raises:
        KeyError: ``report`` is not the JSON of a tournament.
        LadderError: no player has Elo 0.
        TypeError: a player has no finite rating: it won or lost everything.
        ValueError: a player is not a built-in bot, or there are too few openings.
    """
    if report["anchor"] is None:
        raise LadderError("the tournament has no player with Elo 0: play it with --anchor NAME")
    ruleset = Ruleset.from_dict(report["ruleset"])
    seed = report["seed"] + 1
    drawn = draw_openings(ruleset, openings, report["opening_plies"], seed, report["balance"])
    anchors = []
    for row in report["results"]:
        spec = report["players"][row["player"]]
        player = registry.load(spec, ruleset=ruleset, threads=1)
        anchors.append(
            Anchor(
                player=spec,
                elo=round(row["elo"], 1),
                low=round(row["elo_low"], 1),
                high=round(row["elo_high"], 1),
                games=row["games"],
                ms_a_move=round(row["ms_a_move"], 4),
                answers=choices_digest(player, drawn, ruleset),
                fingerprint=fingerprint(spec, player, ruleset) or "",
            )
        )
    settings = ("made_with", "players", "pairs", "opening_plies", "balance", "seed")
    return Ladder(
        name=name,
        rules=ruleset.to_dict(),
        engine_signature=report["made_with"]["engine_signature"],
        tournament={key: report[key] for key in settings},  # type: ignore[typeddict-item]
        openings_seed=seed,
        anchors=tuple(sorted(anchors, key=lambda anchor: anchor.elo)),
        openings=write_openings(drawn),
    )


if __name__ == "__main__":
    title, file, count = sys.argv[1:]
    made = make_ladder(title, json.loads(Path(file).read_bytes()), int(count))
    print(made.model_dump_json(indent=1))
