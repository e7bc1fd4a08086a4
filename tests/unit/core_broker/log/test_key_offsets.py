"""The map from keys to their newest offsets."""

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from core_broker.log.key_offsets import ENTRY_BYTES, KeyOffsets


@given(st.lists(st.binary(max_size=40), max_size=50))
def test_map_remembers_the_newest_offset_of_each_key(keys: list[bytes]) -> None:
    offsets = KeyOffsets(100)
    for offset, key in enumerate(keys):
        assert offsets.put(key, offset)
    for key in keys:
        assert offsets.newest(key) == len(keys) - 1 - keys[::-1].index(key)


def test_unknown_key_has_no_offset() -> None:
    assert KeyOffsets(1).newest(b"never seen") == -1


def test_full_map_refuses_new_keys_but_takes_known_ones() -> None:
    offsets = KeyOffsets(2)
    assert offsets.put(b"a", 0)
    assert offsets.put(b"b" * 100, 1)
    assert not offsets.put(b"c", 2)
    assert offsets.put(b"b" * 100, 3)
    assert offsets.newest(b"b" * 100) == 3
    assert len(offsets) == 2


def test_short_key_that_looks_like_a_hash_is_not_taken_for_one() -> None:
    offsets = KeyOffsets(2)
    offsets.put(b"x" * 20, 0)
    assert offsets.newest(blake2b(b"x" * 20, digest_size=16).digest()) == -1


def test_capacity_follows_from_the_memory_given() -> None:
    assert KeyOffsets.of_size(1000 * ENTRY_BYTES, load_factor=0.5).capacity == 500
    assert KeyOffsets.of_size(0).capacity == 1
