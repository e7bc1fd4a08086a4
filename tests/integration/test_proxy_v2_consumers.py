"""Consumer instances of API v2 over HTTP, from their creation to their end."""

import base64
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx2
import pytest

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.consumer_instance import V2, ConsumerInstance, error, offsets
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess


@pytest.fixture(scope="module")
def client(proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    """A connection to the proxy for all tests."""
    with httpx2.Client(base_url=proxy.url, timeout=60) as connection:
        yield connection


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    """A topic with three partitions, which keeps records of any age."""
    create_topic(broker, name, partitions=3, configs={"retention.ms": "-1"})
    return name


@pytest.fixture
def reader(client: httpx2.Client, name: str) -> Iterator[ConsumerInstance]:
    """An instance of a group of its own that commits nothing by itself."""
    instance = ConsumerInstance.create(client, name, auto_commit_enable=False)
    yield instance
    instance.delete()


def write(broker: BrokerProcess, topic: str, *values: bytes, partition: int = 0, **more: Any) -> None:
    """Write values, by confluent-kafka."""
    failures: list[object] = []

    def outcomes(failure: object, _: object) -> None:
        failures.append(failure)

    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=outcomes, **more)
    assert producer.flush(30) == 0
    assert failures == [None] * len(values)


def native_consumer(broker: BrokerProcess, group: str) -> confluent_kafka.Consumer:
    """A member of a group by confluent-kafka."""
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "log_level": 0,
        }
    )


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def values(records: list[dict[str, Any]]) -> list[bytes]:
    return [base64.b64decode(record["value"]) for record in records]


# --- life ---


@pytest.mark.parametrize("name_", ["^", "^.*", "a\0b"])
def test_names_of_topics_are_no_patterns(reader: ConsumerInstance, name_: str) -> None:
    assert error(reader.post("subscription", {"topics": [name_]})) == (400, 40002)
    assert reader.get("subscription") == {"topics": []}


@pytest.mark.parametrize("group", ["%20", "%09", "%20%20", "a%20", "%00"])
def test_group_that_the_library_cannot_name_is_refused(client: httpx2.Client, proxy: ProxyProcess, group: str) -> None:
    assert error(client.post(f"/consumers/{group}", json={}, headers={"Content-Type": V2})) == (422, 42204)
    assert proxy.is_running


def test_instance_is_created_found_and_deleted(client: httpx2.Client, proxy: ProxyProcess, name: str) -> None:
    answer = client.post(f"/consumers/{name}", content=b"", headers={"Content-Type": V2})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == V2
    made = answer.json()
    assert made["base_uri"] == f"{proxy.url}/consumers/{name}/instances/{made['instance_id']}"
    assert made["instance_id"].startswith("rest-consumer-")
    instance = ConsumerInstance(client, name, made["instance_id"])
    assert instance.get("subscription") == {"topics": []}
    assert instance.get("assignments") == {"partitions": []}
    assert instance.delete().status_code == 204
    gone = instance.poll()
    assert error(gone) == (404, 40403)
    assert gone.json()["message"].startswith("Consumer instance not found.")
    assert gone.headers["content-type"] == "application/vnd.kafka.binary.v2+json"
    assert error(instance.delete()) == (404, 40403)


def test_name_with_odd_characters_is_the_same_in_its_address(client: httpx2.Client, name: str) -> None:
    made = client.post(f"/consumers/{name}", json={"name": "a/b ü"}).json()
    assert made["instance_id"] == "a/b ü"
    assert client.get(f"{made['base_uri']}/subscription").status_code == 200
    assert client.delete(made["base_uri"]).status_code == 204


def test_name_is_given_once(client: httpx2.Client, name: str) -> None:
    ConsumerInstance.create(client, name, name="one")
    answer = client.post(f"/consumers/{name}", json={"name": "one"})
    assert error(answer) == (409, 40902)
    assert ConsumerInstance(client, name, "one").delete().status_code == 204
    ConsumerInstance.create(client, name, name="one").delete()


