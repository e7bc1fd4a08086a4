"""Records of MirrorMaker's topics, byte for byte as Java writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.mirror.formats import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    read_checkpoint,
    read_sync,
    write_checkpoint,
    write_heartbeat,
    write_sync,
)

_OFFSETS = st.integers(-1, 2**63 - 1)
_PLACES = st.tuples(st.text(max_size=50), st.integers(0, 2**31 - 1))


def test_an_offset_sync_is_what_java_writes() -> None:
    key, value = write_sync(OffsetSync(("orders", 3), 258, 5))
    assert key == b"\x00\x06orders\x00\x00\x00\x03"
    assert value == b"\x00\x00\x00\x00\x00\x00\x01\x02" + b"\x00\x00\x00\x00\x00\x00\x00\x05"


def test_a_checkpoint_is_what_java_writes() -> None:
    key, value = write_checkpoint(Checkpoint("app", ("us.orders", 1), 7, 6, "note"))
    assert key == b"\x00\x03app\x00\x09us.orders\x00\x00\x00\x01"
    assert value == b"\x00\x00" + (7).to_bytes(8, "big") + (6).to_bytes(8, "big") + b"\x00\x04note"


def test_a_heartbeat_is_what_java_writes() -> None:
    key, value = write_heartbeat(Heartbeat("us", "eu", 1_700_000_000_000))
    assert key == b"\x00\x02us\x00\x02eu"
    assert value == b"\x00\x00" + (1_700_000_000_000).to_bytes(8, "big")


@given(_PLACES, _OFFSETS, _OFFSETS)
def test_offset_syncs_survive(place: tuple[str, int], upstream: int, downstream: int) -> None:
    sync = OffsetSync(place, upstream, downstream)
    assert read_sync(*write_sync(sync)) == sync


@given(st.text(max_size=50), _PLACES, _OFFSETS, _OFFSETS, st.text(max_size=50))
def test_checkpoints_survive(group: str, place: tuple[str, int], upstream: int, downstream: int, note: str) -> None:
    checkpoint = Checkpoint(group, place, upstream, downstream, note)
    assert read_checkpoint(*write_checkpoint(checkpoint)) == checkpoint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"", b""),
        (b"\x00\x06ord", b"\x00" * 16),
        (b"\xff\xff\x00\x00\x00\x01", b"\x00" * 16),
        (b"\x00\x01\xff\x00\x00\x00\x01", b"\x00" * 16),
        (b"\x00\x01a\x00\x00\x00\x01", b"\x00" * 15),
    ],
)
def test_what_is_no_offset_sync_is_passed_over(key: bytes | None, value: bytes | None) -> None:
    assert read_sync(key, value) is None


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_the_bytes_are_reading_does_not_fail(key: bytes, value: bytes) -> None:
    read_sync(key, value)
    read_checkpoint(key, value)


def test_a_checkpoint_of_another_version_is_passed_over() -> None:
    key, value = write_checkpoint(Checkpoint("g", ("t", 0), 1, 1))
    assert read_checkpoint(key, b"\x00\x01" + value[2:]) is None
