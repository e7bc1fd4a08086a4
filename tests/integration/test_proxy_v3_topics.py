"""Topics, their configs, partitions and replicas in API v3: over HTTP, and as confluent-kafka sees them."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType, TopicDescription

from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.proxy_v3 import ClusterApi, failure

UNKNOWN_TOPIC = (404, 40403)
REFUSED = (400, 40002)


@pytest.fixture(scope="module")
def api(proxy: ProxyProcess) -> Iterator[ClusterApi]:
    with ClusterApi(proxy) as client:
        yield client


@pytest.fixture(scope="module")
def kafka(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic(kafka: AdminClient, name: str) -> str:
    kafka.create_topics([NewTopic(name, 2, 1)])[name].result()
    return name


def described(kafka: AdminClient, name: str) -> TopicDescription:
    found: TopicDescription = kafka.describe_topics(TopicCollection([name]))[name].result()
    return found


def configured(kafka: AdminClient, name: str) -> dict[str, Any]:
    (future,) = kafka.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
    return {key: entry.value for key, entry in future.result().items()}


def shown(api: ClusterApi, name: str, *, partitions: int = 2, replicas: int = 1) -> dict[str, Any]:
    """A topic as the proxy is to tell it."""
    return {
        "kind": "KafkaTopic",
        "metadata": {"self": f"{api.url}/topics/{name}", "resource_name": f"{api.name}/topic={name}"},
        "cluster_id": api.id,
        "topic_name": name,
        "is_internal": False,
        "replication_factor": replicas,
        "partitions_count": partitions,
        "partitions": api.related(f"/topics/{name}/partitions"),
        "configs": api.related(f"/topics/{name}/configs"),
        "partition_reassignments": api.related(f"/topics/{name}/partitions/-/reassignment"),
        "authorized_operations": [],
    }


LONG = "x" * 40_000
"""More than the protocol can carry: the client library would break its connection over it."""


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", f"/topics/{LONG}", None, 404),
        ("GET", f"/topics/{LONG}/configs", None, 404),
        ("PUT", f"/topics/{LONG}/configs/cleanup.policy", {"value": "compact"}, 404),
        ("POST", "/topics", {"topic_name": LONG}, 40002),
        ("POST", "/topics", {"topic_name": "long", "configs": [{"name": LONG, "value": "1"}]}, 40002),
        ("POST", "/topics", {"topic_name": "long", "configs": [{"name": "retention.ms", "value": LONG}]}, 40002),
        ("PUT", "/topics/{topic}/configs/cleanup.policy", {"value": LONG}, 40002),
        ("PUT", "/broker-configs/compression.type", {"value": LONG}, 40002),
    ],
)
def test_text_that_the_protocol_cannot_carry_is_refused(
    api: ClusterApi, topic: str, method: str, path: str, body: object, code: int
) -> None:
    answer = api.send(method, path.replace("{topic}", topic), body)
    assert answer.json()["error_code"] == code
    assert len(answer.text) < 1000


# --- topics ---


def test_topic_of_another_client_is_shown_with_its_links(api: ClusterApi, topic: str) -> None:
    answer = api.get(f"/topics/{topic}")
    assert (answer.status_code, answer.json()) == (200, shown(api, topic))


def test_topics_are_listed_by_name_with_the_same_shape(api: ClusterApi, topic: str) -> None:
    payload = api.get("/topics").json()
    names = [item["topic_name"] for item in payload["data"]]
    assert payload["kind"] == "KafkaTopicList"
    assert payload["metadata"] == {"self": f"{api.url}/topics", "next": None}
    assert names == sorted(names)
    assert payload["data"][names.index(topic)] == shown(api, topic)


def test_internal_topics_are_not_listed_and_can_be_asked_for(
    api: ClusterApi, broker: BrokerProcess, topic: str
) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    listed = [item["topic_name"] for item in api.get("/topics").json()["data"]]
    assert "__consumer_offsets" not in listed
    assert api.get("/topics/__consumer_offsets").json()["is_internal"] is True


def test_authorized_operations_are_shown_when_requested(api: ClusterApi, topic: str) -> None:
    payload = api.get(f"/topics/{topic}", params={"include_authorized_operations": "true"}).json()
    assert {"READ", "WRITE", "DELETE", "ALTER_CONFIGS"} <= set(payload["authorized_operations"])


def test_created_topic_is_there_with_its_numbers_and_configs(api: ClusterApi, kafka: AdminClient, name: str) -> None:
    body = {
        "topic_name": name,
        "partitions_count": 3,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    answer = api.send("POST", "/topics", body)
    assert (answer.status_code, answer.json()) == (201, shown(api, name, partitions=3))
    assert answer.headers["location"] == f"{api.url}/topics/{name}"
    assert len(described(kafka, name).partitions) == 3
    assert configured(kafka, name)["cleanup.policy"] == "compact"


def test_numbers_left_out_are_the_clusters(api: ClusterApi, kafka: AdminClient, name: str) -> None:
    answer = api.send("POST", "/topics", {"topic_name": name})
    there = described(kafka, name).partitions
    assert answer.json() == shown(api, name, partitions=len(there), replicas=len(there[0].replicas))


def test_replicas_can_be_chosen(api: ClusterApi, kafka: AdminClient, name: str) -> None:
    broker_id = next(iter(kafka.list_topics(timeout=60).brokers))
    answer = api.send(
        "POST", "/topics", {"topic_name": name, "replicas_assignments": {"0": [broker_id], "1": [broker_id]}}
    )
    assert (answer.status_code, answer.json()) == (201, shown(api, name))
    assert [[node.id for node in item.replicas] for item in described(kafka, name).partitions] == [[broker_id]] * 2


@pytest.mark.parametrize("numbers", [{"partitions_count": 2, "replication_factor": 1}, {}])
def test_validation_alone_creates_nothing(
    api: ClusterApi, kafka: AdminClient, name: str, numbers: dict[str, int]
) -> None:
    answer = api.send("POST", "/topics", {"topic_name": name, "validate_only": True, **numbers})
    partitions = numbers.get("partitions_count", answer.json()["partitions_count"])
    assert (answer.status_code, answer.json()) == (200, shown(api, name, partitions=partitions))
    assert name not in kafka.list_topics(timeout=60).topics


@pytest.mark.parametrize("validate_only", [True, False])
def test_topic_that_exists_is_not_created_again(api: ClusterApi, topic: str, *, validate_only: bool) -> None:
    answer = api.send("POST", "/topics", {"topic_name": topic, "validate_only": validate_only})
    assert failure(answer) == REFUSED
    assert topic in answer.json()["message"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"partitions_count": 0},
        {"replication_factor": 0},
        {"replication_factor": 30000},
        {"replicas_assignments": {"0": [4711]}},
        {"replicas_assignments": {"1": [1]}},
        {"replicas_assignments": {"0": []}},
        {"configs": [{"name": "no.such.config", "value": "1"}]},
        {"configs": [{"name": "retention.ms", "value": "long"}]},
        {"configs": [{"name": "retention.ms", "value": None}]},
        {"topic_name": "spaces are wrong"},
        {"topic_name": ""},
        {"topic_name": "x\0y"},
        {"topic_name": "x" * 300},
        {"topic_name": ".."},
    ],
    ids=str,
)
def test_wrong_topic_is_refused_in_kafkas_words(api: ClusterApi, name: str, wrong: dict[str, Any]) -> None:
    assert failure(api.send("POST", "/topics", {"topic_name": name, **wrong})) == REFUSED


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"topic_name": 7},
        {"topic_name": "x", "partitions_count": "many"},
        {"topic_name": "x", "partitions_count": 2**31},
        {"topic_name": "x", "replicas_assignments": {"a": [1]}},
        {"topic_name": "x", "configs": [{"value": "1"}]},
    ],
    ids=str,
)
def test_body_that_is_no_topic_is_refused(api: ClusterApi, body: object) -> None:
    assert failure(api.send("POST", "/topics", body)) == (400, 400)


def test_body_that_is_no_json_is_refused(api: ClusterApi) -> None:
    headers = {"content-type": "application/json"}
    assert failure(api.http.post(f"{api.root}/topics", content=b'{"topic_name', headers=headers)) == (400, 400)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/topics"),
        ("PATCH", "/topics/{}"),
        ("PUT", "/topics/{}/configs/cleanup.policy"),
        ("POST", "/topics/{}/configs:alter"),
        ("POST", "/topics/-/configs:alter"),
        ("PUT", "/broker-configs/log.retention.ms"),
        ("POST", "/broker-configs:alter"),
        ("PUT", "/brokers/1/configs/compression.type"),
        ("POST", "/brokers/1/configs:alter"),
    ],
)
def test_body_is_needed(api: ClusterApi, topic: str, method: str, path: str) -> None:
    assert failure(api.bare(method, path.format(topic))) == (422, 42206)


def test_topic_grows(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    answer = api.send("PATCH", f"/topics/{topic}", {"partitions_count": 5})
    assert (answer.status_code, answer.json()) == (200, shown(api, topic, partitions=5))
    assert len(described(kafka, topic).partitions) == 5


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_topic_does_not_shrink(api: ClusterApi, kafka: AdminClient, topic: str, count: int) -> None:
    assert failure(api.send("PATCH", f"/topics/{topic}", {"partitions_count": count})) == REFUSED
    assert len(described(kafka, topic).partitions) == 2


def test_deleted_topic_is_gone(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    answer = api.bare("DELETE", f"/topics/{topic}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert topic not in kafka.list_topics(timeout=60).topics
    assert failure(api.bare("DELETE", f"/topics/{topic}")) == UNKNOWN_TOPIC


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"partitions_count": 9}),
        ("DELETE", "", None),
        ("GET", "/configs", None),
        ("GET", "/configs/cleanup.policy", None),
        ("PUT", "/configs/cleanup.policy", {"value": "compact"}),
        ("DELETE", "/configs/cleanup.policy", None),
        ("POST", "/configs:alter", {"data": [{"name": "cleanup.policy", "value": "compact"}]}),
        ("GET", "/partitions", None),
        ("GET", "/partitions/0", None),
        ("GET", "/partitions/0/offset", None),
        ("GET", "/partitions/0/replicas", None),
        ("GET", "/partitions/0/replicas/1", None),
        ("GET", "/partitions/-/reassignment", None),
    ],
)
def test_unknown_topic_is_not_found(api: ClusterApi, name: str, method: str, path: str, body: object) -> None:
    assert failure(api.send(method, f"/topics/{name}{path}", body)) == UNKNOWN_TOPIC


# --- configs ---


def config(api: ClusterApi, topic: str, name: str) -> dict[str, Any]:
    payload: dict[str, Any] = api.get(f"/topics/{topic}/configs/{name}").json()
    return payload


def test_config_is_shown_with_its_source_and_synonyms(api: ClusterApi, topic: str) -> None:
    assert config(api, topic, "cleanup.policy") == {
        "kind": "KafkaTopicConfig",
        "metadata": {
            "self": f"{api.url}/topics/{topic}/configs/cleanup.policy",
            "resource_name": f"{api.name}/topic={topic}/config=cleanup.policy",
        },
        "cluster_id": api.id,
        "topic_name": topic,
        "name": "cleanup.policy",
        "value": "delete",
        "is_default": True,
        "is_read_only": False,
        "is_sensitive": False,
        "source": "DEFAULT_CONFIG",
        "synonyms": [{"name": "log.cleanup.policy", "value": "delete", "source": "DEFAULT_CONFIG"}],
    }


def test_configs_are_listed_as_another_client_sees_them(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    payload = api.get(f"/topics/{topic}/configs").json()
    assert payload["kind"] == "KafkaTopicConfigList"
    assert payload["metadata"] == {"self": f"{api.url}/topics/{topic}/configs", "next": None}
    assert {item["name"]: item["value"] for item in payload["data"]} == configured(kafka, topic)


def test_config_that_is_set_shows_what_it_hides(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    answer = api.send("PUT", f"/topics/{topic}/configs/compression.type", {"value": "gzip"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert configured(kafka, topic)["compression.type"] == "gzip"
    payload = config(api, topic, "compression.type")
    assert (payload["source"], payload["is_default"]) == ("DYNAMIC_TOPIC_CONFIG", False)
    assert payload["synonyms"] == [
        {"name": "compression.type", "value": "gzip", "source": "DYNAMIC_TOPIC_CONFIG"},
        {"name": "compression.type", "value": "producer", "source": "DEFAULT_CONFIG"},
    ]


def test_config_returns_to_its_default(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    api.send("PUT", f"/topics/{topic}/configs/cleanup.policy", {"value": "compact"})
    answer = api.bare("DELETE", f"/topics/{topic}/configs/cleanup.policy")
    assert (answer.status_code, answer.content) == (204, b"")
    assert configured(kafka, topic)["cleanup.policy"] == "delete"
    assert config(api, topic, "cleanup.policy")["is_default"] is True


def test_configs_change_together(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    api.send("PUT", f"/topics/{topic}/configs/cleanup.policy", {"value": "compact"})
    changes = [
        {"name": "cleanup.policy", "operation": "DELETE"},
        {"name": "retention.ms", "operation": "SET", "value": "123456"},
        {"name": "compression.type", "value": "lz4"},
    ]
    assert api.send("POST", f"/topics/{topic}/configs:alter", {"data": changes}).status_code == 204
    there = configured(kafka, topic)
    assert (there["cleanup.policy"], there["retention.ms"], there["compression.type"]) == ("delete", "123456", "lz4")


def test_one_wrong_config_changes_none(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    before = configured(kafka, topic)
    changes = [{"name": "retention.ms", "value": "1"}, {"name": "cleanup.policy", "value": "wrong"}]
    assert failure(api.send("POST", f"/topics/{topic}/configs:alter", {"data": changes})) == REFUSED
    assert configured(kafka, topic) == before


def test_dry_run_changes_nothing(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    before = configured(kafka, topic)
    changes = [{"name": "retention.ms", "value": "1"}]
    path = f"/topics/{topic}/configs:alter"
    assert api.send("POST", path, {"data": changes, "validate_only": True}).status_code == 204
    assert configured(kafka, topic) == before


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([{"name": "no.such.config", "value": "1"}], (404, 404)),
        ([{"name": "no.such.config", "operation": "DELETE"}], (404, 404)),
        ([{"name": "retention.ms", "value": None}], REFUSED),
        ([{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "operation": "DELETE"}], REFUSED),
        ([{"name": "retention.ms", "operation": "ADD", "value": "1"}], (400, 400)),
        ([{"value": "1"}], (400, 400)),
        ("none", (400, 400)),
    ],
    ids=str,
)
def test_wrong_changes_are_refused(api: ClusterApi, topic: str, changes: object, expected: tuple[int, int]) -> None:
    assert failure(api.send("POST", f"/topics/{topic}/configs:alter", {"data": changes})) == expected


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/configs/no.such.config", (404, 404)),
        ("PUT", "/configs/no.such.config", (404, 404)),
        ("DELETE", "/configs/no.such.config", (404, 404)),
        ("PUT", "/configs/retention.ms", REFUSED),
        ("PUT", "/configs/ret%00ention.ms", (404, 404)),
    ],
)
def test_wrong_config_is_refused(
    api: ClusterApi, topic: str, method: str, path: str, expected: tuple[int, int]
) -> None:
    body = {"value": "wrong"} if method == "PUT" else None
    assert failure(api.send(method, f"/topics/{topic}{path}", body)) == expected


def test_configs_of_all_topics_are_listed_together(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    answer = api.get("/topics/-/configs")
    assert answer.status_code == 200, answer.text
    payload = answer.json()
    assert payload["metadata"]["self"] == f"{api.url}/topics/-/configs"
    mine = {item["name"]: item["value"] for item in payload["data"] if item["topic_name"] == topic}
    assert mine == configured(kafka, topic)


def test_configs_of_several_topics_change_each_by_itself(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    changes = [
        {"topic_name": topic, "configs": [{"name": "retention.ms", "value": "4711"}]},
        {"topic_name": f"{topic}-gone", "configs": [{"name": "retention.ms", "value": "4711"}]},
    ]
    answer = api.send("POST", "/topics/-/configs:alter", {"data": changes})
    (failed,) = answer.json()["failures"]
    assert (answer.status_code, failed["topic_name"], failed["error_code"]) == (207, f"{topic}-gone", 40403)
    assert configured(kafka, topic)["retention.ms"] == "4711"
    assert api.send("POST", "/topics/-/configs:alter", {"data": changes[:1]}).status_code == 204


def test_configs_of_a_topic_that_could_be_created_are_shown(api: ClusterApi, kafka: AdminClient, name: str) -> None:
    payload = api.get(f"/topics/{name}/default-configs").json()
    assert payload["metadata"]["self"] == f"{api.url}/topics/{name}/default-configs"
    kafka.create_topics([NewTopic(name, 1, 1)])[name].result()
    assert {item["name"]: item["value"] for item in payload["data"]} == configured(kafka, name)
    assert failure(api.get(f"/topics/{name}/default-configs")) == REFUSED


# --- partitions ---


def test_partition_is_shown_with_its_links(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    path = f"/topics/{topic}/partitions/1"
    leader = described(kafka, topic).partitions[1].leader.id
    expected = {
        "kind": "KafkaPartition",
        "metadata": {"self": api.url + path, "resource_name": f"{api.name}/topic={topic}/partition=1"},
        "cluster_id": api.id,
        "topic_name": topic,
        "partition_id": 1,
        "leader": api.related(f"{path}/replicas/{leader}"),
        "replicas": api.related(f"{path}/replicas"),
        "reassignment": api.related(f"{path}/reassignment"),
    }
    assert api.get(path).json() == expected
    listed = api.get(f"/topics/{topic}/partitions").json()
    assert listed["kind"] == "KafkaPartitionList"
    assert [item["partition_id"] for item in listed["data"]] == [0, 1]
    assert listed["data"][1] == expected


def test_replica_is_shown_with_its_broker(api: ClusterApi, kafka: AdminClient, topic: str) -> None:
    (broker,) = described(kafka, topic).partitions[0].replicas
    path = f"/topics/{topic}/partitions/0/replicas"
    expected = {
        "kind": "KafkaReplica",
        "metadata": {
            "self": f"{api.url}{path}/{broker.id}",
            "resource_name": f"{api.name}/topic={topic}/partition=0/replica={broker.id}",
        },
        "cluster_id": api.id,
        "topic_name": topic,
        "partition_id": 0,
        "broker_id": broker.id,
        "is_leader": True,
        "is_in_sync": True,
        "broker": api.related(f"/brokers/{broker.id}"),
    }
    assert api.get(f"{path}/{broker.id}").json() == expected
    assert api.get(path).json() == {
        "kind": "KafkaReplicaList",
        "metadata": {"self": api.url + path, "next": None},
        "data": [expected],
    }


def test_offsets_are_those_of_the_records(api: ClusterApi, broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(3):
        producer.produce(topic, b"x", partition=1)
    producer.flush(60)
    path = f"/topics/{topic}/partitions/1/offset"
    expected = {
        "kind": "KafkaPartitionWithOffsets",
        "metadata": {
            "self": api.url + path,
            "resource_name": f"{api.name}/topic={topic}/partition=1/offset_type=earliest_and_latest",
        },
        "cluster_id": api.id,
        "topic_name": topic,
        "partition_id": 1,
        "earliest_offset": 0,
        "latest_offset": 3,
    }
    assert api.get(path).json() == expected
    assert api.get(path, params={"offset_type": "earliest_and_latest"}).json() == expected
    assert failure(api.get(path, params={"offset_type": "newest"})) == (400, 400)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/partitions/2", (404, 404)),
        ("/partitions/2/replicas", (404, 404)),
        ("/partitions/0/replicas/4711", (404, 404)),
        ("/partitions/2/offset", (404, 40402)),
        ("/partitions/2/reassignment", (404, 404)),
        ("/partitions/0/reassignment", (404, 404)),
        ("/partitions/first", (404, 404)),
        ("/partitions/-1", (404, 404)),
        ("/partitions/99999999999999999999", (404, 404)),
    ],
)
def test_what_a_topic_does_not_have_is_not_found(
    api: ClusterApi, topic: str, path: str, expected: tuple[int, int]
) -> None:
    assert failure(api.get(f"/topics/{topic}{path}")) == expected


@pytest.mark.parametrize("which", ["-", "{}"])
def test_nothing_is_on_the_move_in_a_cluster_at_rest(api: ClusterApi, topic: str, which: str) -> None:
    path = f"/topics/{which.format(topic)}/partitions/-/reassignment"
    assert api.get(path).json() == {
        "kind": "KafkaReassignmentList",
        "metadata": {"self": api.url + path, "next": None},
        "data": [],
    }


def test_thousands_of_topics_are_listed(api: ClusterApi, kafka: AdminClient, name: str) -> None:
    names = [f"{name}-{number}" for number in range(2000)]
    for future in kafka.create_topics([NewTopic(topic, 1, 1) for topic in names]).values():
        future.result()
    try:
        listed = {item["topic_name"] for item in api.get("/topics").json()["data"]}
        assert listed >= set(names)
    finally:
        for future in kafka.delete_topics(names).values():
            future.result()
