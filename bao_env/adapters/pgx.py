"""Play Bao la Kiswahili as a Pgx environment, for training loops that JAX compiles.

    import jax
    from bao_env.adapters.pgx import Bao

    env = Bao(observation="replies", opening_plies=(0, 8))
    init, step = jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
    states = init(jax.random.split(jax.random.key(0), 1024))
    states = step(states, states.legal_action_mask.argmax(axis=-1))

The rules are not written in JAX. ``step`` calls the compiled engine of this package through one
``jax.pure_callback`` for the whole batch. The engine always runs on the CPU, whatever device the
rest uses. This means:

* Each step copies the games to the host and back, waits for them, and holds Python's global lock
  for the parts that are Python. Use large batches. The tests use CPU devices only.
* ``vmap``, ``scan``, ``jit`` and ``pmap`` work, and so does ``shard_map`` with ``check_vma=False``.
  In the last two each device calls the engine for its own games. A batch that ``jit`` shards
  automatically is first gathered on one device.
* JAX must have its CPU backend. If you set ``JAX_PLATFORMS``, include it, as in ``cuda,cpu``.
* ``jax.export`` cannot save a computation that contains the environment.

A callback that waits for JAX can wait for the thread that it is blocking (jax-ml/jax issues 24255
and 25861). With JAX 0.10.2, inputs of 100 KiB and more are copied in the background, and with two
CPU devices on two cores such a copy never ended. So this callback computes nothing with JAX, and
its inputs are arrays of four bytes per game. With several CPU devices in the process, more than
:data:`MAX_GAMES` games on one of them raise an error. A single device has no limit. Do not donate
the buffers of states (``donate_argnums``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.batch import Engine
from bao_env.engine.masks import is_legal, unpack_masks
from bao_env.engine.position import NO_WINNER, PLY, WORDS, Words, movers, unpack
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.arguments import MAX_PLIES, check_max_plies
from bao_env.envs.openings import OpeningPlies, Openings, check_opening_plies
from bao_env.observation.observer import Observer, get_observer, make_observations
from bao_env.render.drawing import HEIGHT, WIDTH, drawing
from bao_env.render.svg import svg_shapes

try:
    import jax
    import jax.numpy as jnp
    from pgx import core
except ModuleNotFoundError as error:
    error.add_note("bao_env.adapters.pgx needs Pgx and JAX: pip install pgx jax")
    raise

NUM_OPENINGS = 4096
"""Openings that an environment draws when it is made, if they are random."""
MAX_GAMES = 100 * 1024 // 4 - 1
"""Games that a callback may receive on each of several CPU devices; see the module."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State(core.State):
    """A game, or a batch of games with leading axes on every array."""

    current_player: Any
    """The player to act, int32; of an ended game, the player who would be next."""
    observation: Any
    """The current player's observation."""
    rewards: Any
    """float32[2], by player: +1 and -1 when the game is won, else 0."""
    terminated: Any
    """Whether somebody has won, bool."""
    truncated: Any
    """Whether the game was cut short, bool."""
    legal_action_mask: Any
    """bool[64]; all True when the game is over, as in every Pgx game."""
    _step_count: Any
    """Steps since ``init``, int32; random opening plies are not counted."""
    _south: Any
    """The player who sits South, int32."""
    _words: Any
    """The packed position (:mod:`bao_env.engine.position`), uint32[12], low halves first."""
    _legal: Any
    """The legal actions as bits, uint32[2], low half first; 0 when the game is over."""

    @property
    def env_id(self) -> Any:
        """The environment's id."""
        return "bao"

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        """Return the board as an SVG document, or the boards of a batch in a grid.

        Args:
            color_theme: ignored; there is only one.
            scale: size of the picture; None means 1.
        """
        positions = [unpack(words) for words in _join(np.reshape(self._words, (-1, 2 * WORDS)))]
        columns = math.ceil(math.sqrt(len(positions)))
        width, height = columns * WIDTH, math.ceil(len(positions) / columns) * HEIGHT
        boards = "\n".join(
            f'<g transform="translate({i % columns * WIDTH:g} {i // columns * HEIGHT:g})">\n'
            f"{svg_shapes(drawing(position))}\n</g>"
            for i, position in enumerate(positions)
        )
        size = f'width="{width * (scale or 1):g}" height="{height * (scale or 1):g}"'
        box = f'viewBox="0 0 {width:g} {height:g}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box}>\n{boards}\n</svg>\n'

    def save_svg(
        self,
        filename: str | Path,
        *,
        color_theme: str | None = None,
        scale: float | None = None,
    ) -> None:
        """Write :meth:`to_svg` to a file."""
        Path(filename).write_text(self.to_svg(color_theme=color_theme, scale=scale), "utf-8")


