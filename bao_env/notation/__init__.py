"""Read and write positions, moves and whole games as text.

:mod:`~bao_env.notation.positions` has position texts and the canonical names of actions,
:mod:`~bao_env.notation.moves` has moves as players write them,
:mod:`~bao_env.notation.events` has the events of a move in words,
:mod:`~bao_env.notation.transcript` has whole games as text, and
:mod:`~bao_env.notation.game_record` plays them.
"""

from bao_env.notation.game_record import GameRecord, replay, transcribe
from bao_env.notation.moves import SPELLINGS, format_move, read_move
from bao_env.notation.positions import (
    NotationError,
    action_to_move,
    format_position,
    hole_name,
    move_to_action,
    parse_position,
)
from bao_env.notation.transcript import Transcript, format_transcript, parse_transcripts

__all__ = [
    "SPELLINGS",
    "GameRecord",
    "NotationError",
    "Transcript",
    "action_to_move",
    "format_move",
    "format_position",
    "format_transcript",
    "hole_name",
    "move_to_action",
    "parse_position",
    "parse_transcripts",
    "read_move",
    "replay",
    "transcribe",
]
