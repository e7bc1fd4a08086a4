"""The inferred type of a text, as in Kafka Connect's Values."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api.data import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)
from connect.api.literals import parse

MOMENT = dt.datetime(2019, 8, 23, 14, 34, 54, 346000, tzinfo=dt.UTC)
NO_ITEMS = Schema(Type.ARRAY)
NO_ENTRIES = Schema(Type.MAP)
FLOAT32_MAX = 3.4028234663852886e38

SCALARS: list[tuple[str, Schema | None, Any]] = [
    ("127", INT8, 127),
    ("-128", INT8, -128),
    ("+5", INT8, 5),
    ("32767", INT16, 32767),
    ("-32768", INT16, -32768),
    ("2147483647", INT32, 2147483647),
    ("-2147483648", INT32, -2147483648),
    ("9223372036854775807", INT64, 9223372036854775807),
    ("-9223372036854775808", INT64, -9223372036854775808),
    ("9223372036854775808", decimal(0), Decimal(9223372036854775808)),
    ("-9223372036854775809", decimal(0), Decimal(-9223372036854775809)),
    ("3.4028235E38", FLOAT32, FLOAT32_MAX),
    ("-3.4028235E38", FLOAT32, -FLOAT32_MAX),
    ("1.7976931348623157E308", FLOAT64, 1.7976931348623157e308),
    ("-1.7976931348623157E308", FLOAT64, -1.7976931348623157e308),
    ("1.0", INT8, 1),
    ("1.5", FLOAT32, 1.5),
    ("300.0", INT16, 300),
    ("66000.0", INT32, 66000),
    ("1e2", INT8, 100),
    ("0e99999", INT8, 0),
    ("1e+100000000", decimal(-100000000), Decimal("1e+100000000")),
    ("1e-100000000", FLOAT32, 0.0),
    (" \n\t true \n\t ", BOOLEAN, True),
    ("false", BOOLEAN, False),
    ("null", None, None),
    (" null ", None, None),
    ("2019-08-23", DATE, dt.date(2019, 8, 23)),
    ("14:34:54.346Z", TIME, dt.time(14, 34, 54, 346000)),
    ("14\\:34\\:54.346Z", TIME, dt.time(14, 34, 54, 346000)),
    ("2019-08-23T14:34:54.346Z", TIMESTAMP, MOMENT),
    ("2019-08-23T14\\:34\\:54.346Z", TIMESTAMP, MOMENT),
]

COLLECTIONS: list[tuple[str, Schema, Any]] = [
    ("[]", NO_ITEMS, []),
    ("[null]", NO_ITEMS, [None]),
    ("[true, false]", array(BOOLEAN), [True, False]),
    ("[1, 2, 32768]", array(INT32), [1, 2, 32768]),
    ("[1, 2, 3.4028235E38]", array(FLOAT32), [1.0, 2.0, FLOAT32_MAX]),
    ("[1.5, 1.7976931348623157E308]", array(FLOAT64), [1.5, 1.7976931348623157e308]),
    ('[1, 2, 300, "four"]', NO_ITEMS, [1, 2, 300, "four"]),
    ('["four", 1, 2, 300]', NO_ITEMS, ["four", 1, 2, 300]),
    ('["1.0", 9223372036854775808, 1]', NO_ITEMS, ["1.0", Decimal(9223372036854775808), 1]),
    ("[9223372036854775808]", array(decimal(0)), [Decimal(9223372036854775808)]),
    ("[[]]", array(NO_ITEMS), [[]]),
    ("[{}]", array(NO_ENTRIES), [{}]),
    ("[2019-08-23]", array(DATE), [dt.date(2019, 8, 23)]),
    ("[14:34:54.346Z]", array(TIME), [dt.time(14, 34, 54, 346000)]),
    ("[2019-08-23T14:34:54.346Z,   2019-08-23T14:34:54.346Z ]", array(TIMESTAMP), [MOMENT, MOMENT]),
    ("[1,]", array(INT8), [1]),
    ("{}", NO_ENTRIES, {}),
    ("{3: null}", Schema(Type.MAP, key_schema=INT8), {3: None}),
    ("{true: false, false: true}", mapping(BOOLEAN, BOOLEAN), {True: False, False: True}),
    ('{ "foo" : "123", \n"bar" : "baz" } ', mapping(STRING, STRING), {"foo": "123", "bar": "baz"}),
    (
        ' { "foo" :  12345 , "bar" : 0,  "baz" : -4321 }  ',
        mapping(STRING, INT16),
        {"foo": 12345, "bar": 0, "baz": -4321},
    ),
    ('{1:1, 2:1, 300:300, "four":1}', NO_ENTRIES, {1: 1, 2: 1, 300: 300, "four": 1}),
    ('{1:1, 300:300, 4:"four"}', Schema(Type.MAP, key_schema=INT16), {1: 1, 300: 300, 4: "four"}),
    ('{"a":{}}', mapping(STRING, NO_ENTRIES), {"a": {}}),
    ('{"a":[]}', mapping(STRING, NO_ITEMS), {"a": []}),
    ('{"k1":"14:34:54.346Z"}', mapping(STRING, TIME), {"k1": dt.time(14, 34, 54, 346000)}),
    ('{"k1":14:34:54.346Z}', mapping(STRING, TIME), {"k1": dt.time(14, 34, 54, 346000)}),
]

TEXTS = [
    "",
    "  ",
    "simple",
    "\uffff",
    "-",
    '"green"',
    "'simple' string",
    "si\\mple",
    "si\\{mple",
    "\\",
    'three"blind\\"mice',
    "string with delimiters: <>?,./\\=+-!@#$%^&*(){}[]|;':",
    "{foo: 3}",
    "{3: foo}",
    "[foo]",
    "null=",
    "true}",
    "false]",
    "{6:9 4:20}",
    "[0 1 2]",
    "{null: 3}",
    "{[1]: 3}",
    "[1, null]",
    "[null, 1]",
    "[1, 2, 3,,,]",
    '[1, 2, 3, "four",,,]',
    ' { "foo" :  1234567890 ,, "bar" : 0 }  ',
    ' { "foo" :  1234567890 , "a", "bar" : 0 }  ',
    " { ,,  , , }  ",
    '["never closed',
    "[1",
    "[",
    "2019-13-45",
    "25:00:00.000Z",
    "1_000",
    "٣",
    "[" * 101 + "]" * 101,
]

# Kafka Connect keeps no more than the number in front, or the list; we lose nothing.
MORE_THAN_A_VALUE = ["10:30", "1,5", "[1] and more", "{1:2} and more", "127.0.0.1:8080"]


@pytest.mark.parametrize(("text", "schema", "value"), SCALARS)
def test_a_number_a_boolean_or_a_date_is_known_by_its_looks(text: str, schema: Schema | None, value: Any) -> None:
    assert parse(text) == (schema, value)


@pytest.mark.parametrize(("text", "schema", "value"), COLLECTIONS)
def test_lists_and_maps_are_read_with_what_their_parts_have_in_common(text: str, schema: Schema, value: Any) -> None:
    found_schema, found = parse(text)

    assert (found_schema, found) == (schema, value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize("text", TEXTS + MORE_THAN_A_VALUE)
def test_all_else_is_text(text: str) -> None:
    assert parse(text) == (STRING, text)


@given(st.text(alphabet='[]{}:,"\\ 1.e-Tnul\n'))
def test_every_text_can_be_read(text: str) -> None:
    schema, value = parse(text)

    assert (schema is None) == (value is None)
