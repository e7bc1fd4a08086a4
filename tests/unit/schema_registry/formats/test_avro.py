import json
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from schema_registry.formats.avro import parse
from schema_registry.formats.schema import InvalidSchema, Limits, ResolvedReference, SchemaType
from tests.support.avro_schemas import full_name, reordered_pairs, schemas
from tests.support.patience import PATIENCE_S

USER = '{"type":"record","name":"User","namespace":"com.example","fields":[{"name":"id","type":"long"}]}'


def reference(text: str, name: str = "com.example.User") -> ResolvedReference:
    return ResolvedReference(name=name, subject="users", version=1, text=text)


def test_a_record_is_called_by_its_full_name() -> None:
    schema = parse(USER)
    assert schema.schema_type is SchemaType.AVRO
    assert schema.name == "com.example.User"
    assert schema.field_names == ("id",)


@pytest.mark.parametrize("text", ['"string"', '["null", "int"]', '{"type":"enum","name":"E","symbols":["A"]}'])
def test_types_other_than_records_have_no_name_for_subjects(text: str) -> None:
    assert parse(text).name is None
    assert parse(text).field_names == ()


def test_types_of_references_are_names_in_the_stored_text_and_inline_in_the_resolved_one() -> None:
    text = (
        '{"type":"record","name":"Order","namespace":"com.example","fields":'
        '[{"name":"by","type":"User"},{"name":"for","type":"com.example.User"}]}'
    )
    schema = parse(text, [reference(USER)])
    assert schema.canonical == text.replace('"com.example.User"', '"User"')
    assert schema.format("resolved") == (
        '{"type":"record","name":"Order","namespace":"com.example","fields":[{"name":"by","type":'
        '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}},{"name":"for","type":"User"}]}'
    )
    assert schema.format("") == schema.format("serialized") == schema.canonical


def test_references_may_use_references_before_them() -> None:
    team = '{"type":"record","name":"Team","namespace":"com.example","fields":[{"name":"lead","type":"User"}]}'
    schema = parse(
        '{"type":"array","items":"com.example.Team"}', [reference(USER), reference(team, "com.example.Team")]
    )
    assert schema.canonical == '{"type":"array","items":"com.example.Team"}'
    assert '"lead","type":{"type":"record","name":"User"' in schema.format("resolved")


def test_a_schema_may_be_nothing_but_a_reference() -> None:
    schema = parse('"com.example.User"', [reference(USER)])
    assert schema.canonical == '"com.example.User"'
    assert schema.name == "com.example.User"


def test_the_same_reference_may_come_twice_and_be_written_out_in_the_text_as_well() -> None:
    schema = parse(f'["null",{USER}]', [reference(USER), reference(USER)])
    assert schema.canonical == '["null","com.example.User"]'


def test_a_reference_that_contradicts_another_is_refused_by_name() -> None:
    other = USER.replace("long", "string")
    with pytest.raises(
        InvalidSchema, match=r"reference 'com.example.User' \(subject 'users', version 1\): .*a different definition"
    ):
        parse('"int"', [reference(USER), reference(other)])


def test_a_reference_with_what_is_no_longer_allowed_in_new_schemas_still_serves() -> None:
    old = '{"type":"record","name":"Old","namespace":"a-b","fields":[{"name":"x","type":"int","default":"no"}]}'
    assert parse('"a-b.Old"', [reference(old, "a-b.Old")]).canonical == '"a-b.Old"'


def test_fastavro_reads_and_writes_with_the_structure() -> None:
    order = '{"type":"record","name":"Order","namespace":"com.example","fields":[{"name":"by","type":["null","User"]}]}'
    structure: Any = parse(order, [reference(USER)]).structure
    assert fastavro.validate({"by": {"id": 5}}, fastavro.parse_schema(structure))


LAX = {
    "a namespace with a dash": '{"type":"fixed","name":"F","namespace":"a-b","size":1}',
    "a full name with a dash in the namespace": '{"type":"fixed","name":"a-b.F","size":1}',
    "letters of other scripts": '{"type":"fixed","name":"Größe","size":1}',
    "a wrong default": '{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":null}]}',
    "an alias that is no name": '{"type":"fixed","name":"F","size":1,"aliases":["a-b"]}',
    "a key twice": '{"type":"int","a":1,"a":2}',
}


@pytest.mark.parametrize("text", LAX.values(), ids=LAX.keys())
def test_only_new_schemas_are_held_to(text: str) -> None:
    assert parse(text, strict=False).canonical
    with pytest.raises(InvalidSchema):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"record","name":"a-b","fields":[]}',
        '{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}',
        '{"type":"enum","name":"E","symbols":["a-b"]}',
    ],
)
def test_names_of_types_fields_and_symbols_are_always_held_to(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text, strict=False)


