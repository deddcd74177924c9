"""Load players by name from the installed packages that provide them.

A package makes its players known to environments by an entry point in the group
``bao_env.players``. The entry point names a function ``load(name, ruleset, seed, threads)`` that
returns a :class:`bao_env.Agent`, and raises ValueError for a name that it does not know::

    [project.entry-points."bao_env.players"]
    mypackage = "mypackage.players:load"
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from bao_env.engine.ruleset import Ruleset
from bao_env.suggestions import did_you_mean

if TYPE_CHECKING:
    from bao_env.bots import Agent


def packages(except_package: str = "") -> list[EntryPoint]:
    """Return the entry points of all packages with players, except ``except_package``."""
    entries = entry_points(group="bao_env.players")
    return [entry for entry in entries if entry.value.partition(".")[0] != except_package]


def load_from_packages(
    name: str, ruleset: Ruleset, seed: int, threads: int, *, except_package: str = ""
) -> Agent:
    """Load a player from the packages that have an entry point; see the module.

    A package that fails is skipped. If no other package has the player, the error names
    the package that failed.

    Args:
        name: the player's name.
        ruleset, seed, threads: see :func:`bao_env.bots.get_agent`.
        except_package: a package to leave out.

    Raises:
        ValueError: no package has the player; the message says why.
    """
    reasons: list[str] = []
    cause: BaseException | None = None
    for entry in packages(except_package):
        package = entry.dist.name if entry.dist else entry.name
        try:
            load = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (foreign code)
            cause = error
            reasons.append(_failure(package, error))
            continue
        try:
            agent = load(name, ruleset=ruleset, seed=seed, threads=threads)
        except ValueError as error:  # it does not know the name, or says what is wrong with it
            cause = error
            reasons.insert(0, str(error))
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 (foreign code)
            cause = error
            reasons.append(_failure(package, error))
            continue
        if callable(getattr(agent, "act", None)):
            return cast("Agent", agent)
        reasons.append(
            f"package {package} failed: {entry.value} returned {agent!r:.80}: expected an agent, "
            "or ValueError for a name that it does not know"
        )
    if not reasons:
        hint = did_you_mean(name, ("random", "greedy"))
        reasons = [f"unknown opponent {name!r}{hint}: expected 'random', 'greedy' or an agent"]
    raise ValueError("; ".join(reasons)) from cause


def _failure(package: str, error: BaseException) -> str:
    """Return the reason why a package that raised an error was skipped."""
    return f"package {package} failed: {type(error).__name__}: {error}"
