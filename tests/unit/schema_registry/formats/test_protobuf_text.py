"""The layout of .proto text, feature by feature."""

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings

from schema_registry.formats import protobuf_builtin
from schema_registry.formats.protobuf import ProtobufSchema, parse
from tests.support.protobuf_schemas import schemas

# Each text is in canonical layout already: it must come back as it is.
CANONICAL = {
    "a message": """\
syntax = "proto3";

message Car {
  string make = 1;
  int32 year = 3;
}
""",
    "an empty message": """\
syntax = "proto3";

message Empty {}
""",
    "package, imports and options": """\
syntax = "proto3";
package io.caudal;

import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import public "google/protobuf/duration.proto";

option java_package = "io.caudal.java";
option java_multiple_files = true;
option optimize_for = SPEED;

message Event {
  google.protobuf.Timestamp at = 1;
  google.type.Date day = 2;
}
""",
    "types as they were named": """\
syntax = "proto3";
package a.b;

message Outer {
  Inner near = 1;
  Outer.Inner middle = 2;
  .a.b.Outer.Inner far = 3;
  b.Outer.Inner partial = 4;
  map<string, Inner> by_name = 5;
  repeated Colour colours = 6;

  message Inner {
    string x = 1;
  }
}
enum Colour {
  RED = 0;
}
""",
    "blank lines in nested messages keep their indentation": """\
syntax = "proto3";

message A {
  B b = 1;

  message B {
    C c = 1;
{indentation}
    message C {
      int32 x = 1;
    }
    enum E {
      ZERO = 0;
    }
  }
}
""",
    "reserved, oneof and optional": """\
syntax = "proto3";

message A {
  reserved 5, 7 to 9, 100 to max;
  reserved "old", "older";

  option deprecated = true;

  optional string note = 1;
  string plain = 2;

  oneof choice {
    string text = 3;
    int32 number = 4 [deprecated = true];
  }
}
""",
    "enums": """\
syntax = "proto3";

enum E {
  reserved 10 to 20, 30 to max;
  reserved "GONE";
  option allow_alias = true;
  ZERO = 0;
  NULL = 0;
  NEGATIVE = -5 [deprecated = true];
}
""",
    "services": """\
syntax = "proto3";

message Ping {}
message Pong {}

service Echo {
  option deprecated = true;

  rpc Once (Ping) returns (Pong);
  rpc Many (stream Ping) returns (stream Pong) {
    option idempotency_level = IDEMPOTENT;
  };
}
""",
    "confluent's metadata": """\
syntax = "proto3";

import "confluent/meta.proto";
import "confluent/type/decimal.proto";

option (confluent.file_meta) = {
  doc: "a file"
};

message A {
  option (confluent.message_meta) = {
    doc: "a message"
  };

  confluent.type.Decimal amount = 1 [(confluent.field_meta) = {
    doc: "a \\"quoted\\" doc\\n",
    params: [
      {
        key: "precision",
        value: "8"
      },
      {
        key: "scale",
        value: "3"
      }
    ],
    tags: [
      "PII",
      "PRIVATE"
    ]
  }];
}
""",
    "several options of a field": """\
syntax = "proto3";

message A {
  repeated int32 numbers = 1 [
    packed = false,
    deprecated = true,
    json_name = "other"
  ];
}
""",
    "proto2 labels and defaults": """\
syntax = "proto2";

message A {
  required int32 id = 1;
  optional string name = 2 [default = "it\\'s \\"so\\""];
  optional bytes raw = 3 [default = "\\001\\377"];
  optional float ratio = 4 [default = 1.5];
  optional double infinite = 5 [default = -inf];
  optional bool on = 6 [default = true];
  optional E e = 7 [default = TWO];
  repeated int64 many = 8;

  extensions 100 to 199, 300;
  extensions 1000 to max;
}
enum E {
  ONE = 1;
  TWO = 2;
}

extend A {
  optional int32 extra = 100;
  optional string more = 101;
}
""",
    "proto2 without a syntax line": """\
package p;

message A {
  optional int32 id = 1;
}
""",
    "groups": """\
syntax = "proto2";

message A {
  optional int32 before = 1;
  repeated group Result = 2 {
    required string url = 3;
    optional int32 rank = 4;
  }
  optional int32 after = 5;
}
""",
    "custom options of every type": """\
syntax = "proto2";
package p;

import "google/protobuf/descriptor.proto";

message M {
  option (p.flags) = 1;
  option (p.flags) = 2;
  option (p.info) = {
    text: "a",
    ratio: 0.1,
    raw: "\\000\\377",
    kind: BIG,
    inner: [
      {
        text: "deep"
      },
      {
      }
    ],
    [p.note]: "n"
  };

  optional int32 x = 1 [(p.weight) = 2.5];
}
message Info {
  optional string text = 1;
  optional float ratio = 2;
  optional bytes raw = 3;
  optional Kind kind = 4;
  repeated Info inner = 5;

  extensions 10 to 20;
}
enum Kind {
  SMALL = 0;
  BIG = 1;
}

extend google.protobuf.MessageOptions {
  repeated int32 flags = 50001;
  optional Info info = 50002;
}
extend google.protobuf.FieldOptions {
  optional double weight = 50003;
}
extend Info {
  optional string note = 10;
}
""",
    "edition 2023": """\
edition = "2023";
package e;

option features.field_presence = IMPLICIT;

message A {
  reserved 9;
  reserved gone;

  string implicit = 1;
  string explicit = 2 [features.field_presence = EXPLICIT];
  int32 must = 3 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 many = 4;
  B delimited = 5 [features.message_encoding = DELIMITED];
}
message B {}
""",
    "edition 2024": """\
edition = "2024";

import option "confluent/meta.proto";

export message A {
  option (confluent.message_meta) = {
    doc: "x"
  };

  int32 x = 1;

  local message L {}
  export enum E {
    Z = 0;
  }
}
local message B {}
""",
    "a file without syntax and package": """
message A {
  optional int32 id = 1;
}
""",
    "ranges of one": """
message A {
  reserved 5 to 5, 7;

  optional int32 id = 1;

  extensions 100 to 100;
}
""",
    "extensions in the statements they were written in": """
message A {
  extensions 10 to 20;

  extend A {
    optional int32 inside = 12;
  }
}

extend A {
  optional int32 one = 10;
}
extend A {
  optional int32 two = 11 [default = 3];
}
""",
    "options in the words they were written in": """\
syntax = "proto3";
package p;

import "confluent/meta.proto";
import "google/protobuf/descriptor.proto";

option (confluent.file_meta).doc = "tab\there";
option (.confluent.file_meta).tags = "PII";
option java_package = "j";

message A {
  int32 one = 1 [(confluent.field_meta).tags = "foo"];
  int32 two = 2 [
    (confluent.field_meta) = {
      tags: [
        "foo"
      ]
    },
    (confluent.field_meta).tags = "bar",
    deprecated = true,
    (weight) = -1.50
  ];
  int32 three = 3 [(confluent.field_meta) = {
    params: [
      {
        value: "v",
        key: "k"
      }
    ],
    doc: "last"
  }];
}

extend google.protobuf.FieldOptions {
  float weight = 5000;
}
""",
    "options that are for compilers only": """
message A {
  extensions 100 to 199 [
    verification = DECLARATION,
    declaration = {
      number: 100,
      full_name: ".p.x",
      type: "string"
    }
  ];
}
""",
    "a nested message before a map keeps its index": """\
syntax = "proto3";

message A {
  message First {}
  map<string, First> firsts = 1;
  int32 x = 2;

  message Second {}
}
""",
}


