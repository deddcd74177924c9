"""Name array types by dtype. Docstrings give the shapes.

:mod:`bao_env.engine.position` has more, named by meaning: ``PackedPositions``, ``Legal``,
``Seats``, ``Actions`` and ``Flags``.
"""

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Uint8Array = npt.NDArray[np.uint8]
Uint64Array = npt.NDArray[np.uint64]
