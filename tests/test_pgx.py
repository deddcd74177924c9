"""Test the Pgx environment: Pgx's test, the vector environment's games, JAX's transformations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

pytest.importorskip("pgx")

import jax
import pgx
from pgx._src import api_test
from pgx.experimental import auto_reset

from bao_env import RULESETS, BaoVectorEnv
from bao_env.adapters.pgx import Bao
from bao_env.engine.position import unpack
from bao_env.observation import OBSERVATIONS
from tests.processes import python

ARRAYS = [name for name in OBSERVATIONS if name != "planes+replies"]


def batched(env: Any, size: int, seed: int) -> tuple[Any, Any]:
    """Return the start of some games, and a compiled step for them."""
    keys = jax.random.split(jax.random.key(seed), size)
    return jax.jit(jax.vmap(env.init))(keys), jax.jit(jax.vmap(env.step))


def positions_of(states: Any) -> Any:
    """Return the packed positions of a batch of states, uint64[B, 6]."""
    return np.array(states._words).view(np.uint64)


@pytest.mark.parametrize("ruleset", ["zanzibar", "dutch"])
def test_pgx_own_test(ruleset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def act_randomly(key: Any, masks: Any) -> Any:
        return jax.random.categorical(key, jax.numpy.where(masks, 0.0, -jax.numpy.inf))

    monkeypatch.setattr(api_test, "EnvId", Literal["bao"])  # it accepts only Pgx's own games
    # Pgx 2.6.0's own fails on a single mask with new versions of JAX.
    monkeypatch.setattr(api_test, "act_randomly", act_randomly)
    pgx.api_test(Bao(ruleset=ruleset), num=2)
    pgx.api_test(Bao(ruleset=ruleset, opening_plies=(0, 8), max_plies=500), num=2, use_key=False)


@pytest.mark.parametrize("observation", ARRAYS)
@pytest.mark.parametrize("ruleset", RULESETS)
def test_games_of_the_vector_environment(ruleset: str, observation: str, seed: int) -> None:
    """The same actions give the same positions, rewards, masks and observations."""
    size = 6
    env = Bao(ruleset=ruleset, observation=observation, max_plies=60)
    plain = BaoVectorEnv(
        size,
        ruleset=ruleset,
        observation=observation,
        max_plies=60,
        autoreset_mode="Disabled",
        illegal="lose",
        opponent=None,
    )
    rng = np.random.default_rng(seed)
    for illegal in (0.0, 0.05):
        states, step = batched(env, size, seed)
        south = np.array(states._south)
        firsts = np.array(states.current_player) ^ south
        seen, infos = plain.reset(seed=seed, options={"first_player": firsts.tolist()})
        over = np.zeros(size, np.bool_)
        while not over.any():
            assert np.array_equal(positions_of(states), plain.positions)
            assert np.array_equal(states.current_player, infos["seat"] ^ south)
            assert np.array_equal(states.observation, seen["observation"])
            assert np.array_equal(states.legal_action_mask, plain.action_masks())
            actions = plain.sample_legal_actions()
            actions[rng.random(size) < illegal] = 0
            actors = np.array(states.current_player)
            states = step(states, actions)
            seen, rewards, terminated, truncated, infos = plain.step(actions)
            mine = np.array(states.rewards)
            assert np.array_equal(mine[np.arange(size), actors], rewards)
            assert not mine.sum(axis=1).any()
            assert np.array_equal(states.terminated, terminated)
            assert np.array_equal(states.truncated, truncated)
            over = terminated | truncated
        assert np.array_equal(states.observation, seen["observation"])
        assert np.array_equal(positions_of(states), plain.positions)


def test_ends() -> None:
    states, step = batched(Bao(max_plies=30), 64, 1)
    rng = np.random.default_rng(1)
    for _ in range(30):
        masks = np.array(states.legal_action_mask)
        over = np.array(states.terminated | states.truncated)
        assert masks[over].all()
        after = step(states, (rng.random(masks.shape) * masks).argmax(axis=1))
        assert not np.array(after.rewards)[over].any()
        for name in ("_words", "_legal", "observation", "current_player", "_step_count"):
            assert np.array_equal(getattr(after, name)[over], getattr(states, name)[over])
        states = after
    assert states.terminated.any() and states.truncated.any()
    assert not (states.terminated & states.truncated).any()
    assert (states.terminated | states.truncated).all()

    state = jax.jit(Bao().init)(jax.random.key(0))
    for action in (0, -1, 64):
        lost = Bao().step(state, action)
        assert lost.terminated and lost.rewards[state.current_player] == -1
        assert lost.rewards.sum() == 0 and np.array_equal(lost._words, state._words)


@pytest.mark.parametrize("ruleset", ["zanzibar", "kujifunza"])
def test_openings_depend_on_the_key_alone(ruleset: str) -> None:
    arguments: Any = {"ruleset": ruleset, "opening_plies": (2, 5)}
    states, _ = batched(Bao(**arguments), 200, 3)
    again, _ = batched(Bao(**arguments), 200, 3)
    assert np.array_equal(states._words, again._words)
    positions = [unpack(words) for words in positions_of(states)]
    assert {position.ply for position in positions} == {2, 3, 4, 5}
    assert len({str(position) for position in positions}) > 50
    assert 70 < states._south.sum() < 130
    seats = states.current_player ^ states._south
    assert np.array_equal(seats, [position.mover for position in positions])
    assert not states._step_count.any()

    fixed, _ = batched(Bao(ruleset=ruleset), 200, 3)
    first_seats = set((fixed.current_player ^ fixed._south).tolist())
    assert first_seats == ({0, 1} if ruleset == "kujifunza" else {0})


def test_observe_sees_with_either_players_eyes() -> None:
    env = Bao(observation="replies")
    states, step = batched(env, 20, 0)
    for _ in range(5):
        states = step(states, states.legal_action_mask.argmax(axis=-1))
    assert np.array_equal(jax.vmap(env.observe)(states), states.observation)
    others = jax.vmap(env._observe)(states, 1 - states.current_player)
    assert others.shape == states.observation.shape and env.observation_shape == (308,)
    board, other = (np.array(seen)[:, :32] for seen in (states.observation, others))
    assert np.array_equal(board.sum(axis=1), other.sum(axis=1)) and not np.array_equal(board, other)
    assert np.array(states.observation)[:, 52:].any() and not np.array(others)[:, 52:].any()
    assert env.num_actions == 64


def test_scan_with_automatic_resets_and_threads() -> None:
    def play(threads: int) -> Any:
        env = Bao(opening_plies=(0, 8), max_plies=40, threads=threads)
        step = jax.vmap(auto_reset(env.step, env.init))

        def ply(states: Any, key: Any) -> Any:
            keys = jax.random.split(key, 100)
            logits = jax.numpy.where(states.legal_action_mask, 0.0, -jax.numpy.inf)
            states = step(states, jax.random.categorical(key, logits), keys)
            return states, (states.terminated, states.truncated, states.rewards)

        states, _ = batched(env, 100, 0)
        keys = jax.random.split(jax.random.key(1), 90)
        return jax.jit(lambda states: jax.lax.scan(ply, states, keys))(states)

    states, (terminated, truncated, rewards) = play(1)
    assert terminated.any() and truncated.any()
    assert np.array_equal(np.abs(np.array(rewards)).sum(axis=-1), 2 * terminated)
    assert states._step_count.max() <= 40
    for mine, theirs in zip(*map(jax.tree.leaves, (play(3)[0], states)), strict=True):
        assert np.array_equal(mine, theirs)


PMAP = """
import jax
import numpy as np
from bao_env.adapters.pgx import Bao

