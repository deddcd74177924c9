"""Test training: settings, exact resume after any kind of stop, invalid checkpoints, learning."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from pydantic import BaseModel
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bao_agents.cli.main import main
from bao_agents.exact.solved_positions import SolvedPositions
from bao_agents.nets import checkpoint
from bao_agents.support import files, provenance
from bao_env.engine.ruleset import load_ruleset
from bao_training import run_state, train
from bao_training.config import (
    METHOD_CONFIGS,
    ConfigError,
    TdConfig,
    TrainConfig,
    config_from_dict,
)
from bao_training.metrics import Metrics
from bao_training.run_settings import LAST, load_config, read_settings
from bao_training.td import TdTrainer
from tests.conftest import Capsys, Fails, Says
from tests.processes import ROOT, start
from tests.rulesets import every_ruleset
from tests.training.runs import check_resumed, make, metrics, options, weights

TINY = (
    "steps=12288 hidden=[16] envs=64 rollout=16 minibatch=512 "
    "evaluate_pairs=10 evaluate_every=6000 checkpoint_every=0 "
)


RUN = f"train --run r {options(TINY)} --out "
"""The beginning of the command for a tiny run."""


def tiny(settings: str = "") -> Any:
    """Make the trainer of a tiny run, with some settings changed."""
    return make(TINY + settings)


LEARNERS = {
    "td": "",
    "search_guided": (
        "envs=32 rollout=8 minibatch=128 max_plies=60 "
        "search_guided.nodes=20 search_guided.buffer=2000"
    ),
}
"""Settings of each method that make an update fast."""


@pytest.mark.parametrize("method", METHOD_CONFIGS)
def test_an_update_learns(method: str) -> None:
    """Every layer changes, and the loss of the played actions falls. Some weight moves as far as
    the learning rate lets it."""
    trainer = tiny(f"method={method} bfloat16=false workers=1 {LEARNERS[method]}")
    [worker] = trainer.workers
    decisions, targets, losses = np.array([], np.int64), None, []

    def measure_loss() -> None:
        worker.games.start_update(0)  # so that each time it draws the same positions
        losses.append(worker.loss(decisions, targets)[0].item())

    learn = trainer.learn
    before = {name: array.clone() for name, array in trainer.model.state_dict().items()}

    def learn_between_losses() -> dict[str, float]:
        nonlocal decisions, targets
        worker.draw_minibatches(1)
        [decisions] = worker.minibatches
        targets = worker.targets(decisions)
        if len(decisions):
            measure_loss()
        row = learn()
        if len(decisions):
            measure_loss()
        return row

    trainer.learn = learn_between_losses
    for _ in range(20):  # a buffer must fill before anything is learnt from it
        row = trainer.train_update()
        if row["gradient_norm"]:
            break
    assert losses[-1] < losses[-2]
    moved = {
        name: (array - before[name]).abs().max().item()
        for name, array in trainer.model.state_dict().items()
    }
    assert min(moved.values()) > 0 and max(moved.values()) > 0.9 * row["learning_rate"], moved


@every_ruleset("zanzibar")
def test_resumed_run_is_the_same_run(tmp_path: Path, ruleset: str) -> None:
    check_resumed(f"{TINY}ruleset={ruleset}", tmp_path / "last.safetensors", 5, 4)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait until a run is finished."""
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def wait_for_checkpoint(process: subprocess.Popen[Any], last: Path) -> None:
    """Wait until a run has written its next checkpoint (or other file), or has ended."""
    old_time = last.stat().st_mtime_ns if last.exists() else 0
    while process.poll() is None and (not last.exists() or last.stat().st_mtime_ns == old_time):
        time.sleep(0.005)


@pytest.mark.slow
def test_resume_after_kills(tmp_path: Path) -> None:
    """A run killed with SIGKILL twice ends bit for bit like one left alone."""
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    finish(start(RUN + str(alone)))
    rng = random.Random(3)
    kills = 0
    for _ in range(2):
        process = start(f"{RUN}{killed} --resume")
        wait_for_checkpoint(process, killed / "r" / LAST)
        time.sleep(rng.random() * 0.05)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    finish(start(f"{RUN}{killed} --resume"))
    uninterrupted, resumed = (load_file(run / "r" / "final.safetensors") for run in (alone, killed))
    np.testing.assert_equal(uninterrupted, resumed)
    assert not list((killed / "r").glob(".*.tmp"))  # left by a killed write
    assert metrics(alone) == metrics(killed)
    assert [int(row["update"]) for row in metrics(alone)] == list(range(13))


