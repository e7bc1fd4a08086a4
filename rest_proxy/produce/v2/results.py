"""Responses to produce requests of API v2: one outcome per record."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found

_NOT_RETRIABLE = 1
_RETRIABLE = 2
_USER_REFUSED = (40101, 40301)
"""The cluster does not know the user, or does not authorize it: Confluent reports these codes per record, too."""


class PartitionOffset(msgspec.Struct, gc=False):
    """Where a record was written, or why it was not."""

    partition: int | None = None
    offset: int | None = None
    """-1 if it is not known (acks=0), as in Kafka's clients."""
    error_code: int | None = None
    """1, or 2 if the same record may succeed later; 40101 or 40301 if the cluster refuses the user."""
    error: str | None = None


class ProduceResult(msgspec.Struct):
    """The response when at least one record was written."""

    offsets: list[PartitionOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


class ProduceFailure(msgspec.Struct, omit_defaults=True):
    """The response when the request failed as a whole; with the outcome of each record if they were sent."""

    error_code: int
    message: str
    offsets: list[PartitionOffset] | None = None


class NothingWritten(ProxyError):
    """All records failed: the request fails with the error of the first one."""

    def __init__(self, first: ProxyError, offsets: list[PartitionOffset]) -> None:
        super().__init__(first.code, first.message, retry_after_seconds=first.retry_after_seconds)
        self.offsets = offsets


def partition_offsets(outcomes: Sequence[Delivery | ProxyError]) -> list[PartitionOffset]:
    """Outcomes in the form of the response."""
    return [
        PartitionOffset(outcome.partition, outcome.offset) if type(outcome) is Delivery else _failed_record(outcome)
        for outcome in outcomes
    ]


def count_failures(outcomes: Sequence[Delivery | ProxyError]) -> int:
    """The number of records that are not known to be written."""
    return sum(type(outcome) is not Delivery for outcome in outcomes)


def name_missing(outcome: Delivery | ProxyError, topic: str, partition: int | None) -> Delivery | ProxyError:
    """Add the name of the topic or partition that was not found: the client library's error lacks it."""
    if type(outcome) is Delivery:
        return outcome
    match outcome:
        case ProxyError(code=40401):
            return topic_not_found(topic)
        case ProxyError(code=40402) if partition is not None:
            return partition_not_found(topic, partition)
    return outcome


def _failed_record(error: Delivery | ProxyError) -> PartitionOffset:
    assert isinstance(error, ProxyError)
    if error.code in _USER_REFUSED:
        return PartitionOffset(error_code=error.code, error=error.message)
    return PartitionOffset(error_code=_RETRIABLE if error.is_retriable else _NOT_RETRIABLE, error=error.message)
