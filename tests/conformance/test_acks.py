"""What an acknowledgement means: acks 0, 1 and all, and the idempotent producer."""

import pytest
from confluent_kafka import Producer

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from core_broker.service.clock import SystemClock
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import Client, Sent
from tests.support.routing import leader_of
from tests.support.wire import WireConnection, frame

PRODUCE_VERSION = 9
RECORDS = [Sent(value=b"%d" % number, partition=0) for number in range(50)]


def values(broker: BrokerProcess, topic: str, count: int) -> list[bytes | None]:
    return [record.value for record in ConfluentClient().consume(broker.bootstrap, topic, count)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_whatever_acks_the_producer_asks_for(
    broker: BrokerProcess, name: str, client: Client, acks: str
) -> None:
    create_topic(broker, name)
    client.produce(broker.bootstrap, name, RECORDS, acks=acks)
    assert values(broker, name, 50) == [record.value for record in RECORDS]


def test_idempotent_producer_writes_each_record_once(broker: BrokerProcess, name: str, client: Client) -> None:
    client.produce(broker.bootstrap, name, RECORDS, idempotent=True)
    client.produce(broker.bootstrap, name, RECORDS, idempotent=True)
    assert values(broker, name, 100) == [record.value for record in RECORDS] * 2


def test_many_records_in_flight_keep_their_order(broker: BrokerProcess, name: str) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 3}
    )
    for number in range(2_000):
        producer.produce(name, b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    assert values(broker, name, 2_000) == [b"%d" % number for number in range(2_000)]


class RawProducer:
    """An idempotent producer whose every sequence number the test decides."""

    def __init__(self, connection: WireConnection, topic: str) -> None:
        self.connection = connection
        self.topic = topic
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        # A broker of Kafka asks for a retry until it has its first ids from the controller.
        answer = eventually(
            lambda: connection.request(request, 4, InitProducerIdResponse),
            lambda answer: answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )
        assert answer.error_code == 0
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def request(self, sequence: int, count: int = 1, *, epoch: int | None = None, acks: int = -1) -> ProduceRequest:
        batch = build_batch(
            [Record(-1, SystemClock().now_ms(), None, b"v%d" % n) for n in range(count)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
        )
        data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
        return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[data])

    def send(self, sequence: int, count: int = 1, *, epoch: int | None = None) -> PartitionProduceResponse:
        answer = self.connection.request(self.request(sequence, count, epoch=epoch), PRODUCE_VERSION, ProduceResponse)
        return answer.responses[0].partition_responses[0]


def test_a_duplicate_batch_is_answered_with_its_original_offset(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        first = [producer.send(sequence * 2, 2) for sequence in range(5)]
        again = [producer.send(sequence * 2, 2) for sequence in range(5)]
    assert [answer.error_code for answer in first + again] == [0] * 10
    assert [answer.base_offset for answer in first] == [0, 2, 4, 6, 8]
    assert [answer.base_offset for answer in again] == [0, 2, 4, 6, 8]
    assert len(values(broker, name, 10)) == 10


def test_a_gap_in_the_sequence_is_refused(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        assert producer.send(0).error_code == 0
        assert producer.send(2).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(1).error_code == 0


def test_an_older_epoch_is_refused(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        assert producer.send(0, epoch=3).error_code == 0
        assert producer.send(1, epoch=2).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_at_sequence_0(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        assert producer.send(0).error_code == 0
        assert producer.send(1, epoch=1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(0, epoch=1).error_code == 0


def test_acks_0_is_not_answered_and_an_error_closes_the_connection(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        assert producer.send(0).error_code == 0
        connection.send(frame(producer.request(1, acks=0), PRODUCE_VERSION, correlation_id=500))
        connection.send(frame(producer.request(2, acks=-1), PRODUCE_VERSION, correlation_id=501))
        assert connection.receive()[:4] == (501).to_bytes(4)
        connection.send(frame(producer.request(77, acks=0), PRODUCE_VERSION, correlation_id=502))
        assert connection.is_closed_by_peer()
    assert len(values(broker, name, 3)) == 3


def test_acks_other_than_0_1_and_all_are_refused(broker: BrokerProcess, name: str) -> None:
    create_topic(broker, name)
    with WireConnection(leader_of(broker.bootstrap, name)) as connection:
        producer = RawProducer(connection, name)
        answer = connection.request(producer.request(0, acks=2), PRODUCE_VERSION, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
