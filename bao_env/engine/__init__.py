"""Run the rules: packed positions, exact legal actions, one scalar kernel and its batch form.

It needs only numpy and numba. See :mod:`bao_env.engine.layout` for the board's geometry and
:mod:`bao_env.engine.position` for the memory layout.
"""

import bao_env.compiled  # noqa: F401 - it decides what numba reads when it is imported
