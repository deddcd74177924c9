"""Define the command ``bao train``: its options, and what it prints at the end.

Torch takes seconds to import, so everything that needs it is imported when a run begins.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from bao_agents.cli.options import Run, add_options

SETTINGS = """\
settings that most runs change; bao train --settings lists the others
  steps=2500000       actions played in the whole run
  hidden=[256, 128]   units of each hidden layer
  workers=2           threads, one for each core
  method=td           td or alphazero (guided by search)

To learn from your own observation, or by your own method, train another library's agent
in BaoVectorEnv(observation=...)."""


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao train``: train an agent by self-play."""
    parser.epilog = SETTINGS
    parser.add_argument(
        "config",
        nargs="?",
        type=Path,
        metavar="CONFIG",
        help="a TOML file, or a name such as quick; bao train alone lists the names",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override one setting, for example td.epochs=1",
    )
    add_options(parser, ruleset=None, seed=None)
    parser.add_argument("--run", metavar="NAME", help="run's name; default: the config's file name")
    parser.add_argument("--resume", action="store_true", help="continue the run if it exists")
    parser.add_argument("--settings", action="store_true", help="list all settings, and stop")
    add_options(parser, out=Path("runs"))
    return _run


def _run(args: argparse.Namespace) -> int:
    if args.settings:
        from bao_training.train import describe_settings

        print(describe_settings())
        return 0
    if not (args.config or args.set or args.run or args.resume or args.ruleset):
        from bao_training.config import SHIPPED

        for name, path in SHIPPED.items():
            print(f"bao train {name:10} {path.read_text(encoding='utf-8').splitlines()[0][2:]}")
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from bao_training import distributed
    from bao_training.train import train

    with distributed.process_group():
        return train(args)
