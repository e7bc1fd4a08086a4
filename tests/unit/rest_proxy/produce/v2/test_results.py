"""Responses to produce requests of API v2."""

import msgspec
import pytest

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError, unavailable
from rest_proxy.produce.v2.results import ProduceFailure, ProduceResult, count_failures, name_missing, partition_offsets

WRITTEN = Delivery(topic="t", partition=2, offset=5, timestamp_ms=1)
BAD = ProxyError(42203, "no number")


def test_every_record_has_its_outcome() -> None:
    result = ProduceResult(partition_offsets([WRITTEN, BAD, unavailable("gone")]), None, 3)
    assert msgspec.json.decode(msgspec.json.encode(result)) == {
        "offsets": [
            {"partition": 2, "offset": 5, "error_code": None, "error": None},
            {"partition": None, "offset": None, "error_code": 1, "error": "no number"},
            {"partition": None, "offset": None, "error_code": 2, "error": "gone"},
        ],
        "key_schema_id": None,
        "value_schema_id": 3,
    }


def test_a_user_that_the_cluster_refuses_gets_confluents_code() -> None:
    outcomes = partition_offsets([ProxyError(40301, "no"), ProxyError(40101, "who?")])
    assert [outcome.error_code for outcome in outcomes] == [40301, 40101]


def test_failures_are_counted() -> None:
    assert count_failures([WRITTEN, BAD, BAD]) == 2


def test_a_failure_without_records_is_the_usual_envelope() -> None:
    assert msgspec.json.encode(ProduceFailure(422, "no")) == b'{"error_code":422,"message":"no"}'


@pytest.mark.parametrize(
    ("code", "partition", "message"),
    [
        (40401, None, "Topic t not found."),
        (40401, 3, "Topic t not found."),
        (40402, 3, "Partition 3 of topic t not found."),
        (42203, 3, "reason"),
    ],
)
def test_a_missing_topic_or_partition_is_named(code: int, partition: int | None, message: str) -> None:
    outcome = name_missing(ProxyError(code, "reason"), "t", partition)
    assert isinstance(outcome, ProxyError)
    assert (outcome.code, outcome.message) == (code, message)


def test_a_delivery_keeps_its_name() -> None:
    assert name_missing(WRITTEN, "u", 3) is WRITTEN
