"""Measure players in matches and tournaments: paired openings, both seats, honest intervals."""

from bao_agents.arena.match import Match, play_match

__all__ = ["Match", "play_match"]
