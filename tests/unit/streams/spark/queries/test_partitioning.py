"""Partitions of windowed keys."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference

from streams.model.sources import WindowInfo
from streams.spark.queries.partitioning import murmur2, windowed_partitions


@given(st.binary(max_size=40))
def test_the_hash_is_that_of_kafkas_clients(data: bytes) -> None:
    assert murmur2(data) == reference(data) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("window", "size"), [(WindowInfo(kind="TUMBLING", size_ms=1), 8), (WindowInfo(kind="SESSION"), 16)]
)
def test_all_windows_of_a_key_are_in_its_partition(window: WindowInfo, size: int) -> None:
    keys = pa.array([b"key" + bytes(size), b"key" + b"\1" * size, None], pa.binary())
    own = (reference(b"key") & 0x7FFFFFFF) % 10
    assert windowed_partitions(keys, window, 10).to_pylist() == [own, own, None]
