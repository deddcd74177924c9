"""Train a Bao policy by self-play.

    bao train quick

``method`` chooses the method: masked PPO (:mod:`bao_training.ppo`), self-play guided by search
(:mod:`bao_training.alphazero`), or your own, ``package.module:name``. In each update every worker,
a thread, plays its games. Then the network takes one Adam step per minibatch, on gradients that the
workers compute side by side and that are added up in a fixed order.

``runs/NAME/`` keeps the configuration, the commit, metrics.csv, TensorBoard's log,
``last.safetensors`` (everything needed to resume) and, at the end, ``final.safetensors``. A run
that was stopped at any moment, even by SIGKILL, continues with ``--resume`` from its last
checkpoint and ends with the same weights as if it had never stopped. The exception is search-guided
training with ``alphazero.keep_buffer = false``, which fills its buffer again.

Only one process may train in a run's folder. If it cannot write, or its network is no longer
finite, it stops and leaves the last checkpoint as it was.

Under torchrun the processes share the run's workers (:mod:`bao_training.distributed`), with the
same result::

    torchrun --nproc-per-node 2 -m -- bao_training train zanzibar

If one of them dies, the others stop, and ``--resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from bao_agents import plugins
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import CheckpointError
from bao_agents.nets.network import allow_architecture
from bao_agents.progress import Progress
from bao_agents.provenance import current_commit

from bao_env.files import HeldError, write_atomically
from bao_env.options import Run, add_options
from bao_training import distributed
from bao_training.alphazero import AlphaZeroTrainer
from bao_training.config import (
    SHIPPED,
    ConfigError,
    MethodConfig,
    TrainConfig,
    check_settings,
    describe,
    read_settings,
    table_name,
)
from bao_training.metrics import Metrics, MetricsError
from bao_training.plot import draw_curves
from bao_training.ppo import PpoTrainer
from bao_training.td import TdTrainer
from bao_training.trainer import DivergedError, Trainer

METHODS: dict[str, type[Trainer[Any, Any]]] = {
    "td": TdTrainer,
    "ppo": PpoTrainer,
    "alphazero": AlphaZeroTrainer,
}
"""The trainers of the methods, by the name that ``method`` gives. A new one is a file like
:mod:`bao_training.td` and a line here. The user's own join them once a configuration file or --set
names them: a name in a checkpoint imports nothing."""
FORMER_SETTINGS = {"ppo": {"loss": "clipped", "fixed_opponent": ""}}
"""Settings of earlier versions, with the value of a run that can still be resumed."""
LAST = "last.safetensors"
"""The file in a run's folder with everything that it needs to resume."""


# Settings.


def import_own_code(settings: Mapping[str, Any]) -> None:
    """Import the user's own architecture and method that settings name.

    Only for settings that the user wrote: the settings in a checkpoint must not import anything.

    Raises:
        ConfigError: it cannot be imported, or is something else.
    """
    architecture: Any = settings.get("architecture")
    method: Any = settings.get("method")
    try:
        if plugins.is_own(architecture):
            allow_architecture(architecture)
        if plugins.is_own(method):
            code = plugins.find(method)
            if not (isinstance(code, type) and issubclass(code, Trainer)):
                raise ValueError(
                    f"method={method} is {code!r:.200}: expected a bao_training.trainer.Trainer"
                )
            others = [table_name(name) for name in METHODS if name != method]
            if table_name(method) in {*TrainConfig.model_fields, *others}:
                raise ValueError(
                    f"method={method}: there is a setting or a method called "
                    f"{table_name(method)!r}; expected another name after the colon"
                )
            METHODS[method] = code
    except ValueError as error:
        raise ConfigError(str(error)) from error


