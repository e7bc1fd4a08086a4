"""Offsets of connectors, and the topics that they used, are shown, changed and reset over REST."""

from typing import Any

import pytest

from tests.support.connect_api import Api, serve

OFFSETS = [{"partition": {"kafka_topic": "t1", "kafka_partition": 0}, "offset": {"kafka_offset": "10"}}]
NEEDED = "Partitions / offsets need to be provided for an alter offsets request"


async def test_offsets_are_altered_and_reset(api: Api) -> None:
    await api.create("one")
    assert (await api.get("/connectors/one/offsets")).json() == {"offsets": []}
    await api.put("/connectors/one/stop")
    altered = await api.patch("/connectors/one/offsets", json={"offsets": OFFSETS})
    message = "The offsets for this connector have been altered successfully"
    assert (altered.status_code, altered.json()) == (200, {"message": message})
    assert (await api.get("/connectors/one/offsets")).json() == {"offsets": OFFSETS}
    reset = await api.delete("/connectors/one/offsets")
    message = "The offsets for this connector have been reset successfully"
    assert (reset.status_code, reset.json()) == (200, {"message": message})
    assert (await api.get("/connectors/one/offsets")).json() == {"offsets": []}


async def test_a_null_offset_is_handed_on(api: Api) -> None:
    await api.create("one")
    await api.put("/connectors/one/stop")
    await api.patch("/connectors/one/offsets", json={"offsets": OFFSETS})
    forgotten = [{"partition": OFFSETS[0]["partition"], "offset": None}]
    assert (await api.patch("/connectors/one/offsets", json={"offsets": forgotten})).status_code == 200
    assert (await api.get("/connectors/one/offsets")).json() == {"offsets": []}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, NEEDED),
        ({"offsets": []}, NEEDED),
        ({"offsets": None}, NEEDED),
        ({"offsets": [{"partition": {}}]}, "Body offsets.0.offset: Field required"),
        ({"offsets": [{"offset": {}}]}, "Body offsets.0.partition: Field required"),
        ({"offsets": OFFSETS}, "Connectors must be in the STOPPED state before their offsets can be modified."),
        ([], "Body body"),
    ],
)
async def test_what_cannot_be_altered_is_answered_with_400(api: Api, body: object, message: str) -> None:
    await api.create("one")
    answer = await api.patch("/connectors/one/offsets", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["message"]


async def test_a_running_connector_cannot_begin_anew(api: Api) -> None:
    await api.create("one")
    assert (await api.delete("/connectors/one/offsets")).status_code == 400


async def test_topics_are_told_and_forgotten(api: Api) -> None:
    await api.create("one")
    api.supervisor.used_topics["one"] = ["a", "b"]
    assert (await api.get("/connectors/one/topics")).json() == {"one": {"topics": ["a", "b"]}}
    answer = await api.put("/connectors/one/topics/reset")
    assert (answer.status_code, answer.content) == (202, b"")
    assert (await api.get("/connectors/one/topics")).json() == {"one": {"topics": []}}


@pytest.mark.parametrize(
    ("settings", "message", "reset"),
    [
        ({"topic_tracking_enable": "false"}, "Topic tracking is disabled.", "Topic tracking is disabled."),
        ({"topic_tracking_allow_reset": "false"}, None, "Topic tracking reset is disabled."),
    ],
)
async def test_topics_that_may_not_be_tracked_are_answered_with_403(
    settings: dict[str, Any], message: str | None, reset: str
) -> None:
    async with serve(**settings) as api:
        answer = await api.get("/connectors/one/topics")
        assert (answer.status_code, answer.json().get("message")) == ((403, message) if message else (200, None))
        answer = await api.put("/connectors/one/topics/reset")
        assert (answer.status_code, answer.json()) == (403, {"error_code": 403, "message": reset})
