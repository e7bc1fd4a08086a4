import pytest

from connect.api.data import INT32, STRING, Schema, Value, struct
from connect.api.errors import ConfigError
from tests.support.transforming import made, sink

NAME = "io.aiven.kafka.connect.transforms.FilterByFieldValue$"
DATA = {"a": "open", "n": {"x": 5}, "b": True, "t": "5"}
SCHEMA = struct({"a": STRING, "n": struct({"x": INT32}), "b": STRING, "t": STRING})


@pytest.mark.parametrize(
    ("options", "meets"),
    [
        ({"field_name": "a", "field_value": "open"}, True),
        ({"field_name": "a", "field_value": "shut"}, False),
        ({"field_name": "n.x", "field_value": "5"}, True),
        ({"field_name": "b", "field_value": "true"}, True),
        ({"field_name": "b", "field_value": "1"}, False),
        ({"field_name": "t", "field_value": "5"}, False),
        ({"field_name": "none", "field_value": "5"}, False),
        ({"field_name": "a", "field_value_pattern": "pe"}, True),
        ({"field_name": "a", "field_value_pattern": "^pe"}, False),
        ({"field_name": "n.x", "field_value_pattern": r"\d"}, True),
        ({"field_name": "none", "field_value_pattern": ".*"}, False),
    ],
)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_records_are_kept_by_a_field_or_by_not_having_it_so(
    options: dict[str, str], meets: bool, schema: Schema | None
) -> None:
    for matches in (True, False):
        message = str(matches).lower()
        by_value = made(f"{NAME}Value", **options, field_value_matches=message)
        assert (by_value.apply(sink(schema, DATA)) is not None) is (meets is matches)
        by_key = made(f"{NAME}Key", **options, field_value_matches=message)
        assert (by_key.apply(sink(None, None, key_schema=schema, key=DATA)) is not None) is (meets is matches)


@pytest.mark.parametrize(("value", "kept"), [("open", True), ("shut", False), (None, True)])
def test_without_a_field_the_whole_value_counts_and_null_passes(value: Value, kept: bool) -> None:
    assert (made(f"{NAME}Value", field_value="open").apply(sink(STRING, value)) is not None) is kept


@pytest.mark.parametrize(
    "options",
    [{}, {"field_value": "a", "field_value_pattern": "b"}, {"field_value_pattern": ""}, {"field_value_pattern": "("}],
)
def test_one_way_to_match_is_needed(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made(f"{NAME}Value", **options)
