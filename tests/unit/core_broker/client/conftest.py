import pytest

from core_broker.client.admin import Admin
from core_broker.client.settings import ClientSettings
from tests.support.broker import BrokerProcess


@pytest.fixture
def cluster(broker: BrokerProcess) -> ClientSettings:
    """Settings that reach a running broker."""
    return ClientSettings(bootstrap_servers=broker.bootstrap, properties={"log_level": "0"})


@pytest.fixture
def topic(cluster: ClientSettings, name: str) -> str:
    """A topic of this test's own, with four partitions, that keeps records of any age."""
    Admin(cluster).create_topic(name, partitions=4, configs={"retention.ms": "-1"})
    return name


@pytest.fixture
def nowhere() -> ClientSettings:
    """Settings that reach nobody."""
    return ClientSettings(bootstrap_servers="127.0.0.1:1", timeout_ms=300, properties={"log_level": "0"})
