"""ExtractField, HoistField, ReplaceField, ValueToKey, SetSchemaMetadata."""

import pytest

from connect.api.data import (
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Value,
    array,
    struct,
)
from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink, typed, value_of

NESTED = struct({"a": struct({"b": INT32, "b.c": STRING}, optional=True), "x.y": INT64})


@pytest.mark.parametrize(
    ("version", "field", "schema", "expected"),
    [
        ("V1", "x.y", INT64, 5),
        ("V2", "`x.y`", INT64, 5),
        ("V2", "a.b", INT32, 1),
        ("V2", "a.`b.c`", STRING, "z"),
        ("V2", "a", NESTED.by_name["a"], {"b": 1, "b.c": "z"}),
    ],
)
def test_a_field_takes_the_place_of_the_value(version: str, field: str, schema: Schema, expected: Value) -> None:
    transform = made("ExtractField$Value", field=field, field_syntax_version=version)
    value = {"a": {"b": 1, "b.c": "z"}, "x.y": 5}
    assert typed(transform, NESTED, value) == (schema, expected)
    assert value_of(transform, value) == expected


def test_of_null_every_field_is_null() -> None:
    transform = made("ExtractField$Value", field="a.b", field_syntax_version="V2")
    assert typed(transform, NESTED.as_optional(), None) == (INT32, None)
    assert typed(transform, NESTED, {"a": None}) == (INT32, None)
    assert value_of(transform, None) is None


def test_a_field_that_no_schema_has_is_refused_and_one_that_is_missing_without_schema_is_null() -> None:
    for version in ("V1", "V2"):
        transform = made("ExtractField$Value", field="no.such", field_syntax_version=version)
        with pytest.raises(DataError, match="Unknown field: no.such"):
            typed(transform, NESTED, {})
        assert value_of(transform, {"a": 1}) is None


@pytest.mark.parametrize(("replaces", "expected"), [("true", 7), ("false", None)])
def test_a_field_that_is_null_counts_as_its_default_unless_it_is_kept(replaces: str, expected: int | None) -> None:
    transform = made("ExtractField$Key", field="a", replace_null_with_default=replaces)
    record = sink(key_schema=struct({"a": OPTIONAL_INT32.but(default=7)}), key={"a": None})
    assert changed(transform, record).key == expected


def test_what_has_no_fields_has_none_to_take() -> None:
    with pytest.raises(DataError, match=r"\[field extraction\], found: java.lang.String"):
        value_of(made("ExtractField$Value", field="a"), "text")
    with pytest.raises(DataError, match=r"\[field extraction\]"):
        typed(made("ExtractField$Value", field="a"), STRING, "text")


@pytest.mark.parametrize("version", ["V3", ""])
def test_only_two_versions_of_paths_are_known(version: str) -> None:
    with pytest.raises(ConfigError, match="field.syntax.version"):
        made("ExtractField$Value", field="a", field_syntax_version=version)


@pytest.mark.parametrize(("schema", "value"), [(INT32, 42), (OPTIONAL_INT32, None), (NESTED, {})])
def test_values_are_wrapped_null_too(schema: Schema, value: Value) -> None:
    transform = made("HoistField$Value", field="magic")
    assert typed(transform, schema, value) == (struct({"magic": schema}), {"magic": value})
    assert value_of(transform, value) == {"magic": value}


def test_keys_are_wrapped_and_paths_make_structs_in_structs() -> None:
    transform = made("HoistField$Key", field="a.b", field_syntax_version="V2")
    record = changed(transform, sink(key_schema=INT32, key=1))
    assert (record.key_schema, record.key) == (struct({"a": struct({"b": INT32})}), {"a": {"b": 1}})


FOUR = struct({"dont": STRING, "abc": INT32, "foo": OPTIONAL_STRING, "etc": STRING}, name="n", optional=True)
FOUR_VALUES = {"dont": "whatever", "abc": 42, "foo": None, "etc": "e"}


