"""Requests that another worker must decide are handed on to it, over real connections."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from connect.api.errors import ConnectError
from connect.runtime.errors import NotLeader
from core_broker.service.web.server import serving
from core_broker.service.web.settings import WebSettings
from tests.support.connect_api import SINK, Api, serve

CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


def follow(worker: Api, url: str | None) -> None:
    def refuse() -> None:
        raise NotLeader(url)

    worker.supervisor.before = refuse


@asynccontextmanager
async def listening(worker: Api) -> AsyncIterator[str]:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0"})
    async with serving(worker.app, settings) as (url,):
        yield url


@pytest.fixture
async def leader() -> AsyncIterator[Api]:
    async with serve(number=1) as worker:
        yield worker


async def test_the_leader_answers_for_a_follower(api: Api, leader: Api) -> None:
    async with listening(leader) as url:
        follow(api, url)
        created = await api.post("/connectors", json={"name": "ä/b", "config": SINK})
        assert (created.status_code, created.headers["location"]) == (201, "/connectors/%C3%A4%2Fb")
        assert created.headers["content-type"] == "application/json"
        assert created.json()["config"] == {**SINK, "name": "ä/b"}
        changed = await api.put("/connectors/%C3%A4%2Fb/config", json=SINK)
        assert changed.status_code == 200
        restarted = await api.post("/connectors/%C3%A4%2Fb/restart?includeTasks=true&onlyFailed=true")
        assert restarted.status_code == 202
        assert leader.supervisor.restarted == ["ä/b include_tasks=True only_failed=True"]
        deleted = await api.delete("/connectors/%C3%A4%2Fb")
        assert (deleted.status_code, deleted.content) == (204, b"")
    assert leader.supervisor.connectors() == api.supervisor.connectors() == []


async def test_what_the_leader_refuses_is_told(api: Api, leader: Api) -> None:
    async with listening(leader) as url:
        follow(api, url)
        answer = await api.post("/connectors", json={"name": "one", "config": {**SINK, "tasks.max": "0"}})
    assert answer.status_code == 400
    assert "Value must be at least 1" in answer.json()["message"]


async def test_two_hops_are_enough(api: Api, leader: Api) -> None:
    async with serve(number=2) as between, listening(between) as next_url, listening(leader) as url:
        follow(api, next_url)
        follow(between, url)
        answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert answer.status_code == 201
    assert leader.supervisor.connectors() == ["one"]


async def test_a_circle_ends_with_409(api: Api, leader: Api) -> None:
    async with listening(leader) as url, listening(api) as back:
        follow(api, url)
        follow(leader, back)
        answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert (answer.status_code, answer.json()) == (409, {"error_code": 409, "message": CONFLICT})


async def test_who_forbids_it_is_not_handed_on(api: Api) -> None:
    follow(api, "http://127.0.0.1:1")
    answer = await api.post("/connectors?forward=false", json={"name": "one", "config": SINK})
    assert (answer.status_code, answer.json()["message"]) == (409, CONFLICT)


async def test_without_a_leader_there_is_no_answer_yet(api: Api) -> None:
    follow(api, None)
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    message = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
    assert (answer.status_code, answer.json()) == (409, {"error_code": 409, "message": message})


async def test_a_leader_that_is_gone_is_told(api: Api) -> None:
    follow(api, "http://127.0.0.1:1")
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("IO Error trying to forward REST request: ")


def _wait(event: threading.Event) -> None:
    event.wait(30)


async def test_a_request_that_takes_too_long_is_answered() -> None:
    go_on = threading.Event()
    async with serve(rest_request_timeout_ms="1000") as api:
        api.supervisor.before = partial(_wait, go_on)
        answer = await api.post("/connectors", json={"name": "one", "config": SINK})
        assert (answer.status_code, answer.json()) == (500, {"error_code": 500, "message": "Request timed out"})
        go_on.set()


async def test_what_failed_inside_is_told(api: Api) -> None:
    def fail() -> None:
        raise ConnectError("the cluster does not answer")

    api.supervisor.before = fail
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert (answer.status_code, answer.json()["message"]) == (500, "the cluster does not answer")


async def test_a_bug_is_not_told(api: Api) -> None:
    def fail() -> None:
        raise RuntimeError("password=hush")

    api.supervisor.before = fail
    answer = await api.post("/connectors", json={"name": "one", "config": SINK})
    assert answer.status_code == 500
    assert "hush" not in answer.text
