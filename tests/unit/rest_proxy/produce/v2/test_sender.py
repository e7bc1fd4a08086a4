"""Produce requests of API v2 from their records to the result."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from core_broker.client.records import Delivery, OutgoingRecord
from rest_proxy.errors import ProxyError, unavailable
from rest_proxy.formats import rules
from rest_proxy.formats.encoding import Encoders
from rest_proxy.formats.formats import Format
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.producers import STRONGEST, Guarantees
from rest_proxy.produce.v2.requests import parse
from rest_proxy.produce.v2.results import NothingWritten, PartitionOffset, ProduceResult
from rest_proxy.produce.v2.sender import Destination, V2RecordSender
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings


class MemoryLog:
    """A log in memory of one topic, `t`."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []

    async def send_all(
        self, records: Sequence[OutgoingRecord | ProxyError], guarantees: Guarantees
    ) -> list[Delivery | ProxyError]:
        """Append records."""
        assert guarantees is STRONGEST
        return [self._append(record) for record in records]

    def _append(self, record: OutgoingRecord | ProxyError) -> Delivery | ProxyError:
        if isinstance(record, ProxyError):
            return record
        if record.topic != "t":
            return ProxyError(40401, "unknown topic")
        self.values.append(record.value)
        return Delivery(topic="t", partition=record.partition or 0, offset=len(self.values) - 1, timestamp_ms=1)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def metrics() -> ProxyMetrics:
    return ProxyMetrics()


@pytest.fixture
def sender(log: MemoryLog, metrics: ProxyMetrics) -> Iterator[V2RecordSender]:
    """A sender whose registry does not answer."""
    with RegistryClient(RegistryClientSettings.parse({"url": "http://127.0.0.1:9"})) as registry:
        yield V2RecordSender(log, Encoders(registry, rules.V2), metrics)


async def send(sender: V2RecordSender, *values: object, topic: str = "t") -> ProduceResult:
    """Send records with these values to partition 2, in base64."""
    body = msgspec.json.encode({"records": [{"value": value} for value in values]})
    return await sender.send(parse(body, max_records=100), Format.BINARY, Destination(topic, 2, STRONGEST))


async def test_each_record_has_its_outcome(sender: V2RecordSender, log: MemoryLog) -> None:
    result = await send(sender, "YQ==", "?", "Yg==")
    assert [(item.partition, item.offset, item.error_code) for item in result.offsets] == [
        (2, 0, None),
        (None, None, 1),
        (2, 1, None),
    ]
    assert log.values == [b"a", b"b"]


async def test_when_all_records_fail_the_request_fails_with_the_first_error(sender: V2RecordSender) -> None:
    with pytest.raises(NothingWritten, match="is not base64") as caught:
        await send(sender, "?", 1)
    assert caught.value.status == 400
    assert [item.error_code for item in caught.value.offsets] == [1, 1]


async def test_a_topic_that_does_not_exist_is_named(sender: V2RecordSender) -> None:
    with pytest.raises(NothingWritten) as caught:
        await send(sender, "YQ==", topic="u")
    assert (caught.value.code, caught.value.message) == (40401, "Topic u not found.")


def test_a_failed_request_may_be_retried_when_its_first_record_may() -> None:
    error = NothingWritten(unavailable("no broker answers", retry_after_seconds=3), [PartitionOffset(error_code=2)])
    assert (error.status, error.retry_after_seconds) == (503, 3)


async def test_outcomes_are_counted_by_format(sender: V2RecordSender, metrics: ProxyMetrics) -> None:
    await send(sender, "YQ==", "?", "Yg==")
    produced = next(family for family in metrics.families() if family.name.endswith("records_produced_total"))
    assert dict(produced.samples) == {("binary", "delivered"): 2, ("binary", "failed"): 1}
