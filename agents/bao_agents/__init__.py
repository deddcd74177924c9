"""Play, measure, analyse and solve Bao: bots, checkpoints as players, an arena, a solver."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["analyse", "load", "review", "solve"]

if TYPE_CHECKING:
    from bao_agents.analysis import analyse, review
    from bao_agents.players.registry import load
    from bao_agents.search.solver.solver import solve
else:  # or a type checker would find every name here
    _HOMES = {
        "analyse": "bao_agents.analysis",
        "load": "bao_agents.players.registry",
        "review": "bao_agents.analysis",
        "solve": "bao_agents.search.solver.solver",
    }

    def __dir__() -> list[str]:
        """Return the public names, for completion."""
        return __all__

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used: the command line starts without them."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
