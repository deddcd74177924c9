"""Train a Bao policy by self-play.

    python -m training.train --config configs/quick.toml

``method`` chooses the method: masked PPO (:mod:`training.ppo`), or self-play guided by search
(:mod:`training.alphazero`). :data:`METHODS` is the table of them. In each update every worker, a
thread, plays its games. Then the network takes one Adam step a minibatch, on gradients that the
workers compute side by side and that are added up in a fixed order.

``runs/NAME/`` keeps the configuration, the commit, metrics.csv, TensorBoard's log,
``last.safetensors`` (everything needed to resume) and, at the end, ``final.safetensors``. A run
that was stopped at any moment continues with ``--resume``. PPO continues exactly as if it had never
stopped; search-guided training continues its games and fills its buffer again.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from agents.nets import checkpoint
from agents.nets.checkpoint import CheckpointError
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
)
from training.metrics import Metrics
from training.ppo import PpoConfig, PpoTrainer
from training.trainer import Trainer


class Method(NamedTuple):
    """A way to train."""

    config: type[MethodConfig]
    """Its table of settings."""
    trainer: type[Trainer[Any]]
    """Takes the common settings and the method's."""


METHODS: dict[str, Method] = {
    "ppo": Method(PpoConfig, PpoTrainer),
    "alphazero": Method(AlphaZeroConfig, AlphaZeroTrainer),
}
"""Every training method, by the name that ``method`` and its table have. A new one is a file like
:mod:`training.ppo` and a line here."""


def config_from_dict(settings: dict[str, Any]) -> tuple[TrainConfig, Any]:
    """The common settings and those of the chosen method, from plain values; missing keys keep
    their defaults.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    return check_settings(settings, {name: method.config for name, method in METHODS.items()})


def load_config(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> tuple[TrainConfig, Any]:
    """The common settings and those of the chosen method: defaults, then a TOML file, then
    ``key=value`` strings with TOML values.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type or is
            out of bounds.
    """
    return config_from_dict(read_settings(path, overrides))


def make_trainer(config: TrainConfig, method_config: MethodConfig) -> Trainer[Any]:
    """A new trainer for a configuration.

    Raises:
        ConfigError, CheckpointError: see :class:`Trainer` and its ``load_weights``.
    """
    return METHODS[config.method].trainer(config, method_config)


def start_run(
    folder: Path, config: str | Path | None = None, overrides: Sequence[str] = ()
) -> Trainer[Any]:
    """A new run in ``folder``, from a TOML file and ``key=value`` strings.

    Raises:
        ConfigError, CheckpointError: it cannot be started.
    """
    trainer = make_trainer(*load_config(config, overrides))
    if distributed.rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        note = {
            "commit": current_commit(),
            "torch": torch.__version__,
            "config": trainer.settings(),
        }
        (folder / "run.json").write_text(json.dumps(note, indent=2) + "\n")
    return trainer


def resume_run(folder: Path) -> Trainer[Any]:
    """The run in ``folder``, where its last checkpoint left it.

    Raises:
        CheckpointError: it has no checkpoint that can be resumed.
    """
    path = folder / "last.safetensors"
    saved = checkpoint.load(path)
    try:
        trainer = make_trainer(*config_from_dict(dict(saved.info["config"])))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} holds no run: it has no settings") from error
    except ConfigError as error:
        raise CheckpointError(
            f"{path} is of a run that cannot be resumed here: {error}. A run is resumed by the "
            "version of the project that started it; start a new one with another --run"
        ) from error
    trainer.restore(saved)
    return trainer


def run(trainer: Trainer[Any], folder: Path) -> bool:
    """Train until the run is finished or interrupted; returns whether it is finished."""
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
    metrics = Metrics(folder, trainer.COLUMNS, trainer.update) if first else None
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
                keep = config.keep_every
                if keep and trainer.steps // keep > before // keep:
                    trainer.save_policy(folder / f"step-{trainer.steps // keep * keep}.safetensors")
                metrics.write(row)
            bar.update(min(trainer.steps, config.steps) - min(before, config.steps))
            bar.set_postfix(shown | {"entropy": f"{row.get('entropy', math.nan):.2f}"})
            if due or stopping:
                trainer.save(folder / "last.safetensors")
                saved = time.monotonic()
    finally:
        bar.close()
        if metrics is not None:
            metrics.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if trainer.steps < config.steps:
        return False
    if first:
        trainer.save_policy(folder / "final.safetensors")
    return True


def describe_settings() -> str:
    """All settings with their defaults and meanings, table by table."""
    tables = [f"settings:\n{describe(TrainConfig)}"]
    tables += [
        f"settings of [{name}]:\n{describe(method.config)}" for name, method in METHODS.items()
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
        return _train(Path(args.runs) / name, args)


def _train(folder: Path, args: argparse.Namespace) -> int:
    """Start or continue the run in ``folder``; returns the exit status."""

    def say(text: str) -> None:
        if distributed.rank() == 0:
            print(text, file=sys.stderr)

    try:
        if not (folder / "last.safetensors").exists():
            trainer = start_run(folder, args.config, args.set)
        elif args.resume:
            if args.config or args.set:
                say("resuming with the run's own configuration")
            trainer = resume_run(folder)
            say(f"resumed {folder} at step {trainer.steps:,}")
        else:
            raise ConfigError(
                f"{folder} already holds a run: continue it with --resume, or choose another --run"
            )
    except (ConfigError, CheckpointError) as error:
        say(f"error: {error}")
        return 2
    try:
        finished = run(trainer, folder)
    except distributed.ProcessLost as error:
        print(f"error: {error}; continue with --run {folder.name} --resume", file=sys.stderr)
        return 1
    if not finished:
        say(f"stopped; continue with --run {folder.name} --resume")
        return 128 + signal.SIGINT
    say(f"finished: {folder / 'final.safetensors'}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