@pytest.mark.parametrize(
    ("config", "status", "code"),
    [
        ({"format": "xml"}, 422, 422),
        ({"fetch.min.bytes": -10}, 422, 40001),
        ({"fetch.min.bytes": "many"}, 422, 42204),
        ({"auto.offset.reset": "bad-config"}, 422, 42204),
        ({"auto.commit.enable": "perhaps"}, 422, 42204),
        ({"consumer.request.timeout.ms": -1}, 422, 42204),
        ({"isolation.level": "none"}, 422, 42204),
        ({"name": "a\nb"}, 422, 42204),
        ({"name": ["a"]}, 400, 400),
        ([], 400, 400),
    ],
)
def test_config_that_is_wrong_is_refused(
    client: httpx2.Client, name: str, config: object, status: int, code: int
) -> None:
    assert error(client.post(f"/consumers/{name}", json=config)) == (status, code)


def test_values_of_config_may_be_texts(client: httpx2.Client, name: str) -> None:
    config = {
        "fetch.min.bytes": "1",
        "auto.commit.enable": "true",
        "consumer.request.timeout.ms": "100",
        "what": "else",
    }
    answer = client.post(f"/consumers/{name}", json=config)
    assert answer.status_code == 200
    assert client.delete(answer.json()["base_uri"]).status_code == 204


# --- what is read ---


def test_head_takes_no_records(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, b"x")
    reader.subscribe(topic)
    assert reader.client.head(f"{reader.path}/records").status_code == 405
    assert len(reader.records()) == 1


def test_first_poll_brings_what_is_there(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, *numbers(5), key=b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_767_225_600_000)
    reader.subscribe(topic)
    records = reader.records()
    assert values(records) == numbers(5)
    assert records[0] == {
        "topic": topic,
        "key": "aw==",
        "value": "MA==",
        "partition": 0,
        "offset": 0,
        "timestamp": 1_767_225_600_000,
        "headers": [{"name": "a", "value": "MQ=="}, {"name": "a", "value": None}],
    }
    assert reader.get("subscription") == {"topics": [topic]}
    assert len(reader.get("assignments")["partitions"]) == 3
    assert reader.records(timeout=0) == []


AVRO = '{"type":"record","name":"Payment","fields":[{"name":"amount","type":"int"}]}'
SCHEMAS = {
    "avro": AVRO,
    "jsonschema": '{"type":"object","properties":{"amount":{"type":"integer"}}}',
    "protobuf": 'syntax = "proto3"; message Payment { int32 amount = 1; }',
}


@pytest.mark.parametrize("format_", ["binary", "json", *SCHEMAS])
def test_records_of_each_format_are_read_in_it(client: httpx2.Client, topic: str, format_: str) -> None:
    payments: list[Any] = [{"amount": 1}, {"amount": 2}] if format_ != "binary" else ["AA==", "AQ=="]
    body: dict[str, Any] = {"records": [{"value": payment, "partition": 0} for payment in payments]}
    if format_ in SCHEMAS:
        body["value_schema"] = SCHEMAS[format_]
    written = client.post(
        f"/topics/{topic}", json=body, headers={"Content-Type": f"application/vnd.kafka.{format_}.v2+json"}
    )
    assert written.status_code == 200, written.text
    reader = ConsumerInstance.create(client, topic, format=format_)
    reader.subscribe(topic)
    answer = reader.poll()
    assert [record["value"] for record in answer.json()] == payments
    assert answer.headers["content-type"] == f"application/vnd.kafka.{format_}.v2+json"
    reader.delete()


@pytest.mark.parametrize(
    ("accept", "status", "code"),
    [
        ("application/vnd.kafka.binary.v2+json", 406, 40601),
        ("application/vnd.kafka.avro.v2+json", 406, 40601),
        ("text/html", 406, 406),
    ],
)
def test_format_must_be_the_instances(client: httpx2.Client, name: str, accept: str, status: int, code: int) -> None:
    reader = ConsumerInstance.create(client, name, format="json")
    assert error(client.get(f"{reader.path}/records", headers={"Accept": accept})) == (status, code)
    reader.delete()


