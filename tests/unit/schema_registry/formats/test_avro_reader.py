import pytest

from schema_registry.formats.avro import parse
from schema_registry.formats.schema import InvalidSchema


def record(*fields: str) -> str:
    return '{{"type":"record","name":"R","fields":[{}]}}'.format(",".join(fields))


REFUSED = {
    # What a type may be.
    "null": ("null", "/: a type is a name, an object or an array of types, not null"),
    "a number": ("5", "/: a type is a name, an object or an array of types, not a number"),
    "an object without type": ("{}", "/: there is no type"),
    "a type within a type": ('{"type":{"type":"int"}}', "/: the type must be a name, not an object"),
    "an unknown type": ('"strin"', "/: the type 'strin' is unknown"),
    "an unknown type in a field": (record('{"name":"a","type":"B"}'), "/fields/0/type: the type 'B' is unknown"),
    "a type before it is defined": (
        '["A",{"type":"fixed","name":"A","size":1}]',
        "/0: the type 'A' is unknown",
    ),
    "a type of another namespace": (
        '[{"type":"fixed","name":"A","namespace":"n","size":1},{"type":"array","items":"A"}]',
        "/1/items: the type 'A' is unknown",
    ),
    # Parts that are missing.
    "an array without items": ('{"type":"array"}', "/: an array needs the type of its items"),
    "a map without values": ('{"type":"map"}', "/: a map needs the type of its values"),
    "an enum without symbols": ('{"type":"enum","name":"E"}', "/: an enum needs an array of symbols"),
    "a record without fields": ('{"type":"record","name":"R"}', "/: a record needs an array of fields"),
    "fields that are no array": ('{"type":"record","name":"R","fields":{}}', "/: a record needs an array of fields"),
    "a fixed without size": ('{"type":"fixed","name":"F"}', "/size: the size of a fixed must be"),
    "a record without name": ('{"type":"record","fields":[]}', "/: this record has no name"),
    "a field that is no object": (record('"a"'), "/fields/0: a field is an object, not text"),
    "a field without name": (record('{"type":"int"}'), "/fields/0: the name must be text"),
    "a field without type": (record('{"name":"a"}'), "/fields/0: the field 'a' has no type"),
    # Sizes.
    "a negative size": ('{"type":"fixed","name":"F","size":-1}', "/size: "),
    "a size in text": ('{"type":"fixed","name":"F","size":"1"}', "/size: "),
    "a size that is a boolean": ('{"type":"fixed","name":"F","size":true}', "/size: "),
    "a size of 4 GB": ('{"type":"fixed","name":"F","size":4294967296}', "/size: "),
    # Names.
    "a name with a dash": ('{"type":"fixed","name":"a-b","size":1}', "/: name 'a-b' is not allowed"),
    "a name that begins with a digit": ('{"type":"fixed","name":"1a","size":1}', "/: name '1a' is not allowed"),
    "an empty name": ('{"type":"fixed","name":"","size":1}', "/: name '' is not allowed"),
    "a name that is a number": ('{"type":"fixed","name":1,"size":1}', "/: the name must be text"),
    "a name with a line end": ('{"type":"fixed","name":"a\\n","size":1}', r"/: name 'a\\n' is not allowed"),
    "a name of another script": ('{"type":"fixed","name":"größe","size":1}', "/: name 'größe' is not allowed"),
    "a bad namespace": (
        '{"type":"fixed","name":"F","namespace":"a..b","size":1}',
        "/: namespace 'a..b' is not allowed",
    ),
    "a bad namespace in the name": ('{"type":"fixed","name":"1.F","size":1}', "/: namespace '1' is not allowed"),
    "a primitive's name": ('{"type":"fixed","name":"int","size":1}', "/: a type must not be named like"),
    "a bad name of a field": (record('{"name":"a b","type":"int"}'), "/fields/0: name 'a b' is not allowed"),
    "a bad symbol": ('{"type":"enum","name":"E","symbols":["A","B-"]}', "/symbols/1: symbol 'B-' is not allowed"),
    "a symbol that is a number": ('{"type":"enum","name":"E","symbols":[1]}', "/symbols/0: the symbol must be text"),
    # Said twice.
    "two fields of one name": (
        record('{"name":"a","type":"int"}', '{"name":"a","type":"int"}'),
        "/fields/1: there are two fields 'a'",
    ),
    "two symbols": ('{"type":"enum","name":"E","symbols":["A","B","A"]}', "/symbols/2: there are two symbols 'A'"),
    "two definitions that differ": (
        '[{"type":"array","items":{"type":"fixed","name":"F","size":1}},{"type":"fixed","name":"F","size":2}]',
        "/1: the type 'F' already has a different definition",
    ),
    "a definition within itself": (
        record('{"name":"a","type":{"type":"record","name":"R","fields":[]}}'),
        "/fields/0/type: the type 'R' is defined inside itself",
    ),
    # Unions.
    "a union in a union": ('["null",["int"]]', "/1: a union must not directly contain another union"),
    "a branch twice": ('["int","null","int"]', "/2: the union has 'int' twice"),
    "a primitive twice, once with a logical type": (
        '["int",{"type":"int","logicalType":"date"}]',
        "/1: the union has 'int' twice",
    ),
    "two arrays": (
        '[{"type":"array","items":"int"},{"type":"array","items":"long"}]',
        "/1: the union has 'array' twice",
    ),
    "a named type twice": ('[{"type":"fixed","name":"n.F","size":1},"n.F"]', "/1: the union has 'n.F' twice"),
    # Defaults, orders, aliases.
    "an enum's default that is no symbol": (
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        "/default: the default of an enum must be one of its symbols",
    ),
    "a wrong default": (
        record('{"name":"a","type":"int","default":"x"}'),
        "/fields/0: the default \"x\" of field 'a' is not a valid int",
    ),
    "text that is not a number": (
        record('{"name":"a","type":"double","default":"x"}'),
        "/fields/0/default: 'x' is not a number",
    ),
    "an unknown order": (record('{"name":"a","type":"int","order":"up"}'), "/fields/0/order: the order must be"),
    "aliases in text": (
        '{"type":"fixed","name":"F","size":1,"aliases":"G"}',
        "/aliases: aliases must be an array of names",
    ),
    "an alias that is a number": (
        record('{"name":"a","type":"int","aliases":[1]}'),
        "/fields/0/aliases: aliases must be",
    ),
    "an alias that is no name": (
        '{"type":"fixed","name":"F","size":1,"aliases":["a-b"]}',
        "/aliases: alias 'a-b' is not allowed",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_schemas_are_refused_with_place_and_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse(text)
    assert str(caught.value).startswith(message.replace(r"\\", "\\"))


ACCEPTED = {
    "a union without branches": "[]",
    "a fixed of no bytes": '{"type":"fixed","name":"F","size":0}',
    "an enum without symbols": '{"type":"enum","name":"E","symbols":[]}',
    "an unknown logical type": '{"type":"int","logicalType":"fortnight"}',
    "a decimal without precision": '{"type":"bytes","logicalType":"decimal"}',
    "a date in text": '{"type":"string","logicalType":"date"}',
    "a field's alias that is no name": record('{"name":"a","type":"int","aliases":["old-name"]}'),
    "a type called like a complex one": '{"type":"fixed","name":"record","size":1}',
    "a primitive's name in a namespace": '{"type":"fixed","name":"n.int","size":1}',
    "documentation that is no text": record('{"name":"a","type":"int","doc":5}'),
    "an enum's default that is null": '{"type":"enum","name":"E","symbols":["A"],"default":null}',
    "an order in capitals": record('{"name":"a","type":"int","order":"IGNORE"}'),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted_as_in_java(text: str) -> None:
    assert parse(text).canonical


def test_an_equal_definition_may_be_repeated() -> None:
    one = '{"type":"record","name":"A","doc":"one","fields":[{"name":"next","type":["null","A"]}]}'
    other = '{"name":"A","type":"record","fields":[{"type":["null","A"],"name":"next"}]}'
    schema = parse(f'{{"type":"map","values":[{{"type":"array","items":{one}}},{other}]}}')
    assert schema.canonical == f'{{"type":"map","values":[{{"type":"array","items":{one}}},"A"]}}'


@pytest.mark.parametrize("difference", ['"default":1', '"order":"ignore"', '"p":1'])
def test_a_different_definition_must_not_be_repeated(difference: str) -> None:
    one = '{"type":"array","items":{"type":"record","name":"A","fields":[{"name":"f","type":"int"}]}}'
    other = (
        f'{{"type":"map","values":{{"type":"record","name":"A","fields":[{{"name":"f","type":"int",{difference}}}]}}}}'
    )
    with pytest.raises(InvalidSchema, match="a different definition"):
        parse(f"[{one},{other}]")


def test_a_name_is_looked_for_in_its_namespace_first_and_then_without_one() -> None:
    plain = '{"type":"fixed","name":"F","size":1}'
    spaced = '{"type":"fixed","name":"F","namespace":"n","size":2}'
    user = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"F"}]}'
    assert '"size":1' in parse(f"[{plain},{user}]").canonical
    both = parse(f"[{plain},{spaced},{user}]")
    found = both.named["n.R"]
    assert found.kind == "record"
    assert found.fields[0].type is both.named["n.F"]
