"""Players of Bao: bots, checkpoints as players, and the arena that measures them."""

from agents.registry import load

__all__ = ["load"]
