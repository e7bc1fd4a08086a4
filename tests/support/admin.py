"""Topics and their configs, as tests set them up."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker import BrokerProcess

T = TypeVar("T")


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
    """Create a topic."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    admin_client(broker).create_topics([new])[topic].result(30)


def eventually(
    ask: Callable[[], T], accept: Callable[[T], bool] = bool, *, timeout_s: float = 60.0, pause_s: float = 0.05
) -> T:
    """Ask again until the answer is accepted; fails with the last answer when time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = ask()
        if accept(answer):
            return answer
        assert time.monotonic() < deadline, f"still {answer!r} after {timeout_s} s"
        time.sleep(pause_s)
