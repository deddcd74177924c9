"""The rules engine: packed positions, exact masks, one scalar kernel and its batch form.

Needs numpy and numba alone. See :mod:`bao_env.engine.layout` for the board's
geometry and :mod:`bao_env.engine.position` for the memory layout.
"""