env = Bao(observation="replies", threads=THREADS)
assert jax.local_device_count() == 2

def play(key):
    keys = jax.random.split(key, SIZE)
    def ply(states, key):
        logits = jax.numpy.where(states.legal_action_mask, 0.0, -jax.numpy.inf)
        return jax.vmap(env.step)(states, jax.random.categorical(key, logits)), None
    states, _ = jax.lax.scan(ply, jax.vmap(env.init)(keys), jax.random.split(key, 40))
    return states

keys = jax.random.split(jax.random.key(0), 2)
both = jax.pmap(play)(keys)
each = [jax.jit(play)(key) for key in keys]
for device in (0, 1):
    assert np.array_equal(both._words[device], each[device]._words)
assert len(env._idle_engines) <= 2
"""


@pytest.mark.parametrize(
    ("size", "threads", "error"), [(64, 1, ""), (4096, 2, ""), (30_000, 1, "at most 25599")]
)
def test_pmap_over_two_devices(size: int, threads: int, error: str) -> None:
    program = PMAP.replace("SIZE", str(size)).replace("THREADS", str(threads))
    flags = "--xla_force_host_platform_device_count=2"
    done = python(program, status=int(bool(error)), XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert error in done.stderr


def test_pictures(tmp_path: Path) -> None:
    states, _ = batched(Bao(), 5, 0)
    document = states.to_svg(scale=0.5)
    assert document.startswith("<svg") and document.count("<g ") == 5
    state = jax.tree.map(lambda rows: rows[0], states)
    state.save_svg(tmp_path / "bao.svg")
    assert (tmp_path / "bao.svg").read_text() == state.to_svg() == state._repr_html_()


def test_invalid_arguments() -> None:
    for arguments, match in (
        ({"observation": "planes+replies"}, "a single array"),
        ({"ruleset": "chess"}, "unknown rule set 'chess'"),
        ({"max_plies": 0}, "max_plies=0"),
        ({"opening_plies": (3, 2)}, "opening_plies"),
        ({"threads": 0}, "threads=0"),
    ):
        with pytest.raises(ValueError, match=match):
            Bao(**arguments)
