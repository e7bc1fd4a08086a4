import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.support.transaction_handler_world import TX, TransactionHandlers


@pytest.mark.parametrize("version", range(6))
async def test_idempotent_producer_gets_an_id_of_its_own(handlers: TransactionHandlers, version: int) -> None:
    answers = [await handlers.call(InitProducerIdRequest(None, 0), InitProducerIdResponse, version) for _ in range(2)]
    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(0, 0)] * 2
    assert answers[0].producer_id != answers[1].producer_id


@pytest.mark.parametrize("version", range(6))
async def test_transactional_producer_gets_the_next_epoch_each_time(
    handlers: TransactionHandlers, version: int
) -> None:
    first, second = await handlers.init(version=version), await handlers.init(version=version)
    assert second == (first.producer_id, first.epoch + 1)


@pytest.mark.parametrize("version, code", [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
async def test_replaced_producer_is_told_so_in_words_it_knows(
    handlers: TransactionHandlers, version: int, code: ErrorCode
) -> None:
    replaced = await handlers.init()
    await handlers.init()
    request = InitProducerIdRequest(TX, 60_000, replaced.producer_id, replaced.epoch)
    answer = await handlers.call(request, InitProducerIdResponse, version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


async def test_producer_id_without_an_epoch_is_refused(handlers: TransactionHandlers) -> None:
    answer = await handlers.call(InitProducerIdRequest(TX, 60_000, 5, -1), InitProducerIdResponse, 4)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_time_out_above_the_limit_is_refused(handlers: TransactionHandlers) -> None:
    answer = await handlers.call(InitProducerIdRequest(TX, 2**31 - 1), InitProducerIdResponse, 4)
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
