"""HTTP against a real server: the standard suites, statuses, limits, tokens, and through a worker."""

import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typing_extensions import override

from connect.api import data
from connect.api.data import Schema, Value
from connect.api.errors import ConnectError, DataError, RetriableError
from connect.api.record import SinkRecord
from connect.testing.contexts import FakeConnectorContext, FakeSinkContext, FakeSourceContext
from connect.testing.samples import sink_record
from connect.testing.sink_suite import SinkSuite
from connect.testing.source_suite import SourceSuite
from connectors.http.config import HttpSinkConfig, HttpSourceConfig
from connectors.http.sink import HttpSinkConnector, HttpSinkTask
from connectors.http.source import HttpSourceConnector, HttpSourceTask
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.certificates import self_signed
from tests.support.connect import ConnectProcess
from tests.support.connect_worker import consume
from tests.support.http_api import HttpApi, Reaction, Received


@pytest.fixture
def api() -> Iterator[HttpApi]:
    """A server of the test's own."""
    with HttpApi() as running:
        yield running


def refuse_bad(request: Received) -> Reaction:
    return Reaction(422, b'{"error": "bad"}') if b"bad" in request.body else Reaction()


class HttpSinkChecks(SinkSuite):
    """The standard suite."""

    connector_class = HttpSinkConnector
    can_break = True
    mode: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture(autouse=True)
    def other_side(self, api: HttpApi) -> None:
        self.api = api
        api.react = refuse_bad

    @override
    def config(self) -> Mapping[str, str]:
        return {"http.url": f"{self.api.url}/records", "retry.backoff.ms": "1", **self.mode}

    @override
    def written(self) -> list[Value]:
        lines = b"\n".join(request.body for request in self.api.received).splitlines()
        return [json.loads(line) for line in lines if line]

    @override
    def bad_value(self) -> tuple[Schema | None, Value] | None:
        return data.struct({"id": data.INT64, "name": data.STRING}), {"id": 1, "name": "bad"}

    @override
    def break_other_side(self) -> None:
        self.api.stop()

    @override
    def mend_other_side(self) -> None:
        self.api.start()


class TestOneByOneSuite(HttpSinkChecks):
    """A request for each record."""


class TestBatchesSuite(HttpSinkChecks):
    """Requests with many records."""

    mode: ClassVar[Mapping[str, str]] = {"batching.enabled": "true", "batch.max.size": "6"}


class TestParallelSuite(HttpSinkChecks):
    """Several partitions at once."""

    mode: ClassVar[Mapping[str, str]] = {"http.max.parallel.requests": "3"}


class PagedApi:
    """An API with a list that grows: by cursors, offsets, pages, ids or links."""

    def __init__(self, api: HttpApi) -> None:
        self.items: list[dict[str, Any]] = []
        self.size = 4
        self._api = api
        api.react = self.react

    def react(self, request: Received) -> Reaction:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        start = self._start(query)
        items = self.items[start : start + self.size]
        more = start + self.size < len(self.items)
        following = str(start + self.size) if more else None
        link = {"Link": f'<{self._api.url}/items?cursor={following}>; rel="next"'} if more else {}
        return Reaction(body=json.dumps({"data": items, "next": following}).encode(), headers=link)

    def _start(self, query: Mapping[str, str]) -> int:
        if "page" in query:
            return (int(query["page"]) - 1) * self.size
        if "after" in query:
            return sum(item["id"] <= int(query["after"]) for item in self.items)
        return int(query.get("cursor", query.get("offset", "0")))


class HttpSourceChecks(SourceSuite):
    """The standard suite, by one way of going on."""

    connector_class = HttpSourceConnector
    batch_option = "batch.size"
    can_break = True
    mode: ClassVar[Mapping[str, str]]

    @pytest.fixture(autouse=True)
    def other_side(self, api: HttpApi) -> None:
        self.api = api
        self.paged = PagedApi(api)

    @override
    def config(self) -> Mapping[str, str]:
        return {
            "http.request.url": f"{self.api.url}/items",
            "kafka.topic": "items",
            "http.response.records.pointer": "/data",
            "http.response.key.pointer": "/id",
            "http.timer.interval.millis": "5",
            "retry.backoff.ms": "5",
            **self.mode,
        }

    @override
    def produce(self, first: int, count: int) -> None:
        self.paged.items += [{"id": number, "name": f"name {number}"} for number in range(first, first + count)]

    @override
    def break_other_side(self) -> None:
        self.api.stop()

    @override
    def mend_other_side(self) -> None:
        self.api.start()


