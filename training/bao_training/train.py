"""Train a Bao policy by self-play.

    bao train quick

``method`` chooses the method: TD(lambda) on afterstates (:mod:`bao_training.td`), or self-play
guided by search (:mod:`bao_training.search_guided`). In each update every worker, a thread, plays
its games. Then the network takes one Adam step per minibatch. The workers compute its gradient side
by side, and their parts are added up in a fixed order.

The folder ``runs/NAME/`` holds the whole run: its settings and provenance (``run.json``), copies
of the files that settings name, metrics.csv, TensorBoard's log, ``last.safetensors``
(everything needed to resume) and, at the end, ``final.safetensors``. A run can be stopped at any
moment, even by SIGKILL. ``--resume`` continues it from its last checkpoint, and it ends with the
same weights as if it had never stopped. ``bao train runs/NAME --run again`` repeats it.

Only one process may train in a run's folder. If it cannot write, or its network is no longer
finite, it stops and leaves the last checkpoint as it was.

Under torchrun the processes share the run's workers (:mod:`bao_training.distributed`), with the
same result::

    torchrun --nproc-per-node 2 -m -- bao_agents train quick

If one of them dies, the others stop, and ``--resume`` continues from the last checkpoint.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from bao_agents.support import output
from bao_agents.support.figures import try_to_save_figure
from bao_agents.support.progress import Progress
from bao_agents.support.provenance import provenance
from bao_training import distributed
from bao_training.config import ConfigError, MethodConfig, TrainConfig, config_to_dict
from bao_training.inputs import COPIES, Inputs, copies_for, read_inputs
from bao_training.metrics import Metrics
from bao_training.plot import Curves
from bao_training.run_settings import (
    FINAL,
    LAST,
    NOTE,
    config_of_resumed_run,
    config_of_run,
    differing,
    holds_run,
    note_of_resumed_run,
    read_note,
    write_note,
)
from bao_training.run_tables import Line, read_runs
from bao_training.search_guided import SearchGuidedTrainer
from bao_training.td import TdTrainer
from bao_training.trainer import Trainer

METHODS: dict[str, type[Trainer[Any, Any]]] = {
    "td": TdTrainer,
    "search_guided": SearchGuidedTrainer,
}
"""The trainers of the methods, by the value of ``method``. A new method is a module like
:mod:`bao_training.td`, its settings in :data:`bao_training.config.METHOD_CONFIGS`, and an entry
here."""


def make_trainer(
    config: TrainConfig, method_config: MethodConfig, inputs: Inputs | None = None
) -> Trainer[Any, Any]:
    """Make a trainer for a configuration; see :class:`Trainer`.

    Raises:
        ConfigError, CheckpointError: see :class:`Trainer`.
    """
    return METHODS[config.method](config, method_config, inputs)


# A run: started or resumed, then trained.


def start_run(
    folder: Path,
    config: TrainConfig,
    method_config: MethodConfig,
    copies: Mapping[str, Path] | None = None,
    command: Sequence[str] = (),
) -> Trainer[Any, Any]:
    """Start a run in ``folder``.

    Args:
        folder: the run's folder.
        config: the common settings.
        method_config: the method's settings.
        copies: files to read in place of those that settings name (:func:`read_inputs`).
        command: the words of the command, for run.json.

    Raises:
        ConfigError, CheckpointError: the run cannot be started.
        OSError: the folder cannot be written.
    """
    inputs = read_inputs(config, copies)
    files = [folder / name for name in (NOTE, *COPIES.values())]
    new_files = [file for file in files if not file.exists()]
    if distributed.rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        inputs.check_place_for_copies(folder)
        networks = inputs.copy_into(folder)  # before run.json, which makes the folder a run
        made_with = provenance(
            config.get_ruleset(), networks=networks, seed=config.seed, command=command
        )
        settings = config_to_dict(config, method_config)
        write_note(folder, {"made_with": made_with, "config": settings})
    try:
        return make_trainer(config, method_config, inputs)  # compiles
    except Exception:  # the machine cannot run it: another run may take the folder
        if distributed.rank() == 0:
            for file in new_files:
                file.unlink(missing_ok=True)
        raise


def resume_run(folder: Path, overrides: Mapping[str, Any] | None = None) -> Trainer[Any, Any]:
    """Continue the run in ``folder`` from its last checkpoint, or from its start if it has none.

    Args:
        folder: the run's folder.
        overrides: new values of settings; see :func:`config_of_resumed_run`.

    Raises:
        CheckpointError: its checkpoint cannot be resumed.
        ConfigError: the run may not change these settings, or this machine cannot run it.
    """
    config, method_config = config_of_resumed_run(folder, overrides or {})
    note = read_note(folder)
    path = folder / LAST
    # A checkpoint has the weights, so the run no longer needs the one that it started with.
    needed = config.model_copy(update={"start": ""}) if path.exists() else config
    try:
        copies = copies_for(folder, config_to_dict(config, method_config))
        inputs = read_inputs(needed, copies)
        trainer = make_trainer(config, method_config, inputs)
    except ConfigError as error:
        raise ConfigError(f"{folder} cannot be resumed: {error}") from error
    if config.steps != note["config"]["steps"]:
        say(f"steps grows from {note['config']['steps']:,} to {config.steps:,}")
    if path.exists():
        trainer.restore(path)
    if distributed.rank() == 0:
        inputs.copy_into(folder)
        new_note = note_of_resumed_run(note, trainer.steps, trainer.settings(), trainer.made_with)
        write_note(folder, new_note)
    return trainer


class _StopSignals:
    """Inside this block SIGINT, SIGTERM and SIGUSR1 (Slurm's warning) ask the run to stop.

    Args:
        owns_process: whether a signal may end the process.
    """

    def __init__(self, owns_process: bool) -> None:
        self.received: signal.Signals | None = None
        self.ends_process: bool = owns_process
        """Whether a signal ends the process at once, because there is nothing new to save."""
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # only it may handle signals
            for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
                if hasattr(signal, name):  # not every system has all
                    number = getattr(signal, name)
                    self._handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: object) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
        if self.ends_process:
            say(
                f"\nstopped by {self.received.name} during the first update, of which nothing is "
                "kept; continue with --resume"
            )
            os._exit(128 + number)  # at once: threads would first compile to their end
        output.say("stopping after this update; another Ctrl-C or signal stops at once")


class _Record:
    """Show and record the progress of a run; only the first process does.

    Args:
        trainer: the run, as restored from its last checkpoint.
        folder: the run's folder.

    Raises:
        ValueError, OSError: metrics.csv cannot be read or written. The methods below raise
            OSError, too.
    """

    def __init__(self, trainer: Trainer[Any, Any], folder: Path) -> None:
        self._trainer, self._folder = trainer, folder
        self._first = distributed.rank() == 0
        self._bar = Progress(
            total=trainer.config.steps,
            initial=trainer.steps,
            unit="step",
            unit_scale=True,
            desc=folder.name,
            **({} if self._first else {"disable": True}),  # passing it would override --quiet
        )
        self._metrics: Metrics | None = None
        if self._first:
            self._metrics = Metrics(folder, trainer.columns, trainer.update, trainer.steps)
            trainer.seconds = self._metrics.seconds

    def close(self) -> None:
        """Remove the bar, and close the files."""
        self._bar.close()
        if self._metrics is not None:
            self._metrics.close()

    def start(self) -> None:
        """Evaluate the network before it learns, if the settings say so."""
        if self._metrics is not None and self._trainer.config.evaluate_every:
            self._metrics.write({"update": 0, "steps": 0, "seconds": 0.0} | self._evaluate())

    def add(self, row: dict[str, float]) -> None:
        """Record an update; evaluate the network and save a generation if that is due."""
        trainer = self._trainer
        if self._metrics is not None:
            if trainer.finished or trainer.has_passed(trainer.config.evaluate_every):
                row |= self._evaluate()
            keep = trainer.config.keep_every
            if trainer.has_passed(keep):
                steps = trainer.steps // keep * keep
                trainer.save_policy(self._folder / f"step-{steps}.safetensors")
            self._metrics.write(row)
        self._bar.update(min(trainer.steps, trainer.config.steps) - self._bar.n)

    def _evaluate(self) -> dict[str, float]:
        """Measure the network, and print the measures."""
        row = self._trainer.measure()
        if not self._bar.disable:
            measures = [f"{name} {row[name]:.1%}" for name in self._trainer.evaluation.measures]
            output.say(f"{self._trainer.steps / 1e6:.2f}M steps: {', '.join(measures)}")
        return row


def run(
    trainer: Trainer[Any, Any], folder: Path, *, owns_process: bool = False
) -> signal.Signals | None:
    """Train until the run is finished, or SIGINT, SIGTERM or SIGUSR1 (Slurm's warning) stops it.

    Args:
        trainer: the run, as started or resumed.
        folder: the run's folder.
        owns_process: whether a signal during the first update, which compiles, ends the process.
            Otherwise the update is finished and saved, as any later one.

    Returns:
        the signal that stopped it, or None; the run is saved either way.

    Raises:
        DivergedError: the network is no longer finite. The last checkpoint stays as it was.
        ValueError, OSError: a file of the run cannot be read or written.
        ProcessLost: another process of the run has ended.
    """
    first = distributed.rank() == 0
    saved, stopping = time.monotonic(), False
    with _StopSignals(owns_process) as signals, closing(_Record(trainer, folder)) as record:
        if not trainer.update:
            record.start()
        while not trainer.finished and not stopping:
            row = trainer.train_update()
            signals.ends_process = False
            waited = time.monotonic() - saved
            due = waited >= trainer.config.checkpoint_every or trainer.finished
            # All processes save and stop after the same update.
            due, stopping = distributed.any_rank(first and due, signals.received is not None)
            record.add(row)
            if due or stopping:
                trainer.save(folder / LAST)
                saved = time.monotonic()
    if not trainer.finished:
        return signals.received or signal.SIGINT  # another process was stopped
    if first:
        trainer.save_policy(folder / FINAL)
        try_to_save_figure(
            lambda: Curves([Line(folder.name, read_runs(folder))]).draw(), folder / "curves.png"
        )
    return None


def train(
    settings: Mapping[str, Any],
    folder: Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    repeated: Path | None = None,
    command: Sequence[str] = (),
    owns_process: bool = False,
) -> tuple[Trainer[Any, Any], signal.Signals | None]:
    """Start or resume the run in a folder, and train it.

    Args:
        settings: the settings of a new run, as plain values; missing ones have their defaults.
        folder: the run's folder.
        overrides: continue the run if it exists, with its own settings except for these (see
            :func:`resume_run`). None starts a new run.
        repeated: the folder of the run that a new run repeats; files named in the settings are read
            from its copies.
        command: the words of the command, for run.json.
        owns_process: see :func:`run`.

    Returns:
        the trainer, and the signal that stopped it; None if the run is finished.

    Raises:
        ConfigError: the settings cannot be used, the run exists, or there is no run to resume.
        CheckpointError, HeldError: the run cannot be resumed, or another process trains it.
        DivergedError, ValueError, OSError, ProcessLost: see :func:`run`.
    """
    config, method_config = config_of_run(folder, settings, overrides)
    resumes = holds_run(folder)
    with distributed.hold(folder):
        if resumes:
            trainer = resume_run(folder, overrides)
            say(
                f"resumed {folder} at step {trainer.steps:,}"
                if (folder / LAST).exists()
                else f"no checkpoint yet: starting {folder} with its own settings"
            )
            if unused := differing(settings, trainer.settings()):
                say(f"it keeps its own settings; the configuration has other {', '.join(unused)}")
        else:
            if overrides is not None:
                say(f"{folder} holds no run yet: starting a new one")
            copies = copies_for(repeated, settings) if repeated else None
            trainer = start_run(folder, config, method_config, copies, command)
        return trainer, run(trainer, folder, owns_process=owns_process)


def say(text: str) -> None:
    """Print a message on stderr, only in the first process."""
    if distributed.rank() == 0:
        output.say(text)
