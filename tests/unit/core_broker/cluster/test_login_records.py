"""Which credentials count while there is no quorum yet, and that only the metadata count as soon as there is one."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core_broker.cluster.features import METADATA_VERSION
from core_broker.cluster.login_records import LoginRecords
from core_broker.protocol.stored.metadata import (
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tests.unit.core_broker.cluster.test_quorum_of_several import Cluster, until

VOTERS = (1, 2, 3)
CLUSTER_EXISTS = FeatureLevelRecord(METADATA_VERSION, 25)


def user(name: str, salt: bytes = b"salt") -> UserScramCredentialRecord:
    return UserScramCredentialRecord(name=name, mechanism=1, salt=salt, iterations=4096)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster")
    for number in VOTERS:
        cluster.start(number, voters=VOTERS)
    yield cluster
    for number in list(cluster.nodes):
        await cluster.stop(number)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A place for a copy of one node of three, which cannot form a quorum."""
    cluster = Cluster(tmp_path / "alone")
    yield cluster
    for number in list(cluster.nodes):
        await cluster.stop(number)


async def test_after_a_crash_the_credentials_in_the_log_count_before_there_is_a_quorum(
    cluster: Cluster, alone: Cluster
) -> None:
    await cluster.append(CLUSTER_EXISTS, user("node"), user("gone"))
    await cluster.append(user("node", salt=b"new"), RemoveUserScramCredentialRecord(name="gone", mechanism=1))
    end = (await cluster.leader()).end_offset
    await until(lambda: cluster.nodes[2].end_offset == end)
    shutil.copytree(cluster.path / "2", alone.path / "2")  # as a crash leaves it: without a snapshot
    alone.start(2, voters=VOTERS)
    metadata = alone.nodes[2]
    assert metadata.image.carried == {}
    records = LoginRecords(metadata, [])
    records.read_disk()
    assert list(records().values()) == [user("node", salt=b"new")]


async def test_the_first_users_count_before_the_cluster_exists(cluster: Cluster) -> None:
    metadata = cluster.nodes[1]
    records = LoginRecords(metadata, [user("node")])
    records.read_disk()
    assert list(records().values()) == [user("node")]
    await cluster.leader()
    assert list(records().values()) == [user("node")]
    await cluster.append(CLUSTER_EXISTS, user("other"))
    await until(lambda: METADATA_VERSION in metadata.image.features)
    assert records() is metadata.image.carried
    assert list(records().values()) == [user("other")]
