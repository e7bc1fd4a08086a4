"""Sets of .proto files with all that the language has, each with a message and its fields."""

from typing import Any, Final, NamedTuple


class Example(NamedTuple):
    """Files by name, in the order of their imports; the message is `M` of the last one."""

    files: dict[str, str]
    message: str
    fields: dict[str, Any]


_OPTIONS = """syntax = "proto3";
package o;
import "google/protobuf/descriptor.proto";
enum Kind { NONE = 0; GOOD = 2; }
message Nested {
  string id = 1;
  Kind kind = 2;
  repeated Nested more = 3;
  map<string, int32> counts = 4;
  bytes raw = 5;
  double number = 6;
}
message Options { bool kafka = 1; repeated Nested data = 2; Nested one = 3; }
extend google.protobuf.FileOptions { string owner = 50010; }
extend google.protobuf.MessageOptions { Options options = 50000; bool flag = 50001; repeated string names = 50002; }
extend google.protobuf.FieldOptions { Nested json = 50010; Kind kind = 50011; float weight = 50012; }
extend google.protobuf.EnumValueOptions { string label = 50010; }
"""
_WITH_OPTIONS = r"""syntax = "proto3";
package m;
import "o.proto";
option java_package = "com.example";
option (o.owner) = "me \"x\" \n é";
message M {
  option (o.flag) = true;
  option (o.options) = {
    kafka: true
    data { id: "a" kind: GOOD more { id: "b" } counts { key: "k" value: 3 } raw: "\001\377" number: 1.5 }
    data { id: "c" }
  };
  option (o.options).one.id = "z";
  option (o.names) = "a";
  option (o.names) = "b";
  string x = 1 [(o.json).id = "meta", (o.kind) = GOOD, (o.weight) = 1.25, deprecated = true];
  E e = 2;
}
enum E { A = 0 [(o.label) = "first"]; B = 1; }
"""
_PROTO_2 = r"""syntax = "proto2";
package m;
message M {
  required string r = 1 [default = "a\"b\n"];
  optional int64 i = 2 [default = -5];
  optional bytes b = 3 [default = "\001\377"];
  optional E e = 4 [default = B];
  repeated int32 packed = 5 [packed = true];
  optional group G = 6 { optional string s = 1; }
  optional double d = 7 [default = inf];
  optional float n = 8 [default = nan];
  oneof o { string s1 = 10; int32 s2 = 11; }
  reserved 20, 30 to 40;
  reserved "gone";
  extensions 100 to 199, 500 to max;
  enum E { A = 1; B = 2; }
}
extend M { optional string ext = 100; }
message Set { option message_set_wire_format = true; extensions 4 to max; }
"""
_EDITION = """edition = "2023";
package m;
option features.field_presence = IMPLICIT;
message M {
  int32 a = 1 [features.field_presence = EXPLICIT];
  repeated int32 r = 2 [features.repeated_field_encoding = EXPANDED];
  M child = 3 [features.message_encoding = DELIMITED];
  enum E { option features.enum_type = CLOSED; Z = 0; }
}
"""
_NESTED = """syntax = "proto3";
message First { bool b = 1; }
message M {
  message N { message O { int32 z = 1; } O o = 1; }
  enum E { option allow_alias = true; X = 0; Y = 0; }
  map<string, N.O> m = 1;
  optional string s = 2;
  N n = 3;
  repeated E es = 4;
  string json = 5 [json_name = "JSON"];
  reserved 14, 15, 9 to 11;
}
"""
_KEYWORDS = """syntax = "proto3";
package message.string;
message M {
  string string = 1;
  int32 int32 = 2;
  .message.string.M message_ = 3;
  repeated double repeated = 5;
  oneof oneof { string reserved = 6; string option = 7; }
  map<string, string> map = 8;
  string import = 9;
  enum enum { package = 0; syntax = 1; }
  .message.string.M.enum e = 10;
}
"""
_SERVICE = """syntax = "proto3";
package m;
import "google/protobuf/empty.proto";
message M { int32 a = 1; }
service S {
  option deprecated = true;
  rpc Do(M) returns (stream google.protobuf.Empty) { option idempotency_level = IDEMPOTENT; }
}
"""
_A = 'syntax = "proto3"; package p; message A { int32 a = 1; }'

PROTOBUF: Final = {
    "custom options": Example({"o.proto": _OPTIONS, "m.proto": _WITH_OPTIONS}, "m.M", {"x": "v", "e": 1}),
    "public imports": Example(
        {
            "a.proto": _A,
            "b.proto": 'syntax = "proto3"; package p; import public "a.proto"; message B { A a = 1; }',
            "m.proto": 'syntax = "proto3"; package m; import "b.proto"; message M { p.A a = 1; p.B b = 2; }',
        },
        "m.M",
        {},
    ),
    "proto2": Example({"m.proto": _PROTO_2}, "m.M", {"r": "x", "i": 3}),
    "edition 2023": Example({"m.proto": _EDITION}, "m.M", {"a": 0, "r": [1, 2]}),
    "nesting, without a package": Example({"m.proto": _NESTED}, "M", {"s": ""}),
    "names that are keywords": Example({"m.proto": _KEYWORDS}, "message.string.M", {"string": "s"}),
    "services": Example({"m.proto": _SERVICE}, "m.M", {"a": 1}),
    "file names with spaces": Example(
        {
            "dir with space/a-1.2.proto": _A,
            "x/m.proto": 'syntax = "proto3"; package m; import "dir with space/a-1.2.proto"; message M { p.A a = 1; }',
        },
        "m.M",
        {},
    ),
}
