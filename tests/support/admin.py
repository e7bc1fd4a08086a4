"""Topics and their configs, as tests set them up."""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker import BrokerProcess
from tests.support.patience import eventually
from tests.support.routing import await_topic

__all__ = ["admin_client", "create_topic", "eventually"]

_clients: WeakKeyDictionary[BrokerProcess, AdminClient] = WeakKeyDictionary()


def admin_client(broker: BrokerProcess) -> AdminClient:
    """The admin client of a broker: one that is kept, since it ends its calls when it is collected."""
    if broker not in _clients:
        quiet = {"log_level": 0}  # it outlives its broker for a while and would complain
        _clients[broker] = AdminClient(
            {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 500, **quiet}
        )
    return _clients[broker]


def create_topic(
    broker: BrokerProcess, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic with as many replicas as the cluster makes by default; every broker knows it on return."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=dict(configs or {}))
    admin_client(broker).create_topics([new])[topic].result(30)
    if len(broker.nodes) > 1:
        await_topic([node.address for node in broker.nodes], topic, partitions)
