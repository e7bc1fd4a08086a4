from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import Producer

from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import close_idle
from tests.support.broker import BrokerProcess

Send = Callable[..., None]


@pytest.fixture
def cluster(broker: BrokerProcess) -> Cluster:
    """The running broker."""
    return Cluster(broker.bootstrap)


@pytest.fixture(autouse=True)
def closed_consumers() -> Iterator[None]:
    """No consumer is kept from one test to the next."""
    yield
    close_idle()


@pytest.fixture
def send(broker: BrokerProcess) -> Send:
    """Sends values to a partition of a topic, all at one time when that is given."""

    def sent(topic: str, values: Sequence[bytes | None], *, partition: int = 0, timestamp_ms: int = 0) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for value in values:
            producer.produce(topic, value, partition=partition, timestamp=timestamp_ms)
        assert producer.flush(30) == 0

    return sent
