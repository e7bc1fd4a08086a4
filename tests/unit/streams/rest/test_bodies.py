from decimal import Decimal

import pytest

from streams.rest.bodies import read_object, read_statements_body
from streams.server.errors import BadRequest
from streams.settings import StreamsSettings

SETTINGS = StreamsSettings()


@pytest.mark.parametrize("text,properties", [("ksql", "streamsProperties"), ("sql", "properties")])
def test_fields_have_the_names_of_both_endpoints(text: str, properties: str) -> None:
    body = f'{{"{text}": "SHOW STREAMS;", "{properties}": {{"auto.offset.reset": "earliest"}}, "other": 1}}'
    found = read_statements_body(body.encode(), SETTINGS)
    assert (found.text, found.properties) == ("SHOW STREAMS;", {"auto.offset.reset": "earliest"})
    assert (found.variables, found.sequence) == ({}, None)


def test_variables_and_sequence() -> None:
    body = b'{"ksql": "x", "sessionVariables": {"a": "b"}, "commandSequenceNumber": 7, "streamsProperties": null}'
    found = read_statements_body(body, SETTINGS)
    assert (found.variables, found.sequence) == ({"a": "b"}, 7)


def test_numbers_keep_their_digits() -> None:
    assert read_object(b'{"a": 123456789012345678.50, "b": 1}') == {"a": Decimal("123456789012345678.50"), "b": 1}


@pytest.mark.parametrize(
    "body,message",
    [
        (b"{", "Malformed JSON"),
        (b"\xff", "Malformed JSON"),
        (b"[]", "must be an object"),
        (b"[" * 100_000, "Malformed JSON"),
        (b"{}", 'needs a field "ksql"'),
        (b'{"ksql": ""}', 'needs a field "ksql"'),
        (b'{"ksql": 1}', 'needs a field "ksql"'),
        (b'{"ksql": "x", "streamsProperties": []}', "streamsProperties must be an object"),
        (b'{"ksql": "x", "sessionVariables": {"a": 1}}', "The variable a must be text"),
        (b'{"ksql": "x", "commandSequenceNumber": "1"}', "must be a whole number"),
        (b'{"ksql": "x", "streamsProperties": {"foo": 1}}', "Not recognizable"),
    ],
)
def test_bodies_that_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        read_statements_body(body, SETTINGS)
