"""Compile with numba: one decorator, the cache on disk, a notice, threads and locks.

Nothing here is about Bao.
"""

import os
import sys

# Numba also reads its settings from .numba_config.yaml in the current folder, which may be a
# stranger's. These could name a folder of pickles, a module, or a file to write. Variables of the
# environment win over that file, so each gets its default, unless the user has set it.
for _setting, _default in {
    "CACHE_DIR": "",
    "CACHE_LOCATOR_CLASSES": "",
    "CHROME_TRACE": "",
    "DUMP_ANNOTATION": "0",
}.items():
    os.environ.setdefault(f"NUMBA_{_setting}", _default)
if "numba" in sys.modules:  # it has read the file already
    sys.modules["numba"].core.config.reload_config()
