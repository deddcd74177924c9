"""Define the command ``bao train``: its options, and what it prints.

Torch takes seconds to import, so everything that needs it is imported when a run begins, after its
settings have been checked.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bao_agents.cli.options import Run, add_options
from bao_training.config import SHIPPED, ConfigError, describe_settings, ruleset_settings
from bao_training.memory import memory_errors
from bao_training.run_settings import (
    FINAL,
    LAST,
    config_of_run,
    find_run,
    holds_run,
    read_settings,
)

if TYPE_CHECKING:
    from bao_training.trainer import Trainer


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao train``: train an agent by self-play."""
    parser.epilog = (
        "Most runs change the settings steps, hidden, workers or method; bao train\n"
        "--settings explains all settings and gives their defaults. To learn from\n"
        "your own observation, or by your own method, train an agent of another\n"
        "library in BaoVectorEnv(observation=...)."
    )
    parser.add_argument(
        "config",
        nargs="?",
        metavar="CONFIG",
        help="a TOML file, a name such as quick (bao train alone lists the names), or the folder "
        "of a run, to repeat it under another name",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override one setting, for example td.epochs=1",
    )
    add_options(parser, ruleset=None, seed=None)
    parser.add_argument(
        "--run", metavar="NAME", help="name of the run (default: the configuration's name)"
    )
    parser.add_argument("--resume", action="store_true", help="continue the run if it exists")
    parser.add_argument("--settings", action="store_true", help="list all settings and exit")
    add_options(parser, out=Path("runs"))
    return _run


def _run(args: argparse.Namespace) -> int:
    if args.settings:
        print(describe_settings())
        return 0
    if not (args.config or args.set or args.run or args.resume or args.ruleset):
        for name, path in SHIPPED.items():
            print(f"bao train {name:10} {path.read_text(encoding='utf-8').splitlines()[0][2:]}")
        return 0
    repeated = find_run(args.config)
    if args.config and not repeated:
        _check_configuration(args.config, args.out)
    name = args.run or _name_of_run(args.config, repeated)
    if not (args.resume and holds_run(args.out / name)):
        _check_shipped(args.config)
    is_folder = len(Path(name).parts) == 1 and Path(name).name.strip(".")
    if not (is_folder and len(name) <= 200 and name.isprintable()):
        raise ConfigError(
            f"--run {name!r:.200}: expected the name of a folder, of at most 200 printable "
            "characters, without slashes; --out gives the folder that it lies in"
        )
    if args.resume and repeated and not args.run:
        _check_resumed(args.out / name, repeated)
    options = ruleset_settings(args.ruleset) if args.ruleset else {}
    options |= {} if args.seed is None else {"seed": args.seed}
    assigned = read_settings(None, args.set)
    for key in assigned.keys() & options:
        option = "--seed" if key == "seed" else "--ruleset"
        raise ConfigError(f"--set {key} has no effect with {option}: leave out one of them")
    settings = read_settings(args.config, args.set) | options
    # A configuration is for a new run: a resumed one has its own settings.
    overrides = assigned | options if args.resume else None
    config_of_run(args.out / name, settings, overrides)  # refuses wrong settings
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with memory_errors():
        from bao_training import distributed

        with distributed.process_group():
            return _train(args, name, settings, overrides, repeated)


