"""Compare the engine with its peers: random legal play with masks and auto-reset, on the CPU.

    bao bench peers

Each function returns ``(play, batch)``; ``play(calls)`` plays ``calls`` plies in each of ``batch``
games and returns the number of plies. It raises ImportError if the peer is not installed. The peers
are other, mostly simpler games: a yardstick, not a race. Bao itself is also measured through
:mod:`bao_env.adapters.pgx`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tabulate import tabulate

from bao_agents.cli.bench import Case, add_rounds, all_cases, measure
from bao_agents.cli.options import Run
from bao_env.engine.ruleset import get_ruleset

Play = Callable[[int], int]

_PGX_BATCH = 4096


def pgx_game(game: str, **options: Any) -> tuple[Play, int]:
    """Return a game of Pgx, or Bao, compiled by JAX for a batch, with its state on the device."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    from bao_env.adapters.pgx import Bao

    env = Bao(**options) if game == "bao" else pgx.make(game)
    step = jax.vmap(auto_reset(env.step, env.init))

    def ply(state, key):
        key, draw, reset = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(draw, logits, axis=-1)
        return step(state, action, jax.random.split(reset, _PGX_BATCH)), key

    many = jax.jit(
        lambda state, key, plies: jax.lax.fori_loop(
            0, plies, lambda _, carry: ply(*carry), (state, key)
        )
    )
    key = jax.random.PRNGKey(0)
    carry = (jax.jit(jax.vmap(env.init))(jax.random.split(key, _PGX_BATCH)), key)

    def play(calls: int) -> int:
        nonlocal carry
        carry = jax.block_until_ready(many(*carry, calls))
        return calls * _PGX_BATCH

    return play, _PGX_BATCH


def open_spiel_mancala() -> tuple[Play, int]:
    """Return OpenSpiel's C++ mancala, played from Python."""
    import random

    import pyspiel

    game = pyspiel.load_game("mancala")
    rng = random.Random(1)
    state = game.new_initial_state()

    def play(calls: int) -> int:
        nonlocal state
        for _ in range(calls):
            if state.is_terminal():
                state = game.new_initial_state()
            state.apply_action(rng.choice(state.legal_actions()))
        return calls

    return play, 1


PEERS: dict[str, Callable[[], tuple[Play, int]]] = {
    "pgx connect_four": partial(pgx_game, "connect_four"),
    "pgx othello": partial(pgx_game, "othello"),
    "Bao as pgx.Env": partial(pgx_game, "bao", threads=1),
    "the same, replies": partial(pgx_game, "bao", observation="replies", threads=1),
    "OpenSpiel mancala": open_spiel_mancala,
}
"""The function that sets each peer up."""


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao bench peers``: measure the engine beside other libraries' games."""
    add_rounds(parser, seconds=0.5)
    return _run


def _run(args: argparse.Namespace) -> None:
    ours = all_cases(get_ruleset("zanzibar"), (1, 64, 1024, 16384), (1, 2))
    peers = []
    for name, make in PEERS.items():
        try:
            play, batch = make()
            peers.append(Case(name, batch, os.cpu_count() or 1, play))
        except ImportError:
            print(f"peer {name}: not installed", file=sys.stderr)
    measure([*ours, *peers], args.rounds, args.seconds)
    rows = [
        [case.name, case.batch, case.threads, case.rate / 1e6]
        + [case.cpu_rate / peer.cpu_rate for peer in peers]
        for case in [*ours, *peers]
    ]
    head = ["million plies a second", "batch", "threads", "rate", *(f"vs {p.name}" for p in peers)]
    print(tabulate(rows, head, floatfmt=".3f"))
