import pytest

from rest_proxy.consume.reads import Start
from rest_proxy.errors import ProxyError
from rest_proxy.routes.read_parameters import negotiate_read
from rest_proxy.routes.reading import Origin, check_topic_name


@pytest.mark.parametrize(
    ("timestamp", "milliseconds"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_times_are_milliseconds_or_iso_8601(timestamp: str, milliseconds: int) -> None:
    assert Origin(timestamp=timestamp).start("end") == Start(timestamp_ms=milliseconds)


@pytest.mark.parametrize(
    "timestamp", ["", "-1", "1969-01-01", "now", "9" * 30, "٣", "\udcff", "0001-01-01T00:00+23:00"]
)
def test_other_times_are_refused(timestamp: str) -> None:
    with pytest.raises(ProxyError, match="Parameter timestamp") as caught:
        Origin(timestamp=timestamp).start("end")
    assert caught.value.status == 400
    caught.value.message.encode()


def test_without_an_origin_the_default_counts() -> None:
    assert (Origin().start("end"), Origin().start("beginning")) == (Start(is_end=True), Start())
    assert Origin(beginning_or_end="beginning").start("end") == Start()


def test_only_one_origin_may_be_given() -> None:
    with pytest.raises(ProxyError, match="offset and from"):
        Origin(offset=1, beginning_or_end="end").start("end")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a\0", "ü", "x" * 250, "\udcff"])
def test_names_that_no_topic_has_are_not_found(name: str) -> None:
    with pytest.raises(ProxyError) as caught:
        check_topic_name(name)
    assert caught.value.code == 40401
    caught.value.message.encode()


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", b"application/json"),
        ("*/*", b"application/json"),
        ("text/event-stream", b"text/event-stream"),
        ("application/ndjson", b"application/x-ndjson"),
        ("application/json;q=0.5, application/x-ndjson", b"application/x-ndjson"),
    ],
)
def test_pages_are_preferred_to_streams(accept: str, chosen: bytes) -> None:
    assert negotiate_read(accept, b"application/json") == chosen


def test_what_cannot_be_answered_is_406() -> None:
    with pytest.raises(ProxyError) as caught:
        negotiate_read("image/png", b"application/json")
    assert caught.value.status == 406
