"""Support numba with decorators, a cache on disk and notices; also provide threads and a lock.

Nothing here is about Bao.
"""

import os
import sys

# Numba also reads settings from .numba_config.yaml in the current folder, which may be untrusted.
# The settings below could name a folder of pickles, a module to import, or a file to write. An
# environment variable overrides the file, so unset variables are set to the defaults while numba
# reads its settings. Settings that the program itself has made stay as they are.
_DEFAULTS = {
    "NUMBA_CACHE_DIR": ("CACHE_DIR", ""),
    "NUMBA_CACHE_LOCATOR_CLASSES": ("CACHE_LOCATOR_CLASSES", ""),
    "NUMBA_CHROME_TRACE": ("CHROME_TRACE", ""),
    "NUMBA_DUMP_ANNOTATION": ("ANNOTATE", 0),
}
"""Environment variables, each with the attribute of ``numba.config`` it sets and its default."""

_unset = {name: default for name, default in _DEFAULTS.items() if name not in os.environ}
if "numba" not in sys.modules:  # numba acts on some settings when it is imported
    os.environ.update({name: str(default) for name, (_, default) in _unset.items()})
    from numba.core import config

    for _name in _unset:
        del os.environ[_name]
    config.reload_config()  # or numba would do it later, and undo the program's settings
else:
    from numba.core import config
for _name, (_attribute, _default) in _unset.items():
    if getattr(config, _attribute) == config._env_reloader.old_environ.get(_name):
        setattr(config, _attribute, _default)
