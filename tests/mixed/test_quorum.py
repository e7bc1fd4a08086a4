"""Controllers of both kinds in one quorum: each kind follows, votes and leads, and the cluster does not notice."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.model import TIMEOUT_S
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.command import Caudal
from tests.support.mixed_cluster import needs_kafka
from tests.support.mixed_quorum import NODES, MixedQuorum
from tests.support.routing import live_brokers

pytestmark = needs_kafka

LOAD = "load"
ELECTIONS_MAX = 16
WANTED = {("caudal", "kafka"): 3, ("kafka", "caudal"): 3}
"""How often the lead has to go from one kind to the other."""


@pytest.fixture(params=["caudal", "kafka"])
def quorum(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MixedQuorum]:
    with MixedQuorum(tmp_path, founder=request.param).running() as started:
        yield started


@pytest.fixture
def caudal(quorum: MixedQuorum, monkeypatch: pytest.MonkeyPatch) -> Caudal:
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", quorum.bootstrap)
    return Caudal(monkeypatch)


def add_voters(quorum: MixedQuorum, caudal: Caudal) -> None:
    """Let the observers vote: one, of the kind that is new here, is added with Kafka's tool, the other with ours."""
    quorum.add_voter_by_tool(2)
    caudal("cluster", "add-voter", "3", "--address", f"127.0.0.1:{quorum.nodes[3].controller_port}")
    assert {voter.id for voter in quorum.described().voters} == set(NODES)


def create(admin: AdminClient, topic: str) -> None:
    def is_created() -> bool:
        created = admin.create_topics([NewTopic(topic, 3, replication_factor=3)], request_timeout=TIMEOUT_S)
        return created[topic].exception(TIMEOUT_S) is None or topic in admin.list_topics(timeout=TIMEOUT_S).topics

    eventually(is_created)


def end(node: BrokerProcess, *, is_crash: bool) -> None:
    """End a controller; one that stops in order names its successor."""
    node.kill() if is_crash else node.stop()


def in_sync(admin: AdminClient, topic: str) -> list[set[int]]:
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
    return [{node.id for node in partition.isr} for partition in described.partitions]


def metadata_log(data: Path) -> dict[int, bytes]:
    """The batches of a node's metadata log by their base offsets."""
    found: dict[int, bytes] = {}
    for segment in sorted(data.glob("__cluster_metadata-0/*.log")):
        content, position = segment.read_bytes(), 0
        while position + 12 <= len(content):
            offset = int.from_bytes(content[position : position + 8], "big")
            size = 12 + int.from_bytes(content[position + 8 : position + 12], "big")
            if size == 12 or position + size > len(content):
                break
            found[offset] = content[position : position + size]
            position += size
    return found


def test_the_lead_goes_from_one_kind_to_the_other_and_back(quorum: MixedQuorum, caudal: Caudal) -> None:
    add_voters(quorum, caudal)
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap})
    create(admin, LOAD)
    seen: dict[tuple[str, str], int] = dict.fromkeys(WANTED, 0)
    with ClusterLoad(quorum.bootstrap, LOAD) as load:
        for number in range(ELECTIONS_MAX):
            before = quorum.leader()
            load.wait_for_more()
            end(before, is_crash=number % 3 > 0)
            after = quorum.leader()
            kinds = tuple("caudal" if quorum.is_caudal(node) else "kafka" for node in (before, after))
            if kinds in seen:
                seen[kinds[0], kinds[1]] += 1
            load.wait_for_more()  # with an ISR that the new controller has shrunk
            before.start()
            create(admin, f"topic-{number}")
            eventually(lambda: in_sync(admin, LOAD), lambda found: found == [set(NODES)] * 3)
            if all(seen[way] >= times for way, times in WANTED.items()):
                break
    assert all(seen[way] >= times for way, times in WANTED.items()), seen
    assert load.failed == []
    found = read_all(quorum.bootstrap, LOAD, 3)
    assert len(found) == len({value for value, _ in found}), "a record is there twice"
    assert dict(found).items() >= load.acknowledged.items()
    assert_nodes_agree(quorum, caudal)


def knows_all(node: BrokerProcess) -> bool:
    return len(live_brokers(f"127.0.0.1:{node.port}")) == len(NODES)


def assert_nodes_agree(quorum: MixedQuorum, caudal: Caudal) -> None:
    """Every node has the same metadata log and knows the same brokers, and both commands describe the same quorum."""
    for node in quorum.nodes.values():
        eventually(partial(knows_all, node))
    described = caudal.json("cluster")["quorum"]
    status = quorum.tool("describe", "--status")
    assert f"LeaderId:               {described['leader']}\n" in status
    assert {voter["id"] for voter in described["voters"]} == set(NODES)
    assert all(f'"id": {number}' in status for number in NODES)
    logs = [metadata_log(node.data) for node in quorum.nodes.values()]
    common = set.intersection(*(set(log) for log in logs))
    assert len(common) > ELECTIONS_MAX
    for offset in common:
        assert len({log[offset] for log in logs}) == 1, f"the metadata logs differ at offset {offset}"
