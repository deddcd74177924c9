"""Players of Bao: bots, checkpoints as players, and the arena that measures them."""

from agents.registry import allow_architecture, load

__all__ = ["allow_architecture", "load"]
