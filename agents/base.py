"""What a player is: batched, positions in, actions out; and one board at a time for people."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from bao_env.board import Board
from bao_env.bots import Agent


class Player(Agent, Protocol):
    """An :class:`~bao_env.bots.Agent` with a name, that can also look at one board."""

    name: str

    def choose(self, board: Board) -> int:
        """A legal action for ``board``.

        Raises:
            ValueError: the game is over.
        """
        ...


class NamedPlayer:
    """Any batched agent as a :class:`Player`.

    Args:
        name: as it shall appear in tables.
        agent: who chooses.
    """

    def __init__(self, name: str, agent: Agent) -> None:
        self.name = name
        self._agent = agent

    def act(
        self, positions: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """See :meth:`bao_env.bots.Agent.act`."""
        return self._agent.act(positions, masks)

    def choose(self, board: Board) -> int:
        """See :meth:`Player.choose`."""
        legal = board.legal_actions
        if not legal:
            raise ValueError("the game is over: there is no move to choose")
        mask = sum(1 << action for action in legal)
        return int(self.act(board.words[None], np.array([mask], np.uint64))[0])

    def __repr__(self) -> str:
        return f"<player {self.name}>"
