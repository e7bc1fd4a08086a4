"""Text with names in it."""

import msgspec
import pytest

from connect.api import data
from connect.api.errors import DataError
from connect.api.record import Header
from connect.testing.samples import sink_record
from connectors.http.template import Template, text_in

ORDER = data.struct({"id": data.INT64, "customer": data.struct({"name": data.STRING}), "price": data.FLOAT64})
RECORD = msgspec.structs.replace(
    sink_record(
        "orders",
        7,
        key={"id": 3},
        key_schema=data.struct({"id": data.INT32}),
        value={"id": 5, "customer": {"name": "a/b c"}, "price": 1e10, "none": None},
        value_schema=ORDER,
        partition=2,
    ),
    headers=(Header("trace", "first"), Header("trace", b"last")),
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topic", "orders"),
        ("partition", "2"),
        ("offset", "7"),
        ("timestamp", "1700000000000"),
        ("key", "Struct{id=3}"),
        ("key.id", "3"),
        ("id", "5"),
        ("value.id", "5"),
        ("customer.name", "a/b c"),
        ("price", "1.0E10"),
        ("header.trace", "last"),
    ],
)
def test_a_name_is_a_part_of_the_record(name: str, text: str) -> None:
    assert text_in(RECORD, name) == text


@pytest.mark.parametrize("name", ["missing", "none", "id.deeper", "header.none", "key.name", ""])
def test_a_name_that_the_record_does_not_have_is_bad_data(name: str) -> None:
    with pytest.raises(DataError):
        record = RECORD if name else sink_record("t", 0, value=None)
        text_in(record, name)


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("http://h/x", "http://h/x"),
        ("http://h/${topic}/${customer.name}", "http://h/orders/a%2Fb%20c"),
        ("http://h/x?name=${customer.name}&id=${id}", "http://h/x?name=a%2Fb%20c&id=5"),
        ("http://h/${topic}-${id}.json", "http://h/orders-5.json"),
    ],
)
def test_values_cannot_change_the_parts_of_a_url(template: str, url: str) -> None:
    assert Template(template).fill_url(lambda name: text_in(RECORD, name)) == url


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("http://h/x?after=${cursor}", "http://h/x"),
        ("http://h/x?after=${cursor}&limit=10", "http://h/x?limit=10"),
        ("http://h/x?limit=10&q=a${cursor}", "http://h/x?limit=10&q=a"),
        ("http://h/x?flag&after=${cursor}", "http://h/x?flag"),
    ],
)
def test_a_parameter_without_a_value_is_left_out(template: str, url: str) -> None:
    assert Template(template).fill_url(lambda _: "") == url


@pytest.mark.parametrize("key", [".", ".."])
def test_a_value_cannot_lead_to_another_place(key: str) -> None:
    with pytest.raises(DataError):
        Template("http://h/a/${key}").fill_url(lambda _: key)
