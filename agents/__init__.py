"""Players of Bao: bots, checkpoints as players, and the arena that measures them; a solver."""

from agents.registry import load
from agents.search.solver import solve

__all__ = ["load", "solve"]