def config_from_dict(settings: dict[str, Any]) -> tuple[TrainConfig, Any]:
    """Make the common settings and those of the chosen method from plain values; missing keys keep
    their defaults.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    return check_settings(settings, {name: method.config_class for name, method in METHODS.items()})


def load_config(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> tuple[TrainConfig, Any]:
    """Read the common settings and those of the chosen method: defaults, then a TOML file, then
    ``key=value`` strings with TOML values. Imports the user's own code that they name.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type or is
            out of bounds.
    """
    settings = read_settings(path, overrides)
    import_own_code(settings)
    return config_from_dict(settings)


def make_trainer(config: TrainConfig, method_config: MethodConfig) -> Trainer[Any, Any]:
    """Make a trainer for a configuration.

    Raises:
        ConfigError, CheckpointError: see :class:`Trainer` and its ``load_weights``.
    """
    return METHODS[config.method](config, method_config)


# A run: started or resumed, then trained.


def start_run(folder: Path, config: TrainConfig, method_config: MethodConfig) -> Trainer[Any, Any]:
    """Start a run in ``folder``.

    Raises:
        ConfigError, CheckpointError: it cannot be started.
        OSError: the folder cannot be written.
    """
    if (folder / LAST).exists():
        raise ConfigError(
            f"{folder} already holds a run: continue it with --resume, or choose another --run"
        )
    trainer = make_trainer(config, method_config)
    if distributed.rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        note = {
            "commit": current_commit(),
            "torch": torch.__version__,
            "config": trainer.settings(),
        }
        write_atomically(folder / "run.json", json.dumps(note, indent=2) + "\n")
    return trainer


def resume_run(folder: Path) -> Trainer[Any, Any]:
    """Continue the run in ``folder`` from its last checkpoint.

    Raises:
        CheckpointError: it has no checkpoint that can be resumed.
        ConfigError: this machine cannot run it.
    """
    path = folder / LAST
    saved = checkpoint.load(path, arrays=True)
    settings = saved.info.get("config")
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path} holds no run: it has no settings")
    for name, former in FORMER_SETTINGS.items():
        if isinstance(table := settings.get(name), dict):
            kept = {
                key: value for key, value in table.items() if (key, value) not in former.items()
            }
            settings = settings | {name: kept}
    try:
        config, method_config = config_from_dict(settings)
    except ConfigError as error:
        raise CheckpointError(
            f"{path} is of a run that cannot be resumed here: {error}. A run is resumed by the "
            "version of the project that started it; start a new one with another --run"
        ) from error
    trainer = make_trainer(config, method_config)
    try:
        trainer.restore(saved)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return trainer


def run(trainer: Trainer[Any, Any], folder: Path) -> bool:
    """Train until the run is finished or interrupted.

    Returns:
        whether it is finished.

    Raises:
        DivergedError: the network is no longer finite. The last checkpoint stays as it was.
        MetricsError, OSError: a file of the run cannot be read or written.
        ProcessLost: another process of the run has ended.
    """
    config = trainer.config
    stop = False

    def ask_to_stop(number: int, frame: object) -> None:
        nonlocal stop
        if stop:
            raise KeyboardInterrupt
        stop = True
        Progress.write("stopping after this update; repeat to stop at once", file=sys.stderr)

    first = distributed.rank() == 0
    handlers = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGINT, signal.SIGTERM)}
    metrics = Metrics(folder, trainer.columns, trainer.update) if first else None
    bar = Progress(
        total=config.steps,
        initial=trainer.steps,
        unit="step",
        unit_scale=True,
        desc=folder.name,
        disable=not first,
    )
    saved = time.monotonic()
    shown: dict[str, str] = {}
    try:
        stopping = False
        while trainer.steps < config.steps and not stopping:
            before = trainer.steps
            row = trainer.train_update()
            every = config.evaluate_every
            finished = trainer.steps >= config.steps
            due = finished or time.monotonic() - saved >= config.checkpoint_every
            # All processes save and stop after the same update.
            due, stopping = distributed.any_rank(first and due, stop)
            if metrics is not None:
                if finished or (every and trainer.steps // every > before // every):
                    row |= trainer.evaluate()
                    shown |= {
                        name: f"{row[f'score_against_{name}']:.1%}" for name in trainer.OPPONENTS
                    }
                    if "blunders" in row:
                        shown["blunders"] = f"{row['blunders']:.1%}"
                keep = config.keep_every
                if keep and trainer.steps // keep > before // keep:
                    trainer.save_policy(folder / f"step-{trainer.steps // keep * keep}.safetensors")
                metrics.write(row)
            bar.update(min(trainer.steps, config.steps) - min(before, config.steps))
            if "entropy" in row:
                shown["entropy"] = f"{row['entropy']:.2f}"
            bar.set_postfix(shown)
            if due or stopping:
                trainer.save(folder / LAST)
                saved = time.monotonic()
    finally:
        bar.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if metrics is not None:
            metrics.close()
    if trainer.steps < config.steps:
        return False
    if first:
        trainer.save_policy(folder / "final.safetensors")
        draw_curves([folder], folder / "curves.png")
    return True


def describe_settings() -> str:
    """Describe all settings, with their defaults, table by table."""
    tables = [f"settings:\n{describe(TrainConfig)}"]
    tables += [
        f"settings of [{name}]:\n{describe(method.config_class)}"
        for name, method in METHODS.items()
    ]
    return "\n\n".join(tables)


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao train``: train an agent by self-play."""
    parser.epilog = describe_settings()
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
        help="override one setting, for example ppo.epochs=1",
    )
    parser.add_argument("--run", metavar="NAME", help="run's name; default: the config's file name")
    parser.add_argument("--resume", action="store_true", help="continue the run if it exists")
    add_options(parser, "path", out=Path("runs"))
    return _run


