"""Values of Avro schemas with arg.properties."""

import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from connect.api import data
from connect.api.errors import ConfigError
from connect.testing.samples import mismatches
from connectors.datagen.generator import generator_of
from connectors.datagen.quickstarts import KEYS, quickstart_schema


def values_of(avro: Any, count: int = 200) -> list[Any]:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": avro}]}
    generated = generator_of(schema)
    chance = random.Random(7)
    made = [generated.make(chance, number) for number in range(count)]
    assert all(not list(mismatches(generated.schema, value)) for value in made)
    return [value["f"] for value in made]


def of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "arg.properties": properties}


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        (of("string", options=["a", "b"]), {"a", "b"}),
        (of("int", range={"min": 1, "max": 4}), {1, 2, 3}),
        (of("boolean", odds=1.0), {True}),
        (of("bytes", options=["\u00ff"]), {b"\xff"}),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, {"X", "Y"}),
        (["null", of("int", options=[5])], {None, 5}),
        (of("string", regex="[ab]", prefix="<", suffix=">"), {"<a>", "<b>"}),
        (of("long", options=[1 << 40]), {1 << 40}),
        (of("string", options=["a"], prefix="x"), {"a"}),
    ],
)
def test_values_are_drawn(avro: Any, expected: set[Any]) -> None:
    assert set(values_of(avro)) == expected


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [
        ({"start": 1}, [1, 2, 3, 4, 5]),
        ({"start": 1, "step": 10}, [1, 11, 21, 31, 41]),
        ({"start": 1, "restart": 3}, [1, 2, 1, 2, 1]),
        ({"start": 0, "restart": 5, "step": 2}, [0, 2, 4, 0, 2]),
        ({"start": 3, "restart": 0}, [3, 2, 1, 3, 2]),
        ({"start": 0, "restart": 4, "initial": 2}, [2, 3, 0, 1, 2]),
    ],
)
def test_iterations_count_records(iteration: dict[str, int], expected: list[int]) -> None:
    assert values_of(of("int", iteration=iteration), 5) == expected


def test_iterations_of_text_booleans_and_fractions() -> None:
    assert values_of(of("string", iteration={"start": 1}, prefix="n"), 2) == ["n1", "n2"]
    assert values_of(of("boolean", iteration={"start": False}), 3) == [False, True, False]
    assert values_of(of("double", iteration={"start": 1, "step": 0.5}), 3) == [1.0, 1.5, 2.0]


def test_lengths_are_as_told() -> None:
    assert {len(text) for text in values_of(of("string", length=5))} == {5}
    assert {len(text) for text in values_of(of("bytes", length={"min": 1, "max": 3}))} == {1, 2}
    assert {len(items) for items in values_of({**of("array", length={"min": 0, "max": 3}), "items": "int"})} == {
        0,
        1,
        2,
    }
    assert {len(text) for text in values_of({"type": "fixed", "name": "F", "size": 4})} == {4}


def test_maps_have_the_keys_that_are_told() -> None:
    found = values_of({**of("map", keys={"options": ["a", "b"]}, length={"min": 1, "max": 3}), "values": "long"})
    assert set().union(*found) == {"a", "b"}


def test_logical_types_are_values_of_theirs() -> None:
    def logical(kind: str, name: str, **more: Any) -> Any:
        return values_of({"type": kind, "logicalType": name, **more}, 1)[0]

    assert isinstance(logical("int", "date"), date)
    assert isinstance(logical("int", "time-millis"), time)
    at = {"arg.properties": {"iteration": {"start": 1_000}}}
    assert logical("long", "timestamp-millis", **at) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    price = logical("bytes", "decimal", precision=6, scale=2)
    assert isinstance(price, Decimal)
    assert 0 <= price < 10_000


def test_named_types_are_known_again() -> None:
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "Line",
        "fields": [{"name": "a", "type": point}, {"name": "b", "type": "Point"}],
    }
    made = generator_of(schema)
    assert made.schema.by_name["a"] == made.schema.by_name["b"]
    assert made.schema.by_name["a"].name == "geo.Point"


@pytest.mark.parametrize(
    "avro",
    [
        "unknown",
        of("int", range={"min": 5, "max": 5}),
        of("int", options=[]),
        of("int", iteration={"start": 1, "restart": 5, "step": -1}),
        of("int", iteration={}),
        of("string", length={"min": 5, "max": 1}),
        of("string", regex="["),
        of("string", options={"file": "x"}),
        ["int", "string"],
        {"type": "array"},
        {"type": "record", "name": "Self", "fields": [{"name": "me", "type": "Self"}]},
    ],
)
def test_what_makes_no_sense_is_refused(avro: Any) -> None:
    with pytest.raises(ConfigError):
        values_of(avro)


@pytest.mark.parametrize("name", KEYS)
def test_every_quickstart_makes_values_of_a_real_avro_schema(name: str) -> None:
    schema = quickstart_schema(name)
    fastavro.parse_schema(schema)
    generated = generator_of(schema)
    chance = random.Random(3)
    for number in range(50):
        assert list(mismatches(generated.schema, generated.make(chance, number))) == []
    assert KEYS[name] in generated.schema.by_name


def test_fields_of_users_are_those_of_the_tutorials() -> None:
    assert list(generator_of(quickstart_schema("users")).schema.by_name) == [
        "registertime",
        "userid",
        "regionid",
        "gender",
    ]
    assert generator_of(quickstart_schema("pageviews")).schema.by_name["viewtime"] == data.INT64
