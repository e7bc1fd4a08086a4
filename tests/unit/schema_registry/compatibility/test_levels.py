import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schema_registry.compatibility.levels import DIFFERENT_TYPE, Earlier, Level, check
from schema_registry.formats.avro import AvroSchema, parse
from schema_registry.formats.schema import InvalidSchema, SchemaType
from tests.support.avro_schemas import record_pairs
from tests.support.level_laws import allowed_levels, laws_hold

BACKWARD = {Level.BACKWARD, Level.BACKWARD_TRANSITIVE}
FORWARD = {Level.FORWARD, Level.FORWARD_TRANSITIVE}
ALL = set(Level)


def schema(*fields: str) -> AvroSchema:
    return parse('{{"type":"record","name":"R","fields":[{}]}}'.format(",".join(fields)))


A = '{"name":"a","type":"int"}'
B = '{"name":"b","type":"string"}'
B_DEFAULT = '{"name":"b","type":"string","default":""}'
ENUM = '{"type":"enum","name":"E","symbols":%s}'
ENUM_DEFAULT = '{"type":"enum","name":"E","default":"A","symbols":%s}'

CHANGES = {
    # new, old, levels that allow it
    "nothing": (schema(A), schema(A), ALL),
    "a field with default is added": (schema(A, B_DEFAULT), schema(A), ALL),
    "a field without default is added": (schema(A, B), schema(A), {Level.NONE} | FORWARD),
    "a field with default is removed": (schema(A), schema(A, B_DEFAULT), ALL),
    "a field without default is removed": (schema(A), schema(A, B), {Level.NONE} | BACKWARD),
    "a type is widened": (parse('"long"'), parse('"int"'), {Level.NONE} | BACKWARD),
    "a type is narrowed": (parse('"int"'), parse('"long"'), {Level.NONE} | FORWARD),
    "text becomes bytes": (parse('"bytes"'), parse('"string"'), ALL),
    "a symbol is added": (parse(ENUM % '["A","B"]'), parse(ENUM % '["A"]'), {Level.NONE} | BACKWARD),
    "a symbol is added to an enum with a default": (parse(ENUM % '["A","B"]'), parse(ENUM_DEFAULT % '["A"]'), ALL),
    "a branch is added": (parse('["null","int"]'), parse('["null"]'), {Level.NONE} | BACKWARD),
    "a branch is removed": (parse('["null"]'), parse('["null","int"]'), {Level.NONE} | FORWARD),
    "another type": (parse('"boolean"'), parse('"int"'), {Level.NONE}),
}


@pytest.mark.parametrize(("new", "old", "levels"), CHANGES.values(), ids=CHANGES.keys())
def test_the_levels_that_allow_a_change(new: AvroSchema, old: AvroSchema, levels: set[Level]) -> None:
    assert allowed_levels(new, old) == levels


def test_the_first_schema_is_always_compatible() -> None:
    assert allowed_levels(schema(A)) == ALL


def test_only_transitive_levels_look_past_the_newest() -> None:
    plain = {level for level in Level if not level.is_transitive}
    assert allowed_levels(schema(A, B), schema(A), schema(A, B_DEFAULT)) == plain | FORWARD
    assert allowed_levels(schema(A), schema(A, B), schema(A, B_DEFAULT)) == plain | BACKWARD


def test_a_difference_has_confluents_format() -> None:
    old = schema(A)
    assert check(Level.BACKWARD, schema(A, B), [Earlier(7, old)]) == [
        (
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The new schema has a field 'b' at path "
            "'/fields/1' that is missing in the old schema and has no default', additionalInfo:'b'}"
        ),
        "{oldSchemaVersion: 7}",
        "{oldSchema: '" + old.canonical + "'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


def test_new_and_old_change_places_when_looking_forward() -> None:
    messages = check(Level.FORWARD_TRANSITIVE, parse('"long"'), [Earlier(1, parse('"int"'))], validate_fields=True)
    assert messages == [
        (
            "{errorType:'TYPE_MISMATCH', description:'At path '/' the old schema has a type that cannot read the "
            "type of the new schema', additionalInfo:'reader type: INT not compatible with writer type: LONG'}"
        ),
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'true', compatibility: 'FORWARD_TRANSITIVE'}",
    ]


def test_full_levels_report_forward_differences_first() -> None:
    messages = check(Level.FULL, parse('"boolean"'), [Earlier(None, parse('"int"'))])
    assert ["the old schema has a type" in message for message in messages[:2]] == [True, False]
    assert messages[2:] == ["{oldSchema: '\"int\"'}", "{validateFields: 'false', compatibility: 'FULL'}"]


def test_transitive_levels_stop_at_the_newest_version_in_the_way() -> None:
    previous = [Earlier(1, parse('"boolean"')), Earlier(2, parse('"null"')), Earlier(3, parse('"int"'))]
    messages = check(Level.BACKWARD_TRANSITIVE, parse('"long"'), previous)
    assert [message for message in messages if "Version" in message] == ["{oldSchemaVersion: 2}"]


def test_a_large_schema_is_cut_short() -> None:
    old = schema('{"name":"a","type":"int","doc":"%s"}' % ("x" * 20_000))
    shown = check(Level.BACKWARD, schema(B), [Earlier(1, old)])[-2]
    assert shown == "{oldSchema: <truncated> '" + old.canonical[:10240] + "...'}"


class _OtherSchema:
    schema_type = SchemaType.JSON
    canonical = normalized = meaning = "{}"
    name = None
    field_names = ()

    def format(self, style: str) -> str:
        return style


@pytest.mark.parametrize("level", Level)
def test_another_format_is_incompatible_at_all_levels_but_none(level: Level) -> None:
    messages = check(level, schema(A), [Earlier(1, _OtherSchema())])
    ending = f"{{validateFields: 'false', compatibility: '{level}'}}"
    assert messages == ([] if level is Level.NONE else [DIFFERENT_TYPE, ending])


@pytest.mark.processes
def test_formats_that_are_not_used_are_not_loaded() -> None:
    program = (
        "import sys; from schema_registry.compatibility.levels import *;"
        "from schema_registry.formats.avro import parse;"
        "s = parse('\"int\"'); check(Level.FULL, s, [Earlier(1, s)]);"
        "sys.exit(any(name.endswith(('.json_schema', '.protobuf')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(record_pairs(), min_size=1, max_size=3))
def test_full_is_both_ways_and_transitive_is_more(pairs: list[tuple[Any, Any]]) -> None:
    try:
        parsed = [parse(json.dumps(value)) for pair in pairs for value in pair]
    except InvalidSchema:
        assume(False)
        raise
    laws_hold(parsed)
