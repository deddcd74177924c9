"""Measure players in matches and tournaments: paired openings, both seats, honest intervals."""

from bao_agents.arena.pairs import Pairs, play_match

__all__ = ["Pairs", "play_match"]
