import pytest

from connect.api.data import Value
from connect.api.errors import ConfigError, DataError
from connect.api.record import Header
from connect.transforms.expressions import Expression
from tests.support.transforming import sink, source

RECORD = sink(
    None,
    {"a": {"b": 5}, "items": [1, 2, 3], "name": "Ann", "none": None, "get": "got", "x-y": 1.5},
    key="k",
    topic="orders-eu",
    headers=(Header("trace", "one"), Header("trace", "two")),
)


def evaluated(text: str) -> Value:
    return Expression(text, key="condition").evaluate(RECORD)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key", "k"),
        ("topic", "orders-eu"),
        ("partition", 3),
        ("offset", 42),
        ("timestamp", 1_790_000_000_123),
        ("headers.trace", "two"),
        ("headers['none']", None),
        ("value.a.b", 5),
        ("value['a']['b']", 5),
        ("value['x-y'] * 2", 3.0),
        ("value.no.such.thing", None),
        ("value.none.x", None),
        ("value.get", "got"),
        ("value.items[0] + value.items[-1]", 4),
        ("value.items[7]", None),
        ("value.items[:2]", [1, 2]),
        ("value.a.b > 3 and topic == 'orders-eu'", True),
        ("value.a.b > 3 && !(topic == 'x') || false", True),
        ("value.name == 'a && b || !c'", False),
        ("value.a.b != 5", False),
        ("value.none == null", True),
        ("value.none is None", True),
        ("2 in value.items and 9 not in value.items", True),
        ("'big' if value.a.b > 3 else 'small'", "big"),
        ("lower(value.name) + upper('x')", "annX"),
        ("len(value.items) + len('ab')", 5),
        ("int('7') + int(3.9)", 10),
        ("float('1.5')", 1.5),
        ("str(1.0) + str(true) + str(5)", "1.0true5"),
        ("coalesce(value.none, value.no, 'd')", "d"),
        ("coalesce(value.none)", None),
        ("matches(topic, 'orders-(?<r>..)')", True),
        ("matches(topic, 'orders')", False),
        (r"matches('a1', '\w\d')", True),
        ("matches(value.none, 'x')", False),
        ("startswith(topic, 'orders') and endswith(topic, 'eu') and contains(topic, '-')", True),
        ("replace(trim(' a-b '), '-', '+')", "a+b"),
        ("split('a,b', ',')", ["a", "b"]),
        ("round(2.567, 2)", 2.57),
        ("abs(-1) + min(3, 2) + max(3, 4)", 7),
        ("lower(value.none)", None),
        ("{'id': key, 'list': [1, value.a.b]}", {"id": "k", "list": [1, 5]}),
        ("-value.a.b // 2 % 2", 1),
        ("{**value.a, 'c': 6}", {"b": 5, "c": 6}),
        ("1 < value.a.b <= 5", True),
    ],
)
def test_expressions_are_evaluated(text: str, expected: Value) -> None:
    assert evaluated(text) == expected


def test_records_of_sources_have_no_offset() -> None:
    assert Expression("offset", key="x").evaluate(source(None, 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "x = 1",
        "import os",
        "1; 2",
        "unknown",
        "now()",
        "open('x')",
        "value.get('x')",
        "value.a.__class__()",
        "key.upper()",
        "lambda: 1",
        "[x for x in value.items]",
        "f'{key}'",
        "2 ** 100",
        "1 << 100",
        "(lower)",
        "lower",
        "lower(value=key)",
        "lower(*value.items)",
        "{1, 2}",
        "key := 1",
        "not_closed(",
        "'" + "a" * 20_000 + "'",
        "+".join(["1"] * 2_000),
        "(" * 500 + ")" * 500,
        "\x00",
    ],
)
def test_what_is_no_expression_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="for configuration condition"):
        Expression(text, key="condition")


@pytest.mark.parametrize(
    "text",
    [
        "value.none > 5",
        "value.name + 1",
        "1 / 0",
        "value.name.x",
        "int('x')",
        "lower(5)",
        "matches(topic, '(')",
        "'a' * 10000000 * 10000000",
        "len(5)",
        "lower()",
        "value.items['x']",
        "{value.items: 1}",
        "{**value.none}",
        "'%1000000000d' % 5",
        "replace('a' * 90000, 'a', 'b' * 90000)",
    ],
)
def test_what_cannot_be_told_of_a_record_is_a_fault_of_the_record(text: str) -> None:
    with pytest.raises(DataError, match="the expression condition = "):
        evaluated(text)


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("1 > 2", False), ("null", False), ("value.no", False)])
def test_conditions_hold_or_not(text: str, expected: bool) -> None:
    assert Expression(text, key="condition").holds(RECORD) is expected


@pytest.mark.parametrize("text", ["1", "'false'", "value.items"])
def test_what_is_neither_true_nor_false_is_no_condition(text: str) -> None:
    with pytest.raises(DataError, match="must be true or false"):
        Expression(text, key="condition").holds(RECORD)


def test_private_names_of_python_are_only_fields() -> None:
    assert evaluated("value.a.__class__") is None
    with pytest.raises(DataError):
        evaluated("topic.__class__")
