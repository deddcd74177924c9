"""Support numba: decorators, the cache on disk, notices; beside it, threads and a lock.

Nothing here is about Bao.
"""

import os
import sys

# Numba also reads its settings from .numba_config.yaml in the current folder, which may be a
# stranger's. These could name a folder of pickles, a module, or a file to write. A variable of the
# environment wins over that file. The program's own settings stay as they are.
_DEFAULTS = {
    "NUMBA_CACHE_DIR": ("CACHE_DIR", ""),
    "NUMBA_CACHE_LOCATOR_CLASSES": ("CACHE_LOCATOR_CLASSES", ""),
    "NUMBA_CHROME_TRACE": ("CHROME_TRACE", ""),
    "NUMBA_DUMP_ANNOTATION": ("ANNOTATE", 0),
}
"""The attribute of ``numba.config`` that a variable sets, and its default."""

_unset = {name: default for name, default in _DEFAULTS.items() if name not in os.environ}
if "numba" not in sys.modules:  # it acts on some of them when it is imported
    os.environ.update({name: str(default) for name, (_, default) in _unset.items()})
    from numba.core import config

    for _name in _unset:
        del os.environ[_name]
    config.reload_config()  # or it would do so later, and undo what the program has set by then
else:
    from numba.core import config
for _name, (_attribute, _default) in _unset.items():
    if getattr(config, _attribute) == config._env_reloader.old_environ.get(_name):
        setattr(config, _attribute, _default)
