"""Consumer groups of API v3 over HTTP, with members of every client library, compared with what AdminClient says."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription, OffsetSpec

from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.group_member import GroupMember
from tests.support.kafka import start_class
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess

TIMEOUT_S = 30
Offsets = Mapping[tuple[str, int], int]

MEMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "confluent-kafka": ("confluent-kafka", {"client.id": "billing-1"}),
    "confluent-kafka, static": ("confluent-kafka", {"client.id": "billing-1", "group.instance.id": "till-1"}),
    "confluent-kafka, KIP-848": (
        "confluent-kafka",
        {"client.id": "billing-1", "group.protocol": "consumer", "group.instance.id": "till-1"},
    ),
    "aiokafka": ("aiokafka", {"client_id": "billing-1"}),
    "kafka-python": ("kafka-python", {"client_id": "billing-1"}),
    "kafka-python, static": ("kafka-python", {"client_id": "billing-1", "group_instance_id": "till-1"}),
}


@pytest.fixture
def http(proxy: ProxyProcess, broker: BrokerProcess) -> Iterator[httpx2.Client]:
    """The cluster behind the proxy."""
    with httpx2.Client(base_url=f"{proxy.url}/v3/clusters/{cluster_id(broker)}", timeout=TIMEOUT_S) as client:
        yield client


def cluster_id(broker: BrokerProcess) -> str:
    return str(admin_client(broker).describe_cluster().result(TIMEOUT_S).cluster_id)


def described(broker: BrokerProcess, group: str) -> ConsumerGroupDescription:
    found: ConsumerGroupDescription = admin_client(broker).describe_consumer_groups([group])[group].result(TIMEOUT_S)
    return found


def committed(broker: BrokerProcess, group: str) -> dict[tuple[str, int], int]:
    """What the group has committed, as AdminClient says."""
    asked = admin_client(broker).list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(TIMEOUT_S).topic_partitions or []
    return {(item.topic, item.partition): item.offset for item in found}


def ends(broker: BrokerProcess, places: Offsets) -> dict[tuple[str, int], int]:
    """Where partitions end, as AdminClient says."""
    wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}
    asked = admin_client(broker).list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
    return {(item.topic, item.partition): future.result(TIMEOUT_S).offset for item, future in asked.items()}


def produce(broker: BrokerProcess, topic: str, counts: Mapping[int, int]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, count in counts.items():
        for number in range(count):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def commit(broker: BrokerProcess, group: str, offsets: Offsets) -> None:
    """Commit for a group without members."""
    places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
    asked = admin_client(broker).alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])
    asked[group].result(TIMEOUT_S)


def joined(broker: BrokerProcess, group: str, **config: str) -> Consumer:
    plan = {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False}
    return Consumer({**plan, **{key.replace("_", "."): value for key, value in config.items()}})


def assigned(*consumers: Consumer) -> bool:
    for consumer in consumers:
        consumer.poll(0.05)
    return all(consumer.assignment() for consumer in consumers)


def part(text: str) -> str:
    return quote(text, safe="")


def payload(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- groups, members and what they read ---


@pytest.mark.parametrize("kind", MEMBERS)
def test_group_and_its_member_are_shown_as_the_cluster_knows_them(
    http: httpx2.Client, broker: BrokerProcess, name: str, kind: str
) -> None:
    library, config = MEMBERS[kind]
    create_topic(broker, name, partitions=3)
    produce(broker, name, {0: 5, 1: 3})
    with GroupMember(library, broker.bootstrap, name, name, config=config):
        eventually(lambda: committed(broker, name), lambda found: found.get((name, 0)) == 5)
        known = described(broker, name)
        (member,) = known.members
        url, crn = f"{http.base_url}consumer-groups/{name}", f"crn:///kafka={cluster_id(broker)}/consumer-group={name}"
        shared = {"cluster_id": cluster_id(broker), "consumer_group_id": name}
        consumer_url = f"{url}/consumers/{part(member.member_id)}"
        consumer = {
            "kind": "KafkaConsumer",
            "metadata": {"self": consumer_url, "resource_name": f"{crn}/consumer={member.member_id}"},
            **shared,
            "consumer_id": member.member_id,
            "instance_id": "till-1" if "till-1" in config.values() else None,
            "client_id": "billing-1",
            "assignments": {"related": f"{consumer_url}/assignments"},
        }

        assert payload(http.get(f"/consumer-groups/{name}")) == {
            "kind": "KafkaConsumerGroup",
            "metadata": {"self": url, "resource_name": crn},
            **shared,
            "is_simple": False,
            "partition_assignor": known.partition_assignor,
            "state": "STABLE",
            "type": "CONSUMER" if "KIP-848" in kind else "CLASSIC",
            "is_mixed_consumer_group": False,
            "coordinator": {"related": f"{http.base_url}brokers/1"},
            "consumers": {"related": f"{url}/consumers"},
            "lag_summary": {"related": f"{url}/lag-summary"},
        }
        assert known.partition_assignor
        assert payload(http.get(f"/consumer-groups/{name}/consumers")) == {
            "kind": "KafkaConsumerList",
            "metadata": {"self": f"{url}/consumers", "next": None},
            "data": [consumer],
        }
        assert payload(http.get(consumer_url)) == consumer

        assignments = payload(http.get(f"{consumer_url}/assignments"))
        assert (assignments["kind"], assignments["metadata"]) == (
            "KafkaConsumerAssignmentList",
            {"self": f"{consumer_url}/assignments", "next": None},
        )
        assert assignments["data"] == [
            {
                "kind": "KafkaConsumerAssignment",
                "metadata": {
                    "self": f"{consumer_url}/assignments/{name}/partitions/{partition}",
                    "resource_name": (f"{crn}/consumer={member.member_id}/assignment={name}/partition={partition}"),
                },
                **shared,
                "consumer_id": member.member_id,
                "topic_name": name,
                "partition_id": partition,
                "partition": {"related": f"{http.base_url}topics/{name}/partitions/{partition}"},
                "lag": {"related": f"{url}/lags/{name}/partitions/{partition}"},
            }
            for partition in range(3)
        ]
        assert payload(http.get(assignments["data"][2]["metadata"]["self"])) == assignments["data"][2]

        lags = payload(http.get(f"/consumer-groups/{name}/lags"))["data"]
        offsets = committed(broker, name)
        assert {(one["topic_name"], one["partition_id"]): one["current_offset"] for one in lags} == offsets
        assert {(one["topic_name"], one["partition_id"]): one["log_end_offset"] for one in lags} == ends(
            broker, offsets
        )
        assert {one["consumer_id"] for one in lags} == {member.member_id}


def test_list_has_every_group_by_name(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    mine = [f"{name}-{letter}" for letter in "cab"]
    for group in mine:
        commit(broker, group, {(name, 0): 0})
    listed = payload(http.get("/consumer-groups"))
    assert (listed["kind"], listed["metadata"]) == (
        "KafkaConsumerGroupList",
        {"self": f"{http.base_url}consumer-groups", "next": None},
    )
    ids = [one["consumer_group_id"] for one in listed["data"]]
    assert [group for group in ids if group in mine] == sorted(mine)
    one = next(one for one in listed["data"] if one["consumer_group_id"] == mine[0])
    assert payload(http.get(one["metadata"]["self"])) == one


def test_group_that_only_keeps_offsets_is_simple_and_has_no_members(
    http: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    commit(broker, name, {(name, 0): 0})
    group = payload(http.get(f"/consumer-groups/{name}"))
    assert (group["is_simple"], group["state"], group["partition_assignor"]) == (True, "EMPTY", "")
    assert payload(http.get(f"/consumer-groups/{name}/consumers"))["data"] == []


@pytest.mark.parametrize("odd", ["a/b", "..", "%2F", "é ü", "a?b#c", "-", "x" * 200])
def test_names_of_groups_and_members_may_be_any_text(
    http: httpx2.Client, broker: BrokerProcess, name: str, odd: str
) -> None:
    create_topic(broker, name)
    group = f"{name[:40]}/{odd}"
    with closing(joined(broker, group, client_id=odd)) as consumer:
        consumer.subscribe([name])
        eventually(lambda: assigned(consumer))
        consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
        found = payload(http.get(f"/consumer-groups/{part(group)}"))
        assert found["consumer_group_id"] == group
        (member,) = payload(http.get(found["consumers"]["related"]))["data"]
        assert (member["consumer_group_id"], member["client_id"]) == (group, odd)
        assert payload(http.get(member["metadata"]["self"])) == member
        (assignment,) = payload(http.get(member["assignments"]["related"]))["data"]
        assert payload(http.get(assignment["metadata"]["self"])) == assignment
        assert payload(http.get(assignment["lag"]["related"]))["consumer_id"] == member["consumer_id"]


# --- lag ---


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_lag_is_shown_by_partition_with_its_reader(
    http: httpx2.Client, broker: BrokerProcess, name: str, protocol: str
) -> None:
    create_topic(broker, name, partitions=2)
    produce(broker, name, {0: 3, 1: 8})
    config = {"group_protocol": protocol} | ({"heartbeat_interval_ms": "200"} if protocol == "classic" else {})
    with (
        closing(joined(broker, name, client_id="one", **config)) as one,
        closing(joined(broker, name, client_id="two", group_instance_id="till-2", **config)) as two,
    ):
        one.subscribe([name])
        two.subscribe([name])
        eventually(lambda: assigned(one, two))
        places = {consumer.assignment()[0].partition: consumer for consumer in (one, two)}
        for partition, offset in {0: 2, 1: 2}.items():
            places[partition].commit(offsets=[TopicPartition(name, partition, offset)], asynchronous=False)
        readers = {
            partition: (consumer.memberid(), "one" if consumer is one else "two", None if consumer is one else "till-2")
            for partition, consumer in places.items()
        }

        url, crn = f"{http.base_url}consumer-groups/{name}", f"crn:///kafka={cluster_id(broker)}/consumer-group={name}"
        shared = {"cluster_id": cluster_id(broker), "consumer_group_id": name}
        lags = [
            {
                "kind": "KafkaConsumerLag",
                "metadata": {
                    "self": f"{url}/lags/{name}/partitions/{partition}",
                    "resource_name": f"{crn}/lag={name}/partition={partition}",
                },
                **shared,
                "topic_name": name,
                "partition_id": partition,
                "consumer_id": readers[partition][0],
                "instance_id": readers[partition][2],
                "client_id": readers[partition][1],
                "current_offset": 2,
                "log_end_offset": end,
                "lag": end - 2,
            }
            for partition, end in {1: 8, 0: 3}.items()
        ]
        assert payload(http.get(f"/consumer-groups/{name}/lags")) == {
            "kind": "KafkaConsumerLagList",
            "metadata": {"self": f"{url}/lags", "next": None},
            "data": lags,
        }
        assert payload(http.get(f"/consumer-groups/{name}/lags/{name}/partitions/0")) == lags[1]
        member_id, client_id, instance_id = readers[1]
        assert payload(http.get(f"/consumer-groups/{name}/lag-summary")) == {
            "kind": "KafkaConsumerGroupLagSummary",
            "metadata": {"self": f"{url}/lag-summary", "resource_name": f"{crn}/lag-summary"},
            **shared,
            "max_lag_consumer_id": member_id,
            "max_lag_consumer": {"related": f"{url}/consumers/{part(member_id or '')}"},
            "max_lag_instance_id": instance_id,
            "max_lag_client_id": client_id,
            "max_lag_topic_name": name,
            "max_lag_partition_id": 1,
            "max_lag_partition": {"related": f"{http.base_url}topics/{name}/partitions/1"},
            "max_lag": 6,
            "total_lag": 7,
        }


def test_lag_of_a_group_without_members_has_no_consumer(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name, partitions=3)
    produce(broker, name, {0: 4, 2: 1})
    commit(broker, name, {(name, 0): 1, (name, 1): 0, (name, 2): 1})
    lags = payload(http.get(f"/consumer-groups/{name}/lags"))["data"]
    assert [(one["partition_id"], one["lag"], one["consumer_id"], one["client_id"]) for one in lags] == [
        (0, 3, "", ""),
        (1, 0, "", ""),
        (2, 0, "", ""),
    ]
    summary = payload(http.get(f"/consumer-groups/{name}/lag-summary"))
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_consumer_id"]) == (3, 3, "")


def test_offsets_beyond_the_end_are_no_lag(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    commit(broker, name, {(name, 0): 1000})
    (lag,) = payload(http.get(f"/consumer-groups/{name}/lags"))["data"]
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (1000, 0, 0)


def test_lag_does_not_count_records_of_open_transactions(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, {0: 2})
    commit(broker, name, {(name, 0): 0})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(name, b"later", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    assert payload(http.get(f"/consumer-groups/{name}/lags"))["data"][0]["log_end_offset"] == 2
    producer.commit_transaction(TIMEOUT_S)
    ended = f"/consumer-groups/{name}/lags/{name}/partitions/0"
    eventually(lambda: payload(http.get(ended))["log_end_offset"], lambda offset: offset == 4)


def test_topics_that_are_gone_have_no_lag(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    kept, gone = f"{name}-kept", f"{name}-gone"
    create_topic(broker, kept)
    create_topic(broker, gone)
    with closing(joined(broker, name)) as consumer:
        commits = [TopicPartition(topic, 0, 0) for topic in (kept, gone)]
        consumer.commit(offsets=commits, asynchronous=False)
    admin_client(broker).delete_topics([gone])[gone].result(TIMEOUT_S)
    lags = payload(http.get(f"/consumer-groups/{name}/lags"))["data"]
    assert [one["topic_name"] for one in lags] == [kept]


def test_group_that_has_committed_nothing_has_no_lag(http: httpx2.Client, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with closing(joined(broker, name)) as consumer:
        consumer.subscribe([name])
        eventually(lambda: assigned(consumer))
        missing = {"error_code": 404, "message": "Consumer group offsets could not be found."}
        for path in ("lags", "lag-summary", f"lags/{name}/partitions/0"):
            answer = http.get(f"/consumer-groups/{name}/{path}")
            assert (answer.status_code, answer.json()) == (404, missing)
        assert len(payload(http.get(f"/consumer-groups/{name}/consumers"))["data"]) == 1


# --- what is not there ---


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/consumers",
        "/consumers/c",
        "/consumers/c/assignments",
        "/consumers/c/assignments/t/partitions/0",
        "/lag-summary",
        "/lags",
        "/lags/t/partitions/0",
    ],
)
@pytest.mark.parametrize("group", ["nobody", "a%2Fb", "%00", "nul%00in%20it", "x" * 32_767, "x" * 32_768, "%ff"])
def test_group_that_is_not_there_is_not_found(http: httpx2.Client, path: str, group: str) -> None:
    answer = http.get(f"/consumer-groups/{group}{path}")
    assert (answer.status_code, answer.json()["error_code"]) == (404, 404)
    assert len(answer.content) < 1000


def test_members_and_partitions_that_are_not_there_are_not_found(
    http: httpx2.Client, broker: BrokerProcess, name: str
) -> None:
    create_topic(broker, name)
    with closing(joined(broker, name)) as consumer:
        consumer.subscribe([name])
        eventually(lambda: assigned(consumer))
        consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
        group = f"/consumer-groups/{name}"
        member = f"{group}/consumers/{part(consumer.memberid() or '')}"
        assert http.get(f"{member}/assignments/{name}/partitions/0").status_code == 200
        for path in (
            f"{group}/consumers/other",
            f"{group}/consumers/other/assignments",
            f"{group}/consumers/other/assignments/{name}/partitions/0",
            f"{member}/assignments/{name}/partitions/1",
            f"{member}/assignments/other/partitions/0",
            f"{member}/assignments/{name}/partitions/-1",
            f"{member}/assignments/{name}/partitions/x",
            f"{group}/lags/{name}/partitions/1",
            f"{group}/lags/other/partitions/0",
            f"{group}/lags/{name}/partitions/99999999999999",
        ):
            answer = http.get(path)
            assert (answer.status_code, answer.json()["error_code"]) == (404, 404), path


def test_groups_of_another_cluster_are_not_found(proxy: ProxyProcess, broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    commit(broker, name, {(name, 0): 0})
    missing = {"error_code": 404, "message": "Cluster other cannot be found."}
    for path in ("", f"/{name}", f"/{name}/consumers", f"/{name}/lag-summary", f"/{name}/lags"):
        answer = httpx2.get(f"{proxy.url}/v3/clusters/other/consumer-groups{path}", timeout=30)
        assert (answer.status_code, answer.json()) == (404, missing)


# --- a broker of its own ---


@pytest.fixture(scope="module")
def own(
    registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrokerProcess, httpx2.Client]]:
    """A broker that is watched, and may be stopped, and the cluster behind a proxy of its own."""
    settings = {"metrics.listener": "http://127.0.0.1:0"}
    with (
        start_class()(tmp_path_factory.mktemp("broker"), settings=settings) as broker,
        ProxyProcess(tmp_path_factory.mktemp("proxy"), bootstrap=broker.bootstrap, registry=registry.url) as proxy,
        httpx2.Client(base_url=f"{proxy.url}/v3/clusters/{cluster_id(broker)}", timeout=TIMEOUT_S) as client,
    ):
        yield broker, client


def requests_of(broker: BrokerProcess, api: str) -> float:
    address = re.findall(r"metrics=(http://\S+/metrics)", broker.log_text())[-1]
    found = re.search(rf'requests_total\{{[^}}]*request="{api}"[^}}]*\}} (\S+)', httpx2.get(address, timeout=30).text)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("path", ["lags", "lag-summary", "lags/{topic}/partitions/7"])
def test_lag_of_many_partitions_takes_two_calls(own: tuple[BrokerProcess, httpx2.Client], name: str, path: str) -> None:
    broker, http = own
    create_topic(broker, name, partitions=40)
    commit(broker, name, {(name, partition): 0 for partition in range(40)})
    payload(http.get(f"/consumer-groups/{name}/lags"))
    apis = ("OffsetFetch", "ListOffsets", "ConsumerGroupDescribe")
    before = [requests_of(broker, api) for api in apis]
    payload(http.get(f"/consumer-groups/{name}/{path.format(topic=name)}"))
    assert [requests_of(broker, api) - count for api, count in zip(apis, before, strict=True)] == [1, 1, 1]


def test_broker_that_is_down_is_reported_with_its_address(own: tuple[BrokerProcess, httpx2.Client], name: str) -> None:
    broker, http = own
    create_topic(broker, name)
    commit(broker, name, {(name, 0): 0})
    paths = ["", f"/{name}", f"/{name}/consumers", f"/{name}/consumers/c/assignments", f"/{name}/lags"]
    broker.kill()
    try:
        eventually(lambda: http.get("/consumer-groups").status_code, lambda status: status == 503)
        answers = [http.get(f"/consumer-groups{path}") for path in paths] + [http.get("/acls")]
        assert [(one.status_code, one.json()["error_code"]) for one in answers] == [(503, 503)] * len(answers)
        assert all(broker.bootstrap in one.json()["message"] for one in answers)
        assert all(int(one.headers["retry-after"]) > 0 for one in answers)
    finally:
        broker.start()
    eventually(lambda: http.get(f"/consumer-groups/{name}/lags").status_code, lambda status: status == 200)