@pytest.mark.parametrize(
    "accept", ["*/*", V2, "application/json", "application/vnd.kafka.json.v2+json; q=0.5, */*; q=0.1"]
)
def test_who_accepts_anything_gets_the_instances_format(
    client: httpx2.Client, broker: BrokerProcess, topic: str, accept: str
) -> None:
    write(broker, topic, b'{"a":1}')
    reader = ConsumerInstance.create(client, topic, format="json")
    reader.assign(topic, 0)
    answer = client.get(f"{reader.path}/records", headers={"Accept": accept})
    assert [record["value"] for record in answer.json()] == [{"a": 1}]
    reader.delete()


def test_pattern_matches_whole_names(
    client: httpx2.Client, broker: BrokerProcess, reader: ConsumerInstance, name: str
) -> None:
    for suffix in ("-1", "-2", "-1x"):
        create_topic(broker, name + suffix)
        write(broker, name + suffix, suffix.encode())
    reader.done("subscription", {"topic_pattern": rf"{name}-\d"})
    assert reader.get("subscription") == {"topics": [f"{name}-1", f"{name}-2"]}
    assert sorted(values(reader.read(2))) == [b"-1", b"-2"]


@pytest.mark.parametrize("pattern", ["(", "a{1001}", r"(?=x)x", "a" * 1001])
def test_pattern_that_is_none_is_refused(reader: ConsumerInstance, pattern: str) -> None:
    assert reader.post("subscription", {"topic_pattern": pattern}).status_code in (400, 422)


def test_ways_to_read_exclude_each_other(reader: ConsumerInstance, topic: str) -> None:
    reader.subscribe(topic)
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    assert error(reader.post("assignments", partitions)) == (409, 40903)
    assert error(reader.post("subscription", {"topic_pattern": "x.*"})) == (409, 40903)
    assert error(reader.post("subscription", {"topics": ["a"], "topic_pattern": "a"})) == (409, 40903)
    assert error(reader.post("subscription", {})) == (409, 40903)
    assert reader.client.delete(f"{reader.path}/subscription").status_code == 204
    assert reader.get("subscription") == {"topics": []}
    reader.done("assignments", partitions)
    assert reader.get("assignments") == partitions
    assert error(reader.post("subscription", {"topics": [topic]})) == (409, 40903)


def test_partitions_that_are_chosen_after_a_subscription_are_read(
    broker: BrokerProcess, reader: ConsumerInstance, topic: str
) -> None:
    write(broker, topic, b"0")
    reader.subscribe(topic)
    assert offsets(reader.records()) == [0]
    assert reader.client.delete(f"{reader.path}/subscription").status_code == 204
    reader.assign(topic, 0)
    reader.records(timeout=1000)
    assert reader.get("assignments") == {"partitions": [{"topic": topic, "partition": 0}]}
    write(broker, topic, b"1")
    assert offsets(reader.read(1))[-1:] == [1]


def test_poll_without_anything_to_read_is_refused(reader: ConsumerInstance) -> None:
    assert error(reader.poll()) == (409, 40903)


def test_missing_topics_and_partitions_are_reported(reader: ConsumerInstance, topic: str) -> None:
    assert error(reader.post("assignments", {"partitions": [{"topic": "never-made", "partition": 0}]})) == (404, 40401)
    assert error(reader.post("assignments", {"partitions": [{"topic": topic, "partition": 9}]})) == (404, 40402)
    listed = {"offsets": [{"topic": topic, "partition": 9, "offset": 1}]}
    assert error(reader.post("offsets", listed)) == (404, 40402)
    assert error(reader.post("positions", listed)) == (409, 40903)
    reader.subscribe("never-made")
    assert error(reader.poll()) == (404, 40401)


