"""Run the command ``bao`` as ``python -m bao_agents`` (:mod:`bao_agents.cli.main`)."""

import sys

from bao_agents.cli.main import main

sys.exit(main())
