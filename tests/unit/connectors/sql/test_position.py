from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api.errors import ConnectError
from connectors.sql.dialect import Table
from connectors.sql.position import Position, check_altered, old_partition_of, partition_of

MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda found: found.replace(tzinfo=UTC))  # noqa: DTZ001


@given(st.none() | MOMENTS, st.none() | st.integers(-(2**63), 2**63 - 1))
def test_a_position_survives_being_stored(timestamp: datetime | None, number: int | None) -> None:
    position = Position(timestamp=timestamp, incrementing=number)
    assert Position.from_offset(position.to_offset()) == position


def test_an_offset_has_milliseconds_and_the_nanoseconds_of_the_second() -> None:
    offset = Position(timestamp=datetime(1970, 1, 1, 0, 0, 2, 345_678, tzinfo=UTC), incrementing=5).to_offset()
    assert offset == {"incrementing": 5, "timestamp": 2345, "timestamp_nanos": 345_678_000}


def test_an_offset_without_nanoseconds_is_understood() -> None:
    assert Position.from_offset({"timestamp": 2345}).timestamp == datetime(1970, 1, 1, 0, 0, 2, 345_000, tzinfo=UTC)
    assert Position.from_offset(None) == Position()


def test_partitions_are_named_as_kafka_connect_does() -> None:
    assert partition_of(Table(name="items", schema="public")) == {"protocol": "1", "table": "public.items"}
    assert old_partition_of(Table(name="items", schema="public")) == {"table": "items"}


@pytest.mark.parametrize(
    "partition, offset",
    [
        ({"filename": "x"}, {"incrementing": 1}),
        ({}, {"incrementing": 1}),
        ({"table": "x"}, {"position": 1}),
        ({"table": "x"}, {"incrementing": True}),
        ({"query": "query"}, {"timestamp": "now"}),
    ],
)
def test_offsets_that_make_no_sense_are_refused(partition: dict[str, object], offset: dict[str, object]) -> None:
    with pytest.raises(ConnectError):
        check_altered(partition, offset)


def test_an_offset_may_be_removed() -> None:
    check_altered({"query": "query"}, None)