def test_configs_are_found_by_name_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = re.findall(r"^bao train (\w+) +\S.*[:.]", says("train"), re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "configs").iterdir())
    for name in listed:
        assert load_config(name) == load_config(ROOT / "configs" / f"{name}.toml")
        assert load_config(name)[0].checkpoint_every <= 30  # so that a kill loses little
    (tmp_path / "quick").write_text("steps = 7")
    assert load_config("quick")[0].steps == 7


def test_a_name_is_not_both_a_configuration_and_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Fails
) -> None:
    """A path with a slash, as a shell completes it, is a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / "run.json").write_text('{"config": {"steps": "x"}}')
    for option in ("", "--resume"):
        assert "a shipped configuration, and a run in this folder" in run(f"quick {option}")
    assert "steps='x' should be" in run("quick/")
    assert "steps='x' should be" in run("quick --resume --run quick")


def test_config_files(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        "hidden = [8, 4]\nlearning_rate = 1\nsteps = 1e6\n[td]\nepochs = 2\nnoise = 0.1",
        "utf-8-sig",  # as some editors write it
    )
    config, table = load_config(path, ["td.epochs=3", 'ruleset="kibao"'])
    assert (config.hidden, config.learning_rate, config.ruleset) == ((8, 4), 1.0, "kibao")
    assert config.steps == 1_000_000 and isinstance(config.steps, int)
    assert table == TdConfig(epochs=3, noise=0.1)
    assert config_from_dict(config.to_dict() | {"td": table.to_dict()}) == (config, table)


BOUNDS = {
    "seed": (0, 0, 2**63 - 1),
    "steps": (1, 2_500_000, 10**15),
    "workers": (1, 2, 256),
    "envs": (1, 1024, 1 << 20),
    "rollout": (1, 32, 4096),
    "minibatch": (1, 2048, 1 << 24),
    "learning_rate": (0.0, 1e-3, 1.0),
    "final_learning_rate": (0.0, 2e-5, 1.0),
    "max_gradient": (1e-6, 0.5, 1e6),
    "gamma": (0.0, 1.0, 1.0),
    "opening_plies": (0, 20, 40),
    "max_plies": (10, 500, 100_000),
    "evaluate_every": (0, 1_250_000, 10**15),
    "evaluate_pairs": (1, 250, 10_000),
    "keep_every": (0, 0, 10**15),
    "checkpoint_every": (0.0, 30.0, 1e9),
    "td.td_lambda": (0.0, 0.7, 1.0),
    "td.noise": (0.0, 0.05, 10.0),
    "td.exploration": (0.0, 0.1, 1.0),
    "td.final_exploration": (0.0, 0.02, 1.0),
    "td.max_cost": (0.0, 0.1, 2.0),
    "td.epochs": (1, 2, 100),
    "search_guided.nodes": (1, 500, 10**9),
    "search_guided.buffer": (1000, 1_000_000, 10**9),
    "search_guided.replay_ratio": (0.0, 2.0, 1000.0),
    "search_guided.nnue_replay_ratio": (0.0, 4.0, 1000.0),
    "search_guided.value_weight": (0.0, 1.0, 100.0),
    "search_guided.search_value": (0.0, 0.3, 1.0),
}
"""The lowest value, the default and the highest value of each setting that is a number."""


def test_every_number_has_its_bounds_and_its_default() -> None:
    """A setting takes its lowest and its highest value, and nothing beyond them. Without a value it
    has its default."""

    def out_of_bounds(setting: str, value: float) -> bool:
        try:
            load_config(None, [f"{setting}={value!r}"])
        except ConfigError as error:  # settings that do not fit each other are refused later
            return re.match(rf"{setting}=\S+ should be (greater|less) than", str(error)) is not None
        return False

    tables: dict[str, type[BaseModel]] = {"": TrainConfig}
    tables |= {f"{name}.": table for name, table in METHOD_CONFIGS.items()}
    defaults = {
        prefix + key: field.default
        for prefix, table in tables.items()
        for key, field in table.model_fields.items()
        if type(field.default) in (int, float)
    }
    assert defaults == {setting: default for setting, (_, default, _) in BOUNDS.items()}
    for setting, (lowest, _, highest) in BOUNDS.items():
        below, above = lowest - 1, highest + 1
        if isinstance(lowest, float):
            below, above = lowest - 1e-9, highest + 1e-9 * max(1, highest)
        assert not out_of_bounds(setting, lowest), setting
        assert not out_of_bounds(setting, highest), setting
        assert out_of_bounds(setting, below), setting
        assert out_of_bounds(setting, above), setting


def test_every_setting_is_described(says: Says) -> None:
    text = says("train --settings")
    assert "`" not in text
    parts = re.split(r"settings of \[\w+\]:", text)
    tables: list[type[BaseModel]] = [TrainConfig]
    tables += METHOD_CONFIGS.values()
    for text, table in zip(parts, tables, strict=True):
        for key, setting in table.model_fields.items():
            assert f"  {key} = " in text
            assert setting.description and setting.description.split()[0].strip("`") in text
    for line in ("hidden = [256, 128]", 'ruleset = "zanzibar"', "bfloat16 = true"):
        assert f"  {line}\n" in parts[0]


NEW = options(TINY + "evaluate_pairs=1")
"""Command-line words for a new tiny run."""
ONLY_AT_THE_END = "evaluate_every=0 checkpoint_every=1e9"
"""Settings with which a run is evaluated and saved only at its end."""


def test_a_rule_file_and_a_seed(tmp_path: Path, says: Says, fails: Fails) -> None:
    rules = tmp_path / "mine.toml"
    rules.write_text(f'base = "kibao"\nopening_back = {[0] * 7 + [1]}\nopening_store = 21')
    words = f"--set steps=1024 --ruleset {rules} --seed 7 --out {tmp_path} --run r"
    lines = says(f"train {NEW} {options(ONLY_AT_THE_END)} {words}").splitlines()
    final = tmp_path / "r" / "final.safetensors"
    saved = checkpoint.load(final)
    assert saved.ruleset == load_ruleset(rules) and saved.info["config"]["seed"] == 7
    assert checkpoint.load(tmp_path / "r" / LAST).info["steps"] == 1024
    [row] = metrics(tmp_path)
    assert row["steps"] == "1024" and row["score_against_greedy"]
    assert lines[0].startswith(f"{tmp_path / 'r'}: 1,024 steps in 0.")
    assert f"  bao match {final.parent} alphabeta:4" == lines[-1]
    notices = fails(f"train {NEW} {options(ONLY_AT_THE_END)} {words} --resume", 0)
    assert "resumed" in notices and "the configuration has other" not in notices
    for opponent in TdTrainer.OPPONENTS:
        assert any(f"against {opponent.name}, 2 games" in line for line in lines)
    assert all(len(line.replace(str(tmp_path), "runs")) <= 80 for line in lines)


@pytest.fixture
def run(tmp_path: Path, fails: Fails) -> Iterator[Fails]:
    """Run ``bao train`` for the run ``r`` in ``tmp_path``; see ``fails``.

    It draws no curves, which takes longer than a tiny run.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "try_to_save_figure", lambda *_: None)
        yield lambda line, status=2: fails(f"train --out {tmp_path} --run r {line}", status)


