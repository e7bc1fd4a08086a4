import json

import pytest

from schema_registry.formats.avro import parse
from schema_registry.formats.schema import InvalidSchema

ENUM = '{"type":"enum","name":"E","symbols":["A","B"]}'
FIXED = '{"type":"fixed","name":"F","size":2}'
RECORD = '{"type":"record","name":"P","fields":[{"name":"x","type":"int"},{"name":"y","type":"int","default":0}]}'

DEFAULTS = [
    # type, right defaults, wrong ones
    ('"null"', ["null"], ["0", '"null"', "false"]),
    ('"boolean"', ["true"], ["1", '"true"', "null"]),
    ('"int"', ["0", "-2147483648", "2147483647"], ["2147483648", "1.0", "true", '"1"', "null"]),
    ('"long"', ["9223372036854775807"], ["9223372036854775808", "1.5"]),
    ('"float"', ["1", "1.5", '"NaN"', '"-Infinity"', '"2.5"'], ["true", "null", '"nan"', '"1_0"', "[]"]),
    ('"double"', ["-1e300", '"Infinity"'], ["{}", '""']),
    ('"string"', ['""', '"é"'], ["1", "null"]),
    ('"bytes"', ['"\\u00ff"'], ['"\\u0100"', "1"]),
    (FIXED, ['"ab"'], ['"a"', '"abc"', "2"]),
    (ENUM, ['"A"'], ['"C"', "0"]),
    ('{"type":"array","items":"int"}', ["[]", "[1,2]"], ['["a"]', "{}", "null"]),
    ('{"type":"map","values":"int"}', ["{}", '{"a":1}'], ['{"a":"b"}', "[]"]),
    (RECORD, ['{"x":1}', '{"x":1,"y":2,"z":3}'], ["{}", '{"y":1}', '{"x":"a"}', "null"]),
    ('["null","int"]', ["null", "1"], ['"a"', "{}"]),
    (f'["string",{RECORD}]', ['"a"', '{"x":1}'], ["1", '{"y":1}']),
]


def schema(type_: str, default: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{{"name":"f","type":{type_},"default":{default}}}]}}'


@pytest.mark.parametrize(("type_", "default"), [(type_, right) for type_, rights, _ in DEFAULTS for right in rights])
def test_a_default_of_the_type_or_of_any_branch_is_accepted(type_: str, default: str) -> None:
    assert parse(schema(type_, default)).field_names == ("f",)


@pytest.mark.parametrize(("type_", "default"), [(type_, wrong) for type_, _, wrongs in DEFAULTS for wrong in wrongs])
def test_any_other_default_is_refused(type_: str, default: str) -> None:
    with pytest.raises(InvalidSchema, match="/fields/0"):
        parse(schema(type_, default))


def test_a_default_that_ends_in_a_recursive_type_is_accepted() -> None:
    text = '{"type":"record","name":"A","fields":[{"name":"next","type":["null","A"],"default":{"next":null}}]}'
    assert parse(text).canonical == text


@pytest.mark.parametrize("default", ["{}", '{"other":1}'])
def test_a_default_that_needs_itself_is_refused(default: str) -> None:
    with pytest.raises(InvalidSchema, match="is infinite"):
        parse(f'{{"type":"record","name":"A","fields":[{{"name":"next","type":["null","A"],"default":{default}}}]}}')


def test_defaults_that_need_each_other_are_refused() -> None:
    inner = {"type": "record", "name": "B", "fields": [{"name": "a", "type": "A", "default": {}}]}
    outer = {"type": "record", "name": "A", "fields": [{"name": "b", "type": inner, "default": {}}]}
    with pytest.raises(InvalidSchema, match="is infinite"):
        parse(json.dumps(outer))


def test_a_default_in_a_message_is_cut_short() -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse(schema('"int"', '"%s"' % ("x" * 10_000)))
    assert len(str(caught.value)) < 200