def test_topic_that_is_made_later_is_read(broker: BrokerProcess, reader: ConsumerInstance, name: str) -> None:
    reader.subscribe(name)
    assert error(reader.poll()) == (404, 40401)
    create_topic(broker, name)
    write(broker, name, b"x")
    answer = eventually(reader.poll, lambda answer: answer.status_code == 200 and answer.json())
    assert offsets(answer.json()) == [0]


def test_topic_that_is_missing_does_not_hide_the_others(
    broker: BrokerProcess, reader: ConsumerInstance, topic: str
) -> None:
    write(broker, topic, b"x")
    reader.subscribe("never-made", topic)
    assert offsets(reader.records()) == [0]


def test_polls_of_one_instance_share_its_records(
    client: httpx2.Client, broker: BrokerProcess, reader: ConsumerInstance, topic: str
) -> None:
    reader.assign(topic, 0)
    seen: list[int] = []

    def poll() -> None:
        with httpx2.Client(base_url=client.base_url, timeout=60) as other:
            seen.extend(offsets(reader.at(other).read(1, timeout=10_000, max_bytes=1)))

    polls = [threading.Thread(target=poll) for _ in range(3)]
    for thread in polls:
        thread.start()
    write(broker, topic, *numbers(3))
    for thread in polls:
        thread.join()
    assert sorted(seen) == [0, 1, 2]


def test_delete_ends_polls_in_work(client: httpx2.Client, reader: ConsumerInstance, topic: str) -> None:
    reader.subscribe(topic)
    reader.records(timeout=0)
    answers: list[httpx2.Response] = []
    with httpx2.Client(base_url=client.base_url, timeout=60) as other:
        waiting = threading.Thread(target=lambda: answers.append(reader.at(other).poll(timeout=600_000)))
        waiting.start()
        eventually(lambda: "http_requests_in_work 2" in client.get("/metrics").text)
        assert reader.delete().status_code == 204
        waiting.join()
    assert error(answers[0]) == (404, 40403)


# --- positions ---


def test_client_reads_on_where_it_wants(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, *numbers(3), timestamp=1_700_000_000_000)
    write(broker, topic, *numbers(3, 3), timestamp=1_710_000_000_000)
    reader.assign(topic, 0)
    assert offsets(reader.read(6)) == [0, 1, 2, 3, 4, 5]
    reader.seek(topic, 0, 4)
    assert offsets(reader.records()) == [4, 5]
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    reader.done("positions/beginning", partitions)
    assert offsets(reader.records()) == [0, 1, 2, 3, 4, 5]
    reader.done("positions/end", partitions)
    write(broker, topic, b"6")
    assert offsets(reader.records()) == [6]
    for moment in ("2024-03-09T16:00:00Z", 1_710_000_000_000):
        reader.done("positions", {"timestamps": [{"topic": topic, "partition": 0, "timestamp": moment}]})
        assert offsets(reader.records())[0] == 3


def test_seek_waits_for_the_group(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, *numbers(5))
    reader.subscribe(topic)
    reader.seek(topic, 0, 3)
    assert offsets(reader.records()) == [3, 4]


def test_answer_holds_no_more_than_asked_for(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, *[b"x" * 100] * 5)
    reader.assign(topic, 0)
    assert offsets(reader.records(max_bytes=250)) == [0, 1]
    assert offsets(reader.records(max_bytes=1)) == [2]
    assert offsets(reader.records()) == [3, 4]


def test_poll_waits_for_as_much_as_the_instance_wants(client: httpx2.Client, broker: BrokerProcess, topic: str) -> None:
    reader = ConsumerInstance.create(client, topic, fetch_min_bytes=300)
    reader.assign(topic, 0)
    answers: list[list[int]] = []
    with httpx2.Client(base_url=client.base_url, timeout=60) as other:
        waiting = threading.Thread(target=lambda: answers.append(offsets(reader.at(other).records(timeout=30_000))))
        waiting.start()
        for _ in range(3):
            write(broker, topic, b"x" * 100)
        waiting.join()
    assert answers == [[0, 1, 2]]
    reader.delete()


