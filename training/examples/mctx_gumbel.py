# /// script
# requires-python = ">=3.11"
# dependencies = ["bao_env", "mctx==0.0.71", "jax==0.10.2", "optax==0.2.8", "safetensors"]
# [tool.uv.sources]
# bao_env = { path = "../..", editable = true }
# ///
"""Train with Gumbel AlphaZero in JAX with mctx, in self-play; mctx searches with the real rules.

    uv run training/examples/mctx_gumbel.py
    bao rate mctx_gumbel:player --path training/examples

The policy alone, without a search, scored 93.2% (90.3 to 95.3) against greedy after 301 processor
seconds (README.md beside this file has the conditions).

The rules are not written in JAX. :func:`step` calls the compiled engine through
``jax.pure_callback``, once for a whole batch, so the games are always on the CPU. It is a pure
function that works inside ``jit`` and ``scan``, and training is one compiled function around it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import numpy.typing as npt
import optax
from safetensors.numpy import load_file, save_file

import bao_env
from bao_env import NUM_ACTIONS
from bao_env.engine.position import NO_WINNER, PLY, movers
from bao_env.observation.observer import get_observer, make_observations
from measure import INPUTS, OBSERVATION, SEED, Log, best_player, report

GAMES, ROLLOUT, STEPS, SIMULATIONS = 128, 32, 393_216, 16
EPOCHS, MINIBATCHES, HIDDEN = 2, 4, 128
LAMBDA, LEARNING_RATE = 0.95, 1e-3
OPENINGS, MAX_PLIES = 4096, 500
"""The number of openings that games start from, and the plies after which games are cut off."""
FILE = Path(__file__).with_suffix(".safetensors")


class Games(NamedTuple):
    """Running or ended games, one per row."""

    positions: Any
    """uint32[B, 12], the packed positions: each 64-bit word as two halves, the low one first.
    By default JAX has no 64-bit integers."""
    masks: Any
    """The legal actions, bool[B, 64]; all False if the game is over."""


class Outcome(NamedTuple):
    """What follows an action in each of B games."""

    games: Games
    boards: Any
    """What the next players see, float32[B, INPUTS]."""
    rewards: Any
    """The rewards of the players who acted, float32[B]: +1 for a win, -1 for a loss, else 0."""
    signs: Any
    """Sign of the next value, float32[B]: 0 at the end, 1 if the same player acts again, else
    -1."""


class Steps(NamedTuple):
    """Steps to learn from, [N, ...]: boards and the results of the search."""

    boards: Any
    masks: Any
    policies: Any
    """The search's improved probabilities of all actions."""
    values: Any
    """The search's values of the positions."""
    rewards: Any
    signs: Any


def step(games: Games, actions: Any) -> Outcome:
    """Play an action, int32[B], in each game that is not over.

    With several CPU devices, a callback may wait forever for arguments of 100 KiB or more, because
    JAX copies them in the background (jax-ml/jax, issues 24255 and 25861). Positions take 48 bytes:
    with such devices, play fewer than 2,000 games at once.
    """
    size = len(actions)
    result = Outcome(
        games=jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), games),
        boards=jax.ShapeDtypeStruct((size, INPUTS), np.float32),
        rewards=jax.ShapeDtypeStruct((size,), np.float32),
        signs=jax.ShapeDtypeStruct((size,), np.float32),
    )
    return jax.pure_callback(play, result, games, actions)


def play(games: Games, actions: Any) -> Outcome:
    """Do the work of :func:`step` on the host.

    It uses only numpy, because a callback that computes with JAX can wait for itself forever.
    """
    positions = np.array(games.positions).view(np.uint64)  # a copy, to play on
    bits = np.packbits(np.asarray(games.masks), axis=1, bitorder="little")
    legal = bits.view(np.uint64)[:, 0]
    over = legal == 0
    winners = np.full(len(legal), NO_WINNER, np.int8)
    movers_before = movers(positions)
    bao_env.Engine().step(positions, np.asarray(actions), legal, winners)
    legal[over | (positions[:, PLY] >= MAX_PLIES)] = 0
    movers_after = movers(positions)
    rewards = np.where(winners == movers_before, 1, -1) * (winners != NO_WINNER) * ~over
    signs = np.where(movers_after == movers_before, 1, -1) * (legal != 0)
    masks = np.unpackbits(legal[:, None].view(np.uint8), axis=1, bitorder="little").view(np.bool_)
    return Outcome(
        games=Games(positions.view(np.uint32), masks),
        boards=make_observations(get_observer(OBSERVATION), positions, legal, movers_after),
        rewards=rewards.astype(np.float32),
        signs=signs.astype(np.float32),
    )


def draw_openings(seed: int) -> tuple[Games, npt.NDArray[np.float32]]:
    """Return games after up to eight random plies, and their boards."""
    envs = bao_env.BaoVectorEnv(
        OPENINGS, opponent=None, observation=OBSERVATION, opening_plies=(0, 8)
    )
    observations, _ = envs.reset(seed=seed)
    return Games(envs.positions.view(np.uint32), envs.action_masks()), observations["observation"]


def make_layers(key: Any, outputs: int) -> Any:
    """Return the weights and biases of three layers."""
    sizes = (INPUTS, HIDDEN, HIDDEN, outputs)
    weights = jax.nn.initializers.he_normal()
    keys = jax.random.split(key, 3)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(weights(key, shape), jnp.zeros(shape[1])) for key, *shape in shapes]