CANONICAL = {name: text.replace("{indentation}", "  ") for name, text in CANONICAL.items()}


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_canonical_text_is_left_as_it_is(text: str) -> None:
    assert parse(text).canonical == text


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_a_serialized_schema_means_the_same(text: str) -> None:
    schema = parse(text)
    serialized = parse(schema.format("serialized"))
    assert _known(serialized) == _known(schema)
    assert serialized.normalized == schema.normalized
    assert parse(serialized.canonical).canonical == serialized.canonical


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_normal_form_parses_to_the_same_meaning(text: str) -> None:
    schema = parse(text)
    again = parse(schema.normalized)
    assert again.normalized == schema.normalized
    assert _unordered(again) == _unordered(schema)


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_without_extensions_it_still_parses(text: str) -> None:
    stripped = parse(parse(text).format("ignore_extensions"))
    assert "(p." not in stripped.canonical
    assert "extend " not in stripped.canonical


def test_canonical_drops_comments_and_lays_out_anew() -> None:
    text = """
    /* licence */ syntax = 'proto3' ; // three
    enum E { A=0; }
    message M { oneof o { string a = 1; } E e=0x2; message N{} reserved 9; /* last */ int32 c=3; }
    """
    assert (
        parse(text).canonical
        == """\
syntax = "proto3";

message M {
  reserved 9;

  E e = 2;
  int32 c = 3;

  oneof o {
    string a = 1;
  }

  message N {}
}
enum E {
  A = 0;
}
"""
    )


