import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.client.records import IncomingRecord
from deploy.views.records import as_json, formatter, from_json, parse_headers


def record(**changes: object) -> IncomingRecord:
    fields: dict[str, object] = {
        "topic": "orders",
        "partition": 1,
        "offset": 42,
        "timestamp_ms": 1_700_000_000_123,
        "timestamp_type": "CreateTime",
        "key": b"k",
        "value": b"v",
        "headers": (("a", b"1"),),
    }
    return IncomingRecord(**{**fields, **changes})  # type: ignore[arg-type]  # the test names the fields


def test_text_line_shows_time_place_key_value_and_headers() -> None:
    line = formatter("text")(record())
    assert line.endswith(".123  1:42  k → v  {a=1}")


def test_text_line_leaves_out_what_is_not_there() -> None:
    assert formatter("text")(record(key=None, value=None, headers=())).endswith("1:42  (null)")


def test_bytes_that_are_not_text_are_escaped() -> None:
    assert formatter("value")(record(value=b"\xffok")) == "\\xffok"
    assert formatter("hex")(record(value=b"\xffok")) == "ff6f6b"


def test_template_fills_known_fields_and_keeps_the_rest() -> None:
    write = formatter("{topic}/{partition}@{offset}\\t{key}={value} {nope} {headers}")
    assert write(record()) == "orders/1@42\tk=v {nope} a=1"


def test_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="'xml' is not a format; say text, value, json"):
        formatter("xml")


@given(
    key=st.none() | st.binary(max_size=20),
    value=st.none() | st.binary(max_size=20),
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)
def test_json_of_consume_is_read_back_by_produce(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    sent = from_json(json.dumps(as_json(record(key=key, value=value, headers=tuple(headers)))), "copy")
    assert (sent.topic, sent.key, sent.value, list(sent.headers)) == ("copy", key, value, headers)


def test_json_values_that_are_no_text_are_sent_as_json() -> None:
    assert from_json('{"value": {"id": 1}, "headers": {"h": "x"}}', "t").value == b'{"id": 1}'
    assert from_json('{"value": {"id": 1}, "headers": {"h": "x"}}', "t").headers == (("h", b"x"),)


@pytest.mark.parametrize("line", ["[1]", "{}", "not json"])
def test_json_line_that_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        from_json(line, "t")


def test_header_without_equals_sign_has_no_value() -> None:
    assert parse_headers(["a=1=2", "b=", "c"]) == (("a", b"1=2"), ("b", b""), ("c", None))
