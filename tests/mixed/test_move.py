"""A cluster moves to brokers of the other kind while clients work, by the recipe of `deploy/MIXED_CLUSTERS.md`."""

from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.admin import eventually
from tests.support.cluster_load import ClusterLoad, read_all
from tests.support.command import Caudal
from tests.support.mixed_cluster import VOTERS, MixedCluster, needs_kafka
from tests.support.moving_load import TIMEOUT_S, GroupLoad, TransactionalLoad

pytestmark = needs_kafka

PARTITIONS = 4
NEW = (4, 5, 6)
NUMBERS, TRANSACTIONS = "numbers", "transactions"


@pytest.mark.parametrize("quorum", ["caudal", "kafka"])
def test_a_cluster_moves_to_brokers_of_the_other_kind_and_no_client_sees_an_error(
    quorum: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = MixedCluster(tmp_path, quorum=quorum)
    with cluster.running(guests=()):
        bootstrap = cluster.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(name, PARTITIONS, 3) for name in (NUMBERS, TRANSACTIONS)]
        for future in admin.create_topics(topics).values():
            future.result(TIMEOUT_S)
        members = [
            GroupLoad(bootstrap, [NUMBERS, TRANSACTIONS], group=f"{protocol}-group", protocol=protocol)
            for protocol in ("classic", "consumer")
        ]
        classic, consumer = members
        with classic, consumer:
            with (
                ClusterLoad(bootstrap, NUMBERS) as numbers,
                TransactionalLoad(bootstrap, TRANSACTIONS) as transactions,
            ):
                numbers.wait_for_more()
                move(cluster, Caudal(monkeypatch), monkeypatch, numbers)
                numbers.wait_for_more()
            expected = numbers.acknowledged.keys() | set(transactions.committed)
            for member in members:
                eventually(partial(has_ended, member, expected))
        errors = {"idempotent": numbers.failed, "transactional": transactions.errors}
        errors |= {member.group: member.errors for member in members}
        assert not any(errors.values()), errors
        found = read_all(cluster.bootstrap, NUMBERS, PARTITIONS)
        assert dict(found) == numbers.acknowledged
        assert len(found) == len(numbers.acknowledged)
        for member in members:
            check_reading(member, transactions)
            assert Caudal(monkeypatch).json("group", "describe", member.group)["lag"] == 0


def move(cluster: MixedCluster, caudal: Caudal, monkeypatch: pytest.MonkeyPatch, load: ClusterLoad) -> None:
    """Let brokers of the other kind join, move everything to them, and keep the old nodes as controllers only."""
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", cluster.bootstrap)
    words = ["--kafka"] if cluster.quorum == "caudal" else []
    settings = caudal("cluster", "join-settings", str(NEW[0]), *words).stdout.splitlines()
    assert [line for line in settings if line.startswith("controller.quorum.")] == [
        f"{key}={value}" for key, value in cluster.controllers.items()
    ], "the guests of this cluster are started with it"
    cluster.start(*(cluster.guest(number) for number in NEW))
    cluster.wait_until_formed()
    kinds = {item["id"]: item["software"] for item in caudal.json("cluster")["brokers"]}
    names = ("Caudal", "Apache Kafka") if cluster.quorum == "caudal" else ("Apache Kafka", "Caudal")
    assert kinds == {**dict.fromkeys(VOTERS, names[0]), **dict.fromkeys(NEW, names[1])}
    moves = cluster.directory / "moves.json"
    moves.write_text(caudal("cluster", "reassign", "plan", "--onto", ",".join(map(str, NEW))).stdout)
    caudal("cluster", "reassign", "run", str(moves), "--throttle", "50000000")
    for number in VOTERS:
        caudal("cluster", "drain", str(number))
    monkeypatch.setenv("CAUDAL_BOOTSTRAP", ",".join(cluster.nodes[number].address for number in NEW))
    for number in VOTERS:
        load.wait_for_more()
        cluster.keep_as_controller(number)
        caudal("cluster", "unregister", str(number), "--yes")
    view = caudal.json("cluster")
    assert [item["id"] for item in view["brokers"]] == list(NEW)
    assert {item["id"] for item in view["quorum"]["voters"]} == set(VOTERS)
    assert view["under_replicated"] == view["offline"] == []


def has_ended(member: GroupLoad, expected: AbstractSet[bytes]) -> bool:
    """Whether a member has read everything, or has failed."""
    return bool(member.errors) or expected <= member.values


def check_reading(member: GroupLoad, transactions: TransactionalLoad) -> None:
    """Every committed record was read once, in the order of its partition."""
    for records in member.read.values():
        offsets = [offset for offset, _ in records]
        assert offsets == sorted(set(offsets))
    committed = [value for (topic, _), records in member.read.items() for _, value in records if topic == TRANSACTIONS]
    assert sorted(committed) == sorted(transactions.committed)