def apply(layers: Any, boards: Any) -> Any:
    """Return the outputs of three layers, [..., outputs], in JAX or in numpy."""
    for weights, biases in layers[:-1]:
        boards = boards @ weights + biases
        boards = boards * (boards > 0)
    weights, biases = layers[-1]
    return boards @ weights + biases


def log_policy(params: Any, boards: Any, masks: Any) -> Any:
    """Return the logarithms of the probabilities of all actions, [..., 64]."""
    return jax.nn.log_softmax(jnp.where(masks, apply(params["actor"], boards), -1e9))


def value(params: Any, boards: Any) -> Any:
    """Return the expected return of the players who see ``boards``, from -1 to 1."""
    return jnp.tanh(apply(params["critic"], boards)[..., 0])


def loss_of(params: Any, steps: Steps, returns: Any) -> Any:
    """Return the cross-entropy with the search's policies plus the values' squared error."""
    log_probs = log_policy(params, steps.boards, steps.masks)
    policy_loss = -(steps.policies * log_probs).sum(axis=1).mean()
    return policy_loss + jnp.square(value(params, steps.boards) - returns).mean()


def learn(key: Any, openings: tuple[Games, Any], updates: int) -> Any:
    """Return trained parameters; the network plays both sides of every game, with search."""
    rate = optax.linear_schedule(LEARNING_RATE, 0.0, updates * EPOCHS * MINIBATCHES)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def simulate(params: Any, key: Any, actions: Any, games: Games) -> Any:
        after = step(games, actions)
        output = mctx.RecurrentFnOutput(
            reward=after.rewards,
            discount=after.signs,
            prior_logits=log_policy(params, after.boards, after.games.masks),
            value=value(params, after.boards),
        )
        return output, after.games

    def ply(carry: Any, key: Any) -> Any:
        params, games, boards = carry
        search_key, opening_key = jax.random.split(key)
        root = mctx.RootFnOutput(
            prior_logits=log_policy(params, boards, games.masks),
            value=value(params, boards),
            embedding=games,
        )
        search = mctx.gumbel_muzero_policy(
            params, search_key, root, simulate, SIMULATIONS, invalid_actions=~games.masks
        )
        after = step(games, search.action)
        steps = Steps(
            boards=boards,
            masks=games.masks,
            policies=search.action_weights,
            values=search.search_tree.summary().value,
            rewards=after.rewards,
            signs=after.signs,
        )
        # A game that is over restarts from an opening.
        opening = jax.random.randint(opening_key, (GAMES,), 0, OPENINGS)
        over = after.signs[:, None] == 0
        games, boards = jax.tree.map(
            lambda fresh, running: jnp.where(over, fresh[opening], running),
            openings,
            (after.games, after.boards),
        )
        return (params, games, boards), steps

    def backward(following: Any, steps: Steps) -> Any:
        next_return, next_value = following
        mixed = LAMBDA * next_return + (1 - LAMBDA) * next_value
        returns = steps.rewards + steps.signs * mixed
        return (returns, steps.values), returns

    def minibatch(carry: Any, batch: Any) -> Any:
        params, memory = carry
        changes, memory = optimizer.update(jax.grad(loss_of)(params, *batch), memory)
        return (optax.apply_updates(params, changes), memory), None

    def update(carry: Any, key: Any) -> Any:
        params, memory, games, boards = carry
        play_key, *epoch_keys = jax.random.split(key, 1 + EPOCHS)
        (_, games, boards), steps = jax.lax.scan(
            ply, (params, games, boards), jax.random.split(play_key, ROLLOUT)
        )
        last = value(params, boards)
        _, returns = jax.lax.scan(backward, (last, last), steps, reverse=True)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (steps, returns))

        def epoch(learner: Any, key: Any) -> Any:
            order = jax.random.permutation(key, GAMES * ROLLOUT).reshape(MINIBATCHES, -1)
            return jax.lax.scan(
                lambda learner, rows: minibatch(learner, jax.tree.map(lambda x: x[rows], batch)),
                learner,
                order,
            )

        (params, memory), _ = jax.lax.scan(epoch, (params, memory), jnp.stack(epoch_keys))
        return (params, memory, games, boards), None

    actor_key, critic_key, key = jax.random.split(key, 3)
    params = {"actor": make_layers(actor_key, NUM_ACTIONS), "critic": make_layers(critic_key, 1)}
    games, boards = jax.tree.map(lambda array: array[:GAMES], openings)
    start = params, optimizer.init(params), games, boards
    (params, *_), _ = jax.lax.scan(update, start, jax.random.split(key, updates))
    return params


def train(log: Log, steps: int = STEPS, seed: int = SEED) -> None:
    """Train for a few minutes, and save the policy's layers.

    The log has a single row, at the end.
    """
    updates = -(-steps // (GAMES * ROLLOUT))
    params = jax.jit(learn, static_argnums=2)(jax.random.key(seed), draw_openings(seed), updates)
    arrays = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(params["actor"]))}
    save = partial(save_file, arrays)
    log(steps, save)
    save(FILE)


def player(ruleset: str | bao_env.Ruleset, seed: int, file: str = "") -> bao_env.PolicyAgent:
    """Return the saved policy as a player, without search."""
    saved = load_file(file or FILE)
    layers = [(saved[weights], saved[biases]) for weights, biases in ("01", "23", "45")]
    return best_player(lambda boards: apply(layers, boards), ruleset)


if __name__ == "__main__":
    report("mctx", "Gumbel AlphaZero, self-play, `jax.pure_callback`", train, player)
