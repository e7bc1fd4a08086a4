"""DescribeClientQuotas on the wire; what filters choose is the subject of the plans' own tests."""

import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from tests.support.handler_world import HandlerWorld


@pytest.mark.parametrize("version", [0, 1])
async def test_the_quotas_that_pass_the_filter_are_listed(world: HandlerWorld, version: int) -> None:
    await world.set_quota("producer_byte_rate", 1000, user="alice", client_id=None)
    await world.set_quota("request_percentage", 12.5, user="alice", client_id=None)
    await world.set_quota("request_percentage", 1, client_id="app")
    request = DescribeClientQuotasRequest([ComponentData("user", 0, "alice")], strict=False)
    response = await world.call(request, DescribeClientQuotasResponse, version)
    assert (response.error_code, response.error_message) == (0, None)
    assert response.entries == [
        EntryData(
            [EntityData("user", "alice"), EntityData("client-id", None)],
            [ValueData("producer_byte_rate", 1000), ValueData("request_percentage", 12.5)],
        )
    ]


async def test_an_invalid_filter_is_answered_with_an_error_and_no_entries(world: HandlerWorld) -> None:
    request = DescribeClientQuotasRequest([ComponentData("group", 2, None)])
    response = await world.call(request, DescribeClientQuotasResponse, 1)
    assert (response.error_code, response.entries) == (ErrorCode.UNSUPPORTED_VERSION, None)
    assert "group" in (response.error_message or "")
