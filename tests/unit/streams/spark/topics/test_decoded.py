import numpy as np
import pyarrow as pa
import pytest
from typing_extensions import override

from streams.errors import WrongOption
from streams.spark.decoding.decoder import Decoded, Decoder, LeftOver, Part
from streams.spark.topics.decoded import cast_column, common_type, decode_column

WANTED = pa.struct([("id", pa.int64()), ("name", pa.string())])


class FixedDecoder(Decoder):
    """Returns the same columns for whatever it is given."""

    def __init__(self, decoded: Decoded) -> None:
        self._decoded = decoded

    @override
    def decode(self, values: pa.Array, topic: str, headers: pa.Array | None = None) -> Decoded:
        return self._decoded

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        return WANTED

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        return 1, WANTED

    @override
    def can_decode(self, schema_id: int) -> bool:
        return True


def rows(*numbers: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(numbers, np.int64)


def test_versions_errors_and_nulls_stand_where_they_were() -> None:
    first = pa.array([{"id": 1}, {"id": 2}], pa.struct([("id", pa.int32())]))
    second = pa.array([{"id": 3, "name": "c", "more": 1.0}], pa.struct([*WANTED, pa.field("more", pa.float64())]))
    misfit = pa.array([{"id": "x"}], pa.struct([("id", pa.string())]))
    decoded = Decoded(
        [Part(1, rows(0, 4), first), Part(2, rows(2), second), Part(3, rows(6), misfit)],
        [(1, ValueError("broken"))],
        rows(3),
        [LeftOver(9, rows(5), TypeError("too deep"))],
    )
    column = decode_column(FixedDecoder(decoded), pa.array([b""] * 7), "t", headers=None, wanted=WANTED)
    found = column.data.to_pylist()
    assert found[:5] == [{"id": 1, "name": None}, None, {"id": 3, "name": "c"}, None, {"id": 2, "name": None}]
    assert found[5:] == [None, None]
    errors = column.errors.to_pylist()
    assert errors[:5] == [None, "ValueError: broken", None, None, None]
    assert errors[5] == "Schema 9 has no columns here: too deep"
    assert errors[6] == "Schema 3 does not fit the columns: string is not int64"


def test_nothing_that_can_be_decoded_is_nothing_but_nulls() -> None:
    decoded = Decoded([], [(0, ValueError("broken"))], rows(1), [])
    column = decode_column(FixedDecoder(decoded), pa.array([b"", None]), "t", headers=None, wanted=WANTED)
    assert column.data.to_pylist() == [None, None]
    assert column.data.type == WANTED


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (pa.array([[{"a": 1}], None, []], pa.list_(pa.struct([("a", pa.int32())]))), pa.list_(WANTED)),
        (pa.array([None, {"id": 5}], pa.struct([("id", pa.int64())])), WANTED),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())), pa.map_(pa.string(), pa.int64())),
        (pa.array([1, None], pa.int8()), pa.int64()),
    ],
)
def test_data_gets_a_wider_type_at_any_depth(data: pa.Array, wanted: pa.DataType) -> None:
    found = cast_column(data, wanted)
    found.validate(full=True)
    assert found.type == wanted
    assert found.is_null().to_pylist() == data.is_null().to_pylist()


def test_types_of_several_topics_are_put_together() -> None:
    types = [("a", pa.struct([("id", pa.int32())])), ("b", WANTED)]
    assert common_type("decode", types) == WANTED
    with pytest.raises(WrongOption, match="do not fit into one column with those of a"):
        common_type("decode", [("a", pa.string()), ("b", WANTED)])
