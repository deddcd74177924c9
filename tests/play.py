"""Help the tests of the board's server: clients, games, and players made for a test."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import numpy as np
import pytest
from starlette.testclient import TestClient

from bao_agents.play.roster import Roster
from bao_agents.play.server import create_app
from bao_agents.players import registry
from bao_agents.players.names import Kind
from bao_env.engine.action import actions_of

HOUSE = "0,0,1,0,7,0,0,1/0,0,0,0,0,0,1,1/1,0,0,0,7,2,0,1/0,0,0,0,0,0,1,1 20,20 SN S -"
"""South may stop at the house or play on from it."""


def make_client(roster: Roster | None = None) -> TestClient:
    """Return a client with its own server."""
    return TestClient(create_app(roster or Roster()), base_url="http://127.0.0.1:8017")


def post(client: httpx2.Client, path: str, data: object) -> httpx2.Response:
    """Send data as JSON in ASCII, which lets lone surrogates pass."""
    header = {"content-type": "application/json"}
    return client.post(path, content=json.dumps(data), headers=header)


def ask(client: httpx2.Client, path: str, status: int = 200, **data: Any) -> dict[str, Any]:
    """Send data as JSON, check the status of the answer, and return the answer."""
    answer = post(client, path, data)
    assert answer.status_code == status, answer.text
    content: dict[str, Any] = answer.json()
    return content


class Table:
    """A game on a server; calling it sends requests about the game."""

    def __init__(self, client: httpx2.Client, number: str) -> None:
        self.client, self.path = client, f"/api/games/{number}"

    def __call__(self, request: str, status: int = 200, **data: Any) -> dict[str, Any]:
        """Send a request about the game; see :func:`ask`."""
        return ask(self.client, f"{self.path}/{request}", status, **data)

    def state(self) -> Any:
        """Return the current state of the game."""
        return self.client.get(self.path).json()["state"]


def start(client: httpx2.Client, **settings: Any) -> tuple[Table, dict[str, Any]]:
    """Start a game; return it and its state."""
    content = ask(client, "/api/games", **{"seats": ["human", "human"], **settings})
    return Table(client, content["id"]), content["state"]


class Lowest:
    """A player that chooses the legal action with the lowest number."""

    def act(self, positions: Any, legal: Any) -> Any:
        """Choose the actions."""
        return np.array([actions_of(bits)[0] for bits in legal])


def offer(monkeypatch: pytest.MonkeyPatch, agent: Any) -> None:
    """Add the player ``mine`` to the board's players."""
    row = Kind("mine", "mine", {}, lambda name, setting: agent)
    monkeypatch.setattr("bao_agents.players.registry.KINDS", (row, *registry.KINDS))
