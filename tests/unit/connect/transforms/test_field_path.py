import pytest

from connect.api.data import INT32, STRING, struct
from connect.api.errors import ConfigError, DataError
from connect.transforms.field_path import parse_path, schema_at, typed_value_at, value_at


@pytest.mark.parametrize("text", ["foo.bar.baz", "foo`bar`", "foo.`bar.baz`", ""])
def test_in_version_1_a_path_is_one_name(text: str) -> None:
    assert parse_path(text, "V1") == (text,)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("..", ("", "", "")),
        ("foo..", ("foo", "", "")),
        (".bar.", ("", "bar", "")),
        ("..baz", ("", "", "baz")),
        ("", ()),
        ("foobarbaz", ("foobarbaz",)),
        ("foo.bar.baz", ("foo", "bar", "baz")),
        ("foo`bar`baz", ("foo`bar`baz",)),
        ("`foo.bar.baz`", ("foo.bar.baz",)),
        ("foo.`bar.baz`", ("foo", "bar.baz")),
        ("`foo.bar`.baz", ("foo.bar", "baz")),
        ("foo.`bar`.baz", ("foo", "bar", "baz")),
        ("foo.``bar.baz`", ("foo", "`bar.baz")),
        ("foo.`bar.baz``", ("foo", "bar.baz`")),
        ("foo.`ba`r.baz`", ("foo", "ba`r.baz")),
        ("foo.ba`r.baz", ("foo", "ba`r", "baz")),
        ("foo.``bar``.baz", ("foo", "`bar`", "baz")),
        ("``foo.bar.baz``", ("`foo.bar.baz`",)),
        ("foo.`bar\\`.baz`", ("foo", "bar`.baz")),
        ("foo.`bar.`baz`", ("foo", "bar.`baz")),
        ("foo.`bar\\`.`baz`", ("foo", "bar`.`baz")),
        ("foo.`bar\\\\`.\\`baz`", ("foo", "bar\\`.\\`baz")),
    ],
)
def test_in_version_2_dots_separate_and_backticks_protect(text: str, steps: tuple[str, ...]) -> None:
    assert parse_path(text, "V2") == steps


@pytest.mark.parametrize(
    ("text", "position"), [("`foo.bar.baz", 0), ("foo.`bar.baz", 4), ("foo.bar.`baz", 8), ("foo.bar.`baz\\`", 8)]
)
def test_backticks_that_are_not_closed_are_refused(text: str, position: int) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_path(text, "V2")
    assert str(raised.value) == (
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position "
        f"{position} to escape it"
    )


def test_what_a_path_leads_to_is_null_where_there_is_nothing() -> None:
    value = {"a": {"b": 1, "n": None}}
    assert [value_at(value, path) for path in [("a", "b"), ("a", "n", "x"), ("z", "y"), ("a", "z")]] == [
        1,
        None,
        None,
        None,
    ]


def test_a_path_does_not_lead_through_a_number() -> None:
    with pytest.raises(DataError, match="nested field access"):
        value_at({"a": 1}, ("a", "b"))


def test_schemas_lie_at_paths_and_defaults_stand_for_nulls() -> None:
    schema = struct({"a": struct({"b": INT32.but(default=7)}), "c": STRING})
    assert schema_at(schema, ("a", "b")) == INT32.but(default=7)
    assert schema_at(schema, ("a", "z")) is None
    assert schema_at(schema, ("c", "z")) is None
    assert typed_value_at(schema, {"a": {"b": None}}, path=("a", "b"), replace_null=True) == 7
    assert typed_value_at(schema, {"a": {"b": None}}, path=("a", "b"), replace_null=False) is None
    assert typed_value_at(schema, {"a": None}, path=("a", "b"), replace_null=True) is None