class TestCursorSuite(HttpSourceChecks):
    mode: ClassVar[Mapping[str, str]] = {
        "http.request.params": "cursor=${cursor}",
        "http.response.offset.pointer": "/next",
    }


class TestLinkSuite(HttpSourceChecks):
    mode: ClassVar[Mapping[str, str]] = {"http.pagination.mode": "link"}


class TestRecordSuite(HttpSourceChecks):
    mode: ClassVar[Mapping[str, str]] = {
        "http.request.params": "after=${offset.id}",
        "http.response.record.offset.pointer": "id=/id",
        "http.offset.initial": "id=-1",
    }


class TestOffsetSuite(HttpSourceChecks):
    mode: ClassVar[Mapping[str, str]] = {"http.request.params": "offset=${offset}"}


class TestPageSuite(HttpSourceChecks):
    mode: ClassVar[Mapping[str, str]] = {"http.request.params": "page=${page}"}


# --- the sink ---


def sink(api: HttpApi, context: FakeSinkContext, **config: str) -> HttpSinkTask:
    given = {"http.url": f"{api.url}/x", "retry.backoff.ms": "70"}
    changes = {key.replace("_", "."): text for key, text in config.items()}
    return HttpSinkTask(HttpSinkConfig.parse({**given, **changes}), context)


def orders(count: int, *, partition: int = 0) -> list[SinkRecord]:
    return [
        sink_record("orders", number, key=str(number), value={"id": number}, partition=partition)
        for number in range(count)
    ]


def bodies(api: HttpApi) -> list[bytes]:
    return [request.body for request in api.received]


@pytest.mark.parametrize(
    ("reaction", "after_ms"),
    [
        (Reaction(429, headers={"Retry-After": "7"}), 7000),
        (Reaction(503, headers={"Retry-After": "2"}), 2000),
        (Reaction(429), 70),
        (Reaction(500), 70),
        (Reaction(408), 70),
        (Reaction(401), 70),
        (Reaction(302, headers={"Location": "/login"}), 70),
    ],
)
@pytest.mark.parametrize("batching", ["false", "true"])
def test_an_outage_is_waited_for_and_is_nobodys_fault(
    api: HttpApi, reaction: Reaction, after_ms: int, batching: str
) -> None:
    context = FakeSinkContext()
    task = sink(api, context, batching_enabled=batching)
    api.react = lambda _: reaction
    with pytest.raises(RetriableError, match=str(reaction.status)):
        task.put(orders(3))
    assert context.retries_after_ms == [after_ms]
    api.react = lambda _: Reaction()
    task.put(orders(3))
    task.stop()
    assert context.reported == []
    assert b"".join(bodies(api)).count(b"id") == 3


def test_an_answer_that_does_not_come_is_an_outage(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context, http_timeout="0.2")
    api.react = lambda _: Reaction(hangs=True)
    with pytest.raises(RetriableError, match="was not answered"):
        task.put(orders(1))
    task.stop()
    assert context.reported == []


def test_only_the_record_that_is_refused_is_reported(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context)
    api.react = lambda request: Reaction(400, b"no such order") if b"1" in request.body else Reaction()
    task.put(orders(3))
    task.stop()
    assert [record.offset for record, _ in context.reported] == [1]
    assert "400: no such order" in str(context.reported[0][1])
    assert bodies(api) == [b'{"id":0}', b'{"id":2}']


def test_a_batch_that_is_refused_is_bad_data_as_a_whole(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context, batching_enabled="true")
    api.react = lambda request: Reaction(400) if b"1" in request.body else Reaction()
    with pytest.raises(DataError):
        task.put(orders(3))
    task.put(orders(3)[:1])
    task.put(orders(3)[1:2])
    task.stop()
    assert [record.offset for record, _ in context.reported] == [1]


def test_what_was_sent_before_an_outage_is_not_sent_again(api: HttpApi) -> None:
    task = sink(api, FakeSinkContext())
    api.react = lambda _: Reaction() if len(api.received) < 2 or api.refused else Reaction(503)
    with pytest.raises(RetriableError):
        task.put(orders(4))
    task.put(orders(4))
    task.stop()
    assert bodies(api) == [b'{"id":%d}' % number for number in range(4)]


