"""Turn recorded games into transitions, for imitation and offline reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from bao_env.engine.action import NUM_ACTIONS
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.masks import unpack_masks
from bao_env.engine.position import Actions, Flags, Seats, movers, to_packed
from bao_env.game import legal_and_outcome, make_move
from bao_env.notation.game_record import GameRecord
from bao_env.observation.arrays import Arrays, take_rows
from bao_env.observation.observer import Observer, get_observer, make_observations


@dataclass(frozen=True, eq=False)
class Transitions:
    """The actions of recorded games, N rows, each with what its player saw then and next.

    The rows of one player in one game are consecutive and form an episode. Within an episode, the
    next observation of a row is the observation of the row after it.
    """

    observations: Arrays
    """What the player to move saw: an array with N rows, or a dict of arrays."""
    masks: npt.NDArray[np.bool_]
    """bool[N, 64], the legal actions."""
    actions: Actions
    """int64[N], the actions played."""
    rewards: npt.NDArray[np.float32]
    """float32[N]: if the game ended under the rules, 1 for the winner's last action and -1 for the
    loser's; otherwise 0."""
    next_observations: Arrays
    """What the same player saw at their next turn, or at the end of the game."""
    next_masks: npt.NDArray[np.bool_]
    """bool[N, 64], the legal actions at the player's next turn; none where ``terminated``."""
    terminated: Flags
    """bool[N], whether the game ended under the rules before the player's next turn."""
    truncated: Flags
    """bool[N], whether the episode ends here although the game did not end under the rules."""
    results: npt.NDArray[np.int8]
    """int8[N]: 1 if the player won the game, -1 if they lost, 0 if nobody did."""
    games: npt.NDArray[np.int64]
    """int64[N], the number of the game, from 0."""
    seats: Seats
    """int8[N], the player's seat."""
    openings: Flags
    """bool[N], whether the action belongs to the opening, and so was not chosen by a player."""


def transitions(
    records: Iterable[GameRecord], observation: str | Observer = "board"
) -> Transitions:
    """Return the transitions of games.

    A game may stop before its end under the rules: it was cut short or resigned, or an illegal
    action lost it. The players' episodes are then truncated at their last turns. The last action of
    the player who is not to move is left out, since that player's next observation is unknown.

    Args:
        records: games, as :func:`bao_env.notation.replay` returns them.
        observation: what a player sees: a name, or an :class:`~bao_env.Observer`.

    Raises:
        ValueError: there is no transition, or no observation has that name.
    """
    episodes = [
        episode
        for number, record in enumerate(records)
        for episode in _episodes(record, number, observation)
    ]
    if not episodes:
        raise ValueError(
            "these games have no moves, and so no transitions: expected at least one move"
        )
    return Transitions(
        **{
            field.name: _joined([getattr(episode, field.name) for episode in episodes])
            for field in fields(Transitions)
        }
    )


def _joined(parts: Sequence[Arrays]) -> Arrays:
    """Return arrays, or dicts of arrays, as one."""
    if isinstance(parts[0], dict):
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return np.concatenate(parts)


def _episodes(
    record: GameRecord, number: int, observation: str | Observer
) -> Iterator[Transitions]:
    """Yield the transitions of South and of North in a game, for each seat that has any."""
    packed = to_packed(record.start)
    legal, outcome = legal_and_outcome(packed, record.ruleset)
    positions, legal_sets = [packed.copy()], [legal]
    for action in record.actions:
        legal, outcome = make_move(packed, record.ruleset, action)
        positions.append(packed.copy())
        legal_sets.append(legal)
    boards, allowed = np.array(positions), np.array(legal_sets, np.uint64)
    turns = movers(boards)
    observer = get_observer(observation, record.ruleset)
    winner = None if record.outcome is None else record.outcome.winner
    for seat in (SOUTH, NORTH):
        plies = np.flatnonzero(turns == seat)
        if outcome is not None:
            plies = np.union1d(plies, [len(record.actions)])  # both see the end
        count = len(plies) - 1
        if count < 1:
            continue
        viewers = np.full(count + 1, seat, np.int8)
        observations = make_observations(observer, boards[plies], allowed[plies], viewers)
        masks = np.empty((count + 1, NUM_ACTIONS), np.bool_)
        unpack_masks(allowed[plies], masks)
        last = np.arange(count) == count - 1
        result = 0 if winner is None else 1 if winner == seat else -1
        ended = outcome is not None
        yield Transitions(
            observations=take_rows(observations, slice(None, -1)),
            masks=masks[:-1],
            actions=np.array(record.actions)[plies[:-1]],
            rewards=np.where(last & ended, result, 0).astype(np.float32),
            next_observations=take_rows(observations, slice(1, None)),
            next_masks=masks[1:],
            terminated=last & ended,
            truncated=last & (not ended),
            results=np.full(count, result, np.int8),
            games=np.full(count, number),
            seats=viewers[:-1],
            openings=plies[:-1] < record.opening_plies,
        )
