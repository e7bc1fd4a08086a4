import subprocess
import sys
import threading
from typing import Final

import pytest
from typing_extensions import override

from core_broker.client.errors import NotFound
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import _IdleReaders, fetch_range
from streams.spark.topics.range_reader import RangeReader
from streams.spark.topics.ranges import OffsetRange
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.unit.streams.spark.topics.conftest import Send

pytestmark = pytest.mark.processes


class Reader(RangeReader):
    """Stands where a reader of ranges would, and opens nothing."""

    def __init__(self, closed: threading.Event | None = None) -> None:
        self.closed = closed or threading.Event()

    @override
    def close(self) -> None:
        self.closed.set()


def values(cluster: Cluster, topic: str, start: int, end: int) -> list[bytes]:
    found = fetch_range(cluster, OffsetRange(topic, 0, start, end), timeout_ms=20_000)
    return [value for batch in found for value in batch.values.to_pylist()]


def test_a_range_is_given_as_arrow_columns(broker: BrokerProcess, cluster: Cluster, name: str, send: Send) -> None:
    create_topic(broker, name)
    send(name, [b"1", None], timestamp_ms=1000)
    (batch,) = fetch_range(cluster, OffsetRange(name, 0, 0, 2))
    columns = [batch.keys, batch.values, batch.offsets, batch.timestamps_ms, batch.timestamp_types]
    assert [column.to_pylist() for column in columns] == [[None, None], [b"1", None], [0, 1], [1000, 1000], [0, 0]]
    assert batch.headers is None


def test_one_range_after_the_other_and_some_at_once(
    broker: BrokerProcess, cluster: Cluster, name: str, send: Send
) -> None:
    create_topic(broker, name)
    send(name, [b"%d" % number for number in range(100)])
    assert values(cluster, name, 0, 50) + values(cluster, name, 50, 100) == [b"%d" % number for number in range(100)]
    first, second = (fetch_range(cluster, OffsetRange(name, 0, 0, 100), rows_max=40) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.offsets.equals(other.offsets)


def test_a_reading_that_was_given_up_does_not_disturb_the_next(
    broker: BrokerProcess, cluster: Cluster, name: str, send: Send
) -> None:
    create_topic(broker, name)
    send(name, [b"%d" % number for number in range(100)])
    given_up = fetch_range(cluster, OffsetRange(name, 0, 0, 100), rows_max=10)
    next(given_up)
    given_up.close()  # type: ignore[attr-defined]  # it is a generator
    assert values(cluster, name, 10, 12) == [b"10", b"11"]


def test_after_an_error_reading_goes_on(broker: BrokerProcess, cluster: Cluster, name: str, send: Send) -> None:
    with pytest.raises(NotFound):
        values(cluster, name, 0, 1)
    create_topic(broker, name)
    send(name, [b"1"])
    assert values(cluster, name, 0, 1) == [b"1"]


_FORKING: Final = """
import os, sys
from streams.spark.topics.cluster import Cluster
from streams.spark.topics.fetching import close_idle, fetch_range
from streams.spark.topics.ranges import OffsetRange

def read(start, end):
    found = fetch_range(Cluster(sys.argv[1]), OffsetRange(sys.argv[2], 0, start, end), timeout_ms=20_000)
    print(*(value.decode() for batch in found for value in batch.values.to_pylist()), flush=True)

read(0, 2)
child = os.fork()
if child == 0:
    read(2, 4)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
read(2, 6)
close_idle()
"""


def test_a_fork_has_consumers_of_its_own(broker: BrokerProcess, cluster: Cluster, name: str, send: Send) -> None:
    """In a process of its own: what other tests left in this one would not survive a fork."""
    create_topic(broker, name)
    send(name, [b"%d" % number for number in range(6)])
    command = [sys.executable, "-c", _FORKING, cluster.bootstrap_servers, name]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert printed.stdout.splitlines() == ["0 1", "2 3", "2 3 4 5"]


def test_a_few_consumers_are_kept_and_the_oldest_goes_first() -> None:
    kept = _IdleReaders(count_max=2)
    readers = [Reader() for _ in range(3)]
    for number, reader in enumerate(readers):
        kept.give_back((number,), reader)
    assert [reader.closed.is_set() for reader in readers] == [True, False, False]
    assert kept.take((0,)) is None
    assert kept.take((1,)) is readers[1]
    assert kept.take((1,)) is None
    kept.close()
    assert readers[2].closed.is_set()


def test_idle_consumers_are_closed() -> None:
    kept, reader = _IdleReaders(idle_seconds=0.05), Reader()
    kept.give_back(("one",), reader)
    assert reader.closed.wait(60)
    assert kept.take(("one",)) is None


def test_what_a_parent_kept_is_not_used_in_a_fork() -> None:
    kept, reader = _IdleReaders(), Reader()
    kept.give_back(("one",), reader)
    kept.forget()
    assert kept.take(("one",)) is None
    kept.close()
    assert not reader.closed.is_set()
