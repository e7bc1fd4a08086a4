"""AlterClientQuotas: on the wire, and in effect as soon as it is answered."""

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from core_broker.security.quota_limits import Limit, QuotaKey
from tests.support.handler_world import HandlerWorld

KEY = QuotaKey.PRODUCER_BYTE_RATE


def entry(name: str | None, value: float) -> EntryData:
    return EntryData([EntityData("user", name)], [OpData(KEY, value)])


async def alter(
    world: HandlerWorld, *entries: EntryData, version: int = 1, validate_only: bool = False
) -> list[tuple[str | None, int, bool]]:
    """Name, error code, and whether there is a message, for each result."""
    request = AlterClientQuotasRequest(list(entries), validate_only)
    response = await world.call(request, AlterClientQuotasResponse, version)
    return [(r.entity[0].entity_name, r.error_code, r.error_message is not None) for r in response.entries]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_quota_is_in_effect_when_it_is_answered(world: HandlerWorld, version: int) -> None:
    assert await alter(world, entry("alice", 1000), entry(None, 10), version=version) == [
        ("alice", 0, False),
        (None, 0, False),
    ]
    assert world.quotas.limits.find(KEY, "alice", "") == Limit(1000, "alice", None)
    assert world.quotas.limits.find(KEY, "bob", "") == Limit(10, "bob", None)


async def test_a_bad_entity_has_a_message_and_does_not_stop_a_good_one(world: HandlerWorld) -> None:
    assert await alter(world, entry("alice", -1), entry("bob", 5)) == [
        ("alice", ErrorCode.INVALID_REQUEST, True),
        ("bob", 0, False),
    ]
    assert world.quotas.limits.find(KEY, "alice", "") is None
    assert world.quotas.limits.find(KEY, "bob", "") == Limit(5, "bob", None)


async def test_good_entities_change_in_one_batch(world: HandlerWorld) -> None:
    offset = world.quorum.image.offset
    await alter(world, entry("alice", 1), entry("bob", 2))
    assert world.quorum.image.offset == offset + 2


async def test_validation_only_writes_nothing(world: HandlerWorld) -> None:
    offset = world.quorum.image.offset
    results = await alter(world, entry("alice", 1), entry("bob", 0), validate_only=True)
    assert [code for _, code, _ in results] == [0, ErrorCode.INVALID_REQUEST]
    assert world.quorum.image.offset == offset
    assert not world.quotas.is_active
