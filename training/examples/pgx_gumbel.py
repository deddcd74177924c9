"""Train with Gumbel AlphaZero in JAX with mctx, in self-play; mctx searches with the real rules.

python training/examples/pgx_gumbel.py
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import optax
from pgx.experimental import auto_reset

from bao_env import NUM_ACTIONS
from bao_env.adapters.pgx import Bao
from measure import OBSERVATION, SEED, masked_argmax, report
from pgx_ppo import apply, make_layers

GAMES, ROLLOUT, UPDATES, SIMULATIONS = 128, 32, 96, 16
EPOCHS, MINIBATCHES = 2, 4
LAMBDA, LEARNING_RATE = 0.95, 1e-3


class Steps(NamedTuple):
    """Steps to learn from, [N, ...]: boards and the results of the search."""

    boards: Any
    legal: Any
    policies: Any
    """The search's improved probabilities of all actions."""
    values: Any
    """The search's values of the positions."""
    rewards: Any
    signs: Any
    """Sign of the next value: 0 at the end, 1 if the same player acts again, else -1."""


def log_policy(params: Any, boards: Any, legal: Any) -> Any:
    """Return the logarithms of the probabilities of all actions, [..., 64]."""
    return jax.nn.log_softmax(jnp.where(legal, apply(params["actor"], boards), -1e9))


def value(params: Any, boards: Any) -> Any:
    """Return the expected return of the players who see ``boards``, from -1 to 1."""
    return jnp.tanh(apply(params["critic"], boards)[..., 0])


def outcome(before: Any, after: Any) -> tuple[Any, Any]:
    """Return the rewards of the players who have acted, and the signs of the next values."""
    players = before.current_player
    rewards = jnp.take_along_axis(after.rewards, players[:, None], axis=1)[:, 0]
    signs = jnp.where(after.current_player == players, 1.0, -1.0)
    return rewards, signs * ~(after.terminated | after.truncated)


def loss_of(params: Any, steps: Steps, returns: Any) -> Any:
    """Return the cross-entropy with the search's policies plus the values' squared error."""
    log_probs = log_policy(params, steps.boards, steps.legal)
    policy_loss = -(steps.policies * log_probs).sum(axis=1).mean()
    return policy_loss + jnp.square(value(params, steps.boards) - returns).mean()


def train(key: Any) -> Any:
    """Return trained parameters; the network plays both sides of every game, with search."""
    env = Bao(observation=OBSERVATION, opening_plies=(0, 8))
    search_step = jax.vmap(env.step)
    game_step = jax.vmap(auto_reset(env.step, env.init))
    rate = optax.linear_schedule(LEARNING_RATE, 0.0, UPDATES * EPOCHS * MINIBATCHES)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def simulate(params: Any, key: Any, actions: Any, states: Any) -> Any:
        after = search_step(states, actions)
        rewards, signs = outcome(states, after)
        output = mctx.RecurrentFnOutput(
            reward=rewards,
            discount=signs,
            prior_logits=log_policy(params, after.observation, after.legal_action_mask),
            value=value(params, after.observation),
        )
        return output, after

    def ply(carry: Any, key: Any) -> Any:
        params, states = carry
        search_key, reset_key = jax.random.split(key)
        boards, legal = states.observation, states.legal_action_mask
        root = mctx.RootFnOutput(
            prior_logits=log_policy(params, boards, legal),
            value=value(params, boards),
            embedding=states,
        )
        search = mctx.gumbel_muzero_policy(
            params, search_key, root, simulate, SIMULATIONS, invalid_actions=~legal
        )
        after = game_step(states, search.action, jax.random.split(reset_key, GAMES))
        values = search.search_tree.summary().value
        steps = Steps(boards, legal, search.action_weights, values, *outcome(states, after))
        return (params, after), steps

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
        params, memory, states = carry
        play_key, *epoch_keys = jax.random.split(key, 1 + EPOCHS)
        (_, states), steps = jax.lax.scan(
            ply, (params, states), jax.random.split(play_key, ROLLOUT)
        )
        last = value(params, states.observation)
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
        return (params, memory, states), None

    actor_key, critic_key, games_key, key = jax.random.split(key, 4)
    params = {"actor": make_layers(actor_key, NUM_ACTIONS), "critic": make_layers(critic_key, 1)}
    states = jax.vmap(env.init)(jax.random.split(games_key, GAMES))
    start = params, optimizer.init(params), states
    (params, *_), _ = jax.lax.scan(update, start, jax.random.split(key, UPDATES))
    return params


def main() -> None:
    """Train for a few minutes, then play without search."""
    start = time.process_time()
    params = jax.block_until_ready(jax.jit(train)(jax.random.key(SEED)))
    seconds = time.process_time() - start
    logits = jax.jit(lambda boards: apply(params["actor"], boards))

    def choose(boards: np.ndarray, legal: np.ndarray) -> np.ndarray:
        return masked_argmax(np.asarray(logits(boards)), legal)

    report("mctx", "Gumbel AlphaZero, self-play, `bao_env.adapters.pgx`", seconds, choose)


if __name__ == "__main__":
    main()
