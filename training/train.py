"""Train a Bao policy by self-play.

    python -m training.train --config configs/quick.toml

``method`` chooses the method: masked PPO (:mod:`training.ppo`), or self-play guided by search
(:mod:`training.alphazero`). :data:`METHODS` is the table of them; ``package.module:name`` names
one of your own. In each update every worker, a
thread, plays its games. Then the network takes one Adam step a minibatch, on gradients that the
workers compute side by side and that are added up in a fixed order.

``runs/NAME/`` keeps the configuration, the commit, metrics.csv, TensorBoard's log,
``last.safetensors`` (everything needed to resume) and, at the end, ``final.safetensors``. A run
that was stopped at any moment, even by SIGKILL, continues with ``--resume`` from its last
checkpoint and ends with the same weights as if it had never stopped. Only search-guided training
with ``alphazero.keep_buffer = false`` does not: it fills its buffer again.

One training at a time writes into a run's folder. If it cannot write, or its network is no longer
made of finite numbers, it stops, and the checkpoint before stays as it was.

Under torchrun the processes share the run's workers (:mod:`training.distributed`), with the same
result::

    torchrun --nproc-per-node 2 -m -- training.train --config configs/quick.toml

If one of them dies, the others stop, and ``--resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from tqdm import tqdm

from agents import plugins
from agents.files import HeldError, write_atomically
from agents.nets import checkpoint
from agents.nets.checkpoint import CheckpointError
from agents.nets.network import allow_architecture
from agents.provenance import current_commit
from training import distributed
from training.alphazero import AlphaZeroConfig, AlphaZeroTrainer
from training.config import (
    ConfigError,
    MethodConfig,
    TrainConfig,
    check_settings,
    describe,
    read_settings,
    table_name,
)
from training.loss import allow_loss
from training.metrics import Metrics, MetricsError
from training.ppo import PpoConfig, PpoTrainer
from training.trainer import DivergedError, Method, Trainer

METHODS: dict[str, Method] = {
    "ppo": Method(PpoConfig, PpoTrainer),
    "alphazero": Method(AlphaZeroConfig, AlphaZeroTrainer),
}
"""Every training method, by the name that ``method`` and its table have. A new one is a file like
:mod:`training.ppo` and a line here; or anywhere else, see :func:`allow_method`."""


LAST: Final = "last.safetensors"
"""In a run's folder: everything that it needs to resume."""


