"""Test the Gymnasium environment with one learner, and opponents by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from bao_env import BaoEnv, GreedyAgent, raw_env
from bao_env.bots import get_agent
from tests.positions import draw
from tests.vector import same

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch"])
@pytest.mark.parametrize(("opponent", "seat"), [(None, None), ("greedy", 0), ("greedy", 1)])
def test_games_are_those_of_the_aec_environment(
    ruleset: str, opponent: str | None, seat: int | None, seed: int
) -> None:
    """The same actions lead to the same positions, rewards and observations of who acts next."""
    alone = BaoEnv(opponent, ruleset=ruleset, seat=seat, opening_plies=0)
    both, greedy = raw_env(ruleset=ruleset), GreedyAgent(ruleset)
    observation, info = alone.reset(seed=seed)
    both.reset()

    def reply() -> None:
        while opponent and both.agent_selection[-1] != str(seat) and both.board.legal_actions:
            both.step(greedy.act(both.positions, both.legal)[0])

    reply()
    over = False
    while not over:
        agent = both.agent_selection
        assert agent == f"player_{info['seat']}" and seat in (None, info["seat"])
        np.testing.assert_equal(observation, both.observe(agent))
        action = alone.sample_legal_actions()
        observation, reward, over, truncated, info = alone.step(action)
        both.step(action)
        reply()
        assert alone.position == both.position
        assert (reward, over, truncated) == (both.rewards[agent], both.terminations[agent], False)
    assert opponent is None or same(observation, both.observe(agent))
    assert info["winner"] == (int(agent[-1]) if reward > 0 else 1 - int(agent[-1]))
    assert alone.board == both.board and alone.board.is_game_over()
    assert alone.sample_legal_actions() == 0


# --- opponents by name --------------------------------------------------------------------------


def test_unknown_opponents_raise_without_players(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bao_env.bots.entry_points", lambda group: ())
    with pytest.raises(ValueError, match=r"unknown opponent 'gredy' \(did you mean 'greedy'\?\)"):
        BaoEnv("gredy")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def load(name, **_): return 5", "load returned 5: expected an agent"),
        ("def load(name, **_): raise KeyError(name)", "failed: KeyError: 'nobody'"),
        ("other = None", "failed: AttributeError: .*no attribute 'load'"),
        ("raise ValueError('at import')", "failed: ValueError: at import"),
        ("raise SystemExit('end')", "failed: SystemExit: end"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_package_that_fails_is_named(
    code: str, message: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The players of other packages are still available."""
    module = f"failing{abs(hash(code))}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    group = "bao_env.players"
    ours = EntryPoint("agents", "bao_agents.players.registry:load_ours", group)
    found = [EntryPoint("failing-package", f"{module}:load", group), ours][:: 1 if first else -1]
    monkeypatch.setattr("bao_env.bots.entry_points", lambda group: found)
    assert get_agent("alphabeta:2").act(*draw("zanzibar", 2)).shape
    expected = f"unknown player 'nobody'.*package failing-package .*{message}"
    with pytest.raises(ValueError, match=expected):
        get_agent("nobody")
