"""Undefined custom options: kept as they are written, although protoc rejects them."""

import time

import pytest

from schema_registry.formats.protobuf import parse
from schema_registry.formats.schema import InvalidSchema
from tests.support.patience import PATIENCE_S


def proto(body: str) -> str:
    return f'syntax = "proto3";\n\n{body}'


KEPT = [
    'option (owner) = "me";\n\nmessage A {\n  string a = 1;\n}\n',
    "message A {\n  option (my.option) = true;\n\n  string a = 1;\n}\n",
    "message A {\n  string a = 1 [(pii) = true];\n}\n",
    "message A {\n  string a = 1 [\n    (pii).kind = NAME,\n    deprecated = true,\n    (size) = -1\n  ];\n}\n",
    'message A {\n  string a = 1 [(confluent.field_meta) = {\n    tags: [\n      "PII"\n    ]\n  }];\n}\n',
    "message A {\n  oneof b {\n    option (one) = 1;\n  \n    string c = 1 [(two) = 2];\n    string d = 2;\n  }\n}\n",
    'enum E {\n  option (kind) = "x";\n  ZERO = 0 [(label) = "nothing"];\n  ONE = 1;\n}\n',
    "message A {}\n\nservice S {\n  option (auth) = NONE;\n\n  rpc Get (A) returns (A);\n}\n",
    'message A {}\n\nservice T {\n  rpc G (A) returns (A) {\n    option (http) = {\n      get: "/"\n    };\n  };\n}\n',
    "message A {\n  message B {\n    option (c) = 3;\n  \n    string c = 1 [(a) = 1];\n  }\n}\n",
    "message A {\n  string s = 1;\n\n  enum E {\n    option (b) = 2;\n    ZERO = 0;\n  }\n}\n",
]


@pytest.mark.parametrize("body", KEPT)
def test_it_stays_where_it_is_written(body: str) -> None:
    schema = parse(proto(body))
    assert schema.canonical == proto(body)
    assert parse(schema.canonical).canonical == schema.canonical


@pytest.mark.parametrize("body", KEPT)
def test_normal_form_keeps_it_and_is_its_own(body: str) -> None:
    normal = parse(proto(body)).normalized
    assert parse(normal).normalized == normal
    assert normal.count("(") >= body.count("(") - body.count("(A)")


def test_layout_and_comments_around_it_mean_nothing() -> None:
    odd = proto(
        '/* é */ message A {\n\toption  (x) =\n\t{ a: "é", b: [1] } ; string a=1[ /* c */ (y)=2,(z)="é;]" ]; // d\n}\n'
    )
    even = proto(
        'message A {\n  option (x) = {\n    a: "é",\n    b: [\n      1\n    ]\n  };\n\n'
        '  string a = 1 [\n    (y) = 2,\n    (z) = "é;]"\n  ];\n}\n'
    )
    assert parse(odd).canonical == even


def test_normal_form_sorts_it_among_the_others() -> None:
    schema = parse(proto("message A {\n  string a = 1 [(z) = 1, deprecated = true, (b) = 2];\n}\n"))
    assert "[\n    (b) = 2,\n    deprecated = true,\n    (z) = 1\n  ]" in schema.normalized


def test_without_extensions_only_confluents_own_are_left() -> None:
    schema = parse(proto('message A {\n  string a = 1 [(z) = 1, (confluent.field_meta).doc = "x"];\n}\n'))
    assert '1 [(confluent.field_meta).doc = "x"];' in schema.format("ignore_extensions")


@pytest.mark.parametrize(
    "body",
    [
        "message A { string a = 1 [no_such_option = true]; }",
        "message A { option (x) = 1; string a = 1; string a = 2; }",
        "message A { string a = 1 [(x) = ]; }",
    ],
)
def test_other_errors_are_still_reported(body: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(proto(body))


def test_thousands_are_read_at_once() -> None:
    fields = "".join(f"  string f{number} = {number} [(o{number}) = {number}];\n" for number in range(1, 1500))
    text = proto(f"message A {{\n{fields}}}\n")
    before = time.monotonic()
    assert parse(text).canonical == text
    assert time.monotonic() - before < PATIENCE_S
