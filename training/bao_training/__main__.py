"""``python -m bao_training`` is the command ``bao`` (:mod:`bao_training.cli`)."""

import sys

from bao_training.cli import main

sys.exit(main())
