"""The worker tells what it is, whether it can do its work, and lets its loggers be changed."""

import logging
from importlib.metadata import version
from itertools import count

import pytest

from connect.settings import ConnectSettings
from core_broker.service.settings import SettingsError
from tests.support.connect_api import Api, serve


async def test_the_root_tells_what_the_worker_is(api: Api) -> None:
    assert (await api.get("/")).json() == {
        "version": "4.1.0",
        "commit": f"caudal-{version('caudal')}",
        "kafka_cluster_id": "a-cluster",
    }


READY = "Worker has completed startup and is ready to handle requests."


@pytest.mark.parametrize(
    ("health", "status", "message"),
    [
        (("healthy", ""), 200, READY),
        (("healthy", READY), 200, READY),
        (("starting", ""), 503, "Worker is still starting up."),
        (("starting", "It reads topics."), 503, "Worker is still starting up. It reads topics."),
        (
            ("unhealthy", "The cluster is gone."),
            500,
            "Worker was unable to handle this request and may be unable to handle other requests. The cluster is gone.",
        ),
    ],
)
async def test_health_has_kafka_connects_words(api: Api, health: tuple[str, str], status: int, message: str) -> None:
    api.supervisor.scripted_health = health
    answer = await api.get("/health")
    assert (answer.status_code, answer.json()) == (status, {"status": health[0], "message": message})


async def test_requests_are_counted() -> None:
    async with serve(number=3) as api:
        await api.create("one")
        await api.get("/connectors/one/status")
        text = (await api.get("/metrics")).text
    labels = 'method="GET",route="/connectors/{connector}/status",status="200"'
    assert f"caudal_connect_http_requests_total{{{labels}}} 1" in text


_NUMBERS = count()


@pytest.fixture
def logger() -> str:
    name = f"caudal_rest_test_{next(_NUMBERS)}"
    logging.getLogger(f"{name}.child")
    logging.getLogger(name).setLevel(logging.NOTSET)
    return name


async def test_a_logger_is_changed_and_told(api: Api, logger: str) -> None:
    answer = await api.put(f"/admin/loggers/{logger}", json={"level": "debug"})
    assert (answer.status_code, answer.json()) == (200, [logger, f"{logger}.child"])
    shown = (await api.get(f"/admin/loggers/{logger}")).json()
    assert (shown["level"], shown["last_modified"] > 0) == ("DEBUG", True)
    listed = (await api.get("/admin/loggers")).json()
    assert listed[logger] == shown
    assert "root" in listed


async def test_a_logger_that_nobody_changed_does_not_tell_when(api: Api, logger: str) -> None:
    logging.getLogger(logger).setLevel(logging.WARNING)
    assert (await api.get(f"/admin/loggers/{logger}")).json() == {"level": "WARN", "last_modified": None}


async def test_loggers_of_all_workers_are_changed_by_the_supervisor(api: Api, logger: str) -> None:
    answer = await api.put(f"/admin/loggers/{logger}?scope=CLUSTER", json={"level": "warning"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.supervisor.levels == [(logger, "WARN")]


async def test_an_unknown_scope_is_this_worker(api: Api, logger: str) -> None:
    answer = await api.put(f"/admin/loggers/{logger}?scope=galaxy", json={"level": "INFO"})
    assert answer.status_code == 200
    assert api.supervisor.levels == []


@pytest.mark.parametrize("scope", ["worker", "cluster"])
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": None}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
    ],
)
async def test_a_wrong_level_is_refused(
    api: Api, scope: str, body: dict[str, str | None], status: int, message: str
) -> None:
    answer = await api.put(f"/admin/loggers/x?scope={scope}", json=body)
    assert (answer.status_code, answer.json()) == (status, {"error_code": status, "message": message})


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_loggers_are_not_served_where_the_operator_wants_no_admin(method: str) -> None:
    async with serve(admin_listeners="") as api:
        answer = await api.request(method, "/admin/loggers/root", json={"level": "INFO"})
        assert (answer.status_code, answer.json()["message"]) == (404, "HTTP 404 Not Found")
        assert (await api.get("/connectors")).status_code == 200


def test_listeners_for_admin_alone_are_refused() -> None:
    with pytest.raises(SettingsError, match="it has no listeners of its own"):
        ConnectSettings.parse({"admin.listeners": "http://:8084"})