# --- commits ---


def test_only_what_was_answered_is_committed(broker: BrokerProcess, reader: ConsumerInstance, topic: str) -> None:
    write(broker, topic, *[b"x" * 100] * 5)
    reader.subscribe(topic)
    reader.records(max_bytes=250)
    assert reader.committed(topic, 0, 1) == {}
    answer = reader.post("offsets")
    assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (200, [], V2)
    assert reader.committed(topic, 0, 1) == {0: 2}
    reader.done("offsets", {"offsets": [{"topic": topic, "partition": "1", "offset": 6, "metadata": "note"}]})
    payload = reader.get(f"offsets?topic={topic}&partition=1")
    assert payload == {"offsets": [{"topic": topic, "partition": 1, "offset": 7, "metadata": "note"}]}
    assert {item["partition"] for item in reader.get("offsets")["offsets"]} == {0, 1}


def test_answers_are_committed_when_the_client_comes_back(
    client: httpx2.Client, broker: BrokerProcess, topic: str
) -> None:
    write(broker, topic, *[b"x" * 100] * 5)
    reader = ConsumerInstance.create(client, topic)
    reader.subscribe(topic)
    assert offsets(reader.records(max_bytes=250)) == [0, 1]
    assert reader.committed(topic, 0) == {}
    assert offsets(reader.records(max_bytes=250)) == [2, 3]
    assert eventually(lambda: reader.committed(topic, 0)) == {0: 2}
    assert reader.delete().status_code == 204
    again = ConsumerInstance.create(client, topic)
    assert again.committed(topic, 0) == {0: 4}
    again.delete()


# --- records that cannot be read ---


def test_record_that_cannot_be_read_ends_the_page_and_is_reported(
    client: httpx2.Client, broker: BrokerProcess, topic: str
) -> None:
    write(broker, topic, b"1", b"{", b"3")
    reader = ConsumerInstance.create(client, topic, format="json")
    reader.assign(topic, 0)
    assert offsets(reader.records()) == [0]
    for _ in range(2):
        answer = reader.poll()
        assert answer.status_code == 422
        message = answer.json()["message"]
        assert all(word in message for word in (topic, "partition 0", "offset 1", "offset 2", "binary"))
    reader.seek(topic, 0, 2)
    assert [record["value"] for record in reader.records()] == [3]
    reader.delete()


# --- groups ---


def test_instances_of_a_group_share_partitions_with_kafka_clients(
    client: httpx2.Client, broker: BrokerProcess, topic: str
) -> None:
    for partition in range(3):
        write(broker, topic, *numbers(10), partition=partition)
    readers = [ConsumerInstance.create(client, topic, heartbeat_interval_ms=200) for _ in range(2)]
    for reader in readers:
        reader.subscribe(topic)
    native = native_consumer(broker, topic)
    native.subscribe([topic])
    seen: set[tuple[int, int]] = set()

    def owned() -> list[int]:
        for reader in readers:
            seen.update((record["partition"], record["offset"]) for record in reader.records(timeout=50))
        for message in native.consume(100, 0.05):
            seen.add((message.partition() or 0, message.offset() or 0))
        shares = [len(reader.get("assignments")["partitions"]) for reader in readers]
        return [*shares, len(native.assignment())]

    assert eventually(owned, lambda shares: shares == [1, 1, 1])
    eventually(owned, lambda _: len(seen) == 30)
    assert readers.pop().delete().status_code == 204
    assert eventually(owned, lambda shares: sum(shares) == 3)
    native.close()
    readers.pop().delete()


def test_idle_instance_does_not_stop_its_group(client: httpx2.Client, broker: BrokerProcess, topic: str) -> None:
    write(broker, topic, b"x")
    idle = ConsumerInstance.create(client, topic, heartbeat_interval_ms=200)
    idle.subscribe(topic)
    assert len(idle.records()) == 1
    native = native_consumer(broker, topic)
    native.subscribe([topic])

    def assigned() -> int:
        native.poll(0.05)
        return len(native.assignment())

    assert eventually(assigned) in (1, 2)
    native.close()
    idle.delete()


