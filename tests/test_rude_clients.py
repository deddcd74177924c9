"""The board's server under requests drawn at random, most of them invalid."""

from __future__ import annotations

from typing import Any

import pytest
from bao_agents.play.api import POSTS
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from bao_env.engine.ruleset import RULESETS
from tests.play import HOUSE, post, start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("patience")]

PLAYERS = st.sampled_from(["human", "random", "greedy", "alphabeta:2"])
PAIR = st.lists(PLAYERS, min_size=2, max_size=2)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
VALID = {
    "ply": st.integers(0, 3),
    "action": st.integers(0, 63),
    "pit": st.integers(0, 15),
    "direction": st.integers(0, 1),
    "seats": PAIR,
    "players": PAIR,
    "boards": st.integers(1, 3),
    "ruleset": st.sampled_from(list(RULESETS)),
    "position": st.just(HOUSE),
    "transcript": st.just("1: 7L* 5R;\n2: 6R*;\n"),
}
VALUES = st.fixed_dictionaries(
    {}, optional={key: st.one_of(valid, valid, ANY_JSON) for key, valid in VALID.items()}
)
REQUESTS = st.tuples(st.sampled_from(list(POSTS)), VALUES)


@settings(max_examples=150, deadline=None)
@given(st.lists(REQUESTS, max_size=12))
def test_invalid_requests_raise_nothing(
    client: TestClient, requests: list[tuple[str, dict[str, Any]]]
) -> None:
    """The client raises an exception of the server instead of answering with status 500."""
    names = {"games": start(client)[0].rpartition("/")[2], "watches": "none"}
    for path, data in requests:
        kind = path.split("/")[2]
        answer = post(client, path.format(name=names.get(kind)), data)
        while "Unexpected keyword" in answer.text:  # what this request does not take
            del data[answer.json()["error"].partition(":")[0]]
            answer = post(client, path.format(name=names.get(kind)), data)
        assert answer.status_code == 200 or len(answer.json()["error"]) > 10
        names[kind] = answer.json().get("id", names.get(kind))
