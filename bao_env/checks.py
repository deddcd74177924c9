"""Check an agent or an observer that you have written, as Gymnasium's ``check_env`` does for
environments.

Each check draws positions from random games and gives them to the agent or the observer. It raises
ValueError for the first mistake that it finds.
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
    """Return positions, uint64[60, 6], and legal actions, uint64[60]: 0 at every tenth position."""
    rng = np.random.default_rng(0)
    positions, legal = Openings(ruleset, (0, MAX_OPENING_PLIES)).draw(60, rng)
    legal[::10] = 0
    return positions, legal


def check_agent(
    agent: Opponent, ruleset: str | Ruleset = "zanzibar", *, deterministic: bool = False
) -> None:
    """Check that an agent chooses legal actions, for 60 positions at once and for each alone.

    Args:
        agent: the :class:`bao_env.Agent`, or anything else that an environment takes as
            ``opponent``.
        ruleset: a :class:`Ruleset` or its name.
        deterministic: also check that a choice depends only on the position. An agent with a time
            limit, for example, may fail this check.

    Raises:
        ValueError: an answer is not one integer for each position; an action is illegal; or, with
            ``deterministic``, an action depends on the other positions or on earlier calls.
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
                f"the agent chose action {together[i]} for position {i} in a batch, but {alone[i]} "
                "for the same position alone: a deterministic agent chooses by the position only"
            )


def check_observer(observer: str | Observer, ruleset: str | Ruleset = "zanzibar") -> None:
    """Check that an observer fills its space, and observes each position independently.

    Args:
        observer: an :class:`bao_env.Observer`, or anything else that an environment takes as
            ``observation``.
        ruleset: a :class:`Ruleset` or its name.

    Raises:
        ValueError: ``space`` or ``fill`` is missing; ``fill`` changes its arguments; or a number is
            not written, is outside the space, or depends on the other positions or on earlier
            calls.
    """
    any_observer = get_observer(observer, ruleset)
    checked = any_observer if isinstance(any_observer, UserObserver) else UserObserver(any_observer)
    positions, legal = _positions(get_ruleset(ruleset))
    viewers = movers(positions)
    viewers[::10] ^= 1  # these viewers are not to move
    together = checked.try_out(positions, legal, viewers)
    for i in range(len(legal)):
        part, observation = slice(i, i + 1), take_rows(together, i)
        alone = checked.try_out(positions[part], legal[part], viewers[part])
        if not data_equivalence(observation, take_rows(alone, 0), exact=True):
            raise ValueError(
                f"observation={observer!r}: fill wrote {one_line(observation)} for position {i} in "
                f"a batch, but {one_line(alone)} for the same position alone; expected the same"
            )
