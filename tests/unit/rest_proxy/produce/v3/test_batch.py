import msgspec
import pytest

from core_broker.client.records import Delivery
from rest_proxy.errors import ProxyError
from rest_proxy.produce.v3.batch import batch_result, read_batch
from rest_proxy.produce.v3.results import delivered_record
from rest_proxy.produce.v3.sender import Result


def test_a_batch_keeps_its_order() -> None:
    batch = read_batch(b'{"entries":[{"id":"b"},{"id":"a-1_Z","value":1}]}', 2)
    assert batch.ids == ("b", "a-1_Z")
    assert [bytes(entry) for entry in batch.entries] == [b'{"id":"b"}', b'{"id":"a-1_Z","value":1}']


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Request body is empty"),
        (b"{}", "Empty batch"),
        (b'{"entries":[{"id":"1"},{"id":"1"}]}', "not distinct"),
        (b'{"entries":[{},{},{},{}]}', "Too many entries in batch"),
        (b'{"entries":[{"id":null}]}', "not a valid string"),
        (b'{"entries":[{"id":"1\\n"}]}', "not a valid string"),
    ],
)
def test_a_batch_that_cannot_be_sent(body: bytes, words: str) -> None:
    with pytest.raises(ProxyError, match=words) as caught:
        read_batch(body, 3)
    assert (caught.value.status, caught.value.code) == (422, 42208)


def test_successes_and_failures_are_listed_apart() -> None:
    delivery = Delivery(topic="t", partition=0, offset=5, timestamp_ms=1)
    results: list[Result] = [delivered_record(delivery, "c", key=None, value=None), ProxyError(400, "no")]
    result = msgspec.to_builtins(batch_result(["x", "y"], results))
    assert [(item["id"], item["offset"], "error_code" in item) for item in result["successes"]] == [("x", 5, False)]
    assert result["failures"] == [{"id": "y", "error_code": 400, "message": "no"}]
