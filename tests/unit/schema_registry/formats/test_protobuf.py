"""Protobuf schemas: what is accepted, what is refused, and what a schema tells about itself."""

import base64
import time

import pytest
from confluent_kafka.schema_registry.common.protobuf import (
    _create_index_array,
    _init_pool,
    _schema_to_str,
    _str_to_proto,
)
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from schema_registry.formats.protobuf import ProtobufSchema, parse
from schema_registry.formats.schema import InvalidSchema, Limits, ResolvedReference, Schema, SchemaType
from tests.support.patience import PATIENCE_S

PROTO3 = 'syntax = "proto3";\n'


def reference(name: str, text: str, *, version: int = 1) -> ResolvedReference:
    return ResolvedReference(name=name, subject=name, version=version, text=text)


def nested(depth: int) -> str:
    return "".join(f"message M{level} {{" for level in range(depth)) + "}" * depth


# --- what a schema tells ----------------------------------------------------------------------------------------------


def test_a_schema_is_named_after_its_first_message() -> None:
    schema: Schema = parse(PROTO3 + "package a.b; enum E { Z = 0; } message First {} message Second {}")
    assert schema.schema_type is SchemaType.PROTOBUF
    assert schema.name == "a.b.First"


def test_a_schema_without_messages_has_no_name() -> None:
    assert parse(PROTO3 + "enum E { Z = 0; }").name is None


def test_unknown_formats_give_the_canonical_text() -> None:
    schema = parse(PROTO3 + "message A {}")
    assert schema.format("no such format") == schema.format("") == schema.canonical


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    text = PROTO3 + "package p; message A { B b = 1; } message B {}"
    assert parse("\ufeff" + text).canonical == parse(text).canonical


def test_carriage_returns_are_spaces() -> None:
    text = PROTO3 + "message A {\n  B b = 1;\n  // note\n}\nmessage B {}\n"
    assert parse(text.replace("\n", "\r\n")).canonical == parse(text).canonical


def test_the_same_text_is_compiled_once() -> None:
    text = PROTO3 + "message CompiledOnce {}"
    assert parse(text) is parse(text)


def test_records_are_written_and_read_by_the_message_classes() -> None:
    schema = parse(PROTO3 + "package p; message A { string s = 1; B b = 2; message B { int32 n = 1; } }")
    written = schema.message_class("p.A")(s="x", b={"n": 7}).SerializeToString()
    read = schema.message_class("p.A").FromString(written)
    assert (read.s, read.b.n) == ("x", 7)  # type: ignore[attr-defined] # made at run time
    assert schema.message_class("p.A") is schema.message_class("p.A")


def test_a_message_that_does_not_exist_has_no_class() -> None:
    with pytest.raises(InvalidSchema, match="no message p.B"):
        parse(PROTO3 + "package p; message A {}").message_class("p.B")


# --- message indexes --------------------------------------------------------------------------------------------------

INDEXED = PROTO3 + (
    "package p; message A { map<string, int32> m = 1; message B { message C {} message D {} } } enum E { Z = 0; }"
    "message F { message G {} map<string, G> m = 1; message H {} }"
)


@pytest.mark.parametrize(
    "name, indexes",
    [("p.A", (0,)), ("p.A.B", (0, 1)), ("p.A.B.D", (0, 1, 1)), ("p.F", (1,)), ("p.F.G", (1, 0)), ("p.F.H", (1, 2))],
)
def test_indexes_lead_to_messages_and_back(name: str, indexes: tuple[int, ...]) -> None:
    for schema in (parse(INDEXED), parse(parse(INDEXED).canonical), parse(parse(INDEXED).normalized)):
        assert schema.indexes_of(name) == indexes
        assert schema.message_at(indexes).full_name == name


def test_indexes_count_as_confluents_python_client_counts() -> None:
    schema = parse(INDEXED)
    descriptor = schema.pool.FindMessageTypeByName("p.F.H")
    assert tuple(_create_index_array(descriptor)) == schema.indexes_of("p.F.H")


def test_no_index_is_the_first_message() -> None:
    assert parse(INDEXED).message_at([]).full_name == "p.A"


