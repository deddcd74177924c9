"""What the tests of the board's server share: a client, and how it asks."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from agents.play.roster import Roster
from agents.play.server import create_app

HOUSE = "0,0,1,0,7,0,0,1/0,0,0,0,0,0,1,1/1,0,0,0,7,2,0,1/0,0,0,0,0,0,1,1 20,20 SN S -"
"""South may play on from the house or stop there."""


def make_client(roster: Roster | None = None) -> TestClient:
    """A browser in front of a server of its own."""
    return TestClient(create_app(roster or Roster()), base_url="http://127.0.0.1:8017")


def start(client: TestClient, **how: Any) -> tuple[str, dict[str, Any]]:
    """Begin a game; returns its address and its state."""
    answer = client.post("/api/games", json={"seats": ["human", "human"], **how})
    assert answer.status_code == 200, answer.text
    return f"/api/games/{answer.json()['id']}", answer.json()["state"]


def ask(client: TestClient, path: str, status: int = 200, **data: Any) -> dict[str, Any]:
    """Send data to an address, and see that the answer has this status."""
    answer = client.post(path, json=data)
    assert answer.status_code == status, answer.text
    return answer.json()