def _run(args: argparse.Namespace) -> int:
    if not (args.config or args.set or args.run or args.resume):
        for name, path in SHIPPED.items():
            print(f"bao train {name:10} {path.read_text(encoding='utf-8').splitlines()[0][2:]}")
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    name = args.run or (args.config.stem if args.config else "default")
    with distributed.process_group():
        return _train(args.out / name, name, args)


def _train(folder: Path, name: str, args: argparse.Namespace) -> int:
    """Start or resume a run, train it, and report how it ends; returns the exit status."""
    goes_on = f"continue with --run {name} --resume"
    try:
        if len(Path(name).parts) != 1 or not Path(name).name.strip(".") or len(name) > 200:
            raise ConfigError(
                f"--run {name!r:.200}: expected the name of a folder, of at most 200 characters, "
                "without slashes; --out says where it lies"
            )
        resuming = args.resume and (folder / LAST).exists()
        given = read_settings(args.config, args.set)
        import_own_code(given)
        settings = None if resuming else config_from_dict(given)
        with distributed.hold(folder):
            for unfinished in folder.glob(".*.tmp"):  # by a write that was killed
                unfinished.unlink(missing_ok=True)
            if settings is not None:
                trainer = start_run(folder, *settings)
            else:
                if args.config or args.set:
                    _say("resuming with the run's own configuration")
                trainer = resume_run(folder)
                _say(f"resumed {folder} at step {trainer.steps:,}")
            finished = run(trainer, folder)
    except (ConfigError, CheckpointError, HeldError, MetricsError) as error:
        _say(f"error: {error}")
        return 2
    except distributed.ProcessLost as error:
        print(f"error: {error}; {goes_on}", file=sys.stderr)
        return 1
    except (DivergedError, OSError) as error:
        last = folder / LAST
        # Unlike Path.exists, os.path.exists takes any error for a no.
        left = f"the last good checkpoint is {last}: {goes_on}"
        left = left if os.path.exists(last) else "no checkpoint had been written"
        if isinstance(error, DivergedError):
            _say(
                f"error: {error}: training has diverged and stops; {left}, or, as that may end "
                "here again, start another run from it (--set start=FILE) with a smaller "
                "learning_rate"
            )
        else:
            _say(f"error: {error!s:.400}; {left}")
        return 1
    if not finished:
        _say(f"stopped; {goes_on}")
        return 128 + signal.SIGINT
    _say(f"finished: {folder / 'final.safetensors'}")
    return 0


def _say(text: str) -> None:
    """Print a message on stderr, from the first process alone."""
    if distributed.rank() == 0:
        print(text, file=sys.stderr)