def test_delete_leaves_the_group_at_once(client: httpx2.Client, broker: BrokerProcess, topic: str) -> None:
    reader = ConsumerInstance.create(client, topic)
    reader.subscribe(topic)
    reader.records(timeout=100)
    described = admin_client(broker).describe_consumer_groups
    eventually(lambda: len(described([topic])[topic].result().members) == 1)
    reader.delete()
    assert described([topic])[topic].result().members == []


# --- clients that leave ---


def test_records_of_a_client_that_left_are_answered_again(
    client: httpx2.Client, broker: BrokerProcess, reader: ConsumerInstance, topic: str
) -> None:
    reader.assign(topic, 0)
    with (
        pytest.raises(httpx2.TimeoutException),
        httpx2.Client(base_url=client.base_url, timeout=0.3) as impatient,
    ):
        reader.at(impatient).records(timeout=20_000)
    write(broker, topic, b"x")
    assert offsets(reader.records()) == [0]


def test_answer_that_was_not_read_is_given_again(
    client: httpx2.Client, broker: BrokerProcess, reader: ConsumerInstance, topic: str
) -> None:
    write(broker, topic, *numbers(3))
    reader.assign(topic, 0)
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as leaving:
        leaving.sendall(f"GET {reader.path}/records HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        select.select([leaving], [], [], 30)  # The answer is there, and stays unread.
    assert offsets(reader.records()) == [0, 1, 2]
    write(broker, topic, b"3")
    assert offsets(reader.records()) == [3]
    reader.commit()
    assert reader.committed(topic, 0) == {0: 4}


# --- proxies that end ---


@pytest.fixture
def own_proxy(broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path) -> Iterator[ProxyProcess]:
    """A proxy of this test's own, whose members are not missed for long when it is killed."""
    settings = {"consumer.session.timeout.ms": "3000", "consumer.heartbeat.interval.ms": "200"}
    with ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url, settings=settings) as process:
        yield process


