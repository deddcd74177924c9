"""Networks read from checkpoints, shared by players and hints."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from cachetools import LRUCache

from agents.registry import read_network
from bao_env.engine.ruleset import Ruleset

if TYPE_CHECKING:
    from agents.nets.network import PolicyNetwork
    from agents.search.gumbel.search import GumbelSearch

MAX_NETWORKS: Final = 8
MAX_SEARCHES: Final = 4

T = TypeVar("T")


def file_version(path: Path) -> tuple[Path, int, int]:
    """Return a file with its time in nanoseconds and its size, which change if it is rewritten.

    Raises:
        OSError: the file does not exist.
        ValueError: the path is a folder, a pipe or a device.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is not a regular file: expected a checkpoint")
    return path, found.st_mtime_ns, found.st_size


class Networks:
    """A bounded number of networks, and of searches with them; the longest unused is dropped first.

    A checkpoint that has been rewritten is read again.
    """

    def __init__(self) -> None:
        self._networks: LRUCache[Hashable, PolicyNetwork] = LRUCache(MAX_NETWORKS)
        self._searches: LRUCache[Hashable, tuple[GumbelSearch, threading.Lock]] = LRUCache(
            MAX_SEARCHES
        )
        self._lock = threading.RLock()

    def network(self, path: Path, ruleset: Ruleset) -> PolicyNetwork:
        """Return the network of a checkpoint; callers share it and must not change it.

        Raises:
            OSError, ValueError: the checkpoint cannot be read, or cannot be used under these rules.
            ImportError: torch is not installed.
        """
        key = file_version(path), ruleset
        return self._kept(self._networks, key, lambda: read_network(path, ruleset))

    @contextmanager
    def search(self, path: Path, ruleset: Ruleset, simulations: int) -> Iterator[GumbelSearch]:
        """Lend a search of one position to one caller at a time: it reuses its memory.

        Raises:
            OSError, ValueError, ImportError: see :meth:`network`; or the number of simulations
                is out of range.
        """

        def make() -> tuple[GumbelSearch, threading.Lock]:
            network = self.network(path, ruleset)
            from agents.search.gumbel.search import GumbelSearch

            search = GumbelSearch(ruleset.kernel_rules(), network, 1, simulations)
            return search, threading.Lock()

        key = file_version(path), ruleset, simulations
        search, lock = self._kept(self._searches, key, make)
        with lock:
            yield search

    def _kept(self, cache: LRUCache[Hashable, T], key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:  # held while it is made, so that nothing is read twice
            if key not in cache:
                cache[key] = make()
            return cache[key]