def test_statuses_may_be_forgiven_or_retried_for_a_while(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context, **{"ignore.status.codes": "409", "retry.on.status.codes": "400-", "max.retries": "2"})
    api.react = lambda request: Reaction(409 if b"0" in request.body else 404)
    for _ in range(2):
        with pytest.raises(RetriableError):
            task.put(orders(2))
    task.put(orders(2))
    task.stop()
    assert [record.offset for record, _ in context.reported] == [0, 1]


def test_urls_are_made_of_records_and_batches_of_neighbours_with_the_same(api: HttpApi) -> None:
    task = sink(api, FakeSinkContext(), **{"http.url": f"{api.url}/${{topic}}/${{kind}}", "batching.enabled": "true"})
    values = [{"kind": kind, "n": number} for number, kind in enumerate("aab")]
    task.put([sink_record("orders", number, value=value) for number, value in enumerate(values)])
    task.stop()
    assert [request.target for request in api.received] == ["/orders/a", "/orders/b"]
    assert bodies(api)[0] == b'{"kind":"a","n":0}\n{"kind":"a","n":1}\n'


def test_the_dialect_of_confluent_is_understood(api: HttpApi) -> None:
    config = {
        "connector.class": "io.confluent.connect.http.HttpSinkConnector",
        "http.api.url": f"{api.url}/${{topic}}/${{key}}",
        "request.method": "PUT",
        "request.body.format": "json",
        "headers": "X-One:1|X-Two:2,3",
        "auth.type": "BASIC",
        "connection.user": "me",
        "connection.password": "secret",
        "batch.max.size": "1",
        "behavior.on.null.values": "delete",
    }
    task = HttpSinkTask(HttpSinkConfig.parse(config), FakeSinkContext())
    api.react = lambda request: Reaction(404) if request.method == "DELETE" else Reaction()
    task.put([*orders(1), sink_record("orders", 1, key="a b", value=None)])
    task.stop()
    [sent], [deleted] = api.received, api.refused
    assert (sent.method, sent.target, sent.body) == ("PUT", "/orders/0", b'{"id":0}')
    assert (sent.headers["X-One"], sent.headers["X-Two"]) == ("1", "2,3")
    assert sent.headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert (deleted.method, deleted.target) == ("DELETE", "/orders/a%20b")


@pytest.mark.parametrize(("behaviour", "reported"), [("ignore", []), ("log", []), ("fail", [1])])
def test_records_without_a_value_are_as_configured(api: HttpApi, behaviour: str, reported: list[int]) -> None:
    context = FakeSinkContext()
    task = sink(api, context, **{"behavior.on.null.values": behaviour})
    task.put([*orders(1), sink_record("orders", 1, key="1", value=None)])
    task.stop()
    assert [record.offset for record, _ in context.reported] == reported
    assert len(api.received) == 1


def test_connections_are_kept(api: HttpApi) -> None:
    task = sink(api, FakeSinkContext())
    task.put(orders(20))
    task.put(orders(20))
    task.stop()
    assert (len(api.received), api.connections) == (40, 1)


def test_requests_are_not_more_than_allowed_in_a_second(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context, **{"http.requests.per.second": "0.01"})
    task.put(orders(4))
    task.stop()
    # The context sleeps for a moment only: waits of 0, 100, 200 and 300 s, less what the requests took.
    assert 500 < context.waited_seconds <= 600


def test_partitions_go_at_once_and_each_keeps_its_order(api: HttpApi) -> None:
    task = sink(api, FakeSinkContext(), **{"http.max.parallel.requests": "4", "http.url": f"{api.url}/${{partition}}"})
    records = [record for number in range(3) for record in orders(10, partition=number)]
    task.put(records)
    task.stop()
    for number in range(3):
        assert [request.body for request in api.received if request.target == f"/{number}"] == [
            b'{"id":%d}' % place for place in range(10)
        ]


