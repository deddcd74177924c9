"""Train with PPO in JAX in self-play, all in one compiled function, as in PureJaxRL.

python training/examples/pgx_ppo.py
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from pgx.experimental import auto_reset

from bao_env import NUM_ACTIONS
from bao_env.adapters.pgx import Bao
from measure import INPUTS, OBSERVATION, SEED, masked_argmax, report

GAMES, ROLLOUT, UPDATES = 256, 32, 128
EPOCHS, MINIBATCHES, HIDDEN = 4, 8, 128
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT = 1e-3, 0.01, 0.5


class Steps(NamedTuple):
    """Steps to learn from, [N, ...]: boards, masks, actions and their results."""

    boards: Any
    legal: Any
    actions: Any
    log_probs: Any
    values: Any
    rewards: Any
    signs: Any
    """Sign of the next value: 0 at the end, 1 if the same player acts again, else -1."""


def make_layers(key: Any, outputs: int) -> Any:
    """Return the weights and biases of three layers."""
    sizes = (INPUTS, HIDDEN, HIDDEN, outputs)
    weights = jax.nn.initializers.he_normal()
    keys = jax.random.split(key, 3)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(weights(key, shape), jnp.zeros(shape[1])) for key, *shape in shapes]


def apply(layers: Any, boards: Any) -> Any:
    """Return the outputs of three layers, [..., outputs]."""
    for weights, biases in layers[:-1]:
        boards = jax.nn.relu(boards @ weights + biases)
    weights, biases = layers[-1]
    return boards @ weights + biases


def log_policy(params: Any, boards: Any, legal: Any) -> Any:
    """Return the logarithms of the probabilities of all actions, [..., 64]."""
    return jax.nn.log_softmax(jnp.where(legal, apply(params["actor"], boards), -1e9))


def value(params: Any, boards: Any) -> Any:
    """Return the expected return of the players who see ``boards``."""
    return apply(params["critic"], boards)[..., 0]


def loss_of(params: Any, steps: Steps, gains: Any, returns: Any) -> Any:
    """Return PPO's loss on some steps."""
    gains = (gains - gains.mean()) / (gains.std() + 1e-8)
    log_probs = log_policy(params, steps.boards, steps.legal)
    taken = jnp.take_along_axis(log_probs, steps.actions[:, None], axis=1)[:, 0]
    ratio = jnp.exp(taken - steps.log_probs)
    policy_loss = -jnp.minimum(ratio * gains, ratio.clip(1 - CLIP, 1 + CLIP) * gains).mean()
    value_loss = jnp.square(value(params, steps.boards) - returns).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
    return policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * entropy


def train(key: Any) -> Any:
    """Return trained parameters; the network plays both sides of every game."""
    env = Bao(observation=OBSERVATION, opening_plies=(0, 8))
    env_step = jax.vmap(auto_reset(env.step, env.init))
    rate = optax.linear_schedule(LEARNING_RATE, 0.0, UPDATES * EPOCHS * MINIBATCHES)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def ply(carry: Any, key: Any) -> Any:
        params, states = carry
        action_key, reset_key = jax.random.split(key)
        boards, legal, players = states.observation, states.legal_action_mask, states.current_player
        log_probs = log_policy(params, boards, legal)
        actions = jax.random.categorical(action_key, log_probs)
        taken = jnp.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0]
        states = env_step(states, actions, jax.random.split(reset_key, GAMES))
        rewards = jnp.take_along_axis(states.rewards, players[:, None], axis=1)[:, 0]
        signs = jnp.where(states.current_player == players, 1.0, -1.0)
        signs *= ~(states.terminated | states.truncated)
        seen = boards, legal, actions, taken, value(params, boards), rewards, signs
        return (params, states), Steps(*seen)

    def advantage(following: Any, steps: Steps) -> Any:
        gain, next_value = following
        error = steps.rewards + GAMMA * steps.signs * next_value - steps.values
        gain = error + GAMMA * LAMBDA * steps.signs * gain
        return (gain, steps.values), gain

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
        last = jnp.zeros(GAMES), value(params, states.observation)
        _, gains = jax.lax.scan(advantage, last, steps, reverse=True)
        batch = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]), (steps, gains, gains + steps.values)
        )

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
    """Train for a minute or two, then play."""
    start = time.process_time()
    params = jax.block_until_ready(jax.jit(train)(jax.random.key(SEED)))
    seconds = time.process_time() - start
    logits = jax.jit(lambda boards: apply(params["actor"], boards))

    def choose(boards: np.ndarray, legal: np.ndarray) -> np.ndarray:
        return masked_argmax(np.asarray(logits(boards)), legal)

    report("pgx", "PPO, self-play, one `jax.jit` on `bao_env.adapters.pgx`", seconds, choose)


if __name__ == "__main__":
    main()
