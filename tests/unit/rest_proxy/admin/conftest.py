import pytest

from core_broker.client.admin import Admin
from core_broker.client.reachability import Reachability
from core_broker.client.settings import ClientSettings
from rest_proxy.admin.cluster import KafkaCluster
from tests.support.broker import BrokerProcess


def reaching(settings: ClientSettings) -> KafkaCluster:
    """A cluster behind these settings, be it there or not."""
    return KafkaCluster(lambda: Admin(settings), Reachability(settings), address=settings.bootstrap_servers)


@pytest.fixture(scope="session")
def cluster(broker: BrokerProcess) -> KafkaCluster:
    """A running cluster."""
    return reaching(ClientSettings(bootstrap_servers=broker.bootstrap, properties={"log_level": "0"}))


@pytest.fixture
def nowhere() -> KafkaCluster:
    """A cluster that is not there."""
    return reaching(ClientSettings(bootstrap_servers="127.0.0.1:1", timeout_ms=300, properties={"log_level": "0"}))


@pytest.fixture
def topic(cluster: KafkaCluster, name: str) -> str:
    """A topic of this test's own, with two partitions."""
    with cluster.admin() as admin:
        admin.create_topic(name, partitions=2)
    return name
