"""Run the command ``bao`` as ``python -m bao_training`` (:mod:`bao_training.cli`)."""

import sys

from bao_training.cli import main

sys.exit(main())
