"""Share what commands that play games need: the options of openings, and a check of names."""

from __future__ import annotations

import argparse

from bao_agents.arena.openings import BALANCE, OPENING_PLIES
from bao_agents.cli.options import at_least
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript


def add_openings(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--opening-plies`` and ``--balance`` to a parser."""
    parser.add_argument(
        "--opening-plies",
        type=at_least(0, most=MAX_OPENING_PLIES),
        default=OPENING_PLIES,
        help="random plies per opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=BALANCE,
        help="largest value of an opening for either side, in logits (default: %(default)s)",
    )


def check_names(*names: str) -> None:
    """Check that a transcript can hold the names of players; called before the games.

    Raises:
        ValueError: it cannot hold one, for example because of a line break.
    """
    for name in names:
        try:
            format_transcript(Transcript({"south": name}))
        except NotationError as error:
            raise ValueError(f"no transcript can name a player {name!r:.80}: {error}") from error
