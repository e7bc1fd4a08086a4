"""The cluster, its brokers and their configs in API v3: over HTTP, and as confluent-kafka sees them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.proxy_v3 import ClusterApi, failure
from tests.support.registry import RegistryProcess

REFUSED = (400, 40002)
NOT_FOUND = (404, 404)


@pytest.fixture(scope="module")
def api(proxy: ProxyProcess) -> Iterator[ClusterApi]:
    with ClusterApi(proxy) as client:
        yield client


@pytest.fixture(scope="module")
def kafka(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture(scope="module")
def broker_id(kafka: AdminClient) -> int:
    return next(iter(kafka.list_topics(timeout=60).brokers))


@pytest.fixture
def change(api: ClusterApi, broker_id: int) -> Iterator[str]:
    """A config that a test may set, for one broker or for all; it is reset afterwards."""
    yield "log.retention.ms"
    api.bare("DELETE", "/broker-configs/log.retention.ms")
    api.bare("DELETE", f"/brokers/{broker_id}/configs/log.retention.ms")


def configured(kafka: AdminClient, broker_id: int) -> dict[str, tuple[str | None, int]]:
    """Value and source of every config of a broker."""
    (future,) = kafka.describe_configs([ConfigResource(ResourceType.BROKER, str(broker_id))]).values()
    return {key: (entry.value, int(entry.source)) for key, entry in future.result().items()}


# --- the cluster ---


def test_cluster_is_shown_with_its_links(api: ClusterApi, kafka: AdminClient, broker_id: int) -> None:
    expected = {
        "kind": "KafkaCluster",
        "metadata": {"self": api.url, "resource_name": api.name},
        "cluster_id": kafka.describe_cluster().result().cluster_id,
        "controller": api.related(f"/brokers/{broker_id}"),
        "acls": api.related("/acls"),
        "brokers": api.related("/brokers"),
        "broker_configs": api.related("/broker-configs"),
        "consumer_groups": api.related("/consumer-groups"),
        "topics": api.related("/topics"),
        "partition_reassignments": api.related("/topics/-/partitions/-/reassignment"),
    }
    assert api.get("").json() == expected
    assert api.http.get("/v3/clusters").json() == {
        "kind": "KafkaClusterList",
        "metadata": {"self": api.url.removesuffix(f"/{api.id}"), "next": None},
        "data": [expected],
    }


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/brokers", None),
        ("GET", "/brokers/1", None),
        ("GET", "/brokers/1/configs", None),
        ("GET", "/brokers/-/configs", None),
        ("PUT", "/brokers/1/configs/compression.type", {"value": "gzip"}),
        ("DELETE", "/brokers/1/configs/compression.type", None),
        ("POST", "/brokers/1/configs:alter", {"data": []}),
        ("GET", "/brokers/1/partition-replicas", None),
        ("GET", "/broker-configs", None),
        ("PUT", "/broker-configs/compression.type", {"value": "gzip"}),
        ("DELETE", "/broker-configs/compression.type", None),
        ("POST", "/broker-configs:alter", {"data": []}),
        ("GET", "/topics", None),
        ("POST", "/topics", {"topic_name": "never-created"}),
        ("GET", "/topics/t", None),
        ("PATCH", "/topics/t", {"partitions_count": 2}),
        ("DELETE", "/topics/t", None),
        ("GET", "/topics/t/configs", None),
        ("GET", "/topics/-/configs", None),
        ("POST", "/topics/-/configs:alter", {"data": []}),
        ("GET", "/topics/t/default-configs", None),
        ("GET", "/topics/t/partitions", None),
        ("GET", "/topics/t/partitions/0/offset", None),
        ("GET", "/topics/t/partitions/0/replicas", None),
        ("GET", "/topics/-/partitions/-/reassignment", None),
    ],
)
def test_no_other_cluster_is_found(api: ClusterApi, method: str, path: str, body: object) -> None:
    answer = api.http.request(method, f"/v3/clusters/another{path}", json=body)
    assert failure(answer) == NOT_FOUND
    assert answer.json()["message"] == "Cluster another cannot be found."


def test_addresses_are_those_that_are_advertised(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path
) -> None:
    settings = {"advertised.listeners": "https://elsewhere.example.com,http://proxy.example.com:8082"}
    with (
        ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url, settings=settings) as process,
        httpx2.Client(base_url=process.url, timeout=30) as http,
    ):
        assert http.get("/v3/clusters").json()["metadata"]["self"] == "http://proxy.example.com:8082/v3/clusters"


@pytest.mark.parametrize("host", ["x y", "[", "a/b", "<script>", "a:b:c"])
def test_host_that_is_none_is_not_repeated(proxy: ProxyProcess, host: str) -> None:
    with httpx2.Client(base_url=proxy.url, timeout=30) as http:
        answer = http.get("/v3/clusters", headers={"host": host})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["self"] == f"{proxy.url}/v3/clusters"


# --- brokers ---


def test_broker_is_shown_with_its_address(api: ClusterApi, kafka: AdminClient, broker_id: int) -> None:
    node = kafka.list_topics(timeout=60).brokers[broker_id]
    expected = {
        "kind": "KafkaBroker",
        "metadata": {"self": f"{api.url}/brokers/{broker_id}", "resource_name": f"{api.name}/broker={broker_id}"},
        "cluster_id": api.id,
        "broker_id": broker_id,
        "host": node.host,
        "port": node.port,
        "rack": None,
        "configs": api.related(f"/brokers/{broker_id}/configs"),
        "partition_replicas": api.related(f"/brokers/{broker_id}/partition-replicas"),
    }
    assert api.get(f"/brokers/{broker_id}").json() == expected
    assert api.get("/brokers").json() == {
        "kind": "KafkaBrokerList",
        "metadata": {"self": f"{api.url}/brokers", "next": None},
        "data": [expected],
    }


def test_replicas_of_a_broker_are_those_of_its_topics(
    api: ClusterApi, kafka: AdminClient, broker_id: int, name: str
) -> None:
    kafka.create_topics([NewTopic(name, 2, 1)])[name].result()
    payload = api.get(f"/brokers/{broker_id}/partition-replicas").json()
    assert payload["kind"] == "KafkaReplicaList"
    assert payload["metadata"] == {"self": f"{api.url}/brokers/{broker_id}/partition-replicas", "next": None}
    mine = [item for item in payload["data"] if item["topic_name"] == name]
    assert [(item["partition_id"], item["broker_id"], item["is_leader"]) for item in mine] == [
        (0, broker_id, True),
        (1, broker_id, True),
    ]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/configs", None),
        ("GET", "/configs/compression.type", None),
        ("PUT", "/configs/compression.type", {"value": "gzip"}),
        ("DELETE", "/configs/compression.type", None),
        ("POST", "/configs:alter", {"data": []}),
        ("GET", "/partition-replicas", None),
    ],
)
@pytest.mark.parametrize("unknown", ["4711", "first", "-2", "99999999999"])
def test_unknown_broker_is_not_found(api: ClusterApi, unknown: str, method: str, path: str, body: object) -> None:
    assert failure(api.send(method, f"/brokers/{unknown}{path}", body)) == NOT_FOUND


# --- configs of a broker ---


def test_config_of_a_broker_is_shown_with_its_source(api: ClusterApi, broker_id: int) -> None:
    assert api.get(f"/brokers/{broker_id}/configs/compression.type").json() == {
        "kind": "KafkaBrokerConfig",
        "metadata": {
            "self": f"{api.url}/brokers/{broker_id}/configs/compression.type",
            "resource_name": f"{api.name}/broker={broker_id}/config=compression.type",
        },
        "cluster_id": api.id,
        "broker_id": broker_id,
        "name": "compression.type",
        "value": "producer",
        "is_default": True,
        "is_read_only": False,
        "is_sensitive": False,
        "source": "DEFAULT_CONFIG",
        "synonyms": [{"name": "compression.type", "value": "producer", "source": "DEFAULT_CONFIG"}],
    }


@pytest.mark.parametrize("which", ["-", "{}"])
def test_configs_of_brokers_are_listed_as_another_client_sees_them(
    api: ClusterApi, kafka: AdminClient, broker_id: int, which: str
) -> None:
    path = f"/brokers/{which.format(broker_id)}/configs"
    payload = api.get(path).json()
    assert payload["kind"] == "KafkaBrokerConfigList"
    assert payload["metadata"] == {"self": api.url + path, "next": None}
    there = {key: value for key, (value, _) in configured(kafka, broker_id).items()}
    assert {item["name"]: item["value"] for item in payload["data"]} == there


def test_config_of_a_broker_is_set_and_returns(
    api: ClusterApi, kafka: AdminClient, broker_id: int, change: str
) -> None:
    path = f"/brokers/{broker_id}/configs/{change}"
    before = configured(kafka, broker_id)[change]
    assert api.send("PUT", path, {"value": "98765432"}).status_code == 204
    assert configured(kafka, broker_id)[change] == ("98765432", 2)
    payload = api.get(path).json()
    assert (payload["value"], payload["source"], payload["is_default"]) == ("98765432", "DYNAMIC_BROKER_CONFIG", False)
    assert payload["synonyms"][0] == {"name": change, "value": "98765432", "source": "DYNAMIC_BROKER_CONFIG"}
    assert api.bare("DELETE", path).status_code == 204
    assert configured(kafka, broker_id)[change] == before


def test_configs_of_a_broker_change_together_unless_it_is_a_dry_run(
    api: ClusterApi, kafka: AdminClient, broker_id: int, change: str
) -> None:
    before = configured(kafka, broker_id)
    body: dict[str, Any] = {"data": [{"name": change, "value": "98765432"}], "validate_only": True}
    path = f"/brokers/{broker_id}/configs:alter"
    assert api.send("POST", path, body).status_code == 204
    assert configured(kafka, broker_id) == before
    assert api.send("POST", path, body | {"validate_only": False}).status_code == 204
    assert configured(kafka, broker_id)[change] == ("98765432", 2)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("no.such.config", "1", NOT_FOUND),
        ("compression.type", "wrong", REFUSED),
        ("compression.type", None, REFUSED),
        ("log.dirs", "/elsewhere", REFUSED),
    ],
)
def test_wrong_config_of_a_broker_is_refused(
    api: ClusterApi, kafka: AdminClient, broker_id: int, name: str, value: str | None, expected: tuple[int, int]
) -> None:
    before = configured(kafka, broker_id)
    change = {"name": name, "value": value}
    assert failure(api.send("PUT", f"/brokers/{broker_id}/configs/{name}", {"value": value})) == expected
    assert failure(api.send("POST", f"/brokers/{broker_id}/configs:alter", {"data": [change]})) == expected
    assert configured(kafka, broker_id) == before


# --- configs of all brokers ---


def test_config_of_all_brokers_is_set_and_forgotten(
    api: ClusterApi, kafka: AdminClient, broker_id: int, change: str
) -> None:
    before = configured(kafka, broker_id)[change]
    assert failure(api.get(f"/broker-configs/{change}")) == NOT_FOUND
    assert api.send("PUT", f"/broker-configs/{change}", {"value": "87654321"}).status_code == 204
    assert configured(kafka, broker_id)[change] == ("87654321", 3)
    expected = {
        "kind": "KafkaClusterConfig",
        "metadata": {
            "self": f"{api.url}/broker-configs/{change}",
            "resource_name": f"{api.name}/broker-config={change}",
        },
        "cluster_id": api.id,
        "config_type": "BROKER",
        "name": change,
        "value": "87654321",
        "is_default": False,
        "is_read_only": False,
        "is_sensitive": False,
        "source": "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "synonyms": [{"name": change, "value": "87654321", "source": "DYNAMIC_DEFAULT_BROKER_CONFIG"}],
    }
    assert api.get(f"/broker-configs/{change}").json() == expected
    listed = api.get("/broker-configs").json()
    assert listed["kind"] == "KafkaClusterConfigList"
    assert listed["metadata"] == {"self": f"{api.url}/broker-configs", "next": None}
    assert expected in listed["data"]
    assert api.bare("DELETE", f"/broker-configs/{change}").status_code == 204
    assert configured(kafka, broker_id)[change] == before


def test_configs_of_all_brokers_change_together_unless_it_is_a_dry_run(
    api: ClusterApi, kafka: AdminClient, broker_id: int, change: str
) -> None:
    before = configured(kafka, broker_id)
    body: dict[str, Any] = {"data": [{"name": change, "value": "87654321"}], "validate_only": True}
    assert api.send("POST", "/broker-configs:alter", body).status_code == 204
    assert configured(kafka, broker_id) == before
    assert api.send("POST", "/broker-configs:alter", body | {"validate_only": False}).status_code == 204
    assert configured(kafka, broker_id)[change] == ("87654321", 3)
    gone = {"data": [{"name": change, "operation": "DELETE"}]}
    assert api.send("POST", "/broker-configs:alter", gone).status_code == 204
    assert configured(kafka, broker_id) == before


@pytest.mark.parametrize(
    "change",
    [
        {"name": "no.such.config", "value": "1"},
        {"name": "compression.type", "value": "wrong"},
        {"name": "compression.type", "value": None},
        {"name": "compression.type", "value": "x" * 40_000},
        {"name": "log.dirs", "value": "/elsewhere"},
    ],
    ids=lambda change: str(change)[:60],
)
def test_wrong_config_of_all_brokers_is_refused(api: ClusterApi, change: dict[str, Any]) -> None:
    assert failure(api.send("POST", "/broker-configs:alter", {"data": [change]})) == REFUSED
    assert failure(api.send("PUT", f"/broker-configs/{change['name']}", {"value": change["value"]})) == REFUSED


# --- a cluster that is not there ---


def test_cluster_that_is_gone_is_reported_with_its_address_and_found_again(
    registry: RegistryProcess, tmp_path: Path
) -> None:
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        ProxyProcess(tmp_path / "proxy", bootstrap=broker.bootstrap, registry=registry.url) as process,
        ClusterApi(process) as api,
    ):
        assert api.get("/topics").status_code == 200
        broker.kill()
        requests = [
            ("GET", api.root),
            ("GET", "/v3/clusters"),
            ("GET", f"{api.root}/topics"),
            ("GET", f"{api.root}/topics/t/configs"),
            ("GET", f"{api.root}/broker-configs"),
            ("GET", f"{api.root}/topics/-/partitions/-/reassignment"),
            ("DELETE", f"{api.root}/topics/t"),
            ("GET", "/topics"),
            ("GET", "/brokers"),
        ]
        for method, path in requests:
            answer = api.http.request(method, path)
            assert failure(answer) == (503, 503)
            assert broker.bootstrap in answer.json()["message"]
            assert int(answer.headers["retry-after"]) >= 1
        broker.start()
        eventually(lambda: api.get("/topics").status_code, lambda status: status == 200)
