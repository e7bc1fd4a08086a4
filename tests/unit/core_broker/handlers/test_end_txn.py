import pytest

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from core_broker.protocol.records import Record, build_batch
from tests.support.transaction_handler_world import TX, TransactionHandlers


@pytest.mark.parametrize("version", range(5))
async def test_producer_of_the_older_protocol_keeps_its_epoch(handlers: TransactionHandlers, version: int) -> None:
    producer = await handlers.begin(0)
    answer = await handlers.call(EndTxnRequest(TX, *producer, True), EndTxnResponse, version)
    assert answer.error_code == 0
    assert handlers.coordinator.describe(TX).producer == producer


async def test_producer_of_transaction_version_2_gets_its_next_epoch(handlers: TransactionHandlers) -> None:
    producer = await handlers.begin(0)
    request = EndTxnRequest(TX, *producer, True)
    answers = [await handlers.call(request, EndTxnResponse, 5) for _ in range(2)]
    assert {(answer.error_code, answer.producer_id, answer.producer_epoch) for answer in answers} == {
        (0, producer.producer_id, producer.epoch + 1)
    }


@pytest.mark.parametrize("version", [1, 5])
@pytest.mark.parametrize("commit", [True, False])
async def test_readers_of_committed_records_go_on_once_the_producer_has_its_answer(
    handlers: TransactionHandlers, version: int, commit: bool
) -> None:
    producer = await handlers.begin(0)
    partition = handlers.world.partition("orders")
    batch = build_batch(
        [Record(timestamp=1, value=b"v")],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        is_transactional=True,
    )
    partition.append(batch, acks_all=True)
    assert partition.last_stable_offset == 0
    await handlers.call(EndTxnRequest(TX, *producer, commit), EndTxnResponse, version)
    assert partition.last_stable_offset == 2
    assert partition.log.aborted_transactions(0, 2) == ([] if commit else [(producer.producer_id, 0)])


@pytest.mark.parametrize("version, code", [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_replaced_producer_is_told_so_in_words_it_knows(
    handlers: TransactionHandlers, version: int, code: ErrorCode
) -> None:
    replaced = await handlers.init()
    await handlers.init()
    answer = await handlers.call(EndTxnRequest(TX, *replaced, True), EndTxnResponse, version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
