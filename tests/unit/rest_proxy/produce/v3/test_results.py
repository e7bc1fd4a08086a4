import msgspec
import pytest

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError
from rest_proxy.formats.binary import BinaryEncoder
from rest_proxy.produce.v3.results import (
    WrittenPart,
    delivered_record,
    encode,
    failed_record,
    format_timestamp,
    to_v3_error,
    written_part,
)


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (1000, "1970-01-01T00:00:01Z"),
        (1_769_860_800_120, "2026-01-31T12:00:00.120Z"),
        (-1, None),
        (10**17, None),
    ],
)
def test_timestamps_are_formatted_as_in_java(milliseconds: int, expected: str | None) -> None:
    assert format_timestamp(milliseconds) == expected


def test_a_success_says_what_is_known() -> None:
    delivery = Delivery(topic="t", partition=1, offset=-1, timestamp_ms=-1)
    value = WrittenPart(type="AVRO", subject="t-value", schema_id=7, schema_version=2, size=3)
    answer = delivered_record(delivery, "c", key=None, value=value)
    assert msgspec.json.decode(encode(answer)) == {
        "error_code": 200,
        "cluster_id": "c",
        "topic_name": "t",
        "partition_id": 1,
        "offset": -1,
        "value": {"type": "AVRO", "subject": "t-value", "schema_id": 7, "schema_version": 2, "size": 3},
    }


@pytest.mark.parametrize(("data", "size"), [(b"abc", 3), (b"", 0), (None, -1)])
def test_the_size_of_null_is_that_of_javas_client(data: bytes | None, size: int) -> None:
    assert written_part(BinaryEncoder(), data) == WrittenPart(type="BINARY", size=size)


@pytest.mark.parametrize(
    ("code", "partition", "expected"), [(40401, None, 40403), (40402, 7, 40402), (40402, None, 40402), (503, 1, 503)]
)
def test_failures_have_the_codes_of_this_api(code: int, partition: int | None, expected: int) -> None:
    answer = failed_record(to_v3_error(ProxyError(code, "reason"), "orders", partition))
    assert answer.error_code == expected
    assert ("Partition 7 of topic orders" in answer.message) == (partition == 7)
