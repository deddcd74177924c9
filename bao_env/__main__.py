"""``python -m bao_env`` is the command ``bao`` (:mod:`bao_env.cli`)."""

import sys

from bao_env.cli import main

sys.exit(main())