class Gone(io.StringIO):
    """A terminal that is closed."""

    def write(self, text: str) -> int:
        """Fail."""
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("number", "stream"),
    [(signal.SIGINT, Gone), (signal.SIGTERM, io.StringIO), (signal.SIGUSR1, Gone)],
)
def test_a_signal_saves_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, stream: Any
) -> None:
    """The run is saved even if its output cannot be printed when it is stopped, evaluates, resumes
    and ends."""
    update, errors = TdTrainer.train_update, stream()

    def stop(self: TdTrainer) -> dict[str, float]:
        signal.raise_signal(number)
        return update(self)

    monkeypatch.setattr(sys, "stdout", stream())
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(train, "try_to_save_figure", lambda *_: None)
    words = f"train --out {tmp_path} --run r".split()
    with monkeypatch.context() as patch:
        patch.setattr(TdTrainer, "train_update", stop)
        assert main([*words, *NEW.split(), "--set", "steps=2048"]) == 128 + number
    assert checkpoint.load(tmp_path / "r" / LAST).info["steps"] == 1024
    advice = f"stopped by {number.name}, and saved; continue with bao train --run r --out "
    assert stream is Gone or advice in errors.getvalue()
    assert main([*words, "--resume"]) == 0
    assert (tmp_path / "r" / "final.safetensors").exists()


