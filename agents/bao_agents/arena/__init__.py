"""Measure players in matches and tournaments: paired openings, both seats, honest intervals."""

from bao_agents.arena.match import play_match
from bao_agents.arena.pairs import Pairs

__all__ = ["Pairs", "play_match"]