def test_a_token_is_renewed_when_it_is_refused(api: HttpApi) -> None:
    tokens: list[str] = []

    def react(request: Received) -> Reaction:
        if request.target == "/token":
            assert request.headers["Authorization"] == "Basic aWQ6c2VjcmV0"
            assert request.body == b"grant_type=client_credentials&scope=all"
            tokens.append(f"t{len(tokens)}")
            return Reaction(body=json.dumps({"access_token": tokens[-1], "expires_in": 3600}).encode())
        is_expired = request.headers["Authorization"] == "Bearer t0" and b"2" in request.body
        return Reaction(401) if is_expired else Reaction()

    api.react = react
    oauth2 = {
        "http.authorization.type": "oauth2",
        "oauth2.access.token.url": f"{api.url}/token",
        "oauth2.client.id": "id",
        "oauth2.client.secret": "secret",
        "oauth2.client.scope": "all",
    }
    task = sink(api, FakeSinkContext(), **oauth2)
    task.put(orders(4))
    task.stop()
    assert tokens == ["t0", "t1"]
    sent = [request for request in api.received if request.target == "/x"]
    assert [request.headers["Authorization"] for request in sent] == ["Bearer t0"] * 2 + ["Bearer t1"] * 2


def test_a_token_that_is_not_to_be_had_is_an_outage(api: HttpApi) -> None:
    context = FakeSinkContext()
    oauth2 = {"oauth2.access.token.url": f"{api.url}/token", "oauth2.client.id": "i", "oauth2.client.secret": "s"}
    task = sink(api, context, **{"http.authorization.type": "oauth2"}, **oauth2)
    api.react = lambda _: Reaction(400)
    with pytest.raises(RetriableError, match="token"):
        task.put(orders(1))
    task.stop()
    assert context.reported == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "application/json"),
        ({"request.body.format": "string"}, "text/plain"),
        ({"http.headers.content.type": "a/b"}, "a/b"),
        ({"headers": "content-type: c/d"}, "c/d"),
    ],
)
def test_the_type_of_the_content_is_told(api: HttpApi, given: dict[str, str], found: str) -> None:
    task = sink(api, FakeSinkContext(), **given)
    task.put(orders(1))
    task.stop()
    [request] = api.received
    assert {name.lower(): value for name, value in request.headers.items()}["content-type"] == found


def test_a_task_that_is_told_to_stop_does_not_send_the_rest(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context)

    def react(_: Received) -> Reaction:
        context.stop()
        return Reaction()

    api.react = react
    with pytest.raises(RetriableError):
        task.put(orders(5))
    task.stop()
    assert len(api.received) == 1


def test_a_record_that_no_url_can_be_made_of_is_bad(api: HttpApi) -> None:
    context = FakeSinkContext()
    task = sink(api, context, **{"http.url": f"{api.url}/${{missing}}"})
    task.put(orders(1))
    task.stop()
    assert "missing" in str(context.reported[0][1])