def test_a_signal_in_the_first_update_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """Nothing could be saved; later, updates are finished and saved."""
    update = TdTrainer.train_update

    def stop(self: TdTrainer) -> dict[str, float]:
        if self.update == stopped_update:
            signal.raise_signal(signal.SIGTERM)
        return update(self)

    monkeypatch.setattr(TdTrainer, "train_update", stop)
    monkeypatch.setattr(os, "_exit", sys.exit)
    settings = (TINY + "evaluate_every=0 evaluate_pairs=1 checkpoint_every=1e9").split()
    trainer = train.start_run(tmp_path, *load_config(None, settings))
    stopped_update = 0
    with pytest.raises(SystemExit, match="143"):
        train.run(trainer, tmp_path, owns_process=True)
    assert "stopped by SIGTERM during the first update" in capsys.readouterr().err
    assert not (tmp_path / LAST).exists()
    stopped_update = 1
    assert train.run(trainer, tmp_path, owns_process=True) == signal.SIGTERM
    assert checkpoint.load(tmp_path / LAST).info["steps"] == 2048


def test_a_run_is_saved_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is saved every 100 seconds, and at the end. The clock here gains 50 seconds at each
    look."""
    clock = SimpleNamespace(monotonic=iter(range(1000, 9000, 50)).__next__)
    monkeypatch.setattr(train, "time", clock)
    monkeypatch.setattr(train, "try_to_save_figure", lambda *_: None)
    settings = TINY + "steps=4096 checkpoint_every=100 evaluate_every=0 evaluate_pairs=1"
    trainer = train.start_run(tmp_path, *load_config(None, settings.split()))
    saved, save = list[int](), trainer.save

    def note(path: Path) -> None:
        saved.append(trainer.steps)
        save(path)

    monkeypatch.setattr(trainer, "save", note)
    train.run(trainer, tmp_path)
    assert saved == [2048, 4096]


@pytest.mark.parametrize(
    "note",
    ["[]", '{"config": 3}', '{"config": {}, "made_with": 3}', '{"config": {}, "resumed": [3]}'],
)
def test_a_note_of_something_else_is_refused(note: str, tmp_path: Path, run: Fails) -> None:
    file = tmp_path / "r" / "run.json"
    file.parent.mkdir()
    file.write_text(note)
    assert run("--resume").startswith(f"error: {file} is not the note of a run: ")
    assert file.read_text() == note


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny run after three updates."""
    folder = tmp_path_factory.mktemp("run")
    trainer = train.start_run(folder, *load_config(None, (TINY + "evaluate_pairs=1").split()))
    for _ in range(3):
        trainer.train_update()
    trainer.save(folder / LAST)
    return folder