def test_an_index_that_leaves_out_map_entries_is_understood_where_it_can_be() -> None:
    assert parse(INDEXED).message_at([0, 0]).full_name == "p.A.B"


@pytest.mark.parametrize("indexes", [[2], [-1], [0, 5], [0, 1, 2], [0, 1, 1, 0]])
def test_an_index_past_the_end_is_refused(indexes: list[int]) -> None:
    with pytest.raises(InvalidSchema, match="no message at index"):
        parse(INDEXED).message_at(indexes)


@pytest.mark.parametrize("name", ["p.X", "A", "p.A.X", "p", "", "q.A"])
def test_a_name_that_is_not_a_message_has_no_indexes(name: str) -> None:
    with pytest.raises(InvalidSchema, match="no message"):
        parse(INDEXED).indexes_of(name)


# --- references -------------------------------------------------------------------------------------------------------

DEEP = PROTO3 + "package deep; message Deep { int32 x = 1; }"
MIDDLE = PROTO3 + 'package middle; import "deep.proto"; message Middle { deep.Deep deep = 1; }'
TOP = PROTO3 + 'package top; import "dir/middle.proto"; message Top { middle.Middle middle = 1; }'
REFERENCES = (reference("deep.proto", DEEP), reference("dir/middle.proto", MIDDLE))


def test_references_of_references_are_found() -> None:
    schema = parse(TOP, REFERENCES)
    assert [file.name for file in schema.dependencies] == ["deep.proto", "dir/middle.proto"]
    assert schema.message_class("top.Top")(middle={"deep": {"x": 3}}).ByteSize() == 6


def test_references_may_be_serialized() -> None:
    serialized = parse(MIDDLE, REFERENCES[:1]).format("serialized")
    mixed = (REFERENCES[0], reference("dir/middle.proto", serialized))
    assert parse(TOP, mixed).descriptor_set == parse(TOP, REFERENCES).descriptor_set


def test_a_schema_with_references_can_be_serialized_and_read_back() -> None:
    schema = parse(TOP, REFERENCES)
    assert parse(schema.format("serialized"), REFERENCES).normalized == schema.normalized


def test_confluents_client_reads_what_is_serialized() -> None:
    pool = DescriptorPool()
    _init_pool(pool)
    for index, each in enumerate(REFERENCES):
        pool.Add(_str_to_proto(each.name, parse(each.text, REFERENCES[:index]).format("serialized")))
    pool.Add(_str_to_proto("default", parse(TOP, REFERENCES).format("serialized")))
    top = message_factory.GetMessageClass(pool.FindMessageTypeByName("top.Top"))
    assert top(middle={"deep": {"x": 3}}).SerializeToString()


def test_what_confluents_client_registers_is_read() -> None:
    schema = parse(TOP, REFERENCES)
    file = schema.pool.FindFileByName("default")
    again = parse(_schema_to_str(file), REFERENCES)
    assert again.descriptor == schema.descriptor
    assert ".middle.Middle middle = 1;" in again.canonical


def test_an_import_without_a_reference_is_refused() -> None:
    with pytest.raises(InvalidSchema, match='2:14: Import "dir/middle.proto" was not found'):
        parse(TOP)


def test_a_faulty_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match="^bad.proto: 1:1: "):
        parse(PROTO3 + 'import "bad.proto";', [reference("bad.proto", "nonsense {")])


@pytest.mark.parametrize(
    "path, type_name",
    [
        ("google/protobuf/timestamp.proto", "google.protobuf.Timestamp"),
        ("google/protobuf/wrappers.proto", "google.protobuf.Int32Value"),
        ("google/protobuf/struct.proto", "google.protobuf.Struct"),
        ("google/protobuf/descriptor.proto", "google.protobuf.FileDescriptorSet"),
        ("google/type/date.proto", "google.type.Date"),
        ("google/type/datetime.proto", "google.type.DateTime"),
        ("google/type/money.proto", "google.type.Money"),
        ("confluent/meta.proto", "confluent.Meta"),
        ("confluent/type/decimal.proto", "confluent.type.Decimal"),
        ("confluent/type/variant.proto", "confluent.type.Variant"),
        ("confluent/types/decimal.proto", "confluent.type.Decimal"),
    ],
)
def test_well_known_types_need_no_reference(path: str, type_name: str) -> None:
    schema = parse(PROTO3 + f'import "{path}"; message A {{ {type_name} x = 1; }}')
    assert schema.pool.FindMessageTypeByName(type_name).full_name == type_name
    assert parse(schema.format("serialized")).descriptor == schema.descriptor


