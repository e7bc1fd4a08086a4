"""Partitions of groups and transactional ids; the expected ones were printed by Java."""

import pytest

from core_broker.cluster.coordinators import partition_for


@pytest.mark.parametrize(
    ("key", "of_50", "of_3"),
    [
        ("", 0, 0),
        ("größe", 7, 1),
        ("😀", 49, 1),
        pytest.param("orders", 31, 0, id="negative hash"),
        pytest.param("writer-classic", 6, 2, id="another negative hash"),
        pytest.param("polygenelubricants", 0, 0, id="the lowest number"),
    ],
)
def test_the_partition_is_the_one_that_kafka_chooses(key: str, of_50: int, of_3: int) -> None:
    assert (partition_for(key, 50), partition_for(key, 3)) == (of_50, of_3)