@pytest.mark.parametrize(
    ("options", "names", "expected"),
    [
        ({"exclude": "dont"}, "abc foo etc", {"abc": 42, "foo": None, "etc": "e"}),
        ({"include": "abc,foo"}, "abc foo", {"abc": 42, "foo": None}),
        ({"exclude": "dont,abc", "include": "abc,etc"}, "etc", {"etc": "e"}),
        ({"renames": "abc:xyz,foo:bar"}, "dont xyz bar etc", {"dont": "whatever", "xyz": 42, "bar": None, "etc": "e"}),
        ({"include": "abc", "renames": "abc:xyz"}, "xyz", {"xyz": 42}),
        ({"blacklist": "dont"}, "abc foo etc", {"abc": 42, "foo": None, "etc": "e"}),
        ({"whitelist": "abc"}, "abc", {"abc": 42}),
        ({"exclude": "none"}, "dont abc foo etc", FOUR_VALUES),
    ],
)
def test_fields_are_taken_away_and_renamed(options: dict[str, str], names: str, expected: dict[str, Value]) -> None:
    transform = made("ReplaceField$Value", **options)
    new_schema, value = typed(transform, FOUR, FOUR_VALUES)
    assert new_schema is not None
    assert [item.name for item in new_schema.fields] == names.split()
    assert (new_schema.name, new_schema.optional) == ("n", False)
    assert value == expected
    assert value_of(transform, FOUR_VALUES) == expected


@pytest.mark.parametrize("schema", [None, FOUR])
def test_null_passes_replace_field(schema: Schema | None) -> None:
    record = sink(schema, None)
    assert made("ReplaceField$Value", exclude="a").apply(record) is record


@pytest.mark.parametrize("renames", ["a", "a:b:c"])
def test_renames_must_be_pairs(renames: str) -> None:
    with pytest.raises(ConfigError, match="Invalid rename mapping"):
        made("ReplaceField$Value", renames=renames)


@pytest.mark.parametrize(("replaces", "expected"), [("true", 7), ("false", None)])
def test_fields_that_are_null_count_as_their_defaults_unless_they_are_kept(replaces: str, expected: int | None) -> None:
    transform = made("ReplaceField$Value", exclude="x", renames="a:b", replace_null_with_default=replaces)
    schema = struct({"a": OPTIONAL_INT32.but(default=7), "x": STRING})
    assert typed(transform, schema, {"a": None, "x": ""})[1] == {"b": expected}
    assert typed(transform, schema, {"a": 1, "x": ""})[1] == {"b": 1}


def test_two_fields_may_change_names_with_each_other() -> None:
    transform = made("ReplaceField$Value", renames="a:b,b:a")
    assert typed(transform, struct({"a": INT32, "b": STRING}), {"a": 1, "b": "x"}) == (
        struct({"b": INT32, "a": STRING}),
        {"b": 1, "a": "x"},
    )
    assert value_of(transform, {"a": 1, "b": "x"}) == {"b": 1, "a": "x"}


def test_a_name_that_another_field_has_is_refused() -> None:
    with pytest.raises(DataError, match="same name"):
        typed(made("ReplaceField$Value", renames="a:b"), struct({"a": INT32, "b": STRING}), {})


def test_nested_fields_are_taken_away_by_paths() -> None:
    transform = made("ReplaceField$Value", exclude="a.b,c", renames="a:z", field_syntax_version="V2")
    schema = struct({"a": struct({"b": INT32, "k": STRING}, optional=True), "c": STRING})
    value = {"a": {"b": 1, "k": "k"}, "c": ""}
    assert typed(transform, schema, value) == (
        struct({"z": struct({"k": STRING}, optional=True)}),
        {"z": {"k": "k"}},
    )
    assert value_of(transform, value) == {"z": {"k": "k"}}
    assert value["a"] == {"b": 1, "k": "k"}
    assert typed(transform, schema, {"a": None, "c": ""})[1] == {"z": None}