def config_from_dict(settings: dict[str, Any]) -> tuple[TrainConfig, Any]:
    """The common settings and those of the chosen method, from plain values; missing keys keep
    their defaults.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    return check_settings(settings, {name: method.config for name, method in METHODS.items()})


def allow_method(name: str) -> None:
    """Import a :class:`~training.trainer.Method` of one's own, ``package.module:name``, and enter
    it in :data:`METHODS`.

    Raises:
        ValueError: it cannot be imported, or is something else.
    """
    if name in METHODS:
        return
    method = plugins.find(name)
    if not isinstance(method, Method):
        raise ValueError(
            f"method={name} is {method!r:.200}: expected a training.trainer.Method of its settings "
            "and its trainer"
        )
    if table_name(name) in {*TrainConfig.model_fields, *map(table_name, METHODS)}:
        raise ValueError(
            f"method={name}: there is a setting or a method called {table_name(name)!r}; expected "
            "another name after the colon"
        )
    METHODS[name] = method


def allow_own_code(settings: Mapping[str, Any]) -> None:
    """Import the user's own code that settings name: architecture, method, loss of PPO.

    For settings that the user wrote; those in a checkpoint are not to import anything.

    Raises:
        ConfigError: it cannot be imported.
    """
    ppo = settings.get("ppo")
    loss = ppo.get("loss") if isinstance(ppo, dict) else None
    named: tuple[tuple[Callable[[str], None], Any], ...] = (
        (allow_architecture, settings.get("architecture")),
        (allow_method, settings.get("method")),
        (allow_loss, loss),
    )
    for allow, name in named:
        if plugins.is_own(name):
            try:
                allow(name)
            except ValueError as error:
                raise ConfigError(str(error)) from error


def load_config(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> tuple[TrainConfig, Any]:
    """The common settings and those of the chosen method: defaults, then a TOML file, then
    ``key=value`` strings with TOML values. The user's own code that they name is imported.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type or is
            out of bounds.
    """
    settings = read_settings(path, overrides)
    allow_own_code(settings)
    return config_from_dict(settings)


def make_trainer(config: TrainConfig, method_config: MethodConfig) -> Trainer[Any]:
    """A new trainer for a configuration.

    Raises:
        ConfigError, CheckpointError: see :class:`Trainer` and its ``load_weights``.
    """
    return METHODS[config.method].trainer(config, method_config)


def start_run(folder: Path, config: TrainConfig, method_config: MethodConfig) -> Trainer[Any]:
    """A new run in ``folder``.

    Raises:
        ConfigError, CheckpointError: it cannot be started.
        OSError: the folder cannot be written.
    """
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


def resume_run(folder: Path) -> Trainer[Any]:
    """The run in ``folder``, where its last checkpoint left it.

    Raises:
        CheckpointError: it has no checkpoint that can be resumed.
        ConfigError: this machine cannot run it.
    """
    path = folder / LAST
    said = checkpoint.describe(path)
    config, method_config = _settings_of(path, said)
    trainer = make_trainer(config, method_config)
    arrays = {name: kind for name, kind in said.tensors.items() if not name.startswith("model.")}
    try:
        trainer.check_header(said.info, arrays)
        trainer.restore(checkpoint.load(path, said.ruleset, arrays=True))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return trainer


def _settings_of(path: Path, said: checkpoint.Contents) -> tuple[TrainConfig, MethodConfig]:
    """The settings of a run, compared with what else its checkpoint says of itself.

    Raises:
        CheckpointError: there are none, or they are of another run or another version.
    """
    settings = said.info.get("config")
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path} holds no run: it has no settings")
    try:
        config, method_config = config_from_dict(settings)
    except ConfigError as error:
        raise CheckpointError(
            f"{path} is of a run that cannot be resumed here: {error}. A run is resumed by the "
            "version of the project that started it; start a new one with another --run"
        ) from error
    for what, its, expected in (
        ("rule set", said.ruleset, config.get_ruleset()),
        ("network", said.config, config.network_config()),
    ):
        if its != expected:
            raise CheckpointError(f"{path}: its {what} is not the one that its settings name")
    return config, method_config


def run(trainer: Trainer[Any], folder: Path) -> bool:
    """Train until the run is finished or interrupted; returns whether it is finished.

    Raises:
        DivergedError: the network is no longer finite; the last checkpoint stays as it was.
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
        tqdm.write("stopping after this update; repeat to stop at once", file=sys.stderr)

    first = distributed.rank() == 0
    handlers = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGINT, signal.SIGTERM)}
    metrics = Metrics(folder, trainer.columns, trainer.update) if first else None
    bar = tqdm(
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
            bar.set_postfix(shown | {"entropy": f"{row.get('entropy', math.nan):.2f}"})
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
    return True


def describe_settings() -> str:
    """All settings with their defaults and meanings, table by table."""
    tables = [f"settings:\n{describe(TrainConfig)}"]
    tables += [
        f"settings of [{table_name(name)}]:\n{describe(method.config)}"
        for name, method in METHODS.items()
    ]
    return "\n\n".join(tables)


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.train``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.train",
        description="Train a Bao policy by self-play: PPO, or guided by search.",
        epilog=describe_settings(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file, e.g. configs/quick.toml")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override one setting, for example ppo.epochs=1",
    )
    parser.add_argument("--run", metavar="NAME", help="run's name; default: the config's file name")
    parser.add_argument("--runs", metavar="FOLDER", default="runs", help="default: runs")
    parser.add_argument("--resume", action="store_true", help="continue the run if it exists")
    args = parser.parse_args(argv)
    name = args.run or (Path(args.config).stem if args.config else "default")
    with distributed.process_group():
        return _train(Path(args.runs), name, args)


def _say(text: str) -> None:
    """A message on stderr, from the first process alone."""
    if distributed.rank() == 0:
        print(text, file=sys.stderr)


def _train(runs: Path, name: str, args: argparse.Namespace) -> int:
    """Start or continue a run; returns the exit status."""
    folder = runs / name
    try:
        if len(Path(name).parts) != 1 or not Path(name).name.strip(".") or len(name) > 200:
            raise ConfigError(
                f"--run {name!r:.200}: expected the name of a folder, of at most 200 characters, "
                "without slashes; --runs says where it lies"
            )
        resuming = args.resume and (folder / LAST).exists()
        settings = None if resuming else load_config(args.config, args.set)
        if resuming:
            allow_own_code(read_settings(args.config, args.set))
        with distributed.hold(folder):
            for begun in folder.glob(".*.tmp"):  # by a write that was killed
                begun.unlink(missing_ok=True)
            return _run(_prepare(folder, settings, args), folder)
    except (ConfigError, CheckpointError, HeldError, MetricsError) as error:
        _say(f"error: {error}")
        return 2
    except OSError as error:
        _say(f"error: {error!s:.400}; {_what_is_left(folder)}")
        return 1


def _prepare(
    folder: Path, settings: tuple[TrainConfig, MethodConfig] | None, args: argparse.Namespace
) -> Trainer[Any]:
    """The trainer of a new run with these settings or, without any, of the run to resume."""
    if settings is not None:
        if (folder / LAST).exists():
            raise ConfigError(
                f"{folder} already holds a run: continue it with --resume, or choose another --run"
            )
        return start_run(folder, *settings)
    if args.config or args.set:
        _say("resuming with the run's own configuration")
    trainer = resume_run(folder)
    _say(f"resumed {folder} at step {trainer.steps:,}")
    return trainer


def _run(trainer: Trainer[Any], folder: Path) -> int:
    """:func:`run`, and what to say when it ends; returns the exit status."""
    try:
        finished = run(trainer, folder)
    except distributed.ProcessLost as error:
        print(f"error: {error}; continue with --run {folder.name} --resume", file=sys.stderr)
        return 1
    except DivergedError as error:
        _say(
            f"error: {error}: training has diverged and stops; {_what_is_left(folder)}, or, as "
            "that may end here again, start another run from it (--set start=FILE) with a smaller "
            "learning_rate"
        )
        return 1
    if not finished:
        _say(f"stopped; continue with --run {folder.name} --resume")
        return 128 + signal.SIGINT
    _say(f"finished: {folder / 'final.safetensors'}")
    return 0


def _what_is_left(folder: Path) -> str:
    """After an error: which checkpoint is whole."""
    last = folder / LAST
    if not os.path.exists(last):  # unlike Path.exists, it takes any error for a no
        return "no checkpoint had been written"
    return f"the last good checkpoint is {last}: continue with --run {folder.name} --resume"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
