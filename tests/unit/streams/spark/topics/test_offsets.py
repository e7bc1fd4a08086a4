import json

import pytest

from streams.errors import StreamsError
from streams.spark.topics.offsets import from_checkpoint, to_checkpoint


def test_offsets_come_back_from_a_checkpoint() -> None:
    offsets = {("b", 0): 1, ("a", 10): 2, ("a", 9): 2**40}
    document = json.loads(json.dumps(to_checkpoint(offsets)))
    assert document == {"version": 1, "topics": {"a": {"9": 2**40, "10": 2}, "b": {"0": 1}}}
    assert from_checkpoint(document) == offsets


def test_equal_offsets_are_written_alike() -> None:
    one, other = {("a", 0): 1, ("a", 1): 2}, {("a", 1): 2, ("a", 0): 1}
    assert json.dumps(to_checkpoint(one)) == json.dumps(to_checkpoint(other))


def test_what_sparks_kafka_source_has_written_is_understood() -> None:
    assert from_checkpoint({"orders": {"0": 5, "1": 7}}) == {("orders", 0): 5, ("orders", 1): 7}


def test_a_newer_checkpoint_is_refused() -> None:
    with pytest.raises(StreamsError, match="offsets of version 2, which this version of Caudal cannot read"):
        from_checkpoint({"version": 2, "partitions": []})
