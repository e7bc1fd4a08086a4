"""Options, in two dialects for the sink."""

import pytest

from connect.api.errors import ConfigError
from connectors.http.config import HttpSinkConfig, HttpSourceConfig

AIVEN = {"connector.class": "io.aiven.kafka.connect.http.HttpSinkConnector", "http.url": "http://h/x"}
CONFLUENT = {"connector.class": "io.confluent.connect.http.HttpSinkConnector", "http.api.url": "http://h/x"}


@pytest.mark.parametrize(
    ("given", "records_max", "parts"),
    [
        (AIVEN, 1, (b"", b"\n", b"\n")),
        ({**AIVEN, "batching.enabled": "true"}, 500, (b"", b"\n", b"\n")),
        ({**AIVEN, "batching.enabled": "true", "batch.max.size": "7"}, 7, (b"", b"\n", b"\n")),
        ({**AIVEN, "batch.prefix": "[", "batch.separator": ", ", "batch.suffix": "]\\n"}, 1, (b"[", b", ", b"]\n")),
        ({**AIVEN, "batch.separator": "\n\n"}, 1, (b"", b"\n\n", b"\n")),
        (CONFLUENT, 1, (b"", b",", b"")),
        ({**CONFLUENT, "batch.max.size": "7"}, 7, (b"", b",", b"")),
        ({**CONFLUENT, "batch.json.as.array": "true"}, 1, (b"[", b",", b"]")),
    ],
)
def test_batches_are_as_in_each_dialect(
    given: dict[str, str], records_max: int, parts: tuple[bytes, bytes, bytes]
) -> None:
    config = HttpSinkConfig.parse(given)
    assert (config.records_max, config.batch_parts) == (records_max, parts)


@pytest.mark.parametrize(
    ("given", "is_json"),
    [
        (AIVEN, True),
        (CONFLUENT, False),
        ({**CONFLUENT, "request.body.format": "JSON"}, True),
        ({**AIVEN, "request.body.format": "string"}, False),
    ],
)
def test_bodies_are_as_in_each_dialect(given: dict[str, str], is_json: bool) -> None:
    assert HttpSinkConfig.parse(given).is_json is is_json


def test_headers_are_read_in_both_dialects() -> None:
    given = {"http.headers.additional": "a: 1, b:2:3", "headers": "c:4,5|d: 6"}
    assert HttpSinkConfig.parse({**AIVEN, **given}).more_headers() == {"a": "1", "b": "2:3", "c": "4,5", "d": "6"}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"http.url": "ftp://h/x"}, "http.url"),
        ({"http.url": "nowhere"}, "http.url"),
        ({"http.url": "http://${host:x}/"}, None),
        ({"http.authorization.type": "static"}, "http.headers.authorization"),
        ({"http.authorization.type": "BASIC"}, "connection.user"),
        ({"auth.type": "OAUTH2"}, "oauth2.client.secret"),
        ({"http.authorization.type": "apikey"}, "http.authorization.type"),
        ({"http.headers.additional": "nocolon"}, "http.headers.additional"),
        ({"retry.on.status.codes": "5xx"}, "retry.on.status.codes"),
        ({"ignore.status.codes": "5xx"}, "ignore.status.codes"),
        ({"request.method": "GET"}, "request.method"),
        ({"batch.max.size": "0"}, "batch.max.size"),
    ],
)
def test_a_sink_that_cannot_work_is_refused(given: dict[str, str], key: str | None) -> None:
    if key is None:
        HttpSinkConfig.parse({**AIVEN, **given})
        return
    with pytest.raises(ConfigError, match=key):
        HttpSinkConfig.parse({**AIVEN, **given})


SOURCE = {"http.request.url": "http://h/x", "kafka.topic": "t"}


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "none"),
        ({"http.request.params": "p=${page}"}, "page"),
        ({"http.request.params": "o=${offset}"}, "offset"),
        ({"http.request.params": "o=${offset}", "http.response.record.offset.pointer": "/id"}, "record"),
        ({"http.request.params": "c=${cursor}", "http.response.offset.pointer": "/next"}, "cursor"),
        ({"http.pagination.mode": "LINK"}, "link"),
        ({"http.offset.mode": "SIMPLE_INCREMENTING"}, "page"),
        ({"http.offset.mode": "CHAINING", "http.offset.json.pointer": "/id"}, "record"),
        ({"http.offset.mode": "CURSOR_PAGINATION", "http.next.page.json.pointer": "/next"}, "cursor"),
    ],
)
def test_how_to_go_on_is_told_by_what_is_configured(given: dict[str, str], mode: str) -> None:
    assert HttpSourceConfig.parse({**SOURCE, **given}).mode == mode


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"http.request.url": "x"}, "http.request.url"),
        ({"http.request.body": "${offset.timestamp?datetime}"}, "http.request.url"),
        ({"http.pagination.mode": "cursor"}, "http.response.offset.pointer"),
        ({"http.pagination.mode": "record"}, "http.response.record.offset.pointer"),
        ({"http.pagination.mode": "guess"}, "http.pagination.mode"),
    ],
)
def test_a_source_that_cannot_work_is_refused(given: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        HttpSourceConfig.parse({**SOURCE, **given})