def test_only_a_server_whose_certificate_is_trusted_gets_records(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with HttpApi(tls) as api:
        for trust in {"https.ssl.truststore.location": str(certificate)}, {"http.ssl.trust.all.certs": "true"}:
            task = sink(api, FakeSinkContext(), **trust)
            task.put(orders(1))
            task.stop()
        assert len(api.received) == 2
        task = sink(api, FakeSinkContext())
        with pytest.raises(RetriableError, match="(?i)certificate"):
            task.put(orders(1))
        task.stop()
        assert len(api.received) == 2


# --- the source ---


def source(api: HttpApi, context: FakeSourceContext, **config: str) -> HttpSourceTask:
    given = {"http.request.url": f"{api.url}/items", "kafka.topic": "items", "http.timer.interval.millis": "0"}
    task = HttpSourceTask(HttpSourceConfig.parse({**given, **config}), context)
    task.start()
    return task


def test_key_time_and_value_are_where_the_pointers_say(api: HttpApi) -> None:
    rows = [
        {"id": 1, "at": 1_700_000_000_123, "body": {"a/b": 1}},
        {"id": "x", "at": "2023-11-14T22:13:20+00:00", "body": [1.5, None]},
        {"id": 3, "at": 1_700_000_000, "body": "text"},
    ]
    api.react = lambda _: Reaction(body=json.dumps({"data": {"items": rows}}).encode())
    pointers = {
        "http.response.list.pointer": "/data/items",
        "http.response.record.pointer": "/body",
        "http.response.record.key.pointer": "/id",
        "http.response.record.timestamp.pointer": "/at",
    }
    task = source(api, FakeSourceContext(), **pointers)
    records = task.poll()
    task.stop()
    assert [record.key for record in records] == ["1", "x", "3"]
    assert [record.value for record in records] == [{"a/b": 1}, [1.5, None], "text"]
    assert [record.timestamp_ms for record in records] == [1_700_000_000_123, 1_700_000_000_000, 1_700_000_000_000]


def test_values_may_be_text(api: HttpApi) -> None:
    api.react = lambda _: Reaction(body=b'[{"a": 1}]')
    task = source(api, FakeSourceContext(), **{"http.response.value.format": "string"})
    [record] = task.poll()
    task.stop()
    assert (record.value_schema, record.value) == (data.STRING, '{"a":1}')


def test_bad_records_are_reported_and_the_others_are_read(api: HttpApi) -> None:
    rows = [{"id": 1, "at": 5}, {"id": 2, "at": "noon"}, {"at": 5}, {"id": 4, "at": 5}]
    api.react = lambda _: Reaction(body=json.dumps(rows).encode())
    context = FakeSourceContext()
    pointers = {
        "http.response.key.pointer": "/id",
        "http.response.timestamp.pointer": "/at",
        "http.response.record.offset.pointer": "/id",
    }
    task = source(api, context, **pointers)
    assert [record.key for record in task.poll()] == ["1", "4"]
    task.stop()
    assert [json.loads(reported.data) for reported in context.reported] == rows[1:3]


@pytest.mark.parametrize("reaction", [Reaction(400), Reaction(404), Reaction(200, b"<html>")])
def test_an_answer_that_will_not_get_better_ends_the_task(api: HttpApi, reaction: Reaction) -> None:
    api.react = lambda _: reaction
    task = source(api, FakeSourceContext())
    with pytest.raises(ConnectError) as failed:
        task.poll()
    task.stop()
    assert not isinstance(failed.value, RetriableError)


def test_an_api_that_wants_to_be_left_alone_is(api: HttpApi) -> None:
    api.react = lambda _: Reaction(429, headers={"Retry-After": "3600"})
    context = FakeSourceContext()
    task = source(api, context)
    with pytest.raises(RetriableError):
        task.poll()
    assert [task.poll() for _ in range(3)] == [[], [], []]
    task.stop()
    assert len(api.refused) == 1


def test_an_answer_that_is_too_large_ends_the_task(api: HttpApi) -> None:
    api.react = lambda _: Reaction(body=b"[" + b" " * 5000 + b"]")
    task = source(api, FakeSourceContext(), **{"http.response.bytes.max": "1024"})
    with pytest.raises(ConnectError, match="larger"):
        task.poll()
    task.stop()


def test_a_body_may_say_how_to_go_on(api: HttpApi) -> None:
    api.react = lambda _: Reaction(body=b'{"hits": [{"_id": "b"}]}')
    search = {
        "http.request.method": "POST",
        "http.request.body": '{"after": "${offset.key}"}',
        "http.response.list.pointer": "/hits",
        "http.response.record.offset.pointer": "key=/_id",
        "http.offset.initial": "key=a",
    }
    task = source(api, FakeSourceContext(), **search)
    task.poll()
    task.poll()
    task.stop()
    assert bodies(api) == [b'{"after": "a"}', b'{"after": "b"}']
    assert api.received[0].headers["Content-Type"] == "application/json"


def test_news_at_the_top_of_a_list_are_read_in_their_order(api: HttpApi) -> None:
    rows = [{"id": 3}, {"id": 2}, {"id": 1}]
    api.react = lambda _: Reaction(body=json.dumps(rows).encode())
    config = {"http.response.record.offset.pointer": "/id", "http.response.list.order.direction": "desc"}
    task = source(api, FakeSourceContext(), **config)
    assert [record.value["id"] for record in task.poll()] == [1, 2, 3]
    rows.insert(0, {"id": 4})
    assert [record.value["id"] for record in task.poll()] == [4]
    assert task.poll() == []
    task.stop()


def test_offsets_that_are_changed_by_hand_are_checked(api: HttpApi) -> None:
    config = HttpSourceConfig.parse({"http.request.url": f"{api.url}/items", "kafka.topic": "items"})
    connector = HttpSourceConnector(config, FakeConnectorContext())
    partition = {"url": f"{api.url}/items"}
    connector.alter_offsets([(partition, {"cursor": "x", "index": 3}), (partition, None)])
    for wrong in ({"url": "x"}, None), (partition, {"cursor": [1]}):
        with pytest.raises(ConnectError):
            connector.alter_offsets([wrong])


# --- through a worker ---

JSON = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def test_records_of_an_api_come_to_a_topic(
    connect: ConnectProcess, broker: BrokerProcess, api: HttpApi, name: str
) -> None:
    create_topic(broker, name)
    paged = PagedApi(api)
    paged.items = [{"id": number} for number in range(50)]
    config = {
        "connector.class": "com.github.castorm.kafka.connect.http.HttpSourceConnector",
        "http.request.url": f"{api.url}/items",
        "http.request.params": "after=${offset.id}",
        "http.offset.initial": "id=-1",
        "http.response.list.pointer": "/data",
        "http.response.record.offset.pointer": "id=/id",
        "http.timer.interval.millis": "50",
        "kafka.topic": name,
        **JSON,
    }
    connect.create(name, config)
    found = eventually(lambda: consume(broker, name), lambda records: len(records) >= 50)
    assert [json.loads(value or b"") for _, value in found] == paged.items
    connect.delete(name)


def test_a_batch_with_bad_records_is_taken_apart_and_an_outage_is_not(
    connect: ConnectProcess, broker: BrokerProcess, api: HttpApi, name: str
) -> None:
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(60):
        producer.produce(name, json.dumps({"id": number, "name": "bad" if number % 20 == 7 else "good"}))
    producer.flush()
    outages = iter([Reaction(503, headers={"Retry-After": "0"}), Reaction(500), Reaction(429)])
    api.react = lambda request: next(outages, None) or refuse_bad(request)
    config = {
        "connector.class": "io.aiven.kafka.connect.http.HttpSinkConnector",
        "topics": name,
        "http.url": f"{api.url}/records",
        "http.authorization.type": "none",
        "batching.enabled": "true",
        "retry.backoff.ms": "10",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        **JSON,
    }
    connect.create(name, config)

    def written() -> list[int]:
        lines = b"".join(request.body for request in api.received).splitlines()
        return sorted(json.loads(line)["id"] for line in lines)

    good = [number for number in range(60) if number % 20 != 7]
    eventually(written, lambda found: found == good)
    dead = eventually(lambda: consume(broker, f"{name}-dead"), lambda records: len(records) >= 3)
    assert [json.loads(value or b"")["id"] for _, value in dead] == [7, 27, 47]
    connect.delete(name)


def committed(broker: BrokerProcess, topic: str) -> list[int]:
    """The ids in a topic of one partition that are not in a transaction that was given up."""
    isolation = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "judge", **isolation})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[int] = []
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(json.loads(message.value() or b"")["id"])
        return found
    finally:
        consumer.close()


