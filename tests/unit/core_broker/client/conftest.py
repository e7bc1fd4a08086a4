"""A cluster inside librdkafka: real sockets, real protocol, none of our broker."""

from collections.abc import Iterator

import confluent_kafka
import pytest

from core_broker.client.settings import ClientSettings


@pytest.fixture(scope="session")
def cluster() -> Iterator[ClientSettings]:
    """Settings that reach the library's own mock cluster, which lives as long as its producer."""
    host = confluent_kafka.Producer(
        {"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0, "log.connection.close": False}
    )
    broker = next(iter(host.list_topics(timeout=10).brokers.values()))
    yield ClientSettings(bootstrap_servers=f"{broker.host}:{broker.port}", properties={"log_level": "0"})
    host.flush(1)


@pytest.fixture
def nowhere() -> ClientSettings:
    """Settings that reach nobody."""
    return ClientSettings(bootstrap_servers="127.0.0.1:1", timeout_ms=300, properties={"log_level": "0"})