def test_a_reference_to_a_well_known_type_changes_nothing() -> None:
    text = PROTO3 + 'import "google/type/date.proto"; message A { google.type.Date d = 1; }'
    other = reference("google/type/date.proto", PROTO3 + "package google.type; message Date { string s = 1; }")
    assert parse(text, [other]).dependencies == parse(text).dependencies


def test_a_reference_may_have_the_name_that_schemas_have() -> None:
    schema = parse(PROTO3 + 'import "default"; message A { D d = 1; }', [reference("default", PROTO3 + "message D {}")])
    assert [file.name for file in schema.dependencies] == ["default"]
    assert schema.name == "A"


# --- maps that are spelled out ----------------------------------------------------------------------------------------

SPELLED_OUT = """syntax = "proto3";
package p;

message A {
  repeated .p.A.WeightsEntry weights = 1;
	repeated BsEntry bs = 2;
  message B {}
  message WeightsEntry {
    option map_entry = true;

    string key = 1;
    double value = 2;
  }
  message BsEntry { option   map_entry=true; int32 key = 1; B value = 2; }
}
"""


def test_maps_that_are_spelled_out_as_javas_client_does_become_maps() -> None:
    schema = parse(SPELLED_OUT)
    assert "  map<string, double> weights = 1;\n  map<int32, .p.A.B> bs = 2;\n" in schema.canonical
    assert schema.indexes_of("p.A.B") == (0, 0)
    assert parse(schema.canonical).descriptor == schema.descriptor


def test_a_map_entry_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="map_entry|map entry|file descriptor"):
        parse(PROTO3 + "message A { repeated X x = 1; message X { option map_entry = true; string other = 1; } }")


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, error",
    [
        (PROTO3 + "message A {\n  Unknown x = 1;\n}", '^3:3: "Unknown" is not defined.$'),
        (PROTO3 + "message A { int32 a = 1; int32 b = 1; }", "^2:36: Field number 1 has already been used"),
        (PROTO3 + "message A { int32 a = 1 }", '^2:25: Expected ";".$'),
        (PROTO3 + "message A {} message A {}", '^2:22: "A" is already defined.$'),
        (PROTO3 + "message A { required int32 a = 1; }", "^2:22: Required fields are not allowed in proto3.$"),
        (PROTO3 + "enum E { ONE = 1; }", "^2:16: The first enum value must be zero"),
        ('syntax = "proto9";', '^1:10: Unrecognized syntax identifier "proto9"'),
        (PROTO3 + "option no_such = 1;", 'Option "no_such" unknown'),
        (PROTO3 + "message Warning { Unknown warning = 1; }", '^2:19: "Unknown" is not defined.$'),
        ('{"type": "record"}', "^1:1: Expected top-level statement"),
        ("string", "^1:1: Expected top-level statement"),
        ("abcd", "^1:1: Expected top-level statement"),
        ("  \n", "^the schema is empty$"),
    ],
)
def test_errors_have_place_and_reason(text: str, error: str) -> None:
    with pytest.raises(InvalidSchema, match=error) as raised:
        parse(text)
    assert "/proc" not in str(raised.value)


def test_several_errors_are_reported_at_once() -> None:
    with pytest.raises(InvalidSchema, match='2:13: "X" is not defined.; 2:22: "Y" is not defined.'):
        parse(PROTO3 + "message A { X x = 1; Y y = 2; }")


def test_a_descriptor_that_contradicts_itself_is_refused() -> None:
    file = FileDescriptorProto(name="x", syntax="proto3")
    file.message_type.add(name="A").field.add(name="f", number=1, type=11, type_name=".Nowhere", label=1)
    with pytest.raises(InvalidSchema, match="file descriptor"):
        parse(base64.b64encode(file.SerializeToString()).decode())