def test_diverged_network_is_not_saved(
    tmp_path: Path, run: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stops, its last checkpoint stays, and the run can be resumed."""
    good: list[bytes] = []
    learn = TdTrainer.learn

    def diverge(self: TdTrainer) -> dict[str, float]:
        if self.update < 2:
            return learn(self)
        good.append((tmp_path / "r" / LAST).read_bytes())
        row = learn(self)
        next(self.network.parameters()).data[0, 0] = torch.inf
        return row

    monkeypatch.setattr(TdTrainer, "learn", diverge)
    error = run(NEW, status=1)
    assert "the weights after update 3" in error and "Traceback" not in error
    assert f"the last good checkpoint is {tmp_path}" in error
    assert (tmp_path / "r" / LAST).read_bytes() == good[0]
    assert not (tmp_path / "r" / "final.safetensors").exists()
    assert [row["update"] for row in metrics(tmp_path)] == ["0", "1", "2"]
    monkeypatch.undo()
    run("--resume", status=0)


def test_folder_in_use(tmp_path: Path, run: Fails) -> None:
    with files.hold(tmp_path / "r"):
        for words in (NEW, f"{NEW} --resume"):
            assert f"{tmp_path / 'r'} is in use by process {os.getpid()} " in run(words)
    assert [path.name for path in (tmp_path / "r").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "error", [RuntimeError("can't start new thread"), ImportError("failed to map segment")]
)
def test_too_little_memory_is_one_line(
    error: Exception, run: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries report it by errors of their own."""

    def fail(*args: object, **options: object) -> NoReturn:
        raise error

    monkeypatch.setattr("bao_training.metrics.SummaryWriter", fail)
    assert run(NEW, status=1).splitlines()[-1].startswith("error: too little memory; ")


def test_folder_that_cannot_be_made(tmp_path: Path, run: Fails) -> None:
    (tmp_path / "file").touch()
    for runs, status, reason in (
        (tmp_path / "file", 1, "has no checkpoint that can be read"),
        (tmp_path / ("x" * 300), 2, "File name too long"),
    ):
        error = run(f"{NEW} --out {runs}", status)
        assert error.startswith("error: ") and reason in error


@pytest.mark.parametrize(
    "name", ["final.safetensors", "metrics.csv", "curves.png", "step-1024.safetensors"]
)
def test_a_new_run_replaces_no_file(name: str, tmp_path: Path, run: Fails) -> None:
    """Such as a network that somebody else has trained."""
    file = tmp_path / "r" / name
    file.parent.mkdir()
    file.write_text("foreign")
    for words in (NEW, f"{NEW} --resume"):
        assert f"{file.parent} holds {name}, but no run" in run(words)
    assert [*file.parent.iterdir()] == [file] and file.read_text() == "foreign"


def test_the_command_passes_its_options_on(
    tmp_path: Path, run: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[tuple[Any, ...]] = []

    def stop(*arguments: Any, **options: Any) -> NoReturn:
        passed.append((*arguments, options))
        raise OSError("the disk is full")

    monkeypatch.setattr(train, "train", stop)
    words = "--set steps=2048 --set td.noise=0.5 --seed 3 --resume"
    error = run(words, status=1)
    assert error.startswith("error: the disk is full; ") and "has no checkpoint" in error
    settings = {"steps": 2048, "td": {"noise": 0.5}, "seed": 3}
    command = ["bao", "train", "--out", str(tmp_path), "--run", "r", *words.split()]
    options = {"repeated": None, "command": command, "owns_process": False}
    assert passed == [(settings, tmp_path / "r", settings, options)]
    monkeypatch.undo()
    ended = Mock(return_value=None)
    monkeypatch.setattr(train, "run", ended)
    trainer, _ = train.train(read_settings(None, TINY.split()), tmp_path / "r", owns_process=True)
    ended.assert_called_once_with(trainer, tmp_path / "r", owns_process=True)


@pytest.mark.parametrize(
    ("words", "key"),
    [("--seed 4 --set seed=3", "seed"), ("--ruleset kibao --set rules={house_min=8}", "rules")],
)
def test_a_setting_is_given_once(words: str, key: str, run: Fails) -> None:
    assert f"--set {key} has no effect with {words.split()[0]}: leave out" in run(words)


def test_a_new_run_replaces_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Fails
) -> None:
    """An input may lie in the run's folder, under the name of the run's own copy, which holds less.
    After a failed start, none of the files of that start are left."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "r"
    folder.mkdir()
    tiny().save(folder / "start.safetensors")
    SolvedPositions.load("zanzibar")[:50].save("won.npz")
    content = (folder / "start.safetensors").read_bytes()
    files = options("start=r/start.safetensors blunder_positions=won.npz")
    assert f"{folder} holds start.safetensors, but no run" in run(f"{NEW} {files}")
    assert (folder / "start.safetensors").read_bytes() == content
    (folder / "start.safetensors").rename("first.safetensors")
    files = options("start=first.safetensors blunder_positions=won.npz device=cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "torch sees no CUDA device" in run(f"{NEW} {files}")
    assert [file.name for file in folder.iterdir()] == [".lock"]


def test_resume_after_a_killed_write(saved_run: Path, tmp_path: Path, run: Fails) -> None:
    """A temporary file is removed; the last line of the metrics may be incomplete."""
    folder = tmp_path / "r"
    shutil.copytree(saved_run, folder)
    (folder / f".{LAST}.12345678.tmp").write_bytes(b"begun")
    table = folder / "metrics.csv"
    for content, reason in (
        (b"update,steps\n1,\xff\n", "line 2: the byte 0xff is not UTF-8"),
        (b"1,64,0.5\n2,128,0.4\n", "is not a metrics table"),
    ):
        table.write_bytes(content)
        assert reason in (error := run("--resume")) and str(table) in error
        assert table.read_bytes() == content
    table.write_text("update,steps,exploration\n1,64,0.5\n2")  # cut short within the number 24
    assert f"resumed {folder} at step" in run("--resume", status=0)
    assert [row["update"] for row in metrics(tmp_path)] == ["1", *map(str, range(4, 13))]
    assert not list(folder.glob(".*.tmp"))


def test_resume_keeps_the_settings_of_the_run(
    tmp_path: Path, run: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are kept even before anything is compiled, but not those of a run that cannot
    start; the error names what differs and what may change."""
    note = tmp_path / "r" / "run.json"
    settings = options(TINY + "evaluate_pairs=1 steps=2048 learning_rate=5e-4")
    error = run("--resume")
    assert error == f"error: there is no run {tmp_path / 'r'} to resume; the runs there: none\n"
    for failure, status in ((ConfigError("no GPU"), 2), (KeyboardInterrupt(), 130)):
        with monkeypatch.context() as patch:  # what happens while it compiles
            patch.setattr(train, "make_trainer", Mock(side_effect=failure))
            run(settings, status)
        assert note.exists() == (status == 130)
    before = json.loads(note.read_text())
    assert "the runs there: r" in run("--run typo --resume")
    assert f"no configuration 'r', but a run {note.parent}: continue it with" in run("r --resume")
    assert "no checkpoint yet: starting" in (output := run("quick --resume", status=0))
    assert re.search(r"it keeps its own settings; the configuration has other .*\bsteps\b", output)
    assert json.loads(note.read_text()) == before
    for wrong in ("--set learning_rate=0.001", "--seed 7", "--ruleset kibao", "--set steps=1024"):
        error = run(f"--resume {wrong} --set device=cpu")
        assert "was started with" in error and "a resumed run keeps its settings" in error
    output = run(f"{settings} --resume", status=0)
    assert "grows" not in output and "the configuration has other" not in output
    error = run("quick --resume --set td.epochs=3")
    assert "was started with td.epochs=2, not 3:" in error
    assert "grows" not in run("quick --resume", status=0)
    assert "r2 holds no run yet: starting a new one" in run(
        f"{settings} --run r2 --resume", status=0
    )
    assert json.loads(note.read_text()) == before
    longer = "--resume --set steps=3072 --set device=cpu --set keep_every=1024"
    output = run(longer, status=0)
    assert "steps grows from 2,048 to 3,072\n" in output
    assert "\n0.00M steps: score_against_greedy " in output
    changed = json.loads(note.read_text())["config"]
    assert changed == before["config"] | {"steps": 3072, "device": "cpu", "keep_every": 1024}
    assert [row["steps"] for row in metrics(tmp_path)] == ["0", "1024", "2048", "3072"]
    assert (note.parent / "step-3072.safetensors").exists()
    (note.parent / "last.safetensors").unlink()  # it would begin again, in place of its results
    assert "holds the result of a run, final.safetensors, but no last" in run("--resume")
    assert len(metrics(tmp_path)) == 4


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_caller_may_have_switched_gradients_off(mode: Any, tmp_path: Path) -> None:
    with mode():
        trainer = tiny("workers=1")
        trainer.train_update()
        trainer.save(tmp_path / LAST)
        trainer.restore(tmp_path / LAST)
        trainer.train_update()
    usual = tiny("workers=1")
    for _ in range(2):
        usual.train_update()
    assert weights(trainer) == weights(usual)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """Its arrays have the same shapes, but its games follow other rules."""
    tiny("workers=1 ruleset=dutch seed=9").save(tmp_path / LAST)
    with pytest.raises(checkpoint.CheckpointError, match="a run with other ruleset, seed"):
        tiny("workers=1").restore(tmp_path / LAST)
    tiny("workers=1 ruleset=dutch seed=9 steps=4096").restore(tmp_path / LAST)


def test_training_in_another_thread(tmp_path: Path) -> None:
    """Only the main thread handles signals. Torch keeps its threads."""
    settings = (TINY + "evaluate_pairs=1 steps=1024").split()
    trainer = train.start_run(tmp_path / "r", *load_config(None, settings))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train.run, trainer, tmp_path / "r").result() is None
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        tiny().train_update()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_metrics_of_a_resumed_run(tmp_path: Path) -> None:
    """Both files lose the rows after the checkpoint; another program's column stays. A row can be
    read at once."""
    columns = ["update", "steps", "td_loss"]
    file = tmp_path / "metrics.csv"
    for first_update in (0, 1):  # the second run begins after update 1
        log = Metrics(tmp_path, columns, first_update, 64 * first_update)
        assert log.seconds == 0.0  # no column has them
        for update in range(first_update + 1, 4):
            log.write({"update": update, "steps": 64 * update, "td_loss": first_update})
            row = f"{update},{64 * update},{first_update}"
            assert file.read_text().splitlines()[-1].startswith(row)
        log.close()
        head, *rows = file.read_text("utf-8-sig").splitlines()
        noted = [f"{head},note", *(f"{row},x" for row in rows), "1"]  # a row that was cut short
        file.write_text("\r\n".join(noted), "utf-8-sig")
    assert rows == ["1,64,0,x", "2,128,1,", "3,192,1,"] and head == "update,steps,td_loss,note"
    read = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("loss/td_loss")
    assert [(event.step, event.value) for event in read] == [(64, 0), (128, 1), (192, 1)]