class Bao(core.Env):
    """Play Bao in Pgx; :mod:`bao_env.adapters.pgx` says what its steps cost.

    Actions and observations are those of :class:`bao_env.BaoVectorEnv` in self-play. Players 0 and
    1 sit South and North by lot, as in Pgx's own games. In rule set ``dutch`` the same player may
    act twice in a row, so compare ``current_player`` before and after a step; do not assume that
    it alternates. An illegal action loses the game: -1 for the player who chose it, +1 for the
    other.

    ``init`` depends only on its key and makes no callback. ``step`` needs no key.

    Args:
        ruleset: a :class:`bao_env.Ruleset` or its name.
        observation: as :class:`bao_env.BaoVectorEnv` takes it, if it is a single array.
        opening_plies: random legal plies before the first state, a number, or the lowest and the
            highest. ``init`` picks one of :data:`NUM_OPENINGS` openings by its key; they are the
            same in every environment with the same arguments.
        max_plies: plies after which a game is cut short (``truncated``), with rewards of 0.
        threads: number of threads that share a step; the games do not depend on it.

    Raises:
        ValueError: an argument is wrong.
    """

    def __init__(
        self,
        ruleset: str | Ruleset = "zanzibar",
        observation: str | Observer = "board",
        opening_plies: OpeningPlies = 0,
        max_plies: int = MAX_PLIES,
        threads: int = 1,
    ) -> None:
        super().__init__()
        self.ruleset = get_ruleset(ruleset)
        self.max_plies = check_max_plies(max_plies)
        self.threads = threads
        self.observer = get_observer(observation, self.ruleset)
        if not isinstance(self.observer.space, Box):
            raise ValueError(f"observation={observation!r}: expected one that is a single array")
        self._idle_engines = [Engine(self.ruleset, threads)]
        """Engines that no callback is using; callbacks of several devices overlap."""
        plies = check_opening_plies(opening_plies, self.max_plies)
        self._openings = self._draw_openings(plies)
        """A batch of states, all with player 0 in South's seat."""

    @property
    def id(self) -> Any:
        """``"bao"``; ``pgx.make`` does not know it."""
        return "bao"

    @property
    def version(self) -> str:
        """The version of the environment."""
        return "v0"

    @property
    def num_players(self) -> int:
        """2."""
        return 2

    # --- Pgx's interface ------------------------------------------------------------------------

    def init(self, key: Any) -> State:
        """Return the start of a game."""
        return self._init(key)

    def step(self, state: State, action: Any, key: Any = None) -> State:
        """Return the state after an action; an ended game stays, with rewards of 0.

        Pgx's own ``step`` would observe in a second callback.
        """
        return jax.lax.cond(
            state.terminated | state.truncated,
            lambda: state.replace(rewards=jnp.zeros_like(state.rewards)),
            lambda: self._step(state, action, key),
        )

    def _init(self, key: Any) -> State:
        opening_key, seat_key = jax.random.split(key)
        row = jax.random.randint(opening_key, (), 0, len(self._openings.current_player))
        state = jax.tree.map(lambda rows: jnp.asarray(rows)[row], self._openings)
        south = jax.random.bernoulli(seat_key).astype(jnp.int32)
        return state.replace(current_player=state.current_player ^ south, _south=south)

    def _step(self, state: Any, action: Any, key: Any) -> State:
        space = self.observer.space
        results = {
            "seat": jax.ShapeDtypeStruct((), np.int32),
            "winner": jax.ShapeDtypeStruct((), np.int32),
            "truncated": jax.ShapeDtypeStruct((), np.bool_),
            "observation": jax.ShapeDtypeStruct(space.shape, space.dtype),
            "legal_action_mask": jax.ShapeDtypeStruct((NUM_ACTIONS,), np.bool_),
            "_words": jax.ShapeDtypeStruct((2 * WORDS,), np.uint32),
            "_legal": jax.ShapeDtypeStruct((2,), np.uint32),
        }
        played = jax.pure_callback(
            *(self._play, results, jnp.int32(action), *state._words, *state._legal),
            vmap_method="broadcast_all",
        )
        seat, winner = played.pop("seat"), played.pop("winner")
        won = winner != NO_WINNER
        signs = jnp.where(jnp.arange(2) == winner ^ state._south, 1.0, -1.0)
        return state.replace(
            current_player=seat ^ state._south,
            rewards=jnp.where(won, signs, 0.0).astype(jnp.float32),
            terminated=won,
            _step_count=state._step_count + 1,
            **played,
        )

    def _observe(self, state: Any, player_id: Any) -> Any:
        space = self.observer.space
        return jax.pure_callback(
            *(self._see, jax.ShapeDtypeStruct(space.shape, space.dtype)),
            *(jnp.int32(player_id) ^ state._south, *state._words, *state._legal),
            vmap_method="broadcast_all",
        )

    # --- on the host ----------------------------------------------------------------------------

    def _draw_openings(self, plies: tuple[int, int]) -> State:
        """Return the states in which games may begin."""
        count = NUM_OPENINGS if plies[1] or self.ruleset.first_player == "lot" else 1
        positions, legal = Openings(self.ruleset, plies).draw(count, np.random.default_rng(0))
        seats, flags = movers(positions), np.empty((count, NUM_ACTIONS), np.bool_)
        unpack_masks(legal, flags)
        return State(
            current_player=seats.astype(np.int32),
            observation=make_observations(self.observer, positions, legal, seats),
            rewards=np.zeros((count, 2), np.float32),
            terminated=np.zeros(count, np.bool_),
            truncated=np.zeros(count, np.bool_),
            legal_action_mask=flags,
            _step_count=np.zeros(count, np.int32),
            _south=np.zeros(count, np.int32),
            _words=positions.view(np.uint32),
            _legal=legal[:, None].view(np.uint32),
        )

    def _play(self, actions: Any, *halves: Any) -> dict[str, npt.NDArray[Any]]:
        """Play an action in each of a batch of games; ``halves`` are the words and the actions."""
        positions, legal = _games(halves)
        batch = np.shape(actions)
        actions = np.asarray(actions).astype(np.int64).ravel()
        size = len(positions)
        winners = np.full(size, NO_WINNER, np.int8)
        illegal = ~is_legal(actions, legal)
        winners[illegal] = 1 - movers(positions[illegal])
        legal[illegal] = 0
        seats, truncated = np.empty(size, np.int8), np.empty(size, np.bool_)
        flags = np.empty((size, NUM_ACTIONS), np.bool_)
        space = self.observer.space
        observations = np.empty((size, *(space.shape or ())), space.dtype)

        def finish(part: slice) -> None:
            seats[part] = movers(positions[part])
            too_long = positions[part, PLY] >= self.max_plies
            truncated[part] = too_long & (winners[part] == NO_WINNER)
            legal[part][truncated[part]] = 0
            self.observer.fill(positions[part], legal[part], seats[part], observations[part])
            unpack_masks(legal[part], flags[part])
            flags[part][legal[part] == 0] = True

        try:
            engine = self._idle_engines.pop()
        except IndexError:
            engine = Engine(self.ruleset, self.threads)
        try:
            engine.step(positions, actions, legal, winners, on_part_done=finish)
        finally:
            self._idle_engines.append(engine)
        results = {
            "seat": seats.astype(np.int32),
            "winner": winners.astype(np.int32),
            "truncated": truncated,
            "observation": observations,
            "legal_action_mask": flags,
            "_words": positions.view(np.uint32),
            "_legal": legal[:, None].view(np.uint32),
        }
        return {name: array.reshape(batch + array.shape[1:]) for name, array in results.items()}

    def _see(self, seats: Any, *halves: Any) -> npt.NDArray[Any]:
        """Return what the players in ``seats`` see of a batch of games."""
        positions, legal = _games(halves)
        viewers = np.asarray(seats).astype(np.int8).ravel()
        legal[viewers != movers(positions)] = 0
        observations = make_observations(self.observer, positions, legal, viewers)
        return observations.reshape(np.shape(seats) + observations.shape[1:])


def _games(halves: tuple[Any, ...]) -> tuple[Words, Words]:
    """Return fresh positions, uint64[n, 6], and legal actions, uint64[n], of n games.

    Args:
        halves: what a callback receives, 14 arrays uint32[...]: the halves of the positions' words,
            then of the legal actions.

    Raises:
        ValueError: JAX would never hand these arrays over.
    """
    if halves[0].size > MAX_GAMES and len(jax.local_devices(backend="cpu")) > 1:
        raise ValueError(
            f"{halves[0].size} games: expected at most {MAX_GAMES} on each of several CPU devices, "
            "because JAX does not hand larger batches to a callback"
        )
    arrays = [np.asarray(half).ravel() for half in halves]
    return _join(np.stack(arrays[:-2], axis=1)), _join(np.stack(arrays[-2:], axis=1))[:, 0]


def _join(halves: npt.NDArray[np.uint32]) -> Words:
    """Return the words, uint64[n, k], of their halves, uint32[n, 2 k]."""
    return np.ascontiguousarray(halves).view(np.uint64)
