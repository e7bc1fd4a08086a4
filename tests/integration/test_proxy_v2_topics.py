"""Brokers, topics and partitions in API v2: over HTTP, as confluent-kafka has made them."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.proxy_v3 import failure

V2 = "application/vnd.kafka.v2+json"


@pytest.fixture(scope="module")
def http(proxy: ProxyProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=proxy.url, headers={"accept": V2}, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def kafka(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic(kafka: AdminClient, name: str) -> str:
    kafka.create_topics([NewTopic(name, 2, 1, config={"cleanup.policy": "compact"})])[name].result()
    return name


def partition(kafka: AdminClient, topic: str, number: int) -> dict[str, Any]:
    """A partition as the proxy is to tell it."""
    there = kafka.list_topics(topic, timeout=60).topics[topic].partitions[number]
    return {
        "partition": number,
        "leader": there.leader,
        "replicas": [
            {"broker": broker, "leader": broker == there.leader, "in_sync": broker in there.isrs}
            for broker in there.replicas
        ],
    }


@pytest.mark.parametrize("path", ["/topics/{}/", "/topics//{}", "/topics///{}//"])
def test_slashes_too_many_do_not_matter(http: httpx2.Client, topic: str, path: str) -> None:
    assert http.get(path.format(topic)).json()["name"] == topic


def test_root_answers(http: httpx2.Client) -> None:
    assert (http.get("/").status_code, http.get("/").json()) == (200, {})


def test_brokers_are_listed_by_their_ids(http: httpx2.Client, kafka: AdminClient) -> None:
    answer = http.get("/brokers")
    assert answer.json() == {"brokers": sorted(kafka.list_topics(timeout=60).brokers)}
    assert answer.headers["content-type"] == V2


def test_topics_are_listed_by_name(http: httpx2.Client, topic: str) -> None:
    names = http.get("/topics").json()
    assert topic in names
    assert names == sorted(names)
    assert "__consumer_offsets" not in names


def test_topic_is_shown_with_configs_and_partitions(http: httpx2.Client, kafka: AdminClient, topic: str) -> None:
    (future,) = kafka.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    assert http.get(f"/topics/{topic}").json() == {
        "name": topic,
        "configs": {key: entry.value for key, entry in future.result().items()},
        "partitions": [partition(kafka, topic, 0), partition(kafka, topic, 1)],
    }


def test_partitions_are_shown(http: httpx2.Client, kafka: AdminClient, topic: str) -> None:
    expected = [partition(kafka, topic, 0), partition(kafka, topic, 1)]
    assert http.get(f"/topics/{topic}/partitions").json() == expected
    assert http.get(f"/topics/{topic}/partitions/1").json() == expected[1]


def test_offsets_are_those_of_the_records(http: httpx2.Client, broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(4):
        producer.produce(topic, b"x", key=str(number), partition=0)
    producer.flush(60)
    assert http.get(f"/topics/{topic}/partitions/0/offsets").json() == {"beginning_offset": 0, "end_offset": 4}
    assert http.get(f"/topics/{topic}/partitions/1/offsets").json() == {"beginning_offset": 0, "end_offset": 0}


@pytest.mark.parametrize("path", ["", "/partitions", "/partitions/0", "/partitions/0/offsets"])
@pytest.mark.parametrize("unknown", ["unknown", "not%20a%20name", "x" * 300, "..", "%2F"])
def test_unknown_topic_has_its_code(http: httpx2.Client, unknown: str, path: str) -> None:
    answer = http.get(f"/topics/{unknown.replace('..', '%2E%2E')}{path}")
    assert failure(answer) == (404, 40401)
    assert answer.json()["message"] == "Topic not found."


@pytest.mark.parametrize("path", ["/partitions/2", "/partitions/2/offsets"])
def test_unknown_partition_has_its_code(http: httpx2.Client, topic: str, path: str) -> None:
    answer = http.get(f"/topics/{topic}{path}")
    assert failure(answer) == (404, 40402)
    assert answer.json()["message"] == "Partition not found."


@pytest.mark.parametrize("path", ["/topics/t/partitions/first", "/topics/a%00b", "/topics/t/partitions/-1"])
def test_path_that_cannot_be_meant_is_not_found(http: httpx2.Client, path: str) -> None:
    assert failure(http.get(path)) == (404, 404)


@pytest.mark.parametrize("accept", [V2, "application/vnd.kafka+json", "application/json", "*/*"])
def test_answer_has_the_type_that_was_asked_for(http: httpx2.Client, accept: str) -> None:
    answer = http.get("/topics", headers={"accept": accept})
    assert answer.headers["content-type"] == (V2 if accept == "*/*" else accept)


def test_other_types_are_not_answered(http: httpx2.Client) -> None:
    assert failure(http.get("/topics", headers={"accept": "text/html"})) == (406, 406)
