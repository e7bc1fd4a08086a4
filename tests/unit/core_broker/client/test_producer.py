import pytest

from core_broker.client.errors import ClientError, NotFound, Rejected, Unreachable
from core_broker.client.producer import Producer
from core_broker.client.records import Delivery, OutgoingRecord
from core_broker.client.settings import ClientSettings

pytestmark = pytest.mark.processes


def test_every_record_is_delivered_before_the_producer_is_left(cluster: ClientSettings, topic: str) -> None:
    outcomes: list[Delivery | ClientError] = []
    with Producer(cluster) as producer:
        for number in range(3):
            record = OutgoingRecord(topic=topic, value=str(number).encode(), partition=1)
            producer.send(record, outcomes.append)
    assert [(d.topic, d.partition, d.offset) for d in outcomes if isinstance(d, Delivery)] == [
        (topic, 1, 0),
        (topic, 1, 1),
        (topic, 1, 2),
    ]


def test_record_for_a_partition_that_is_not_there_is_reported_as_not_found(cluster: ClientSettings, topic: str) -> None:
    outcomes: list[Delivery | ClientError] = []
    with Producer(cluster) as producer:
        producer.send(OutgoingRecord(topic=topic, value=b"x", partition=99), outcomes.append)
    assert isinstance(outcomes[0], NotFound)


def test_unreachable_cluster_is_reported_for_each_record(nowhere: ClientSettings) -> None:
    outcomes: list[Delivery | ClientError] = []
    with Producer(nowhere) as producer:
        producer.send(OutgoingRecord(topic="t", value=b"x"), outcomes.append)
    assert isinstance(outcomes[0], Unreachable)


def test_unknown_property_is_rejected_by_name() -> None:
    with pytest.raises(Rejected, match="no.such.thing"):
        Producer(ClientSettings(properties={"no.such.thing": "1"}))
