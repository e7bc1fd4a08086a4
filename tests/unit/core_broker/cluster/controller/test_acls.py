"""Plans of new and deleted ACLs: what is checked, and which records follow."""

from typing import Any

import msgspec
import pytest

from core_broker.cluster.controller.acls import ACLS_PER_CHANGE_MAX, AclCreationPlan, AclDeletionPlan
from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.stored.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from core_broker.security.acls import AclEntry, AclFilter, PatternType, PermissionType
from core_broker.security.operations import Operation, ResourceType
from tests.support.controller_world import ControllerWorld

VALID = AclEntry(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, PermissionType.ALLOW
)


def acl(**changes: Any) -> AclEntry:
    return msgspec.structs.replace(VALID, **changes)


@pytest.fixture
def world() -> ControllerWorld:
    return ControllerWorld()


def create(world: ControllerWorld, *entries: AclEntry) -> AclCreationPlan:
    plan = AclCreationPlan(entries, world.image)
    world.apply(plan.records)
    return plan


def stored(world: ControllerWorld) -> list[AccessControlEntryRecord]:
    return [record for record in world.image.carried.values() if isinstance(record, AccessControlEntryRecord)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pattern": PatternType.PREFIXED},
        {"name": "*"},
        {"principal": "User:"},
        {"principal": "Group:any:thing"},
        {"host": "any text, even \n"},
        {"kind": ResourceType.GROUP, "operation": Operation.WRITE},
        {"kind": ResourceType.CLUSTER, "name": "kafka-cluster"},
        {"operation": Operation.TWO_PHASE_COMMIT, "permission": PermissionType.DENY},
    ],
)
def test_acl_that_kafka_accepts_is_created(world: ControllerWorld, changes: dict[str, Any]) -> None:
    entry = acl(**changes)
    plan = create(world, entry)
    assert plan.results == [None]
    (record,) = stored(world)
    fields = (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    assert fields == msgspec.structs.astuple(entry)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": 1}, "Resource type 1"),
        ({"kind": 99}, "Resource type 99"),
        ({"kind": ResourceType.CLUSTER}, "kafka-cluster"),
        ({"name": ""}, "must not be empty"),
        ({"kind": ResourceType.CLUSTER, "name": ""}, "kafka-cluster"),
        ({"pattern": PatternType.ANY}, "Pattern type 1"),
        ({"pattern": PatternType.MATCH}, "Pattern type 2"),
        ({"pattern": 5}, "Pattern type 5"),
        ({"operation": 1}, "Operation 1"),
        ({"operation": 16}, "Operation 16"),
        ({"operation": -1}, "Operation -1"),
        ({"permission": PermissionType.ANY}, "Permission type 1"),
        ({"permission": 4}, "Permission type 4"),
        ({"principal": "alice"}, "User:name"),
        ({"principal": ""}, "User:name"),
    ],
)
def test_invalid_acl_does_not_stop_the_others(world: ControllerWorld, changes: dict[str, Any], reason: str) -> None:
    plan = create(world, acl(**changes), VALID)
    refusal, success = plan.results
    assert isinstance(refusal, BrokerError)
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert reason in refusal.message
    assert success is None
    assert len(stored(world)) == 1


def test_acl_that_exists_or_is_repeated_is_a_success_without_a_record(world: ControllerWorld) -> None:
    assert create(world, VALID, VALID).results == [None, None]
    assert create(world, VALID).records == []
    assert len(stored(world)) == 1
    assert create(world, acl(host="10.0.0.1"), acl(pattern=PatternType.PREFIXED)).results == [None, None]
    assert len({record.id for record in stored(world)}) == 3


def test_more_new_acls_than_fit_into_a_batch_are_all_refused(world: ControllerWorld) -> None:
    many = [acl(name=f"t-{number}") for number in range(ACLS_PER_CHANGE_MAX)]
    with pytest.raises(BrokerError, match="10001 ACLs") as refused:
        AclCreationPlan([*many, VALID], world.image)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    create(world, VALID)
    assert len(create(world, *many, VALID).records) == ACLS_PER_CHANGE_MAX


def test_filters_remove_what_they_find_and_report_it_each(world: ControllerWorld) -> None:
    other, prefixed = acl(name="payments"), acl(name="ord", pattern=PatternType.PREFIXED)
    create(world, VALID, other, prefixed)
    plan = AclDeletionPlan(
        [
            AclFilter(name="orders", pattern=PatternType.MATCH),
            AclFilter(name="orders", pattern=PatternType.LITERAL),
            AclFilter(name="unknown"),
            AclFilter(kind=77),
        ],
        world.image,
    )
    matched, literal, nothing, refusal = plan.results
    assert (matched, literal, nothing) == ([VALID, prefixed], [VALID], [])
    assert isinstance(refusal, BrokerError)
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert len(plan.records) == 2
    world.apply(plan.records)
    assert [record.resource_name for record in stored(world)] == ["payments"]


@pytest.mark.parametrize(
    "wanted", [AclFilter(kind=99), AclFilter(pattern=9), AclFilter(operation=99), AclFilter(permission=9)]
)
def test_filter_with_an_unknown_number_is_refused(world: ControllerWorld, wanted: AclFilter) -> None:
    create(world, VALID)
    plan = AclDeletionPlan([wanted], world.image)
    assert isinstance(plan.results[0], BrokerError)
    assert plan.records == []


def test_acl_stored_twice_is_reported_once_and_removed_twice(world: ControllerWorld) -> None:
    create(world, VALID)
    world.apply([msgspec.structs.replace(stored(world)[0], id=b"1" * 16)])
    plan = AclDeletionPlan([AclFilter()], world.image)
    assert plan.results == [[VALID]]
    assert len(plan.records) == 2
    assert all(isinstance(record, RemoveAccessControlEntryRecord) for record in plan.records)


def test_filters_that_find_more_than_fits_into_a_batch_are_all_refused(world: ControllerWorld) -> None:
    half = ACLS_PER_CHANGE_MAX // 2
    create(world, *(acl(name=f"t-{number}") for number in range(half)))
    assert len(AclDeletionPlan([AclFilter(), AclFilter()], world.image).records) == half
    with pytest.raises(BrokerError) as refused:
        AclDeletionPlan([AclFilter(), AclFilter(), AclFilter(name="t-0")], world.image)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
