"""Every kind of change between two Protobuf schemas, seen from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.protobuf import compare
from schema_registry.compatibility.protobuf_changes import COMPATIBLE, INCOMPATIBLE
from schema_registry.formats.protobuf import ProtobufSchema, parse
from schema_registry.formats.schema import ResolvedReference
from tests.support.level_laws import laws_hold
from tests.support.protobuf_schemas import schemas


def describe(differences: list[Difference]) -> set[str]:
    return {f"{difference.type} {difference.path}" for difference in differences}


def fits(reader: ProtobufSchema, writer: ProtobufSchema) -> bool:
    return all(difference.is_compatible for difference in compare(reader, writer))


def proto3(text: str) -> str:
    return 'syntax = "proto3"; ' + text


def proto2(text: str) -> str:
    return 'syntax = "proto2"; ' + text


A = "string a = 1; "
ENUM = "enum E { ZERO = 0; ONE = 1; } "
# name: (old, new, what the new one sees in the old one's records, and the other way round)
CHANGES: dict[str, tuple[str, str, set[str], set[str]]] = {
    "nothing": (proto3("message M { string a = 1; }"), proto3("message M{string a=1;}"), set(), set()),
    "package": (
        proto3("package p; message M {}"),
        proto3("package q; message M {}"),
        {"PACKAGE_CHANGED #/"},
        {"PACKAGE_CHANGED #/"},
    ),
    "package given": (
        proto3("message M {}"),
        proto3("package q; message M {}"),
        {"PACKAGE_CHANGED #/"},
        {"PACKAGE_CHANGED #/"},
    ),
    "message added": (
        proto3("message M {}"),
        proto3("message M {} message N {}"),
        {"MESSAGE_ADDED #/N"},
        {"MESSAGE_REMOVED #/N"},
    ),
    "nested message added": (
        proto3("message M { message I {} }"),
        proto3("message M { message I { message J {} } }"),
        {"MESSAGE_ADDED #/M/I/J"},
        {"MESSAGE_REMOVED #/M/I/J"},
    ),
    "messages swapped": (
        proto3("message M {} message N {}"),
        proto3("message N {} message M {}"),
        {"MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"},
        {"MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"},
    ),
    "message put first": (
        proto3("message M {}"),
        proto3("message N {} message M {}"),
        {"MESSAGE_ADDED #/N", "MESSAGE_MOVED #/M"},
        {"MESSAGE_REMOVED #/N", "MESSAGE_MOVED #/M"},
    ),
    "enum added": (
        proto3("message M {}"),
        proto3(f"message M {{}} {ENUM}"),
        {"ENUM_ADDED #/E"},
        {"ENUM_REMOVED #/E"},
    ),
    "nested enum added": (
        proto3("message M {}"),
        proto3(f"message M {{ {ENUM} }}"),
        {"ENUM_ADDED #/M/E"},
        {"ENUM_REMOVED #/M/E"},
    ),
    "enum value added": (
        proto3("enum E { ZERO = 0; }"),
        proto3("enum E { ZERO = 0; ONE = 1; }"),
        {"ENUM_CONST_ADDED #/E/1"},
        {"ENUM_CONST_REMOVED #/E/1"},
    ),
    "enum value renamed": (
        proto3("enum E { ZERO = 0; ONE = 1; }"),
        proto3("enum E { ZERO = 0; UNO = 1; }"),
        {"ENUM_CONST_CHANGED #/E/1"},
        {"ENUM_CONST_CHANGED #/E/1"},
    ),
    "field added": (
        proto3(f"message M {{ {A} }}"),
        proto3(f"message M {{ {A} string b = 2; }}"),
        {"FIELD_ADDED #/M/2"},
        {"FIELD_REMOVED #/M/2"},
    ),
    "field added to a nested message": (
        proto3("message W { message M { string a = 1; } }"),
        proto3("message W { message M { string a = 1; string b = 2; } }"),
        {"FIELD_ADDED #/W/M/2"},
        {"FIELD_REMOVED #/W/M/2"},
    ),
    "field renumbered": (
        proto3("message M { string a = 1; }"),
        proto3("message M { string a = 2; }"),
        {"FIELD_REMOVED #/M/1", "FIELD_ADDED #/M/2"},
        {"FIELD_REMOVED #/M/2", "FIELD_ADDED #/M/1"},
    ),
    "field renamed": (
        proto3("message M { string a = 1; }"),
        proto3("message M { string b = 1; }"),
        {"FIELD_NAME_CHANGED #/M/1"},
        {"FIELD_NAME_CHANGED #/M/1"},
    ),
    "required field added": (
        proto2("message M { optional string a = 1; }"),
        proto2("message M { optional string a = 1; required string b = 2; }"),
        {"REQUIRED_FIELD_ADDED #/M/2"},
        {"REQUIRED_FIELD_REMOVED #/M/2"},
    ),
    "scalar to message": (
        proto3("message M { int32 a = 1; } message N {}"),
        proto3("message M { N a = 1; } message N {}"),
        {"FIELD_KIND_CHANGED #/M/1"},
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "scalar to map": (
        proto3("message M { int32 a = 1; }"),
        proto3("message M { map<string, int32> a = 1; }"),
        {"FIELD_KIND_CHANGED #/M/1"},
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "message to map": (
        proto3("message M { repeated N a = 1; } message N {}"),
        proto3("message M { map<string, N> a = 1; } message N {}"),
        {"FIELD_KIND_CHANGED #/M/1"},
        {"FIELD_KIND_CHANGED #/M/1"},
    ),
    "number to string": (
        proto3("message M { int32 a = 1; }"),
        proto3("message M { string a = 1; }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
    ),
    "number to enum": (
        proto3(f"message M {{ int64 a = 1; }} {ENUM}"),
        proto3(f"message M {{ E a = 1; }} {ENUM}"),
        set(),
        set(),
    ),
    "map key": (
        proto3("message M { map<string, int32> a = 1; }"),
        proto3("message M { map<int32, int32> a = 1; }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
    ),
    "map value": (
        proto3("message M { map<string, int32> a = 1; }"),
        proto3("message M { map<string, float> b = 1; }"),
        {"FIELD_NAME_CHANGED #/M/1", "FIELD_SCALAR_KIND_CHANGED #/M/1"},
        {"FIELD_NAME_CHANGED #/M/1", "FIELD_SCALAR_KIND_CHANGED #/M/1"},
    ),
    "map value of the same kind": (
        proto3("message M { map<string, int32> a = 1; }"),
        proto3("message M { map<string, int64> a = 1; }"),
        set(),
        set(),
    ),
    "map added": (
        proto3("message M { string a = 1; }"),
        proto3("message M { string a = 1; map<string, string> m = 2; }"),
        {"FIELD_ADDED #/M/2"},
        {"FIELD_REMOVED #/M/2"},
    ),
    "type of a message field": (
        proto3("message M { N a = 1; } message N {} message O {}"),
        proto3("message M { O a = 1; } message N {} message O {}"),
        {"FIELD_NAMED_TYPE_CHANGED #/M/1"},
        {"FIELD_NAMED_TYPE_CHANGED #/M/1"},
    ),
    "name of a type qualified": (
        proto3("package p; message M { N a = 1; map<string, N> b = 2; message N {} }"),
        proto3("package p; message M { .p.M.N a = 1; map<string, M.N> b = 2; message N {} }"),
        set(),
        set(),
    ),
    "label of a number": (
        proto3("message M { optional int32 a = 1; }"),
        proto3("message M { repeated int32 a = 1; }"),
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
    ),
    "label of a number in proto2": (
        proto2("message M { required int32 a = 1; }"),
        proto2("message M { optional int32 a = 1; }"),
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
    ),
    "label that is not written": (
        proto3("message M { int32 a = 1; }"),
        proto3("message M { repeated int32 a = 1; }"),
        set(),
        set(),
    ),
    "label of a string": (
        proto3("message M { optional string a = 1; }"),
        proto3("message M { repeated bytes a = 1; }"),
        {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"},
        {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"},
    ),
    "label of a message": (
        proto3("message M { optional N a = 1; } message N {}"),
        proto3("message M { repeated N a = 1; } message N {}"),
        set(),
        set(),
    ),
    "one field put into a new oneof": (
        proto3("message M { string a = 1; string b = 2; }"),
        proto3("message M { string a = 1; oneof o { string b = 2; int32 c = 3; } }"),
        {"ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/3"},
        {"ONEOF_REMOVED #/M/o", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2", "ONEOF_FIELD_REMOVED #/M/o/3"},
    ),
    "two fields put into a oneof": (
        proto3("message M { string a = 1; string b = 2; }"),
        proto3("message M { oneof o { string a = 1; string b = 2; } }"),
        {"ONEOF_ADDED #/M/o", "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o"},
        {
            "ONEOF_REMOVED #/M/o",
            "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1",
            "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2",
        },
    ),
    "a field put into a oneof that exists": (
        proto3("message M { string a = 1; oneof o { string b = 2; } }"),
        proto3("message M { oneof o { string a = 1; string b = 2; } }"),
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"},
        {"ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1"},
    ),
    "two oneofs made one": (
        proto3("message M { oneof o { string a = 1; } oneof p { string b = 2; } }"),
        proto3("message M { oneof o { string a = 1; string b = 2; } }"),
        {"ONEOF_REMOVED #/M/p", "FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"},
        {"ONEOF_ADDED #/M/p"},
    ),
    "oneof renamed": (
        proto3("message M { oneof o { string a = 1; string b = 2; } }"),
        proto3("message M { oneof p { string a = 1; string b = 2; } }"),
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p"},
        {"ONEOF_REMOVED #/M/p", "ONEOF_ADDED #/M/o"},
    ),
    "oneof removed with its fields": (
        proto3("message M { string x = 9; oneof o { string a = 1; string b = 2; } }"),
        proto3("message M { string x = 9; }"),
        {"ONEOF_REMOVED #/M/o"},
        {"ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/1", "ONEOF_FIELD_ADDED #/M/o/2"},
    ),
    "field of a oneof added": (
        proto3("message M { oneof o { string a = 1; } }"),
        proto3("message M { oneof o { string a = 1; string b = 2; } }"),
        {"ONEOF_FIELD_ADDED #/M/o/2"},
        {"ONEOF_FIELD_REMOVED #/M/o/2"},
    ),
    "type of a field in a oneof": (
        proto3("message M { oneof o { string a = 1; } }"),
        proto3("message M { oneof o { int32 a = 1; } }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/o/1"},
        {"FIELD_SCALAR_KIND_CHANGED #/M/o/1"},
    ),
    "optional is no oneof": (
        proto3("message M { string a = 1; }"),
        proto3("message M { optional string a = 1; }"),
        set(),
        set(),
    ),
    "reserved, options, services and comments": (
        proto3("message M { string a = 1; }"),
        proto3(
            'option java_package = "j"; /* c */ message M { reserved 5; option deprecated = true; '
            "string a = 1 [deprecated = true]; } service S { rpc Do (M) returns (M); }"
        ),
        set(),
        set(),
    ),
    "a group's field": (
        proto2("message M { optional group G = 1 { optional int32 a = 1; } }"),
        proto2("message M { optional group G = 1 { optional string a = 1; } }"),
        {"FIELD_SCALAR_KIND_CHANGED #/M/G/1"},
        {"FIELD_SCALAR_KIND_CHANGED #/M/G/1"},
    ),
}


@pytest.mark.parametrize("old, new, backward, forward", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_seen_from_both_sides(old: str, new: str, backward: set[str], forward: set[str]) -> None:
    older, newer = parse(old), parse(new)
    assert describe(compare(newer, older)) == backward
    assert describe(compare(older, newer)) == forward


def test_every_kind_of_change_is_in_the_table() -> None:
    seen = {change.split()[0] for _, _, backward, forward in CHANGES.values() for change in backward | forward}
    assert seen == COMPATIBLE | INCOMPATIBLE


def test_which_kinds_break_reading() -> None:
    assert {
        "PACKAGE_CHANGED",
        "MESSAGE_REMOVED",
        "FIELD_KIND_CHANGED",
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
        "FIELD_NUMERIC_LABEL_CHANGED",
        "REQUIRED_FIELD_ADDED",
        "REQUIRED_FIELD_REMOVED",
        "ONEOF_FIELD_REMOVED",
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "FIELD_MOVED_TO_EXISTING_ONEOF",
    } == INCOMPATIBLE


def test_a_difference_describes_both_sides_and_the_place() -> None:
    (difference,) = compare(
        parse(proto3("message TestMessage { string b = 2; }")), parse(proto3("message TestMessage { int32 b = 2; }"))
    )
    assert difference == Difference(
        type="FIELD_SCALAR_KIND_CHANGED",
        path="#/TestMessage/2",
        is_compatible=False,
        description=(
            "The field at path '#/TestMessage/2' has different encodings in the {reader} schema and the {writer} schema"
        ),
    )


GROUPS = [
    {"int32", "int64", "uint32", "uint64", "bool", "E"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
    {"float"},
    {"double"},
]
SCALARS = sorted(set().union(*GROUPS))


@pytest.mark.parametrize("old", SCALARS)
@pytest.mark.parametrize("new", SCALARS)
def test_scalars_change_freely_only_within_their_group(old: str, new: str) -> None:
    older, newer = (parse(proto3(f"message M {{ {kind} a = 1; }} {ENUM}")) for kind in (old, new))
    same_group = any({old, new} <= group for group in GROUPS)
    assert describe(compare(newer, older)) == (set() if same_group else {"FIELD_SCALAR_KIND_CHANGED #/M/1"})


# --- imported types ---------------------------------------------------------------------------------------------------


def imported(text: str, *, package: str = "home", version: int = 1, subject: str = "home") -> ProtobufSchema:
    """A schema whose one field has a type that another schema defines."""
    dependency = ResolvedReference(
        name="home.proto", subject=subject, version=version, text=proto3(f"package {package}; {text}")
    )
    return parse(proto3(f'import "home.proto"; message M {{ {package}.Home home = 1; }}'), [dependency])


HOME = "message Home { int32 id = 1; Door door = 2; } message Door { int32 width = 1; }"


def test_an_imported_type_is_compared_where_it_is_used() -> None:
    older, newer = imported(HOME), imported(HOME.replace("int32 id", "string id"), version=2)
    expected = {"FIELD_SCALAR_KIND_CHANGED #/Home/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"}
    assert describe(compare(newer, older)) == describe(compare(older, newer)) == expected


def test_types_that_imported_types_use_are_compared_too() -> None:
    older, newer = imported(HOME), imported(HOME.replace("width", "x").replace("int32 x", "string x"), version=2)
    assert {
        "FIELD_SCALAR_KIND_CHANGED #/Door/1",
        "FIELD_NAMED_TYPE_CHANGED #/Home/2",
        "FIELD_NAMED_TYPE_CHANGED #/M/1",
    } <= describe(compare(newer, older))


def test_a_compatible_change_of_an_imported_type_is_compatible() -> None:
    older, newer = imported(HOME), imported(HOME.replace("int32 id = 1;", "int64 id = 1; string extra = 3;"), version=2)
    assert describe(compare(newer, older)) == {"FIELD_ADDED #/Home/3"}
    assert describe(compare(older, newer)) == {"FIELD_REMOVED #/Home/3"}


def test_an_imported_type_may_move_to_another_package() -> None:
    assert compare(imported(HOME, package="house.new", version=2), imported(HOME)) == []


def test_one_version_of_a_reference_is_not_compared_with_itself() -> None:
    assert compare(imported(HOME), imported(HOME)) == []


def test_a_type_may_move_out_of_an_import_but_not_into_one() -> None:
    text = "message Home { int32 id = 1; }"
    inside = parse(proto3(f"message M {{ Home home = 1; }} {text}"))
    outside = imported(text)
    assert describe(compare(inside, outside)) == {"MESSAGE_ADDED #/Home"}
    assert describe(compare(outside, inside)) == {"MESSAGE_REMOVED #/Home"}


def test_labels_of_imported_types_follow_the_syntax_of_their_file() -> None:
    def schema(label: str, version: int) -> ProtobufSchema:
        text = proto2(f"message Home {{ {label} int32 id = 1; }}")
        dependency = ResolvedReference(name="home.proto", subject="home", version=version, text=text)
        return parse(proto3('import "home.proto"; message M { Home home = 1; }'), [dependency])

    assert "FIELD_NUMERIC_LABEL_CHANGED #/Home/1" in describe(compare(schema("optional", 2), schema("repeated", 1)))


def test_well_known_types_fit_themselves() -> None:
    text = proto3(
        'import "google/protobuf/struct.proto"; import "google/type/date.proto"; import "confluent/type/decimal.proto";'
        "message M { google.protobuf.Struct s = 1; google.type.Date d = 2; confluent.type.Decimal c = 3; }"
    )
    assert describe(compare(parse(text + " message N {}"), parse(text))) == {"MESSAGE_ADDED #/N"}


def test_types_that_use_each_other_are_compared_once() -> None:
    cycle = (
        "message Home { int32 id = 1; Door door = 2; Home next = 3; } message Door { Home home = 1; Door door = 2; }"
    )
    older, newer = imported(cycle), imported(cycle.replace("int32 id", "string id"), version=2)
    assert "FIELD_SCALAR_KIND_CHANGED #/Home/1" in describe(compare(newer, older))
    assert compare(imported(cycle, version=3), older) == []


def test_a_long_chain_of_imported_types_is_compared_to_its_end() -> None:
    chain = "message Home { T0 t = 1; }" + "".join(f"message T{n} {{ T{n + 1} t = 1; }}" for n in range(3000))
    older = imported(chain + "message T3000 { int32 x = 1; }")
    newer = imported(chain + "message T3000 { string x = 1; }", version=2)
    assert "FIELD_SCALAR_KIND_CHANGED #/T3000/1" in describe(compare(newer, older))


def test_types_used_twice_at_every_level_do_not_explode() -> None:
    chain = "message Home { T0 t = 1; }" + "".join(
        f"message T{n} {{ T{n + 1} a = 1; T{n + 1} b = 2; }}" for n in range(40)
    )
    older = imported(chain + "message T40 { int32 x = 1; }")
    newer = imported(chain + "message T40 { string x = 1; }", version=2)
    assert describe(compare(newer, older)) >= {"FIELD_SCALAR_KIND_CHANGED #/T40/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"}


# --- properties -------------------------------------------------------------------------------------------------------

OPPOSITES = {
    "MESSAGE_ADDED": "MESSAGE_REMOVED",
    "ENUM_ADDED": "ENUM_REMOVED",
    "ENUM_CONST_ADDED": "ENUM_CONST_REMOVED",
    "ONEOF_ADDED": "ONEOF_REMOVED",
}
SYMMETRIC = {"PACKAGE_CHANGED", "MESSAGE_MOVED", "ENUM_CONST_CHANGED"}


@given(schemas())
@settings(max_examples=50, deadline=None)
def test_a_schema_fits_itself_in_every_form(text: str) -> None:
    schema = parse(text)
    for form in (text, schema.canonical, schema.normalized, schema.format("serialized")):
        assert compare(parse(form), schema) == compare(schema, parse(form)) == []


@given(schemas(), schemas())
@settings(max_examples=50, deadline=None)
def test_the_other_side_sees_the_opposite(one: str, other: str) -> None:
    forth, back = describe(compare(parse(one), parse(other))), describe(compare(parse(other), parse(one)))
    opposites = (
        OPPOSITES | {removed: added for added, removed in OPPOSITES.items()} | {kind: kind for kind in SYMMETRIC}
    )
    assert _turned(forth, opposites) == {change for change in back if change.split()[0] in opposites}


@given(schemas(), schemas())
@settings(max_examples=50, deadline=None)
def test_full_compatibility_does_not_depend_on_who_came_first(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    full = fits(first, second) and fits(second, first)
    again = fits(parse(second.canonical), parse(first.normalized)) and fits(parse(first.canonical), second)
    assert full == again


@given(st.lists(schemas(), min_size=2, max_size=4))
@settings(max_examples=50, deadline=None)
def test_full_is_both_ways_and_transitive_is_more(texts: list[str]) -> None:
    laws_hold([parse(text) for text in texts])


def _turned(changes: set[str], opposites: dict[str, str]) -> set[str]:
    pairs = (change.split() for change in changes)
    return {f"{opposites[kind]} {path}" for kind, path in pairs if kind in opposites}