def test_tensorboard_groups_the_metrics(tmp_path: Path) -> None:
    row: dict[str, Any] = {"update": 1, "steps": 64, "guided_score_against_greedy": 0.5}
    row |= {"blunders_low": 0.1, "nnue_loss": 0.3, "entropy": 1.5}
    log = Metrics(tmp_path, [*row], 0, 0)
    log.write(row)
    log.close()
    tags = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Tags()["scalars"]
    evaluated = {"eval/guided_score_against_greedy", "eval/blunders_low"}
    assert {*tags} == {*evaluated, "loss/nnue_loss", "train/entropy", "train/steps"}


def test_a_run_holds_all_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Fails
) -> None:
    """The run starts from a checkpoint of other rules; after that, the files that its settings name
    may be deleted."""
    monkeypatch.chdir(tmp_path)
    first = tiny()
    first.train_update()
    first.save_policy(Path("first.safetensors"))
    SolvedPositions.load("kujifunza")[:50].save("won.npz")
    files = "start=first.safetensors seed=1 ruleset=kujifunza blunder_positions=won.npz"
    assert weights(tiny(files)) == weights(first)
    folder = tmp_path / "r"
    train.start_run(folder, *load_config(None, (TINY + files).split()))
    for name in ("first.safetensors", "won.npz"):
        (tmp_path / name).unlink()
    monkeypatch.chdir("/")
    resumed = train.resume_run(folder)
    assert weights(resumed) == weights(first) and "blunders" in resumed.columns
    resumed.save(folder / LAST)
    error = run("--resume --set blunder_positions=gone.npz")
    assert error.startswith(f"error: {folder} cannot be resumed: blunder_positions='gone.npz': ")
    assert "version" not in error
    (folder / "start.safetensors").unlink()  # as in a run of an earlier version
    assert weights(train.resume_run(folder)) == weights(first)
    (folder / LAST).unlink()
    error = run("--resume")
    assert "start='first.safetensors': there is no such checkpoint" in error
    assert "version" not in error


