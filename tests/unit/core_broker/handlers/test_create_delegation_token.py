"""The life of delegation tokens, from the requests of clients to their end."""

from collections.abc import Mapping

import msgspec
import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers.api import Api
from core_broker.handlers.table import BROKER_BY_KEY
from core_broker.protocol.fields import Message, decode
from core_broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from core_broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from core_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from core_broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from core_broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from core_broker.protocol.principals import encode_host, encode_principal
from core_broker.protocol.stored.metadata import AccessControlEntryRecord
from core_broker.security.acls import PatternType, PermissionType
from core_broker.security.audit import AuditLog, Json
from core_broker.security.authorizer import Authorizer
from core_broker.security.operations import Operation, ResourceType
from core_broker.security.tokens import token_hmac
from core_broker.settings import BrokerSettings
from tests.support.handler_world import HandlerWorld
from tests.support.logged_in import LoggedIn
from tests.support.wire import request_body

HOUR, DAY = 3_600_000, 86_400_000


@pytest.fixture
def settings() -> BrokerSettings:
    return BrokerSettings(delegation_token_secret_key="secret")


@pytest.fixture
def alice(world: HandlerWorld) -> LoggedIn:
    return LoggedIn(world, "alice")


async def create(
    client: LoggedIn, *, owner: str = "", renewers: tuple[str, ...] = (), version: int = 3, owner_type: str = "User"
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(
        owner_type if owner else None, owner or None, [CreatableRenewers("User", name) for name in renewers], -1
    )
    return await client.call(request, CreateDelegationTokenResponse, version)


async def renew(client: LoggedIn, hmac: bytes, period_ms: int = -1, version: int = 2) -> RenewDelegationTokenResponse:
    return await client.call(RenewDelegationTokenRequest(hmac, period_ms), RenewDelegationTokenResponse, version)


async def expire(client: LoggedIn, hmac: bytes, period_ms: int = -1, version: int = 2) -> ExpireDelegationTokenResponse:
    return await client.call(ExpireDelegationTokenRequest(hmac, period_ms), ExpireDelegationTokenResponse, version)


async def describe(
    client: LoggedIn, *owners: str, everyone: bool = False, version: int = 3
) -> list[DescribedDelegationToken]:
    wanted = None if everyone else [DescribeDelegationTokenOwner("User", name) for name in owners]
    response = await client.call(DescribeDelegationTokenRequest(wanted), DescribeDelegationTokenResponse, version)
    assert response.error_code == 0
    return response.tokens


@pytest.mark.parametrize("version", range(1, 4))
async def test_every_version_creates_a_token_of_the_client(world: HandlerWorld, alice: LoggedIn, version: int) -> None:
    created = await create(alice, renewers=("carol",), version=version)
    now = world.clock.now_ms()
    assert created.error_code == 0
    assert (created.principal_type, created.principal_name) == ("User", "alice")
    assert created.token_requester_principal_name == ("alice" if version >= 3 else "")
    assert (created.issue_timestamp_ms, created.expiry_timestamp_ms) == (now, now + DAY)
    assert created.max_timestamp_ms == now + 7 * DAY
    assert created.hmac == token_hmac("secret", created.token_id)
    assert world.services.tokens.find_by_hmac(created.hmac) is not None


@pytest.mark.parametrize("version", range(1, 3))
async def test_every_version_renews_and_removes_a_token(world: HandlerWorld, alice: LoggedIn, version: int) -> None:
    created = await create(alice)
    world.clock.advance(HOUR)
    renewed = await renew(alice, created.hmac, 2 * HOUR, version)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, world.clock.now_ms() + 2 * HOUR)
    expired = await expire(alice, created.hmac, HOUR, version)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (0, world.clock.now_ms() + HOUR)
    removed = await expire(alice, created.hmac, -1, version)
    assert (removed.error_code, removed.expiry_timestamp_ms) == (0, -1)
    assert (await renew(alice, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_a_token_of_another_user_is_of_no_use_without_being_its_renewer(
    world: HandlerWorld, alice: LoggedIn
) -> None:
    created = await create(alice, renewers=("carol",))
    carol, dora = LoggedIn(world, "carol"), LoggedIn(world, "dora")
    assert (await renew(carol, created.hmac)).error_code == 0
    assert (await renew(dora, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert (await expire(dora, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


async def test_owners_are_users(alice: LoggedIn) -> None:
    refused = await create(alice, owner="admins", owner_type="Group")
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert (refused.principal_type, refused.principal_name) == ("Group", "admins")
    assert refused.token_requester_principal_name == "alice"
    times = {refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms}
    assert (times, refused.token_id, refused.hmac) == ({-1}, "", b"")


@pytest.mark.parametrize("version", range(1, 4))
async def test_a_client_sees_the_tokens_that_it_owns_or_may_renew(
    world: HandlerWorld, alice: LoggedIn, version: int
) -> None:
    created = await create(alice, renewers=("carol",))
    other = await create(LoggedIn(world, "carol"))
    (mine,) = await describe(alice, "alice", version=version)
    assert (mine.token_id, mine.hmac, mine.principal_name) == (created.token_id, created.hmac, "alice")
    assert [renewer.principal_name for renewer in mine.renewers] == ["carol"]
    assert (mine.issue_timestamp, mine.max_timestamp) == (created.issue_timestamp_ms, created.max_timestamp_ms)
    of_carol = await describe(LoggedIn(world, "carol"), "carol", version=version)
    assert {token.token_id for token in of_carol} == {created.token_id, other.token_id}
    assert len(await describe(LoggedIn(world, "carol"), everyone=True, version=version)) == 2


async def test_an_empty_list_of_owners_finds_nothing(alice: LoggedIn) -> None:
    await create(alice)
    assert await describe(alice) == []


async def test_an_expired_token_is_removed_by_the_controller(world: HandlerWorld, alice: LoggedIn) -> None:
    created = await create(alice)
    kept = await create(alice)
    await expire(alice, created.hmac, HOUR)
    world.clock.advance(HOUR)
    assert (await renew(alice, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert len(await describe(alice, everyone=True)) == 2
    assert await world.controller.remove_expired_tokens() == 1
    assert [token.token_id for token in await describe(alice, everyone=True)] == [kept.token_id]
    assert (await renew(alice, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


# -- who may send these requests --

REQUESTS: tuple[tuple[Message, type[Message], int], ...] = (
    (CreateDelegationTokenRequest(None, None, [], -1), CreateDelegationTokenResponse, 3),
    (RenewDelegationTokenRequest(b"hmac", -1), RenewDelegationTokenResponse, 2),
    (ExpireDelegationTokenRequest(b"hmac", -1), ExpireDelegationTokenResponse, 2),
    (DescribeDelegationTokenRequest(None), DescribeDelegationTokenResponse, 3),
)


@pytest.mark.parametrize("request_,response,version", REQUESTS)
async def test_tokens_are_for_clients_that_have_logged_in_without_one(
    world: HandlerWorld, request_: Message, response: type[Message], version: int
) -> None:
    for client, is_allowed in (
        (LoggedIn(world, "alice", security_protocol="PLAINTEXT"), False),
        (LoggedIn(world, "ANONYMOUS", security_protocol="SSL"), False),
        (LoggedIn(world, "CN=alice", security_protocol="SSL"), True),
        (LoggedIn(world, "alice", security_protocol="SASL_PLAINTEXT"), True),
        (LoggedIn(world, "alice", security_protocol="SASL_SSL"), True),
        (LoggedIn(world, "alice", security_protocol="SASL_SSL", is_by_token=True), False),
    ):
        answer = await client.call(request_, response, version)
        assert (getattr(answer, "error_code") == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) is not is_allowed  # noqa: B009 - of every response
        if not is_allowed and hasattr(answer, "expiry_timestamp_ms"):
            assert answer.expiry_timestamp_ms == -1


@pytest.mark.parametrize("request_,response,version", REQUESTS[:3])
async def test_a_controller_listener_is_no_way_around_that(
    world: HandlerWorld, request_: Message, response: type[Message], version: int
) -> None:
    for security_protocol, is_by_token in (("PLAINTEXT", False), ("SASL_SSL", True)):
        client = LoggedIn(
            world, "alice", security_protocol=security_protocol, is_by_token=is_by_token, is_controller_listener=True
        )
        answer = await client.call(request_, response, version)
        assert getattr(answer, "error_code") == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # noqa: B009 - see above


@pytest.mark.parametrize("request_,response,version", REQUESTS[:3])
async def test_a_token_does_not_become_another_login_by_being_forwarded(
    world: HandlerWorld, request_: Message, response: type[Message], version: int
) -> None:
    broker = LoggedIn(world, "broker", is_controller_listener=True)
    for is_by_token in (False, True):
        client = LoggedIn(world, "alice", is_by_token=is_by_token).principal
        frame = request_body(request_, version, correlation_id=77)
        envelope = EnvelopeRequest(frame, encode_principal(client), encode_host("192.0.2.9"))
        answer = await broker.call(envelope, EnvelopeResponse, 0)
        assert answer.response_data is not None
        assert request_.API_KEY is not None
        inner = decode(response, version, answer.response_data, _header_bytes(BROKER_BY_KEY[request_.API_KEY], version))
        code = getattr(inner, "error_code")  # noqa: B009 - see above
        assert (code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED) is is_by_token


# -- the audit log --


@pytest.fixture
def events(world: HandlerWorld) -> list[Mapping[str, Json]]:
    """What the audit log gets."""
    found: list[Mapping[str, Json]] = []
    world.services = msgspec.structs.replace(world.services, audit=AuditLog(world.clock, found.append))
    return found


@pytest.mark.parametrize("request_,response,version", REQUESTS)
async def test_a_refused_request_is_in_the_audit_log_once(
    world: HandlerWorld,
    events: list[Mapping[str, Json]],
    request_: Message,
    response: type[Message],
    version: int,
) -> None:
    await LoggedIn(world, "alice", is_by_token=True).call(request_, response, version)
    (event,) = events
    assert (event["event"], event["principal"], event["host"]) == ("denied", "User:alice", "192.0.2.9")
    assert event["api"] == type(request_).__name__.removesuffix("Request")
    assert event["reason"] == "tokens are for clients with a login that is not a token itself"


async def test_a_token_of_another_user_and_each_change_of_a_token_are_in_the_audit_log_without_it(
    world: HandlerWorld, events: list[Mapping[str, Json]], alice: LoggedIn
) -> None:
    created = await create(alice)
    await renew(LoggedIn(world, "dora"), created.hmac)
    await renew(alice, created.hmac)
    await expire(alice, created.hmac)
    await expire(alice, created.hmac)
    assert [(event["event"], event["api"], event["principal"], event.get("errors")) for event in events] == [
        ("changed", "CreateDelegationToken", "User:alice", []),
        ("denied", "RenewDelegationToken", "User:dora", None),
        ("changed", "RenewDelegationToken", "User:alice", []),
        ("changed", "ExpireDelegationToken", "User:alice", []),
        ("changed", "ExpireDelegationToken", "User:alice", ["DELEGATION_TOKEN_NOT_FOUND"]),
    ]
    assert created.hmac[:16].hex() not in str(events)


def _header_bytes(api: Api, version: int) -> int:
    return 5 if api.has_flexible_response_header(version) else 4


@pytest.mark.parametrize("request_,response,version", REQUESTS)
@pytest.mark.parametrize("settings", [BrokerSettings()])
async def test_without_a_secret_key_the_feature_is_off(
    world: HandlerWorld, request_: Message, response: type[Message], version: int
) -> None:
    answer = await LoggedIn(world, "alice").call(request_, response, version)
    assert getattr(answer, "error_code") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED  # noqa: B009 - see above


# -- rights --


def allow(world: HandlerWorld, operation: Operation, kind: ResourceType, name: str, *, user: str) -> None:
    """Have an authorizer that allows this, and nothing else."""
    authorizer = Authorizer([])
    rule = AccessControlEntryRecord(
        b"i" * 16, kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, PermissionType.ALLOW
    )
    authorizer.load([rule])
    world.services = msgspec.structs.replace(world.services, authorizer=authorizer)


async def test_a_token_for_another_user_needs_the_right_to_create_tokens_of_that_user(
    world: HandlerWorld, alice: LoggedIn
) -> None:
    allow(world, Operation.CREATE_TOKENS, ResourceType.USER, "User:bob", user="alice")
    created = await create(alice, owner="bob")
    assert (created.error_code, created.principal_name, created.token_requester_principal_name) == (0, "bob", "alice")
    refused = await create(alice, owner="carol")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.issue_timestamp_ms, refused.hmac) == ("carol", -1, b"")
    assert (await create(alice)).error_code == 0
    assert (await renew(alice, created.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


async def test_tokens_of_others_are_seen_with_the_right_to_describe_them(world: HandlerWorld, alice: LoggedIn) -> None:
    first, second = await create(LoggedIn(world, "bob")), await create(LoggedIn(world, "bob"))
    for operation, kind, name, seen in (
        (Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, first.token_id, {first.token_id}),
        (Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob", {first.token_id, second.token_id}),
        (Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol", set()),
    ):
        allow(world, operation, kind, name, user="alice")
        assert {token.token_id for token in await describe(alice, everyone=True)} == seen
    assert len(await describe(LoggedIn(world, "bob"), everyone=True)) == 2