@pytest.fixture
def own(own_proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    """A connection to it."""
    with httpx2.Client(base_url=own_proxy.url, timeout=60) as connection:
        yield connection


@pytest.fixture
def topics(broker: BrokerProcess, name: str) -> list[str]:
    """Topics with five records each."""
    made = [f"{name}-{number}" for number in range(4)]
    for topic in made:
        create_topic(broker, topic)
        write(broker, topic, *[b"x" * 100] * 5)
    return made


@pytest.mark.parametrize("is_killed", [True, False])
def test_instances_survive_a_restart(
    broker: BrokerProcess, own_proxy: ProxyProcess, own: httpx2.Client, topics: list[str], *, is_killed: bool
) -> None:
    assigned, committing, manual, latest = topics
    by_hand = ConsumerInstance.create(own, assigned, auto_commit_enable=False)
    by_hand.assign(assigned, 0)
    itself = ConsumerInstance.create(own, committing, format="json", fetch_min_bytes=1)
    itself.format = "json"
    by_client = ConsumerInstance.create(own, manual, auto_commit_enable=False)
    by_client.subscribe(manual)
    at_end = ConsumerInstance.create(own, latest, auto_offset_reset="latest")
    at_end.subscribe(latest)
    automatic = ConsumerInstance.create(own, committing)
    automatic.subscribe(committing)
    assert offsets(by_hand.records(max_bytes=200)) == [0, 1]
    assert offsets(by_hand.records(max_bytes=200)) == [2, 3]
    assert offsets(automatic.records(max_bytes=200)) == [0, 1]
    assert offsets(automatic.records(max_bytes=200)) == [2, 3]
    assert offsets(by_client.records(max_bytes=200)) == [0, 1]
    by_client.commit()
    assert offsets(by_client.records(max_bytes=200)) == [2, 3]
    assert at_end.records(timeout=500) == []
    eventually(lambda: automatic.committed(committing, 0) == {0: 2})
    own_proxy.restart(kill=is_killed)
    write(broker, latest, b"new")
    # What was answered last may be answered again, since it is not known whether it arrived; nothing is skipped.
    assert offsets(by_hand.read(1)) in ([2, 3, 4], [4])
    assert offsets(automatic.read(1)) == [2, 3, 4]
    assert offsets(by_client.read(1)) == [2, 3, 4]
    assert offsets(at_end.read(1)) == [5]
    assert automatic.get("subscription") == {"topics": [committing]}
    assert error(own.post(f"/consumers/{itself.group}", json={"name": itself.name})) == (409, 40902)


def test_place_that_was_sought_survives_a_kill(own_proxy: ProxyProcess, own: httpx2.Client, topics: list[str]) -> None:
    topic = topics[0]
    reader = ConsumerInstance.create(own, topic)
    reader.subscribe(topic)
    assert len(reader.records()) == 5
    reader.commit()
    reader.seek(topic, 0, 1)
    own_proxy.restart(kill=True)
    assert offsets(reader.read(1)) == [1, 2, 3, 4]


def test_instances_in_memory_are_gone_after_a_restart_and_the_error_says_why(
    own_proxy: ProxyProcess, own: httpx2.Client, name: str
) -> None:
    own_proxy.restart(settings={"state.dir": ""})
    reader = ConsumerInstance.create(own, name)
    own_proxy.restart()
    answer = reader.poll()
    assert error(answer) == (404, 40403)
    assert "state.dir" in answer.json()["message"]


def test_an_unused_instance_expires_and_the_error_says_why(
    broker: BrokerProcess, own_proxy: ProxyProcess, own: httpx2.Client, topics: list[str]
) -> None:
    topic = topics[0]
    own_proxy.restart(settings={"consumer.instance.timeout.ms": "5000", "consumer.instances.max": "2"})
    used = ConsumerInstance.create(own, topic)
    used.assign(topic, 0)
    idle = ConsumerInstance.create(own, topic)
    idle.subscribe(topic)
    full = own.post(f"/consumers/{topic}", json={})
    assert error(full) == (429, 429)
    assert "consumer.instances.max" in full.json()["message"]
    assert full.headers["retry-after"]
    assert len(used.records(timeout=10_000, max_bytes=10_000)) == 5
    assert used.records(timeout=7000) == []  # A request in work keeps its instance alive.
    answer = idle.poll()
    assert error(answer) == (404, 40403)
    assert "5000 ms" in answer.json()["message"]
    assert used.get("subscription") == {"topics": []}
    folder = Path(own_proxy.settings["state.dir"])
    assert eventually(lambda: list(folder.iterdir()) == [])
    members = admin_client(broker).describe_consumer_groups([topic])[topic].result().members
    assert members == []


def test_folder_that_cannot_be_written_to_is_refused_at_start(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    process = ProxyProcess(
        tmp_path / "proxy",
        bootstrap=broker.bootstrap,
        registry=registry.url,
        settings={"state.dir": str(tmp_path / "file" / "state")},
    )
    with pytest.raises(Exception, match=r"state\.dir"):
        process.start()


def test_cluster_that_is_down_is_reported_and_the_instance_lives_on(
    registry: RegistryProcess, tmp_path: Path, name: str
) -> None:
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry=registry.url) as process,
        httpx2.Client(base_url=process.url, timeout=60) as own,
    ):
        create_topic(broker, name)
        write(broker, name, b"0")
        reader = ConsumerInstance.create(own, name)
        reader.subscribe(name)
        assert offsets(reader.records()) == [0]
        broker.kill()
        answer = eventually(reader.poll, lambda answer: answer.status_code == 503)
        assert broker.bootstrap in answer.json()["message"]
        assert answer.headers["retry-after"]
        broker.start()
        write(broker, name, b"1")
        eventually(reader.poll, lambda answer: answer.status_code == 200 and answer.json())
        assert reader.delete().status_code == 204