def test_each_record_of_an_api_comes_once_while_the_worker_is_killed(
    broker: BrokerProcess, api: HttpApi, name: str, tmp_path: Path
) -> None:
    create_topic(broker, name)
    paged = PagedApi(api)
    paged.size = 37
    count = 6000
    paged.items = [{"id": number} for number in range(count)]
    config = {
        "connector.class": "HttpSource",
        "http.request.url": f"{api.url}/items",
        "http.request.params": "cursor=${cursor}",
        "http.response.records.pointer": "/data",
        "http.response.offset.pointer": "/next",
        "http.timer.interval.millis": "50",
        "batch.size": "10",
        "kafka.topic": name,
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "50",
        **JSON,
    }
    settings = {"exactly.once.source.support": "enabled", "task.processes": "0"}
    with ConnectProcess(tmp_path, bootstrap=broker.bootstrap, group=name, settings=settings) as worker:
        worker.create(name, config)
        for part in (1, 2):
            wanted = count * part // 4
            eventually(lambda: len(committed(broker, name)), lambda found, wanted=wanted: found >= wanted)  # type: ignore[misc]  # bound early
            worker.restart(kill=True)
        eventually(lambda: len(committed(broker, name)), lambda found: found >= count)
    assert committed(broker, name) == list(range(count))
