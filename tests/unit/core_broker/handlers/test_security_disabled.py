"""ACLs and SASL, as long as there is neither an authorizer nor a listener that authenticates."""

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from core_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from core_broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from core_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from core_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.handler_world import HandlerWorld


@pytest.mark.parametrize("version", range(1, 4))
async def test_acls_are_answered_with_security_disabled(world: HandlerWorld, version: int) -> None:
    described = await world.call(DescribeAclsRequest(1, None, 1, None, None, 1, 1), DescribeAclsResponse, version)
    assert described.error_code == ErrorCode.SECURITY_DISABLED
    assert "authorizer" in (described.error_message or "")
    acl = AclCreation(2, "t", 3, "User:a", "*", 3, 3)
    created = await world.call(CreateAclsRequest([acl, acl]), CreateAclsResponse, version)
    assert [result.error_code for result in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    deleted = await world.call(
        DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 1)]), DeleteAclsResponse, version
    )
    assert [result.error_code for result in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


@pytest.mark.parametrize("version", range(2))
async def test_a_plaintext_listener_offers_no_mechanism(world: HandlerWorld, version: int) -> None:
    response = await world.call(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", range(3))
async def test_a_plaintext_listener_does_not_authenticate(world: HandlerWorld, version: int) -> None:
    response = await world.call(SaslAuthenticateRequest(b"\0u\0p"), SaslAuthenticateResponse, version)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
