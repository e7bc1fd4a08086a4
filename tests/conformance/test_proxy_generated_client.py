"""A client that openapi-python-client makes from the proxy's document works, over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.generated_client import PACKAGE, GeneratedClient, generate, model, word
from tests.support.proxy import ProxyProcess


@pytest.fixture(scope="module")
def directory(proxy: ProxyProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("generated")
    said = generate(f"{proxy.url}/openapi.json", directory)
    assert "warning" not in said.lower()
    return directory


@pytest.fixture(scope="module")
def made(proxy: ProxyProcess, directory: Path) -> Iterator[GeneratedClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(directory)
        with GeneratedClient(proxy.url) as client:
            yield client


@pytest.fixture
def cluster(made: GeneratedClient) -> str:
    found: str = made.call("v3_clusters", "list_kafka_clusters").data[0].cluster_id
    return found


@pytest.fixture
def topic(made: GeneratedClient, cluster: str, name: str) -> str:
    wanted = model("CreateTopicBody", {"topic_name": name, "partitions_count": 1})
    created = made.answer("v3_topics", "create_kafka_topic", cluster, body=wanted)
    assert (created.status_code, created.parsed.partitions_count) == (201, 1)
    return name


def test_every_operation_is_a_function_of_the_client(made: GeneratedClient, directory: Path) -> None:
    functions = [path for path in (directory / PACKAGE / "api").glob("*/*.py") if path.name != "__init__.py"]
    assert len(functions) > 75


def test_records_written_in_api_v2_are_read_through_a_consumer_instance(
    made: GeneratedClient, topic: str, name: str
) -> None:
    records = [{"key": "a", "value": {"amount": 1}}, {"key": "b", "value": [2]}]
    written = made.call("v2_produce", "produce_to_topic_v2", topic, body=model("V2ProduceJson", {"records": records}))
    assert [item.offset for item in written.offsets] == [0, 1]

    wanted = model("V2CreateInstance", {"name": "one", "format": "json", "auto.offset.reset": "earliest"})
    instance = made.call("v2_consumers", "create_consumer_instance_v2", name, body=wanted)
    assert instance.instance_id == "one"
    subscription = model("V2Subscription", {"topics": [topic]})
    assert made.answer("v2_consumers", "subscribe_v2", name, "one", body=subscription).status_code == 204
    assert made.call("v2_consumers", "get_subscription_v2", name, "one").topics == [topic]
    assert [(record.key, _plain(record.value)) for record in _polled(made, name)] == [("a", {"amount": 1}), ("b", [2])]
    assert made.answer("v2_consumers", "commit_offsets_v2", name, "one").status_code == 200
    partitions = model("V2Partitions", {"partitions": [{"topic": topic, "partition": 0}]})
    committed = made.call("v2_consumers", "get_committed_offsets_v2", name, "one", body=partitions)
    assert [item.offset for item in committed.offsets] == [2]
    assert made.answer("v2_consumers", "delete_consumer_instance_v2", name, "one").status_code == 204


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("V2ProduceBinary", {"records": [{"value": "AAE="}]}),
        ("V2ProduceAvro", {"value_schema": '"int"', "records": [{"value": 7}]}),
        ("V2ProduceJsonSchema", {"value_schema": '{"type":"integer"}', "records": [{"value": 7}]}),
        (
            "V2ProduceProtobuf",
            {"value_schema": 'syntax = "proto3"; message N { int32 n = 1; }', "records": [{"value": {"n": 7}}]},
        ),
    ],
)
def test_the_class_of_a_body_tells_the_format(
    made: GeneratedClient, topic: str, kind: str, fields: dict[str, Any]
) -> None:
    written = made.call("v2_produce", "produce_to_partition_v2", topic, 0, body=model(kind, fields))
    assert [item.error for item in written.offsets] == [None]
    assert (written.value_schema_id is not None) == ("value_schema" in fields)


def test_a_record_written_in_api_v3_is_read_as_a_page(made: GeneratedClient, cluster: str, topic: str) -> None:
    sent = model("ProduceRecord", {"value": {"type": "JSON", "data": {"amount": 3}}})
    written = made.call("v3_records", "produce_record", cluster, topic, body=sent)
    assert (type(written).__name__, written.error_code, written.offset) == ("ProducedRecord", 200, 0)

    page = made.call(
        "v3_records", "read_kafka_records", cluster, topic, 0, offset=0, value_format=word("Format", "json")
    )
    assert [(record.offset, _plain(record.value.data)) for record in page.data] == [(0, {"amount": 3})]
    assert page.next_offset == 1


def test_a_record_that_is_refused_in_api_v3_is_of_another_class(
    made: GeneratedClient, cluster: str, topic: str
) -> None:
    sent = model("ProduceRecord", {"value": {"type": "BINARY", "data": "no base64"}})
    refused = made.call("v3_records", "produce_record", cluster, topic, body=sent)
    assert type(refused).__name__ == "RefusedRecord"
    assert refused.error_code == 400


def test_a_batch_tells_each_of_its_entries(made: GeneratedClient, cluster: str, topic: str) -> None:
    good = {"id": "good", "value": {"type": "STRING", "data": "x"}}
    bad = {"id": "bad", "value": {"type": "BINARY", "data": "no base64"}}
    batch = model("ProduceBatch", {"entries": [good, bad]})
    payload = made.call("v3_records", "produce_record_batch", cluster, topic, body=batch)
    assert [entry.id for entry in payload.successes] == ["good"]
    assert [entry.id for entry in payload.failures] == ["bad"]


def test_topics_partitions_and_configs_are_administered(made: GeneratedClient, cluster: str, topic: str) -> None:
    assert topic in made.call("v2_topics", "list_topics_v2")
    assert topic in [one.topic_name for one in made.call("v3_topics", "list_kafka_topics", cluster).data]
    grown = made.call(
        "v3_topics",
        "update_kafka_partitions",
        cluster,
        topic,
        body=model("UpdatePartitionsBody", {"partitions_count": 2}),
    )
    assert grown.partitions_count == 2
    value = model("UpdateConfigBody", {"value": "compact"})
    made.call("v3_configs", "update_kafka_topic_config", cluster, topic, "cleanup.policy", body=value)
    config = made.call("v3_configs", "get_kafka_topic_config", cluster, topic, "cleanup.policy")
    assert config.value == "compact"
    assert made.answer("v3_topics", "delete_kafka_topic", cluster, topic).status_code == 204


def test_a_failure_is_read_into_the_model_of_errors(made: GeneratedClient, cluster: str, name: str) -> None:
    for failure, code in (
        (made.answer("v2_topics", "get_topic_v2", name), 40401),
        (made.answer("v3_topics", "get_kafka_topic", cluster, name), 40403),
    ):
        assert failure.status_code == 404
        assert failure.parsed.error_code == code
        assert failure.parsed.message


def _polled(made: GeneratedClient, group: str) -> list[Any]:
    for _ in range(60):
        records: list[Any] = made.call("v2_consumers", "poll_records_v2", group, "one", timeout=1000)
        if records:
            return records
    return []


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value
