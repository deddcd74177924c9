"""Test how the examples of other RL libraries are measured and checked."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import check
import cleanrl_vector
import measure
from bao_agents.arena.elo import Score, score_pairs
from bao_env import Agent, BaoVectorEnv, GreedyAgent, PolicyAgent, RandomAgent
from tests.conftest import Capsys


def test_masked_argmax() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [-9.0, -8.0, -7.0]])
    legal = np.array([[False, True, True], [True, True, False]])
    assert measure.masked_argmax(scores, legal).tolist() == [1, 1]


def test_score_against_a_bot() -> None:
    """The players read observations of 308 numbers."""
    shapes: set[tuple[int, ...]] = set()

    def choose(observations: Any, masks: np.ndarray) -> Any:
        shapes.add(observations.shape[1:])
        return masks.argmax(axis=1)

    player = PolicyAgent(choose, measure.OBSERVATION)
    score = measure.score_against(RandomAgent(1), player)
    assert score.games == 400 and 0.2 < score.rate < 0.8
    assert shapes == {(measure.INPUTS,)} == {(308,)}


@pytest.mark.parametrize(("wins", "passes"), [(90, True), (54, False)])
def test_report_fails_unless_greedy_is_beaten(
    wins: int, passes: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    def score(bot: Agent, player: Agent) -> Score:
        points = np.arange(100) % 50 < (wins / 2 if isinstance(bot, GreedyAgent) else 49)
        return score_pairs(points.astype(float).reshape(2, 50).T)

    monkeypatch.setattr(measure, "score_against", score)
    with nullcontext() if passes else pytest.raises(SystemExit, match="did not clearly beat"):
        measure.report("numpy", "some route", 61.4, lambda boards, masks: masks.argmax(axis=1))
    row = capsys.readouterr().out
    assert row.startswith(f"| numpy | {version('numpy')} | some route | 61 | 98.0 % (")
    assert f" %) | {wins}.0 % (" in row


def test_every_library_has_requirements_and_examples() -> None:
    assert len(check.LIBRARIES) == 8
    files = {path.stem for path in check.EXAMPLES.glob("*_*.py") if path.stem != "__init__"}
    assert files == {name for library in check.LIBRARIES for name in check.examples_of(library)}
    for library in check.LIBRARIES:
        path = check.EXAMPLES / "requirements" / f"{library}.txt"
        lines = path.read_text().splitlines()
        assert ("torch>=2.6,<2.14" in lines) == (library != "mctx") and "tqdm>=4.66" in lines


def test_check_runs_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capsys
) -> None:
    """It prints their rows and names those that fail; this test installs nothing."""
    folder = tmp_path
    (folder / "fake_good.py").write_text("print('epoch 1'); print('| fake | 1 | good | 2 | 3 |')")
    (folder / "fake_poor.py").write_text("import sys; sys.exit('this went wrong')")
    (folder / "fake_mute.py").write_text("print('nothing')")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "EXAMPLES", folder)
    monkeypatch.setattr(check, "LIBRARIES", ["fake"])
    monkeypatch.setattr(check, "prepare", lambda library, folder, fresh: Path(sys.executable))
    assert check.main(["--all"]) == 1
    out, err = capfd.readouterr()
    assert out == check.HEAD + "\n| fake | 1 | good | 2 | 3 |\n"
    assert "epoch 1" in err and "this went wrong" in err
    assert "fake_mute printed 0 rows" in err and "failed: fake_mute, fake_poor" in err


def test_check_names_failed_installations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capsys
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "fake.txt").write_text("not a requirement !\n")
    monkeypatch.setattr(check, "EXAMPLES", tmp_path)
    monkeypatch.setattr(check, "LIBRARIES", ["fake"])
    monkeypatch.setattr(check, "python_in", lambda folder: Path(sys.executable))
    assert check.main(["fake", "--venvs", str(tmp_path)]) == 1
    out, err = capfd.readouterr()
    assert out == check.HEAD + "\n" and "fake: not installed" in err


@pytest.mark.parametrize("words", [[], ["--all", "sb3"], ["keras"]])
def test_check_says_what_to_give(words: list[str], capsys: Capsys) -> None:
    with pytest.raises(SystemExit) as end:
        check.main(words)
    assert end.value.code == 2
    assert re.search("unknown library 'keras'|name the libraries", capsys.readouterr().err)


def test_plain_ppo_is_reproducible() -> None:
    boards = np.random.default_rng(0).random((50, measure.INPUTS)).astype(np.float32)
    legal = np.ones((50, 64), np.bool_)
    first, again = (cleanrl_vector.train(300, games=16, rollout=8) for _ in range(2))
    assert (first(boards, legal) == again(boards, legal)).all()


def test_step_in_jax_plays_the_games_of_the_vector_environment() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("mctx")
    import mctx_gumbel

    envs = BaoVectorEnv(
        20, opponent=None, observation=measure.OBSERVATION, autoreset_mode="Disabled"
    )
    seen, _ = envs.reset(seed=1)
    games = mctx_gumbel.Games(envs.positions.view(np.uint32), envs.action_masks())
    step = jax.jit(mctx_gumbel.step)
    over = np.zeros(20, np.bool_)
    while not over.any():
        actions = envs.sample_legal_actions()
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        over = terminated | truncated
        outcome = step(games, actions)
        games = outcome.games
        assert np.array_equal(np.array(games.positions).view(np.uint64), envs.positions)
        assert np.array_equal(outcome.rewards, rewards)
        assert np.array_equal(outcome.signs, np.where(over, 0, -1))
        assert np.array_equal(games.legal[~over], envs.action_masks()[~over])
        assert not games.legal[over].any()
        assert np.array_equal(outcome.boards, seen["observation"])
    again = step(games, actions * 0 + np.argmax(games.legal, axis=1))
    assert np.array_equal(again.games.positions[over], games.positions[over])
    assert not again.rewards[over].any() and not again.signs[over].any()