def _train(
    args: argparse.Namespace,
    name: str,
    settings: dict[str, Any],
    overrides: dict[str, Any] | None,
    repeated: Path | None,
) -> int:
    """Train a run, report how it ends, and return the exit status.

    Args:
        args: the options of the command.
        name: the name of the run.
        settings: see :func:`bao_training.train.train`, also for ``overrides`` and ``repeated``.
    """
    from bao_agents.support import output
    from bao_training import distributed
    from bao_training.train import say, train
    from bao_training.trainer import DivergedError

    folder = args.out / name
    how_to_continue = f"continue with {_resume_command(args.out, name)}"
    try:
        with memory_errors():
            trainer, stop = train(
                settings,
                folder,
                overrides,
                repeated=repeated,
                command=["bao", *args.words],
                owns_process=args.owns_process,
            )
    except (distributed.ProcessLost, DivergedError, MemoryError, OSError) as error:
        state = f"the last good checkpoint is {folder / LAST}: {how_to_continue}"
        if not os.path.exists(folder / LAST):  # Path.exists would raise some errors
            state = f"{folder} has no checkpoint that can be read"
        reason = "too little memory" if isinstance(error, MemoryError) else f"{error!s:.400}"
        output.say(f"error: {reason}; {state}")
        return 1
    if stop:
        say(f"stopped by {stop.name}, and saved; {how_to_continue}")
        return 128 + stop
    if distributed.rank() == 0:
        output.say(closing_table(trainer, folder), sys.stdout)
    return 0


def closing_table(trainer: Trainer[Any, Any], folder: Path) -> str:
    """Describe a finished run: its last scores, its files, and what to type next."""
    from bao_env.engine.ruleset import get_ruleset

    lines = [f"{folder}: {trainer.steps:,} steps in {trainer.seconds / 60:.1f} minutes"]
    lines += [""] if trainer.evaluation.scores else []
    for opponent, score in trainer.evaluation.scores.items():
        interval = f"{score.low:.1%} to {score.high:.1%}"
        lines.append(
            f"  {score.rate:6.1%} ({interval}) against {opponent.name}, {score.games} games "
            f"({opponent.player})"
        )
    run_folder = shlex.quote(str(folder))
    strongest, rival = run_folder, "alphabeta:4"
    if any(opponent.guided for opponent in trainer.OPPONENTS):
        strongest, rival = f"guided:{run_folder}:5ms", "alphabeta:5ms"
    # The ladder has its own rules; a match takes those of the run.
    has_ladder = trainer.ruleset == get_ruleset("zanzibar")
    return "\n".join(
        [
            *lines,
            "",
            f"  {folder / FINAL}  the player",
            f"  {folder / 'curves.png'}  the learning curves; metrics.csv has the numbers",
            "",
            f"  bao match {strongest} {rival}",
            *([f"  bao rate {strongest}"] if has_ladder else []),
        ]
    )


def _name_of_run(config: str | None, repeated: Path | None) -> str:
    """Return the name of a run that has no --run."""
    if repeated is not None:
        return repeated.resolve().name
    return Path(config).stem if config else "default"


def _check_configuration(config: str, out: Path) -> None:
    """Check that a configuration is not the mere name of a run.

    Raises:
        ConfigError: there is no such configuration, but a run of this name.
    """
    if config not in SHIPPED and not os.path.isfile(config) and find_run(out / config):
        raise ConfigError(
            f"there is no configuration {config!r}, but a run {out / config}: continue it "
            f"with {_resume_command(out, config)}, or repeat it with bao train {out / config}"
        )


def _check_shipped(config: str | None) -> None:
    """Check that the configuration of a new run is not also the name of a run.

    Raises:
        ConfigError: it is a shipped one, and the working folder has a run of this name.
    """
    if config in SHIPPED and holds_run(Path(config)):
        raise ConfigError(
            f"{config} is a shipped configuration, and a run in this folder: name the run "
            f".{os.sep}{config}, or go to another folder"
        )


def _check_resumed(folder: Path, repeated: Path) -> None:
    """Check that --resume with the folder of a run, but without --run, continues that run.

    Raises:
        ConfigError: it would continue or begin another run, in ``folder``.
    """
    run = repeated.resolve()
    if folder.resolve() != run:
        raise ConfigError(
            f"--resume would continue {folder}, not {repeated}: continue that run with "
            f"{_resume_command(run.parent, run.name)}, or name its repetition with --run"
        )


def _resume_command(out: Path, name: str) -> str:
    """Return the command that resumes a run."""
    out_option = "" if out == Path("runs") else f" --out {shlex.quote(str(out))}"
    return f"bao train --run {shlex.quote(name)}{out_option} --resume"
