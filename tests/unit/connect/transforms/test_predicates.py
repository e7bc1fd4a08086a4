import pytest

from connect.api.errors import ConfigError
from connect.api.record import Header
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from tests.support.transforming import sink


@pytest.mark.parametrize(("names", "expected"), [((), False), (("a",), False), (("b", "a", "b"), True)])
def test_records_with_a_header_of_the_name_are_meant(names: tuple[str, ...], expected: bool) -> None:
    record = sink(headers=tuple(Header(name, 1) for name in names))
    assert HasHeaderKey({"name": "b"}).test(record) is expected


@pytest.mark.parametrize("options", [{}, {"name": ""}])
def test_the_name_of_the_header_must_be_told(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="name"):
        HasHeaderKey(options)


def test_records_without_value_are_tombstones() -> None:
    predicate = RecordIsTombstone({})
    values: list[object] = [None, "", 0, {}]
    assert [predicate.test(sink(None, value)) for value in values] == [True, False, False, False]


@pytest.mark.parametrize(
    ("pattern", "topic", "expected"),
    [("my-prefix-.*", "my-prefix-x", True), ("my-prefix", "my-prefix-x", False), ("(?<a>x)|y", "y", True)],
)
def test_topics_that_a_pattern_matches_as_a_whole_are_meant(pattern: str, topic: str, expected: bool) -> None:
    assert TopicNameMatches({"pattern": pattern}).test(sink(topic=topic)) is expected


@pytest.mark.parametrize("options", [{}, {"pattern": ""}, {"pattern": "["}])
def test_the_pattern_must_be_one(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        TopicNameMatches(options)
