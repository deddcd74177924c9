"""Play, measure, analyse and solve Bao: bots, checkpoints as players, an arena, a solver."""

from typing import TYPE_CHECKING, Any

from bao_agents.players.registry import load

__all__ = ["analyse", "load", "review", "solve"]

if TYPE_CHECKING:
    from bao_agents.analysis import analyse, review
    from bao_agents.search.solver.solver import solve
else:  # or a type checker would find every name here

    def __dir__() -> list[str]:
        """Return the public names, for completion."""
        return __all__

    def __getattr__(name: str) -> Any:
        """Import ``analyse``, ``review`` and ``solve`` when they are first used."""
        if name in ("analyse", "review"):
            from bao_agents import analysis

            return getattr(analysis, name)
        if name != "solve":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from bao_agents.search.solver.solver import solve

        return solve
