import json
from typing import Any

import pytest
from hypothesis import assume, given, settings

from schema_registry.compatibility.avro import compare
from schema_registry.compatibility.avro_changes import changes
from schema_registry.formats.avro import parse
from schema_registry.formats.schema import InvalidSchema
from tests.support.avro_schemas import record_pairs, schemas

A = '{"name":"a","type":"int"}'


def record(*fields: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'


def field(more: str) -> str:
    return record(f'{{"name":"a","type":"int",{more}}}')


CHANGES: dict[str, tuple[str, str, list[tuple[str, str, bool]]]] = {
    # new, old, changes as kind, path and whether it is compatible
    "a field is added": (record(A), record(), [("FIELD_ADDED", "/fields/0", False)]),
    "a field is added with a default": (field('"default":1'), record(), [("FIELD_ADDED", "/fields/0", True)]),
    "a field is removed": (record(), record(A), [("FIELD_REMOVED", "/fields/0", True)]),
    "a field is renamed": (
        record('{"name":"b","type":"int","aliases":["a"]}'),
        record(A),
        [("FIELD_RENAMED", "/fields/0", True), ("ALIASES_CHANGED", "/fields/0/aliases", True)],
    ),
    "a field that two match": (
        record('{"name":"b","type":"int","aliases":["a"]}'),
        record(A, '{"name":"b","type":"int"}'),
        [("FIELD_AMBIGUOUS", "/fields/0", False)],
    ),
    "a type is widened": ('"long"', '"int"', [("TYPE_CHANGED", "/", True)]),
    "a type is narrowed": ('"int"', '"long"', [("TYPE_CHANGED", "/", False)]),
    "a type becomes optional": ('["null","int"]', '"int"', [("TYPE_CHANGED", "/", True)]),
    "a branch comes, another goes": (
        '["null","int"]',
        '["null","string"]',
        [("BRANCH_ADDED", "/1", True), ("BRANCH_REMOVED", "/1", False)],
    ),
    "a branch gives way to a wider one": (
        '["double"]',
        '["int"]',
        [("BRANCH_ADDED", "/0", True), ("BRANCH_REMOVED", "/0", True)],
    ),
    "a default": (field('"default":1'), record(A), [("DEFAULT_CHANGED", "/fields/0/default", True)]),
    "a default of another kind": (
        record('{"name":"a","type":["boolean","int"],"default":1}'),
        record('{"name":"a","type":["boolean","int"],"default":true}'),
        [("DEFAULT_CHANGED", "/fields/0/default", True)],
    ),
    "documentation": (field('"doc":"d"'), record(A), [("DOC_CHANGED", "/fields/0/doc", True)]),
    "the order": (field('"order":"ignore"'), record(A), [("ORDER_CHANGED", "/fields/0/order", True)]),
    "a property": (field('"p":null'), record(A), [("PROPERTIES_CHANGED", "/fields/0", True)]),
    "a logical type": ('{"type":"int","logicalType":"date"}', '"int"', [("PROPERTIES_CHANGED", "/", True)]),
    "symbols": (
        '{"type":"enum","name":"E","symbols":["A","C"]}',
        '{"type":"enum","name":"E","symbols":["A","B"],"default":"A"}',
        [
            ("SYMBOLS_ADDED", "/symbols", True),
            ("SYMBOLS_REMOVED", "/symbols", False),
            ("ENUM_DEFAULT_CHANGED", "/default", True),
        ],
    ),
    "the size": (
        '{"type":"fixed","name":"F","size":1}',
        '{"type":"fixed","name":"F","size":2}',
        [("SIZE_CHANGED", "/size", False)],
    ),
    "the namespace": (
        '{"type":"fixed","name":"n.F","size":1}',
        '{"type":"fixed","name":"F","size":1}',
        [("NAME_CHANGED", "/name", True)],
    ),
    "items of values": (
        '{"type":"map","values":{"type":"array","items":"long"}}',
        '{"type":"map","values":{"type":"array","items":"int"}}',
        [("TYPE_CHANGED", "/values/items", True)],
    ),
}


@pytest.mark.parametrize(("new", "old", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_told(new: str, old: str, expected: list[tuple[str, str, bool]]) -> None:
    found = changes(parse(new), parse(old))
    assert [(change.type, change.path, change.is_compatible) for change in found] == expected


def test_changes_are_told_in_plain_words() -> None:
    new, old = parse(record(A, '{"name":"b","type":["null","R"],"default":null}')), parse(record(A))
    assert [change.description for change in changes(new, old)] == [
        "field 'b' was added: a union of null, record R, default null"
    ]


@settings(max_examples=60, deadline=None)
@given(schemas())
def test_a_schema_does_not_differ_from_itself(value: Any) -> None:
    text = json.dumps(value)
    assert changes(parse(text), parse(text)) == []


@settings(max_examples=150, deadline=None)
@given(record_pairs())
def test_what_is_incompatible_has_an_incompatible_change(pair: tuple[Any, Any]) -> None:
    try:
        new, old = (parse(json.dumps(value)) for value in pair)
    except InvalidSchema:
        assume(False)
        raise
    if compare(new, old):
        assert not all(change.is_compatible for change in changes(new, old))
