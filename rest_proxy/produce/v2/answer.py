"""Answers to produce requests of API v2: one outcome per record."""

from collections.abc import Sequence

import msgspec

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError, partition_not_found, topic_not_found

_NOT_RETRIABLE = 1
_RETRIABLE = 2
_REFUSED_USER = (40101, 40301)
"""The cluster does not know the user, or does not allow it: Confluent tells these codes for each record, too."""


class PartitionOffset(msgspec.Struct, gc=False):
    """Where a record went, or why it did not."""

    partition: int | None = None
    offset: int | None = None
    """-1 when nobody knows it (acks=0), as Kafka's clients tell it."""
    error_code: int | None = None
    """1, or 2 when the same record may succeed later; 40101 or 40301 when the cluster refuses the user."""
    error: str | None = None


class Answer(msgspec.Struct):
    """What became of the records of a request."""

    offsets: list[PartitionOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


class Refusal(msgspec.Struct, omit_defaults=True):
    """Why a request failed as a whole; with the fates of its records, if it came so far."""

    error_code: int
    message: str
    offsets: list[PartitionOffset] | None = None


def offsets(outcomes: Sequence[Delivery | ProxyError]) -> list[PartitionOffset]:
    """Outcomes as they are answered."""
    return [
        PartitionOffset(outcome.partition, outcome.offset) if type(outcome) is Delivery else _failed(outcome)
        for outcome in outcomes
    ]


def failures(outcomes: Sequence[Delivery | ProxyError]) -> int:
    """How many records were not written, as far as is known."""
    return sum(type(outcome) is not Delivery for outcome in outcomes)


def named(outcome: Delivery | ProxyError, topic: str, partition: int | None) -> Delivery | ProxyError:
    """The same outcome, with the topic or partition told that was not found: the client library does not name it."""
    if type(outcome) is Delivery:
        return outcome
    match outcome:
        case ProxyError(code=40401):
            return topic_not_found(topic)
        case ProxyError(code=40402) if partition is not None:
            return partition_not_found(topic, partition)
    return outcome


def _failed(error: Delivery | ProxyError) -> PartitionOffset:
    assert isinstance(error, ProxyError)
    if error.code in _REFUSED_USER:
        return PartitionOffset(error_code=error.code, error=error.message)
    return PartitionOffset(error_code=_RETRIABLE if error.is_retriable else _NOT_RETRIABLE, error=error.message)
