"""Run the rules of Bao on packed positions, one game at a time or in batches.

The engine needs only numpy and numba. See :mod:`bao_env.engine.layout` for the board's geometry and
:mod:`bao_env.engine.position` for the memory layout.
"""

import bao_env.compiled  # noqa: F401 - it decides what numba reads when it is imported
