"""Train a Bao policy by self-play.

    bao train quick

``method`` chooses the method: TD(lambda) on afterstates (:mod:`bao_training.td`), or self-play
guided by search (:mod:`bao_training.search_guided`). In each update every worker, a thread, plays
its games. Then the network takes one Adam step per minibatch. The workers compute its gradient side
by side, and their parts are added up in a fixed order.

``runs/NAME/`` keeps the configuration, the commit, metrics.csv, TensorBoard's log,
``last.safetensors`` (everything needed to resume) and, at the end, ``final.safetensors``. A run can
be stopped at any moment, even by SIGKILL. ``--resume`` continues it from its last checkpoint, and
it ends with the same weights as if it had never stopped.

Only one process may train in a run's folder. If it cannot write, or its network is no longer
finite, it stops and leaves the last checkpoint as it was.

Under torchrun the processes share the run's workers (:mod:`bao_training.distributed`), with the
same result::

    torchrun --nproc-per-node 2 -m -- bao_agents train quick

If one of them dies, the others stop, and ``--resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bao_agents.support import output
from bao_agents.support.figures import try_to_save_figure
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import current_commit
from bao_training import distributed
from bao_training.config import (
    ConfigError,
    MethodConfig,
    TrainConfig,
    check_settings,
    describe,
    read_settings,
)
from bao_training.metrics import Metrics
from bao_training.plot import Line, draw_curves, read_runs
from bao_training.run_settings import NOTE, check_changes, read_note, runs_in, write_note
from bao_training.search_guided import SearchGuidedTrainer
from bao_training.td import TdTrainer
from bao_training.trainer import Trainer

METHODS: dict[str, type[Trainer[Any, Any]]] = {
    "td": TdTrainer,
    "search_guided": SearchGuidedTrainer,
}
"""The trainers of the methods, by the name that ``method`` gives. A new one is a file like
:mod:`bao_training.td` and an entry here."""
LAST = "last.safetensors"
"""The file in a run's folder with everything that it needs to resume."""


# Settings.


def config_from_dict(settings: Mapping[str, Any]) -> tuple[TrainConfig, Any]:
    """Make the common settings and those of the chosen method; missing keys keep their defaults.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of bounds.
    """
    return check_settings(settings, {name: method.config_class for name, method in METHODS.items()})


def load_config(
    path: str | Path | None = None, overrides: Sequence[str] = ()
) -> tuple[TrainConfig, Any]:
    """Read the common settings and those of the chosen method.

    Defaults come first, then a TOML file, then ``key=value`` strings with TOML values.

    Raises:
        ConfigError: the file cannot be read, a key is unknown, or a value has the wrong type or is
            out of bounds.
    """
    return config_from_dict(read_settings(path, overrides))


def make_trainer(config: TrainConfig, method_config: MethodConfig) -> Trainer[Any, Any]:
    """Make a trainer for a configuration.

    Raises:
        ConfigError, CheckpointError: see :class:`Trainer`.
    """
    return METHODS[config.method](config, method_config)


# A run: started or resumed, then trained.


def start_run(folder: Path, config: TrainConfig, method_config: MethodConfig) -> Trainer[Any, Any]:
    """Start a run in ``folder``.

    Raises:
        ConfigError, CheckpointError: it cannot be started.
        OSError: the folder cannot be written.
    """
    trainer = make_trainer(config, method_config)
    if distributed.rank() == 0:
        write_note(
            folder,
            {
                "commit": current_commit(),
                "torch": torch.__version__,
                "config": trainer.settings(),
            },
        )
    return trainer


def resume_run(folder: Path, given: Mapping[str, Any] | None = None) -> Trainer[Any, Any]:
    """Continue the run in ``folder`` from its last checkpoint, or from its start if it has none.

    Args:
        folder: the run's folder.
        given: settings that are given now; see :func:`check_changes`. Tables of other methods do
            not count.

    Raises:
        CheckpointError: its checkpoint cannot be resumed.
        ConfigError: settings are given that it cannot change, or this machine cannot run it.
    """
    note = read_note(folder)
    settings, wanted = note["config"], dict(note["config"]) | dict(given or {})
    for table in settings.keys() & METHODS:
        if isinstance(wanted[table], dict):
            wanted[table] = settings[table] | wanted[table]
    try:
        trainer = make_trainer(*config_from_dict(wanted))
    except ConfigError as error:
        raise ConfigError(
            f"{folder} cannot be resumed: {error}. A run goes on with the version of the project "
            "that started it"
        ) from error
    check_changes(folder, settings, trainer.settings())
    if trainer.config.steps != settings["steps"]:
        say(f"steps grows from {settings['steps']:,} to {trainer.config.steps:,}")
    path = folder / LAST
    if path.exists():
        trainer.restore(path)
    if distributed.rank() == 0:
        write_note(folder, note | {"config": trainer.settings()})
    return trainer


