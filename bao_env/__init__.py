"""Bao la Kiswahili for reinforcement learning.

==============================  ======================================================
``bao_env.env``, ``raw_env``    PettingZoo: two agents (:mod:`bao_env.envs.aec`)
``bao_env.BaoEnv``              Gymnasium: one game, against an opponent or in self-play
``bao_env.BaoVectorEnv``        Gymnasium: thousands of games at once
``bao_env.Engine``              the batch engine beneath them: arrays in, arrays out
``bao_env.Board``               one game for people: moves by name, undo, pictures
==============================  ======================================================

Importing the package registers ``bao/Bao-v0`` and, for self-play, ``bao/BaoSelfPlay-v0`` with
Gymnasium, and ``bao/bao-v0`` with PettingZoo if it has a registry.
``gymnasium.make("bao_env:bao/Bao-v0")`` does the import itself.
"""

from typing import TYPE_CHECKING, Any

import gymnasium
import pettingzoo

if TYPE_CHECKING:
    from bao_env.exports import *  # noqa: F403
    from bao_env.exports import __all__ as __all__

__version__ = "0.1.0"

for _name, _options in (("Bao", {}), ("BaoSelfPlay", {"opponent": None})):
    gymnasium.register(
        f"bao/{_name}-v0",
        entry_point="bao_env.envs.single:BaoEnv",
        vector_entry_point="bao_env.envs.vector:BaoVectorEnv",
        kwargs=_options,
    )
if hasattr(pettingzoo, "register"):  # new in PettingZoo 1.27
    pettingzoo.register("aec", "bao/bao-v0", entry_point="bao_env.envs.aec:env")

if not TYPE_CHECKING:  # or a type checker would find every name here

    def __getattr__(name: str) -> Any:
        """Import all public names when one is first used, which keeps ``bao --help`` quick."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        from importlib import import_module

        exports = import_module("bao_env.exports")
        globals().update({public: getattr(exports, public) for public in exports.__all__})
        globals()["__all__"] = exports.__all__
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module 'bao_env' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from bao_env.exports import __all__ as __all__

    return sorted({*globals(), *__all__})
