"""Check an agent or an observer that you have written, as Gymnasium's ``check_env`` does for
environments.

Each check draws positions of random games, plays or observes them, and raises ValueError with the
first thing that is wrong.
"""

from __future__ import annotations

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from bao_env.bots import Opponent, check_actions, get_agent
from bao_env.engine.position import Legal, PackedPositions, movers
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES, Openings
from bao_env.observation.arrays import one_line, take_rows
from bao_env.observation.observer import Observer, UserObserver, get_observer


def _positions(ruleset: Ruleset) -> tuple[PackedPositions, Legal]:
    """Return positions uint64[60, 6] and legal actions uint64[60]; in every tenth there is none."""
    rng = np.random.default_rng(0)
    positions, legal = Openings(ruleset, (0, MAX_OPENING_PLIES)).draw(60, rng)
    legal[::10] = 0
    return positions, legal


def check_agent(
    agent: Opponent, ruleset: str | Ruleset = "zanzibar", *, deterministic: bool = False
) -> None:
    """Check that an agent chooses legal actions: of 60 positions at once, and of each.

    Args:
        agent: the :class:`bao_env.Agent`, or whatever else an environment takes as ``opponent``.
        ruleset: a :class:`Ruleset` or its name.
        deterministic: also check that a choice depends on the position alone. A time limit, for
            example, prevents that.

    Raises:
        ValueError: an answer is not one integer for each position; an action is illegal, or depends
            on the other positions or on earlier calls.
    """
    agent = get_agent(agent, ruleset)
    positions, legal = _positions(get_ruleset(ruleset))

    def act(part: slice) -> list[int]:
        answer = agent.act(positions[part].copy(), legal[part].copy())
        actions: list[int] = check_actions(answer, legal[part], "the agent").tolist()
        return actions

    together = act(slice(None))
    alone = [act(slice(i, i + 1))[0] for i in range(len(legal))]
    for i in np.flatnonzero(legal) if deterministic else ():
        if alone[i] != together[i]:
            raise ValueError(
                f"the agent chose action {together[i]} in position {i} of a batch, and {alone[i]} "
                "in the same position alone"
            )


def check_observer(observer: str | Observer, ruleset: str | Ruleset = "zanzibar") -> None:
    """Check that an observer writes every number, within its space, for each position alone.

    Args:
        observer: an :class:`bao_env.Observer`, or whatever else an environment takes as
            ``observation``.
        ruleset: a :class:`Ruleset` or its name.

    Raises:
        ValueError: ``space`` or ``fill`` is missing; a number is missing, is outside the space, or
            depends on the other positions or on earlier calls; ``fill`` changes its arguments.
    """
    any_observer = get_observer(observer, ruleset)
    checked = any_observer if isinstance(any_observer, UserObserver) else UserObserver(any_observer)
    positions, legal = _positions(get_ruleset(ruleset))
    viewers = movers(positions)
    viewers[::10] ^= 1  # they are not to move
    together = checked.try_out(positions, legal, viewers)
    for i in range(len(legal)):
        part, observation = slice(i, i + 1), take_rows(together, i)
        alone = checked.try_out(positions[part], legal[part], viewers[part])
        if not data_equivalence(observation, take_rows(alone, 0), exact=True):
            raise ValueError(
                f"observation={observer!r}: position {i} has another observation in a batch, "
                f"{one_line(observation)}, than alone, {one_line(alone)}"
            )