@pytest.mark.parametrize(
    "written, printed",
    [
        ('(confluent.field_meta) = { doc: "a" tags: "x", tags: ["y"]; }', '{ doc: "a", tags: [ "x", "y" ] }'),
        ("(confluent.field_meta) = { doc : 'it\\'s' /* c */ ' \"so\"' }", '{ doc: "it\\\'s \\"so\\"" }'),
        ('(confluent.field_meta) = { params { key: "k" } }', '{ params: { key: "k" } }'),
        ('(confluent.field_meta) = { params: < key: "k" > // end\n }', '{ params: { key: "k" } }'),
        ("(confluent.field_meta) = {doc:'\t\\303\\251é'}", '{ doc: "\t\\303\\251é" }'),
        ("(confluent.field_meta) = {}", "{ }"),
    ],
)
def test_values_of_options_are_laid_out_anew(written: str, printed: str) -> None:
    text = f'syntax = "proto3"; import "confluent/meta.proto"; message A {{ string a = 1 [{written}]; }}'
    schema = parse(text)
    _, _, value = schema.canonical.partition("(confluent.field_meta) = ")
    assert " ".join(value.replace("\t", "@").split()).replace("@", "\t") == f"{printed}]; }}"
    assert _known(parse(schema.canonical)) == _known(schema)
    assert parse(schema.canonical).canonical == schema.canonical


def test_normal_form_sorts_all_but_messages() -> None:
    text = """
    syntax = "proto3"; package p;
    import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto"; import "confluent/meta.proto";
    option java_package = "j"; option go_package = "g";
    message Z { reserved "old", "bad"; reserved 9, 4 to 5; A a = 2; map<string, E> m = 3;
      google.protobuf.Any any = 1 [(confluent.field_meta) = {tags: ["PII"] doc: "d"}];
      oneof two { A y = 8; A x = 7; } oneof one { int32 w = 6; } }
    message A { google.protobuf.Timestamp t = 1; }
    enum E { ZERO = 0; TWO = 2; ONE = 1; MINUS = -1; }
    """
    assert (
        parse(text).normalized
        == """\
syntax = "proto3";
package p;

import "confluent/meta.proto";
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";

option go_package = "g";
option java_package = "j";

message Z {
  reserved 4 to 5;
  reserved 9;
  reserved "bad";
  reserved "old";

  .google.protobuf.Any any = 1 [(confluent.field_meta) = {
    doc: "d",
    tags: "PII"
  }];
  .p.A a = 2;
  map<string, .p.E> m = 3;

  oneof one {
    int32 w = 6;
  }
  oneof two {
    .p.A x = 7;
    .p.A y = 8;
  }
}
message A {
  .google.protobuf.Timestamp t = 1;
}
enum E {
  ZERO = 0;
  MINUS = -1;
  ONE = 1;
  TWO = 2;
}
"""
    )


SAME_MEANING = {
    "plain": """
        syntax = "proto3"; package p; import "google/protobuf/any.proto"; import "google/protobuf/api.proto";
        message M { A a = 1; google.protobuf.Any b = 2; google.protobuf.Api c = 3; reserved 5, 6; } message A {}""",
    "shuffled": """
        syntax = "proto3"; /* c */ package p;
        import "google/protobuf/api.proto";
        \timport "google/protobuf/any.proto";
        message M { reserved 6; reserved 5; .google.protobuf.Api c = 3; p.A a = 1;

           google.protobuf.Any b = 2; }
        message A {} // end""",
}