def run(trainer: Trainer[Any, Any], folder: Path) -> signal.Signals | None:
    """Train until the run is finished, or SIGINT, SIGTERM or SIGUSR1 (Slurm's warning) stops it.

    Returns:
        the signal that stopped it, or None; the run is saved either way.

    Raises:
        DivergedError: the network is no longer finite. The last checkpoint stays as it was.
        ValueError, OSError: a file of the run cannot be read or written.
        ProcessLost: another process of the run has ended.
    """
    config = trainer.config
    stop: signal.Signals | None = None

    def ask_to_stop(number: int, frame: object) -> None:
        nonlocal stop
        if stop:
            raise KeyboardInterrupt
        stop = signal.Signals(number)
        output.say("stopping after this update; repeat to stop at once")

    first = distributed.rank() == 0
    # Only the main thread may handle signals.
    handled = threading.current_thread() is threading.main_thread()
    names = ("SIGINT", "SIGTERM", "SIGUSR1") if handled else ()
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handlers = {number: signal.signal(number, ask_to_stop) for number in signals}
    metrics = Metrics(folder, trainer.columns, trainer.update, trainer.steps) if first else None
    bar = Progress(
        total=config.steps,
        initial=trainer.steps,
        unit="step",
        unit_scale=True,
        desc=folder.name,
        **({} if first else {"disable": True}),  # passing it would override --quiet
    )
    saved = time.monotonic()

    def evaluate() -> dict[str, float]:
        """Evaluate the network, and print the scores."""
        row = trainer.evaluate()
        if not bar.disable:
            scores = [f"{name} {row[name]:.1%}" for name in trainer.measures]
            output.say(f"{trainer.steps / 1e6:.2f}M steps: {', '.join(scores)}")
        return row

    try:
        if metrics is not None and config.evaluate_every and not trainer.update:
            metrics.write({"update": 0, "steps": 0, "seconds": 0.0} | evaluate())
        stopping = False
        while trainer.steps < config.steps and not stopping:
            before = trainer.steps
            row = trainer.train_update()
            every = config.evaluate_every
            finished = trainer.steps >= config.steps
            due = finished or time.monotonic() - saved >= config.checkpoint_every
            # All processes save and stop after the same update.
            due, stopping = distributed.any_rank(first and due, stop is not None)
            if metrics is not None:
                if finished or (every and trainer.steps // every > before // every):
                    row |= evaluate()
                keep = config.keep_every
                if keep and trainer.steps // keep > before // keep:
                    trainer.save_policy(folder / f"step-{trainer.steps // keep * keep}.safetensors")
                metrics.write(row)
            bar.update(min(trainer.steps, config.steps) - min(before, config.steps))
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
        return stop or signal.SIGINT  # of another process
    if first:
        trainer.save_policy(folder / "final.safetensors")
        lines = [Line(folder.name, read_runs(folder))]
        try_to_save_figure(lambda: draw_curves(lines)[0], folder / "curves.png")
    return None


def describe_settings() -> str:
    """Describe all settings, with their defaults, table by table."""
    tables = [f"settings:\n{describe(TrainConfig)}"]
    tables += [
        f"settings of [{name}]:\n{describe(method.config_class)}"
        for name, method in METHODS.items()
    ]
    return "\n\n".join(tables)


def train(
    settings: Mapping[str, Any], folder: Path, given: Mapping[str, Any] | None = None
) -> tuple[Trainer[Any, Any], signal.Signals | None]:
    """Start or resume the run in a folder, and train it.

    Args:
        settings: of a new run: plain values, as in a configuration; the others have their defaults.
        folder: the run's folder.
        given: continue the run if it exists. It keeps its own settings, except those given here
            (see :func:`resume_run`); None starts a new run.

    Returns:
        the trainer, and the signal that stopped it; None if the run is finished.

    Raises:
        ConfigError: the settings cannot be used, or there is already a run, or none to resume.
        CheckpointError, HeldError: the run cannot be resumed, or another process trains it.
        DivergedError, ValueError, OSError, ProcessLost: see :func:`run`.
    """
    exists = any((folder / name).exists() for name in (NOTE, LAST))
    if exists and given is None:
        raise ConfigError(
            f"{folder} already holds a run: continue it with --resume, or choose another --run"
        )
    if given is not None and not exists and not settings:
        known = ", ".join(runs_in(folder.parent)) or "none"
        raise ConfigError(f"there is no run {folder} to resume; the runs there: {known}")
    checked = None if exists else config_from_dict(settings)
    with distributed.hold(folder):
        for unfinished in folder.glob(".*.tmp"):  # by a write that was killed
            unfinished.unlink(missing_ok=True)
        if checked is not None:
            trainer = start_run(folder, *checked)
        else:
            trainer = resume_run(folder, given)
            say(
                f"resumed {folder} at step {trainer.steps:,}"
                if (folder / LAST).exists()
                else f"no checkpoint yet: starting {folder} with its own settings"
            )
        return trainer, run(trainer, folder)


def say(text: str) -> None:
    """Print a message on stderr, only in the first process."""
    if distributed.rank() == 0:
        output.say(text)