def test_an_archived_run_is_repeated_to_equal_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Fails
) -> None:
    """The repetition needs none of the files that the settings name, and may have any name;
    run.json gives the command."""
    monkeypatch.chdir(tmp_path)
    tiny().save_policy(Path("first.safetensors"))
    SolvedPositions.load("zanzibar")[:50].save("won.npz")
    files = options("start=first.safetensors blunder_positions=won.npz steps=3072 keep_every=2000")
    command = f"{NEW} {files} --seed 5"
    run(command, status=0)
    shutil.move(tmp_path / "r", tmp_path / "archive")
    generations = [file.name for file in (tmp_path / "archive").glob("step-*")]
    assert generations == ["step-2000.safetensors"]  # after 2 of 3 updates of 1,024 steps
    for name in ("first.safetensors", "won.npz"):
        (tmp_path / name).unlink()
    for number, config in enumerate(("archive", "archive/run.json")):
        run(f"{config} --run again{number}", status=0)
        for file in (tmp_path / "archive").glob("*.safetensors"):
            assert (tmp_path / f"again{number}" / file.name).read_bytes() == file.read_bytes(), file
        repetition = json.loads((tmp_path / f"again{number}" / "run.json").read_text())
        archived = json.loads((tmp_path / "archive" / "run.json").read_text())
        assert repetition["config"] == archived["config"]
        assert repetition["made_with"]["command"].startswith(f"bao train --out {tmp_path} --run r ")
        assert repetition["made_with"].keys() >= {
            "commit",
            "packages",
            "machine",
            "networks",
            "seed",
        }
        repetition["made_with"].pop("command")
        assert archived["made_with"].pop("command").endswith("--seed 5")
        assert repetition == archived
    shutil.move(tmp_path / "archive", tmp_path / "r")
    archived_rows = metrics(tmp_path)
    shutil.rmtree(tmp_path / "r")
    shutil.move(tmp_path / "again0", tmp_path / "r")
    assert metrics(tmp_path) == archived_rows
    info = checkpoint.load(tmp_path / "r" / "final.safetensors").info
    assert info["made_with"]["packages"].keys() == {"bao_env", "numba", "numpy", "torch"}


