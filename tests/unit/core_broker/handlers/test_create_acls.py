"""DescribeAcls, CreateAcls and DeleteAcls of a broker with an authorizer."""

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from core_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from core_broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from core_broker.protocol.primitives import DecodeError
from core_broker.protocol.principals import Principal
from core_broker.security.operations import Operation, ResourceType
from core_broker.settings import BrokerSettings
from core_broker.settings.authorization import STANDARD_AUTHORIZER
from tests.support.handler_world import HandlerWorld

ALICE = Principal("User", "alice")
ACL = AclCreation(2, "orders", 3, "User:alice", "10.0.0.1", 3, 3)
ALL = (1, None, 1, None, None, 1, 1)


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(authorizer_class_name=STANDARD_AUTHORIZER, super_users=("User:ANONYMOUS",))


def may_read(world: HandlerWorld) -> bool:
    assert world.authorizer is not None
    return world.authorizer.allows(ALICE, "10.0.0.1", Operation.READ, ResourceType.TOPIC, "orders")


@pytest.mark.parametrize("version", range(1, 4))
async def test_acl_is_created_described_and_deleted(world: HandlerWorld, version: int) -> None:
    assert not may_read(world)
    bad = AclCreation(2, "", 3, "User:alice", "*", 3, 3)
    created = await world.call(CreateAclsRequest([ACL, bad, ACL]), CreateAclsResponse, version)
    assert [result.error_code for result in created.results] == [0, ErrorCode.INVALID_REQUEST, 0]
    assert [bool(result.error_message) for result in created.results] == [False, True, False]
    assert may_read(world)

    described = await world.call(DescribeAclsRequest(*ALL), DescribeAclsResponse, version)
    assert (described.error_code, described.error_message) == (0, None)
    assert described.resources == [
        DescribeAclsResource(2, "orders", 3, [AclDescription("User:alice", "10.0.0.1", 3, 3)])
    ]

    filters = [DeleteAclsFilter(*ALL), DeleteAclsFilter(2, "orders", 2, None, None, 1, 1), DeleteAclsFilter(*ALL)]
    filters[2].permission_type = 99
    deleted = await world.call(DeleteAclsRequest(filters), DeleteAclsResponse, version)
    assert [result.error_code for result in deleted.filter_results] == [0, 0, ErrorCode.INVALID_REQUEST]
    assert [[acl.resource_name for acl in r.matching_acls] for r in deleted.filter_results] == [
        ["orders"],
        ["orders"],
        [],
    ]
    assert not may_read(world)
    assert (await world.call(DescribeAclsRequest(*ALL), DescribeAclsResponse, version)).resources == []


async def test_acls_of_one_resource_are_described_together(world: HandlerWorld) -> None:
    others = [AclCreation(2, "orders", 3, "User:bob", "*", 4, 2), AclCreation(2, "orders", 4, "User:bob", "*", 4, 2)]
    await world.call(CreateAclsRequest([ACL, *others]), CreateAclsResponse, 3)
    described = await world.call(DescribeAclsRequest(*ALL), DescribeAclsResponse, 3)
    assert {(r.resource_name, r.pattern_type, len(r.acls)) for r in described.resources} == {
        ("orders", 3, 2),
        ("orders", 4, 1),
    }


@pytest.mark.parametrize("number", [16, 77, -1])
async def test_unknown_numbers_find_nothing(world: HandlerWorld, number: int) -> None:
    await world.call(CreateAclsRequest([ACL]), CreateAclsResponse, 3)
    wanted = DescribeAclsRequest(1, None, 1, None, None, number, 1)
    described = await world.call(wanted, DescribeAclsResponse, 3)
    assert (described.error_code, described.resources) == (0, [])


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
async def test_number_zero_is_not_a_request(world: HandlerWorld, field: str) -> None:
    acl = AclCreation(2, "orders", 3, "User:alice", "*", 3, 3)
    setattr(acl, "resource_pattern_type" if field == "pattern_type" else field, 0)
    name = f"{field}_filter" if field in ("resource_type", "pattern_type") else field
    wanted, removed = DescribeAclsRequest(*ALL), DeleteAclsFilter(*ALL)
    setattr(wanted, name, 0)
    setattr(removed, name, 0)
    for request in (CreateAclsRequest([ACL, acl]), wanted, DeleteAclsRequest([removed])):
        with pytest.raises(DecodeError, match="must not be 0"):
            await world.send(request, 3)
