"""When offset syncs are written."""

from connectors.mirror.formats import read_sync
from connectors.mirror.sync_writer import SyncWriter
from core_broker.client.errors import ClientError, Unreachable
from core_broker.client.producer import OnDelivery
from core_broker.client.records import Delivery, OutgoingRecord

PLACE = ("orders", 0)


class Sent:
    """Takes records, and says that they arrived when it is asked to."""

    def __init__(self) -> None:
        self.syncs: list[tuple[int, int]] = []
        self.untold: list[OnDelivery] = []
        self.arrives = True
        self.outcome: Delivery | ClientError = Delivery(topic="t", partition=0, offset=0, timestamp_ms=0)

    def send(self, record: OutgoingRecord, on_delivery: OnDelivery | None = None) -> None:
        sync = read_sync(record.key, record.value)
        assert sync is not None
        assert on_delivery is not None
        assert (record.topic, record.partition) == ("syncs", 0)
        self.syncs.append((sync.upstream, sync.downstream))
        self.untold.append(on_delivery)

    def poll(self, timeout_seconds: float = 0.0) -> None:
        while self.arrives and self.untold:
            self.untold.pop()(self.outcome)


def test_the_first_record_and_each_that_is_far_enough_is_synced() -> None:
    sent = Sent()
    writer = SyncWriter(sent, "syncs", lag_max=10)
    for number in range(25):
        writer.add(PLACE, 100 + number, number)
    assert sent.syncs == [(100, 0), (110, 10), (120, 20)]


def test_the_last_record_is_synced_after_a_while() -> None:
    sent = Sent()
    writer = SyncWriter(sent, "syncs", lag_max=10)
    for number in range(5):
        writer.add(PLACE, number, number)
    writer.send_due()
    writer.send_due()
    assert sent.syncs == [(0, 0), (4, 4)]


def test_with_a_lag_of_zero_every_record_is_synced() -> None:
    sent = Sent()
    writer = SyncWriter(sent, "syncs", lag_max=0)
    for number in range(3):
        writer.add(PLACE, number, number)
    assert sent.syncs == [(0, 0), (1, 1), (2, 2)]


def test_a_copy_that_begins_again_is_synced_at_once() -> None:
    sent = Sent()
    writer = SyncWriter(sent, "syncs", lag_max=10)
    writer.add(PLACE, 1000, 1000)
    writer.add(PLACE, 1001, 0)
    assert sent.syncs == [(1000, 1000), (1001, 0)]


def test_when_syncs_do_not_arrive_only_the_last_ones_wait() -> None:
    sent = Sent()
    sent.arrives = False
    writer = SyncWriter(sent, "syncs", lag_max=1)
    for number in range(2000):
        writer.add(PLACE, number, number)
    assert len(sent.syncs) == 500
    sent.arrives = True
    writer.finish()
    assert sent.syncs[-1] == (1999, 1999)


def test_a_sync_that_fails_is_followed_by_others() -> None:
    sent = Sent()
    sent.outcome = Unreachable("no")
    writer = SyncWriter(sent, "syncs", lag_max=1)
    writer.add(PLACE, 0, 0)
    writer.send_due()
    writer.add(PLACE, 1, 1)
    assert sent.syncs == [(0, 0), (1, 1)]
