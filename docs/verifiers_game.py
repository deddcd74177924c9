"""Make the game available to Verifiers under a module name that it finds.

    export PYTHONPATH=docs
    vf-eval verifiers-game -m MODEL -n 20 --env.opponent greedy --no-push

The model is asked at the address of ``--client.base-url``. ``--env.opponent alphabeta:2`` names
another opponent, and without one the model plays both seats. ``--env.taskset.proven true`` asks for
one move in each position that is proved to be won, and rewards a move that keeps the win.
"""

from __future__ import annotations

from bao_env.adapters.verifiers import BaoEnv, BaoTaskset

__all__ = ["BaoEnv", "BaoTaskset"]
