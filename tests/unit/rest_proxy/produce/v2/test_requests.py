"""Bodies of produce requests in API v2."""

import pytest

from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import NO_CHOICE, SchemaChoice
from rest_proxy.produce.v2.requests import NULL, parse


def test_keys_and_values_stay_the_text_that_they_were() -> None:
    request = parse(b'{"records":[{"key":  1.50 ,"value":{"a": [1, 2]}}]}', max_records=1)
    (record,) = request.records
    assert bytes(record.key) == b"1.50"
    assert bytes(record.value) == b'{"a": [1, 2]}'


def test_what_a_record_leaves_out_is_null() -> None:
    (record,) = parse(b'{"records":[{}]}', max_records=1).records
    assert (record.key, record.value) == (NULL, NULL)
    assert (record.partition, record.timestamp) == (None, None)


def test_numbers_may_be_given_as_text() -> None:
    request = parse(b'{"key_schema_id":"7","records":[{"partition":"3"}]}', max_records=1)
    assert request.key_schema_id == 7
    assert request.records[0].partition == 3


def test_a_schema_is_chosen_by_its_id_before_its_text() -> None:
    request = parse(b'{"value_schema":"x","value_schema_id":3,"key_schema":"y","records":[{}]}', max_records=1)
    assert request.value_choice() == SchemaChoice(schema_id=3)
    assert request.key_choice() == SchemaChoice(schema="y")


def test_no_schema_is_no_choice() -> None:
    request = parse(b'{"key_schema":null,"records":[{}]}', max_records=1)
    assert request.key_choice() is NO_CHOICE
    assert request.value_choice() is NO_CHOICE


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_schema_ids_that_no_registry_has_are_refused(schema_id: int) -> None:
    request = parse(b'{"key_schema_id":%d,"records":[{}]}' % schema_id, max_records=1)
    with pytest.raises(ProxyError) as refused:
        request.key_choice()
    assert refused.value.code == 42205


NESTED = b"[" * 100_000 + b"]" * 100_000
BAD: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 422),
    "null": (b"null", 422),
    "no records": (b"{}", 422),
    "empty records": (b'{"records":[]}', 422),
    "null records": (b'{"records":null}', 422),
    "unknown field": (b'{"records":[{"valur":1}]}', 422),
    "unknown field of the request": (b'{"foo":1,"records":[{}]}', 422),
    "text": (b"records", 400),
    "half": (b'{"records":[', 400),
    "more than one": (b'{"records":[{}]}{}', 400),
    "a list": (b"[]", 400),
    "records of another type": (b'{"records":{}}', 400),
    "a record of another type": (b'{"records":[1]}', 400),
    "a null record": (b'{"records":[null]}', 400),
    "a partition of another type": (b'{"records":[{"partition":[]}]}', 400),
    "a partition in words": (b'{"records":[{"partition":"x"}]}', 400),
    "a timestamp of another type": (b'{"records":[{"timestamp":{}}]}', 400),
    "a schema of another type": (b'{"key_schema":{},"records":[{}]}', 400),
    "no UTF-8": (b'{"records":[{"key":"\xff"}]}', 400),
    "UTF-16": ('{"records":[{}]}'.encode("utf-16"), 400),
    "half a pair": (b'{"records":[{"key":"\\ud800"}]}', 400),
    "deep": (b'{"records":[{"key":%s}]}' % NESTED, 400),
    "deep and unknown": (b'{"a":%s}' % NESTED, 422),
}


@pytest.mark.parametrize(("body", "code"), BAD.values(), ids=BAD)
def test_an_invalid_body_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(ProxyError) as refused:
        parse(body, max_records=10)
    assert refused.value.code == code
    assert len(refused.value.message) < 300


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ProxyError, match="^Unrecognized field: valur$"):
        parse(b'{"records":[{"valur":1}]}', max_records=1)


def test_too_many_records_are_refused_with_the_limit() -> None:
    with pytest.raises(ProxyError, match=r"3 records.* at most 2 \(produce.request.max.records\)") as refused:
        parse(b'{"records":[{},{},{}]}', max_records=2)
    assert refused.value.code == 413


def test_too_many_values_are_refused_before_they_are_made() -> None:
    with pytest.raises(ProxyError, match="more than 1000000 values") as refused:
        parse(b'{"records":[' + b"{}," * 600_000 + b"{}]}", max_records=10)
    assert refused.value.code == 413


def test_text_that_looks_like_many_values_is_one() -> None:
    (record,) = parse(b'{"records":[{"value":"' + b'\\"{[,' * 500_000 + b'"}]}', max_records=10).records
    assert len(bytes(record.value)) == 2_500_002
