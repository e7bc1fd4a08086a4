"""ACLs through the admin clients of users: created, described, deleted, kept over a restart, alike on all brokers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLFilter, ACLResourcePatternType, ResourcePattern, ResourcePatternFilter
from kafka.admin import ACLOperation as KafkaOperation
from kafka.admin import ACLPermissionType as KafkaPermission
from kafka.admin import ResourceType as KafkaResource

from core_broker.settings.authorization import STANDARD_AUTHORIZER
from tests.support.broker import BrokerProcess
from tests.support.cluster import BrokerCluster
from tests.support.patience import eventually

AUTHORIZED: Final = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
READ = AclBinding(
    ResourceType.TOPIC,
    "orders",
    ResourcePatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)
WRITE = AclBinding(
    ResourceType.TOPIC,
    "ord",
    ResourcePatternType.PREFIXED,
    "User:bob",
    "10.0.0.7",
    AclOperation.WRITE,
    AclPermissionType.DENY,
)
_ALL: Final[Any] = None  # which the types of the client do not know about
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, _ALL, ResourcePatternType.ANY, _ALL, _ALL, AclOperation.ANY, AclPermissionType.ANY
)
AFFECTING = AclBindingFilter(
    ResourceType.TOPIC, "orders", ResourcePatternType.MATCH, _ALL, _ALL, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture(scope="module")
def authorizing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("acls"), settings=AUTHORIZED) as process:
        yield process


def described(admin: AdminClient, wanted: AclBindingFilter = EVERYTHING) -> set[AclBinding]:
    return set(admin.describe_acls(wanted, request_timeout=10).result(15))


def create(admin: AdminClient, *bindings: AclBinding) -> None:
    for future in admin.create_acls(list(bindings), request_timeout=10).values():
        future.result(15)


def delete(admin: AdminClient, wanted: AclBindingFilter = EVERYTHING) -> set[AclBinding]:
    (future,) = admin.delete_acls([wanted], request_timeout=10).values()
    return set(future.result(15))


def test_confluent_admin_creates_describes_and_deletes(authorizing: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": authorizing.bootstrap})
    create(admin, READ, WRITE)
    create(admin, READ)
    assert described(admin) == {READ, WRITE}
    assert described(admin, AFFECTING) == {READ, WRITE}
    with pytest.raises(KafkaException, match="kafka-cluster"):
        create(
            admin,
            AclBinding(
                ResourceType.BROKER,
                "another",
                ResourcePatternType.LITERAL,
                "User:alice",
                "*",
                AclOperation.ALTER,
                AclPermissionType.ALLOW,
            ),
        )
    assert delete(admin, AFFECTING) == {READ, WRITE}
    assert described(admin) == set()


def test_kafka_python_admin_creates_describes_and_deletes(authorizing: BrokerProcess) -> None:
    admin = KafkaAdminClient(bootstrap_servers=authorizing.bootstrap)
    try:
        acl = ACL(
            "User:carol",
            "::1",
            KafkaOperation.DESCRIBE_CONFIGS,
            KafkaPermission.ALLOW,
            ResourcePattern(KafkaResource.GROUP, "billing-", ACLResourcePatternType.PREFIXED),
        )
        created = admin.create_acls([acl])
        assert created["failed"] == []
        everything = ACLFilter(
            None,
            None,
            KafkaOperation.ANY,
            KafkaPermission.ANY,
            ResourcePatternFilter(KafkaResource.ANY, None, ACLResourcePatternType.ANY),
        )
        found, error = admin.describe_acls(everything)
        assert error.errno == 0
        assert found == [acl]
        ((_, deleted, _),) = admin.delete_acls([everything])
        assert deleted == [acl]
    finally:
        admin.close()


def test_acls_outlive_a_restart_and_a_crash(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings=AUTHORIZED) as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        create(admin, READ, WRITE)
        process.kill()
        process.start()
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        assert described(admin) == {READ, WRITE}
        assert delete(admin, AFFECTING) == {READ, WRITE}
        create(admin, WRITE)
        process.stop()  # which writes a snapshot
        process.start()
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        assert described(admin) == {WRITE}


def test_three_brokers_know_the_same_acls(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path, settings=AUTHORIZED) as cluster:
        admins = [AdminClient({"bootstrap.servers": node.address}) for node in cluster]
        create(admins[0], READ, WRITE)
        eventually(lambda: all(described(admin) == {READ, WRITE} for admin in admins))
        cluster[2].stop()
        assert delete(admins[0], AFFECTING) == {READ, WRITE}
        create(admins[0], READ)
        cluster.start([2])
        admins[1] = AdminClient({"bootstrap.servers": cluster[2].address})
        eventually(lambda: all(described(admin) == {READ} for admin in admins))