@pytest.mark.parametrize("text", SAME_MEANING.values(), ids=SAME_MEANING.keys())
def test_order_spaces_and_comments_do_not_change_the_normal_form(text: str) -> None:
    assert (
        parse(text).normalized
        == """\
syntax = "proto3";
package p;

import "google/protobuf/any.proto";
import "google/protobuf/api.proto";

message M {
  reserved 5;
  reserved 6;

  .p.A a = 1;
  .google.protobuf.Any b = 2;
  .google.protobuf.Api c = 3;
}
message A {}
"""
    )


def test_tabs_and_wide_characters_do_not_confuse_names() -> None:
    text = 'syntax = "proto3";\nmessage A {\n\t/* é😀 */\tB\tb = 1; /* é */ map<string,\tB> m = 2;\n}\nmessage B {}\n'
    assert "  B b = 1;\n  map<string, B> m = 2;\n" in parse(text).canonical


@pytest.mark.parametrize("name", sorted(protobuf_builtin.names()))
def test_the_bundled_files_keep_their_meaning_in_every_form(name: str) -> None:
    folder = next(prefix for prefix in protobuf_builtin.folders() if name.startswith(f"{prefix}/"))
    schema = parse((protobuf_builtin.folders()[folder] / name.removeprefix(f"{folder}/")).read_text())
    for form in (schema.canonical, schema.normalized, schema.format("serialized")):
        again = parse(form)
        assert again.normalized == schema.normalized
        assert _unordered(again) == _unordered(schema)
    assert parse(schema.canonical).canonical == schema.canonical


@given(schemas())
@settings(max_examples=60, deadline=None)
def test_canonical_is_a_fixpoint(text: str) -> None:
    schema = parse(text)
    again = parse(schema.canonical)
    assert again.canonical == schema.canonical
    assert again.normalized == schema.normalized
    assert _unordered(again) == _unordered(schema)


@given(schemas())
@settings(max_examples=60, deadline=None)
def test_what_is_serialized_comes_back(text: str) -> None:
    schema = parse(text)
    again = parse(schema.format("serialized"))
    assert again.normalized == schema.normalized
    assert [message.name for message in again.descriptor.message_type] == [
        message.name for message in schema.descriptor.message_type
    ]


def _known(schema: ProtobufSchema) -> FileDescriptorProto:
    """The file with its custom options in one piece each, however they were written."""
    serialized = schema.descriptor.SerializeToString()
    try:
        kind = GetMessageClass(schema.pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto"))
    except KeyError:
        return FileDescriptorProto.FromString(serialized)
    return FileDescriptorProto.FromString(kind.FromString(serialized).SerializeToString(deterministic=True))


def _unordered(schema: ProtobufSchema) -> FileDescriptorProto:
    """The file with everything sorted whose order means nothing."""
    copy = _known(schema)
    if not copy.public_dependency:
        copy.dependency.sort()
    for extension in [copy.extension]:
        extension.sort(key=lambda field: (field.extendee, field.number))
    for message in copy.message_type:
        _sort_message(message)
    for enum in copy.enum_type:
        _sort_enum(enum)
    return copy


def _sort_message(message: DescriptorProto) -> None:
    oneofs = [oneof.name for oneof in message.oneof_decl]
    for field in message.field:
        # By name, as the indexes follow the order of oneofs.
        if field.HasField("oneof_index"):
            field.default_value = oneofs[field.oneof_index]
            field.ClearField("oneof_index")
    message.oneof_decl.sort(key=lambda oneof: oneof.name)
    message.field.sort(key=lambda field: field.number)
    message.reserved_range.sort(key=lambda extent: extent.start)
    message.reserved_name.sort()
    for nested in message.nested_type:
        _sort_message(nested)
    entries = sorted((nested for nested in message.nested_type if nested.options.map_entry), key=lambda n: n.name)
    others = [nested for nested in message.nested_type if not nested.options.map_entry]
    copies = [DescriptorProto.FromString(nested.SerializeToString()) for nested in (*entries, *others)]
    del message.nested_type[:]
    message.nested_type.extend(copies)
    for enum in message.enum_type:
        _sort_enum(enum)


def _sort_enum(enum: object) -> None:
    enum.value.sort(key=lambda value: (value.number, value.name))  # type: ignore[attr-defined] # a descriptor
    enum.reserved_range.sort(key=lambda extent: extent.start)  # type: ignore[attr-defined] # a descriptor
    enum.reserved_name.sort()  # type: ignore[attr-defined] # a descriptor
