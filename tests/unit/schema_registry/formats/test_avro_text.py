import pytest

from schema_registry.formats.avro import parse

CANONICAL = {
    "a primitive in an object": ('{"type": "string"}', '"string"'),
    "a primitive with properties": ('{"logicalType":"date","type":"int"}', '{"type":"int","logicalType":"date"}'),
    "the keys of a record": (
        '{"aliases":["Old"],"p":1,"fields":[],"doc":"d","namespace":"n","name":"R","type":"record"}',
        '{"type":"record","name":"R","namespace":"n","doc":"d","fields":[],"p":1,"aliases":["Old"]}',
    ),
    "the keys of a field": (
        '{"type":"record","name":"R","fields":[{"p":1,"aliases":["b"],"order":"descending","default":1,"doc":"d","type":"int","name":"a"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"d","default":1,"order":"descending","aliases":["b"],"p":1}]}',
    ),
    "the keys of an enum": (
        '{"p":1,"aliases":["X"],"default":"A","symbols":["A"],"doc":"","name":"E","type":"enum"}',
        '{"type":"enum","name":"E","doc":"","symbols":["A"],"default":"A","p":1,"aliases":["X"]}',
    ),
    "the keys of a fixed": (
        '{"p":1,"aliases":["X"],"size":2,"doc":"d","name":"F","type":"fixed"}',
        '{"type":"fixed","name":"F","doc":"d","size":2,"p":1,"aliases":["X"]}',
    ),
    "the default of an array is a property": (
        '{"default":[],"items":"int","type":"array"}',
        '{"type":"array","items":"int","default":[]}',
    ),
    "keys without meaning for the type are dropped": (
        '{"type":"array","name":"x","namespace":"n","doc":"d","items":"int"}',
        '{"type":"array","items":"int"}',
    ),
    "the usual order is left out": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"ascending"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
    ),
    "errors": ('{"type":"error","name":"R","fields":[]}', '{"type":"error","name":"R","fields":[]}'),
    "a full name": (
        '{"type":"fixed","name":"a.b.F","size":1}',
        '{"type":"fixed","name":"F","namespace":"a.b","size":1}',
    ),
    "the same namespace within": (
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"n","size":1}},{"name":"b","type":"n.F"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":"F"}]}',
    ),
    "another namespace within": (
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"m.F","size":1}},{"name":"b","type":"m.F"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"m","size":1}},{"name":"b","type":"m.F"}]}',
    ),
    "no namespace within one": (
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"","size":1}},{"name":"b","type":"F"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"","size":1}},{"name":"b","type":"F"}]}',
    ),
    "a name without namespace that would be taken for another": (
        '[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"n.F","size":1},{"type":"record","name":"n.R","fields":[{"name":"a","type":".F"}]}]',
        '[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","namespace":"n","size":1},{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":".F"}]}]',
    ),
    "a name like that of a type": (
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"int","size":1}},{"name":"b","type":"n.int"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"int","size":1}},{"name":"b","type":"n.int"}]}',
    ),
    "aliases": (
        '{"type":"fixed","name":"n.F","size":1,"aliases":["n.B","m.A","B",".C"]}',
        '{"type":"fixed","name":"F","namespace":"n","size":1,"aliases":["B","m.A",".C"]}',
    ),
    "properties as they were": (
        '{"type":"int","b":{"z":1,"a":[true,null]},"a":"x"}',
        '{"type":"int","b":{"z":1,"a":[true,null]},"a":"x"}',
    ),
    "the properties of a type that is used by name are dropped": (
        '[{"type":"fixed","name":"F","size":1},{"type":"array","items":{"type":"F","p":1}}]',
        '[{"type":"fixed","name":"F","size":1},{"type":"array","items":"F"}]',
    ),
    "numbers in text as defaults of floating-point fields": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":"1.5"},{"name":"b","type":"float","default":"NaN"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1.5},{"name":"b","type":"float","default":"NaN"}]}',
    ),
    "comments": (
        '/* a */ {"type": "int", // b\n "p": "// no /* comment */"}',
        '{"type":"int","p":"// no /* comment */"}',
    ),
}


@pytest.mark.parametrize(("text", "stored"), CANONICAL.values(), ids=CANONICAL.keys())
def test_stored_as_java_writes_it(text: str, stored: str) -> None:
    assert parse(text).canonical == stored
    assert parse(stored).canonical == stored


NORMAL = {
    "properties are sorted": ('{"type":"int","b":{"z":1,"a":2},"a":1}', '{"type":"int","a":1,"b":{"a":2,"z":1}}'),
    "a valid logical type comes first": (
        '{"type":"bytes","a":1,"scale":2,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}',
    ),
    "a scale of nothing is like any property": (
        '{"type":"bytes","scale":0,"a":1,"precision":4,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0}',
    ),
    "a logical type that is not valid is like any property": (
        '{"type":"string","logicalType":"date","a":1}',
        '{"type":"string","a":1,"logicalType":"date"}',
    ),
    "a decimal that does not fit is like any property": (
        '{"type":"fixed","name":"F","size":1,"precision":9,"logicalType":"decimal"}',
        '{"type":"fixed","name":"F","size":1,"logicalType":"decimal","precision":9}',
    ),
    "aliases are sorted": (
        '{"type":"record","name":"n.R","aliases":["Z","m.A","B"],"fields":[{"name":"a","type":"int","aliases":["z","y"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int","aliases":["y","z"]}],"aliases":["m.A","B","Z"]}',
    ),
    "documentation that says nothing is dropped": (
        '{"type":"fixed","name":"F","doc":"","size":1}',
        '{"type":"fixed","name":"F","size":1}',
    ),
    "yet not that of fields": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":""}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":""}]}',
    ),
    "whole numbers of floating-point fields get a fraction": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":0},{"name":"b","type":["null","float"],"default":1},{"name":"c","type":{"type":"map","values":"double"},"default":{"y":1,"x":2}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":0.0},{"name":"b","type":["null","float"],"default":1.0},{"name":"c","type":{"type":"map","values":"double"},"default":{"x":2.0,"y":1.0}}]}',
    ),
    "numbers of 32 bits are as short as they can be": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":0.12345678901}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":0.12345679}]}',
    ),
    "the properties that connectors write": (
        '{"connect.name":"s.E","fields":[{"default":null,"name":"b","type":["null",{"connect.name":"s.V","fields":[{"name":"c","type":{"connect.version":1,"connect.name":"T","type":"long"}}],"name":"V","type":"record"}]},{"default":null,"name":"a","type":["null","V"]}],"name":"E","namespace":"s","type":"record"}',
        '{"type":"record","name":"E","namespace":"s","fields":[{"name":"b","type":["null",{"type":"record","name":"V","fields":[{"name":"c","type":{"type":"long","connect.name":"T","connect.version":1}}],"connect.name":"s.V"}],"default":null},{"name":"a","type":["null","V"],"default":null}],"connect.name":"s.E"}',
    ),
}


@pytest.mark.parametrize(("text", "normal"), NORMAL.values(), ids=NORMAL.keys())
def test_normalised_as_confluent_does(text: str, normal: str) -> None:
    assert parse(text).normalized == normal
    assert parse(normal).normalized == normal
