"""RegexRouter, TimestampRouter, Filter."""

import pytest

from connect.api.errors import ConfigError, DataError
from tests.support.transforming import changed, made, sink


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "expected"),
    [
        ("foo", "bar", "foo", "bar"),
        ("foo", "bar", "orig", "orig"),
        ("(.*)", "$1", "orig", "orig"),
        ("(.*)", "prefix-$1", "orig", "prefix-orig"),
        ("(.*)", "$1-suffix", "orig", "orig-suffix"),
        (r"(.*)-(\d\d\d\d\d\d\d\d)", "$1", "index-20160117", "index"),
        ("(?<a>[^.]+)\\.(?<b>.*)", "${b}.${a}", "x.y", "y.x"),
    ],
)
def test_topics_that_match_are_renamed(regex: str, replacement: str, topic: str, expected: str) -> None:
    transform = made("RegexRouter", regex=regex, replacement=replacement)
    for _ in range(2):
        assert changed(transform, sink(topic=topic)).topic == expected
    assert changed(transform, sink(topic=topic)).original_topic == topic  # type: ignore[attr-defined]  # a sink's


@pytest.mark.parametrize("options", [{"regex": "(", "replacement": ""}, {"regex": "a", "replacement": "$1"}, {}])
def test_a_router_needs_a_pattern_and_a_replacement_that_fit(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        made("RegexRouter", **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "test-20160924"),
        ({"timestamp_format": "yyyy-MM"}, "test-2016-09"),
        ({"topic_format": "${timestamp}.x.${topic}.${topic}", "timestamp_format": "HH"}, "05.x.test.test"),
        ({"topic_format": "fixed"}, "fixed"),
    ],
)
def test_topics_tell_the_time_of_records(options: dict[str, str], expected: str) -> None:
    record = sink(topic="test", timestamp_ms=1_474_695_317_000)
    assert changed(made("TimestampRouter", **options), record).topic == expected


def test_a_record_without_time_cannot_be_routed_by_it() -> None:
    with pytest.raises(DataError, match="Timestamp missing on record"):
        made("TimestampRouter").apply(sink(timestamp_ms=None))
    with pytest.raises(ConfigError, match="timestamp.format"):
        made("TimestampRouter", timestamp_format="bad-format")


def test_a_filter_drops_everything() -> None:
    assert made("Filter").apply(sink(None, 1)) is None