def test_a_descriptor_with_text_in_its_names_is_refused() -> None:
    file = FileDescriptorProto(name="x", syntax="proto3")
    file.message_type.add(name="A {} message B")
    with pytest.raises(InvalidSchema):
        parse(base64.b64encode(file.SerializeToString()).decode())


HOSTILE = {
    "messages nested 10,000 deep": PROTO3 + nested(10_000),
    "messages nested deeper than protoc allows": PROTO3 + nested(40),
    "100,000 enum values": PROTO3 + "enum E {" + "".join(f"V{n} = {n};" for n in range(100_000)) + "}",
    "30,000 fields": PROTO3 + "message A {" + "".join(f"int32 f{n} = {n + 20_000};" for n in range(30_000)) + "}",
    "an import of itself": PROTO3 + 'import "default";',
    "an import of a file of the machine": PROTO3 + 'import "/etc/passwd";',
    "an import that climbs": PROTO3 + 'import "../../../../etc/passwd";',
    "an import that climbs out of the bundled files": PROTO3 + 'import "google/protobuf/../../x.proto";',
    "a name with NUL": PROTO3 + "message A\0B {}",
    "an import with NUL": PROTO3 + 'import "a\\0b";',
    "an option nested 20,000 deep": PROTO3 + "option java_package = " + "{a:" * 20_000 + "1" + "}" * 20_000 + ";",
    "an option path that overflows protoc's stack": (
        PROTO3
        + 'import "google/protobuf/descriptor.proto"; message M { M m = 1; }'
        + "extend google.protobuf.FileOptions { M m = 5000; } option (m)"
        + ".m" * 50_000
        + " = {};"
    ),
    "a million comments that do not end": PROTO3 + "/*" * 1_000_000,
    "a very long text": PROTO3 + "//" + " " * 6_000_000,
    "brackets that do not end": PROTO3 + "message A { int32 x = 1 [" + "(" * 100_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_schemas_are_refused_soon(text: str) -> None:
    parse(PROTO3 + "message Warm {}")
    before = time.process_time(), time.monotonic()
    with pytest.raises(InvalidSchema) as raised:
        parse(text)
    assert len(str(raised.value)) <= 2000
    assert time.process_time() - before[0] < PATIENCE_S
    assert time.monotonic() - before[1] < PATIENCE_S


def test_references_that_import_each_other_are_refused() -> None:
    cycle = [reference("a", PROTO3 + 'import "b";'), reference("b", PROTO3 + 'import "a";')]
    with pytest.raises(InvalidSchema, match='^a: .*"b" was not found'):
        parse(PROTO3 + 'import "a";', cycle)


def test_a_reference_that_imports_itself_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="^a: "):
        parse(PROTO3 + 'import "a";', [reference("a", PROTO3 + 'import "a";')])


def test_too_many_references_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="references"):
        parse(PROTO3 + "message A {}", [reference(str(number), PROTO3) for number in range(501)])


def test_limits_can_be_set() -> None:
    text = PROTO3 + "message A { int32 a = 1; message B { int32 b = 1; } }"
    parse(text, limits=Limits(max_elements=4, max_depth=2))
    with pytest.raises(InvalidSchema, match="more than 3 "):
        parse(text, limits=Limits(max_elements=3))
    with pytest.raises(InvalidSchema, match="deeper than 1 level"):
        parse(text, limits=Limits(max_depth=1))


def test_a_descriptor_is_held_to_the_limits_too() -> None:
    serialized = parse(PROTO3 + "message A { int32 a = 1; int32 b = 2; }").format("serialized")
    with pytest.raises(InvalidSchema, match="more than 2 "):
        parse(serialized, limits=Limits(max_elements=2))


def test_a_large_schema_within_the_limits_is_accepted() -> None:
    fields = "".join(f"string f{number} = {number};" for number in range(1, 20))
    schema: ProtobufSchema = parse(PROTO3 + "".join(f"message M{number} {{{fields}}}" for number in range(500)))
    assert len(schema.descriptor.message_type) == 500
