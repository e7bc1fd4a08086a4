import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.support.transaction_handler_world import TransactionHandlers


@pytest.fixture
async def listed(handlers: TransactionHandlers) -> TransactionHandlers:
    """`old` has been open for a second, `new` has just begun, `idle` has nothing open."""
    await handlers.begin(0, transactional_id="old")
    handlers.world.clock.advance(1000)
    await handlers.begin(0, transactional_id="new")
    await handlers.init("idle")
    return handlers


async def names(handlers: TransactionHandlers, request: ListTransactionsRequest, version: int = 2) -> set[str]:
    answer = await handlers.call(request, ListTransactionsResponse, version)
    assert answer.error_code == 0
    return {state.transactional_id for state in answer.transaction_states}


@pytest.mark.parametrize("version", range(3))
async def test_without_filters_everything_is_listed(listed: TransactionHandlers, version: int) -> None:
    assert await names(listed, ListTransactionsRequest(), version) == {"old", "new", "idle"}


async def test_states_are_filtered(listed: TransactionHandlers) -> None:
    assert await names(listed, ListTransactionsRequest(["Ongoing"])) == {"old", "new"}


async def test_unknown_states_are_told(listed: TransactionHandlers) -> None:
    request = ListTransactionsRequest(["Ongoing", "Nonsense"])
    answer = await listed.call(request, ListTransactionsResponse, 0)
    assert answer.unknown_state_filters == ["Nonsense"]


async def test_producer_ids_are_filtered(listed: TransactionHandlers) -> None:
    wanted = listed.coordinator.describe("new").producer_id
    assert await names(listed, ListTransactionsRequest([], [wanted])) == {"new"}


async def test_only_transactions_running_longer_are_listed(listed: TransactionHandlers) -> None:
    assert await names(listed, ListTransactionsRequest([], [], 999)) == {"old"}


async def test_pattern_must_match_the_whole_id(listed: TransactionHandlers) -> None:
    assert await names(listed, ListTransactionsRequest(transactional_id_pattern="ol")) == set()
    assert await names(listed, ListTransactionsRequest(transactional_id_pattern="ol.|i.*")) == {"old", "idle"}
    assert await names(listed, ListTransactionsRequest(transactional_id_pattern="")) == {"old", "new", "idle"}


async def test_pattern_that_is_none_is_refused(listed: TransactionHandlers) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    answer = await listed.call(request, ListTransactionsResponse, 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