def test_a_run_that_goes_on_names_the_code_that_does(
    tmp_path: Path, run: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run may have been started by a version that recorded less, and wrote seconds into
    checkpoints, or keys in another order."""
    run(f"{NEW} {options('steps=1024 evaluate_every=0')}", status=0)
    file, last = tmp_path / "r" / "run.json", tmp_path / "r" / LAST
    note = json.loads(file.read_text())
    commit = note.pop("made_with")["commit"]
    file.write_text(json.dumps({"commit": "1234567", "torch": "2.6.0", **note}))
    saved = checkpoint.load(last, arrays=True)
    del saved.info["made_with"]
    saved.info["seconds"] = 1.5
    arrays = saved.arrays | checkpoint.model_arrays(saved)
    saved.info["digest"] = run_state.digest(dict(reversed(saved.info.items())), arrays)
    checkpoint.save(last, saved)
    run("--resume --set steps=2048", status=0)
    run("--resume", status=0)
    monkeypatch.setattr(provenance, "current_commit", lambda: "7654321")
    run("--resume --set steps=3072", status=0)
    note = json.loads(file.read_text())
    assert note["commit"] == "1234567" and note["torch"] == "2.6.0"
    assert [(entry["steps"], entry["commit"], entry["changed"]) for entry in note["resumed"]] == [
        (1024, commit, {"steps": [1024, 2048]}),
        (2048, "7654321", {"steps": [2048, 3072]}),
    ]
    rows = csv.DictReader((tmp_path / "r" / "metrics.csv").read_text().splitlines())
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)


def test_the_next_commands_work_as_printed(tmp_path: Path, says: Says) -> None:
    """The commands work in a folder with a space in its name, and for rules that the ladder does
    not have."""
    out = tmp_path / "my runs"
    words = options(TINY + "evaluate_pairs=1 steps=1024")
    output = says(f"train --out '{out}' --run r --ruleset kujifunza {words}")
    [command] = [line for line in output.splitlines() if line.startswith("  bao ")]
    assert "match" in command
    assert "rule set kujifunza" in says(command.removeprefix("  bao ") + " --pairs 2")


def test_bfloat16_and_float32_agree_roughly() -> None:
    rows = [tiny(f"bfloat16={b}").train_update() for b in ("true", "false")]
    assert rows[0]["value_loss"] == pytest.approx(rows[1]["value_loss"], rel=0.05)
    assert torch.get_num_threads() == 1