def _chain(length: int) -> list[Any]:
    first = {"type": "record", "name": "R0", "fields": [{"name": "v", "type": "int", "default": 1}]}
    return [first] + [
        {
            "type": "record",
            "name": f"R{i}",
            "fields": [{"name": name, "type": f"R{i - 1}", "default": {}} for name in "ab"],
        }
        for i in range(1, length)
    ]


def _tries(depth: int) -> Any:
    """A default that would be tried against all branches at all depths."""
    value: Any = 5
    for _ in range(depth):
        value = {"n": value}
    records = [
        {"type": "record", "name": f"U{i}", "fields": [{"name": "n", "type": [f"U{j}" for j in range(i)]}]}
        for i in range(60)
    ]
    again = {"name": "y", "type": [f"U{i}" for i in range(60)], "default": value}
    return {"type": "record", "name": "T", "fields": [{"name": "x", "type": records}, again]}


HOSTILE = {
    "arrays 10,000 deep": "[" * 10_000 + "]" * 10_000,
    "items 10,000 deep": '{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000,
    "items 200 deep": '{"type":"array","items":' * 200 + '"int"' + "}" * 200,
    "properties 200 deep": '{"type":"int","p":' + "[" * 200 + "]" * 200 + "}",
    "an enum of a megabyte": json.dumps({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(120_000)]}),
    "a number of 100,000 digits": '{"type":"int","p":%s}' % ("9" * 100_000),
    "comments that never end": "/*" * 500_000,
    "strings in a row": '"\\"' * 300_000 + "//",
    "100,000 keys and one twice": "{{{}}}".format(",".join(f'"k{i % 99_999}":1' for i in range(100_000))),
    "a default tried without end": json.dumps(_tries(40)),
    "a default within itself": '{"type":"record","name":"A","fields":[{"name":"n","type":"A","default":{}}]}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidSchema):
        parse(text)
    assert time.process_time() - start < PATIENCE_S


def test_long_chains_of_types_can_be_compared() -> None:
    schema = parse(json.dumps(_chain(1_200)))
    assert parse(schema.canonical).normalized == schema.normalized


def test_references_in_a_chain_too_long_to_write_out_are_refused() -> None:
    texts = [json.dumps(item) for item in _chain(1_200)]
    schema = parse('"R1199"', [reference(text, f"R{index}") for index, text in enumerate(texts)])
    assert schema.canonical == '"R1199"'
    with pytest.raises(InvalidSchema, match="too deep"):
        schema.format("resolved")


def test_limits_can_be_set() -> None:
    text = '{"type":"array","items":{"type":"array","items":"int"}}'
    assert parse(text, limits=Limits(max_depth=3, max_elements=5)).canonical == text
    with pytest.raises(InvalidSchema, match="more than 2 levels"):
        parse(text, limits=Limits(max_depth=2))
    with pytest.raises(InvalidSchema, match="more than 4 values"):
        parse(text, limits=Limits(max_elements=4))


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_the_stored_text_is_stored_as_it_is(value: Any) -> None:
    once = parse(json.dumps(value))
    again = parse(once.canonical)
    assert again.canonical == once.canonical
    assert again.normalized == once.normalized
    assert parse(once.normalized).normalized == once.normalized
    assert list(again.named) == list(once.named)


@settings(max_examples=100, deadline=None)
@given(reordered_pairs())
def test_the_normal_form_does_not_depend_on_the_order_of_keys_or_on_space(pair: tuple[Any, str]) -> None:
    value, text = pair
    assert parse(text).normalized == parse(json.dumps(value)).normalized


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_the_normal_form_does_not_depend_on_how_namespaces_are_written(value: Any) -> None:
    assert parse(json.dumps(_with_full_names(value, None))).normalized == parse(json.dumps(value)).normalized


@settings(max_examples=100, deadline=None)
@given(schemas(namespaces=False))
def test_fastavro_takes_every_schema(value: Any) -> None:
    fastavro.parse_schema(parse(json.dumps(value)).structure)


def _with_full_names(value: Any, namespace: str | None) -> Any:
    """The same schema with every definition's name in full."""
    if isinstance(value, list):
        return [_with_full_names(item, namespace) for item in value]
    if not isinstance(value, dict):
        return value
    changed = dict(value)
    if "name" in value and value["type"] in ("record", "enum", "fixed"):
        full = full_name(value, namespace)
        namespace = full.rpartition(".")[0] or None
        changed["name"] = full
        changed["namespace"] = "" if namespace is None else "overruled"
    for key in ("items", "values"):
        if key in value:
            changed[key] = _with_full_names(value[key], namespace)
    if "fields" in value:
        changed["fields"] = [field | {"type": _with_full_names(field["type"], namespace)} for field in value["fields"]]
    return changed