def test_fields_of_keys_are_replaced() -> None:
    record = changed(made("ReplaceField$Key", include="a"), sink(key={"a": 1, "b": 2}, value={"a": 1, "b": 2}))
    assert (record.key, record.value) == ({"a": 1}, {"a": 1, "b": 2})


def test_replacing_needs_fields() -> None:
    with pytest.raises(DataError, match=r"\[field replacement\], found: java.lang.Long"):
        value_of(made("ReplaceField$Value", exclude="a"), 1)


def test_a_key_is_made_from_fields_of_the_value() -> None:
    transform = made("ValueToKey", fields="a,b")
    assert changed(transform, sink(None, {"a": 1, "c": 3})).key == {"a": 1, "b": None}
    record = changed(transform, sink(struct({"a": INT32, "b": STRING, "c": INT32}), {"a": 1, "b": "x", "c": 3}))
    assert (record.key_schema, record.key) == (struct({"a": INT32, "b": STRING}), {"a": 1, "b": "x"})
    assert record.value == {"a": 1, "b": "x", "c": 3}


def test_a_key_needs_fields_that_are_there() -> None:
    transform = made("ValueToKey", fields="missing")
    with pytest.raises(DataError, match="Field does not exist: missing"):
        typed(transform, struct({"a": INT32}), {"a": 1})
    for schema in (None, struct({"missing": INT32})):
        with pytest.raises(DataError, match=r"\[copying fields from value to key\], found: null"):
            typed(transform, schema, None)
    with pytest.raises(ConfigError, match="fields"):
        made("ValueToKey", fields="")


@pytest.mark.parametrize(("replaces", "expected"), [("true", 7), ("false", None)])
def test_fields_of_a_key_count_as_their_defaults_unless_nulls_are_kept(replaces: str, expected: int | None) -> None:
    transform = made("ValueToKey", fields="a", replace_null_with_default=replaces)
    assert changed(transform, sink(struct({"a": OPTIONAL_INT32.but(default=7)}), {})).key == {"a": expected}


def test_nested_fields_make_keys_under_their_last_name() -> None:
    transform = made("ValueToKey", fields="a.b,c", field_syntax_version="V2")
    record = changed(transform, sink(struct({"a": struct({"b": INT32}), "c": STRING}), {"a": {"b": 1}, "c": "x"}))
    assert (record.key_schema, record.key) == (struct({"b": INT32, "c": STRING}), {"b": 1, "c": "x"})
    with pytest.raises(ConfigError, match="names in the key must differ"):
        made("ValueToKey", fields="a.b,c.b", field_syntax_version="V2")


@pytest.mark.parametrize(
    ("options", "name", "version"),
    [
        ({"schema_name": "foo"}, "foo", 1),
        ({"schema_version": "42"}, "n", 42),
        ({"schema_name": "foo", "schema_version": "42"}, "foo", 42),
    ],
)
def test_schemas_get_another_name_and_version(options: dict[str, str], name: str, version: int) -> None:
    schema = struct({"a": INT32}, name="n", optional=True).but(version=1, doc="d", default={"a": 1})
    transform = made("SetSchemaMetadata$Value", **options)
    assert typed(transform, schema, {"a": 2}) == (schema.but(name=name, version=version), {"a": 2})
    assert typed(transform, schema, None) == (schema.but(name=name, version=version), None)
    assert typed(transform, array(INT32), [1])[0] == array(INT32).but(
        name=options.get("schema_name"), version=42 if "schema_version" in options else None
    )


def test_metadata_needs_a_schema_unless_there_is_nothing() -> None:
    transform = made("SetSchemaMetadata$Key", schema_name="foo")
    empty = sink(None, None)
    assert transform.apply(empty) is empty
    with pytest.raises(DataError, match=r"Schema required for \[updating schema metadata\]"):
        transform.apply(sink(key="text"))
    with pytest.raises(ConfigError, match="Neither schema name nor version configured"):
        made("SetSchemaMetadata$Value")
