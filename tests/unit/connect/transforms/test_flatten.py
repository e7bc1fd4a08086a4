import pytest

from connect.api.data import (
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array,
    mapping,
    struct,
)
from connect.api.errors import DataError
from tests.support.transforming import changed, made, sink, typed, value_of


def test_what_is_flat_stays_as_it_is() -> None:
    schema = struct({"a": INT32, "b": STRING}, name="n")
    assert typed(made("Flatten$Value"), schema, {"a": 1, "b": "x"}) == (schema, {"a": 1, "b": "x"})


def test_nested_structs_become_fields_with_long_names() -> None:
    inner = struct({"int": INT64, "bytes": BYTES})
    schema = struct({"A": struct({"B": inner}), "C": FLOAT64}, name="n")
    assert typed(made("Flatten$Value"), schema, {"A": {"B": {"int": 1, "bytes": b"x"}}, "C": 2.0}) == (
        struct({"A.B.int": INT64, "A.B.bytes": BYTES, "C": FLOAT64}, name="n"),
        {"A.B.int": 1, "A.B.bytes": b"x", "C": 2.0},
    )


@pytest.mark.parametrize(("delimiter", "name"), [("#", "A#B"), (" ", "A B"), ("", "AB")])
def test_the_delimiter_is_taken_as_it_is_given(delimiter: str, name: str) -> None:
    assert value_of(made("Flatten$Value", delimiter=delimiter), {"A": {"B": 1}}) == {name: 1}


def test_nulls_do_not_stop_what_is_behind_them() -> None:
    assert value_of(made("Flatten$Value"), {"A": {"x": None, "y": 1}, "z": None, "w": 2}) == {
        "A.x": None,
        "A.y": 1,
        "z": None,
        "w": 2,
    }


def test_a_nested_struct_that_is_null_makes_null_fields() -> None:
    schema = struct({"B": struct({"x": INT32}, optional=True)})
    expected = struct({"B.x": OPTIONAL_INT32})
    assert typed(made("Flatten$Value"), schema, {"B": None}) == (expected, {"B.x": None})


def test_optional_and_defaults_come_down_from_above() -> None:
    inner = struct({"req": STRING, "opt": OPTIONAL_STRING.but(default="child")}, optional=True).but(
        default={"req": "parent"}
    )
    new_schema, value = typed(made("Flatten$Value"), struct({"in": inner}), {})
    assert new_schema == struct(
        {"in.req": OPTIONAL_STRING.but(default="parent"), "in.opt": OPTIONAL_STRING.but(default="child")}
    )
    assert value == {"in.req": "parent", "in.opt": "child"}


def test_what_the_whole_allows_its_fields_allow() -> None:
    schema = struct({"a": STRING}, optional=True).but(default={"a": "d"})
    assert typed(made("Flatten$Value"), schema, {"a": "x"})[0] == struct({"a": OPTIONAL_STRING.but(default="d")})


@pytest.mark.parametrize("schema", [None, struct({"a": INT32}, optional=True)])
def test_null_passes(schema: object) -> None:
    record = sink(schema, None)  # type: ignore[arg-type]  # one of the two above
    assert made("Flatten$Value").apply(record) is record


def test_lists_stay_as_they_are() -> None:
    schema = struct({"A": struct({"l": array(struct({"x": INT32}))})})
    value = {"A": {"l": [{"x": 1}]}}
    assert typed(made("Flatten$Value"), schema, value) == (
        struct({"A.l": array(struct({"x": INT32}))}),
        {"A.l": [{"x": 1}]},
    )
    assert value_of(made("Flatten$Value"), value) == {"A.l": [{"x": 1}]}


def test_maps_with_a_schema_are_refused() -> None:
    schema = struct({"A": struct({"m": mapping(STRING, INT32)})})
    with pytest.raises(DataError, match=r"does not support MAP for record with schemas \(for field A.m\)"):
        typed(made("Flatten$Value"), schema, {"A": {"m": {}}})


def test_empty_maps_disappear() -> None:
    assert value_of(made("Flatten$Value"), {"A": {}, "b": 1}) == {"b": 1}


def test_two_fields_that_would_have_one_name_are_refused() -> None:
    with pytest.raises(DataError, match="two fields of the same name"):
        typed(made("Flatten$Value"), struct({"A": struct({"B": INT32}), "A.B": INT32}), {})


def test_what_has_no_fields_is_refused() -> None:
    with pytest.raises(DataError, match=r"Only Map objects supported in absence of schema for \[flattening\]"):
        value_of(made("Flatten$Value"), 1)
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[flattening\]"):
        typed(made("Flatten$Value"), INT32, 1)


def test_keys_are_made_flat() -> None:
    record = changed(made("Flatten$Key"), sink(key={"A": {"B": 12}}, value="v"))
    assert (record.key, record.value) == ({"A.B": 12}, "v")
