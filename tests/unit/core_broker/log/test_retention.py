"""Which segments retention lets go."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from core_broker.log.retention import Expiry, expired_segments
from core_broker.settings import TopicSettings


@dataclass(frozen=True)
class FakeSegment:
    base_offset: int
    size_bytes: int = 100
    retention_timestamp: int = 0


def expiry(
    segments: list[FakeSegment],
    settings: TopicSettings,
    *,
    now_ms: int = 0,
    high_watermark: int = 1000,
    start_offset: int = 0,
) -> Expiry:
    return expired_segments(
        segments,
        settings,
        now_ms=now_ms,
        high_watermark=high_watermark,
        start_offset=start_offset,
        end_offset=1000,
    )


AGED = [FakeSegment(0, retention_timestamp=10), FakeSegment(10, retention_timestamp=20), FakeSegment(20, 100, 30)]


def test_segments_older_than_retention_ms_expire() -> None:
    settings = TopicSettings(retention_ms=100)
    assert expiry(AGED, settings, now_ms=110).segment_count == 0
    assert expiry(AGED, settings, now_ms=111) == Expiry(1, "retention.ms")
    assert expiry(AGED, settings, now_ms=121).segment_count == 2


def test_idle_active_segment_expires_too() -> None:
    assert expiry(AGED, TopicSettings(retention_ms=100), now_ms=131).segment_count == 3


def test_empty_active_segment_is_not_rolled_for_ever() -> None:
    segments = [FakeSegment(0), FakeSegment(10, size_bytes=0)]
    assert expiry(segments, TopicSettings(retention_ms=100), now_ms=10_000).segment_count == 1
    assert expiry(segments[1:], TopicSettings(retention_ms=100, retention_bytes=0), now_ms=10_000).segment_count == 0


def test_record_from_the_future_holds_what_comes_after_it() -> None:
    segments = [FakeSegment(0, retention_timestamp=10**15), FakeSegment(10)]
    assert expiry(segments, TopicSettings(retention_ms=100), now_ms=10_000).segment_count == 0


def test_no_limit_deletes_nothing() -> None:
    assert expiry(AGED, TopicSettings(retention_ms=-1, retention_bytes=-1), now_ms=10**15).segment_count == 0


def test_segments_beyond_retention_bytes_expire() -> None:
    segments = [FakeSegment(0), FakeSegment(10), FakeSegment(20)]
    assert expiry(segments, TopicSettings(retention_bytes=200)) == Expiry(1, "retention.bytes")
    assert expiry(segments, TopicSettings(retention_bytes=201)).segment_count == 0
    assert expiry(segments, TopicSettings(retention_bytes=0)).segment_count == 3


def test_kafka_5634_nothing_above_the_high_watermark_expires() -> None:
    settings = TopicSettings(retention_bytes=0, retention_ms=0)
    assert expiry(AGED, settings, now_ms=10**6, high_watermark=19).segment_count == 1
    assert expiry(AGED, settings, now_ms=10**6, high_watermark=999).segment_count == 2


def test_compacted_topic_ignores_age_and_size() -> None:
    settings = TopicSettings(cleanup_policy=frozenset({"compact"}), retention_bytes=0, retention_ms=0)
    assert expiry(AGED, settings, now_ms=10**6).segment_count == 0


def test_both_policies_delete_as_well() -> None:
    settings = TopicSettings(cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=100)
    assert expiry(AGED, settings).segment_count == 2


def test_segments_below_the_log_start_go_with_any_policy() -> None:
    settings = TopicSettings(cleanup_policy=frozenset({"compact"}))
    assert expiry(AGED, settings, start_offset=9).segment_count == 0
    assert expiry(AGED, settings, start_offset=10) == Expiry(1, "log start offset")
    assert expiry(AGED, settings, start_offset=1000).segment_count == 2


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    retention_bytes=st.integers(0, 300),
    high_watermark=st.integers(0, 80),
)
def test_what_is_left_is_never_less_than_retention_bytes(
    sizes: list[int], retention_bytes: int, high_watermark: int
) -> None:
    segments = [FakeSegment(index * 10, size) for index, size in enumerate(sizes)]
    settings = TopicSettings(retention_bytes=retention_bytes, retention_ms=-1)
    count = expiry(segments, settings, high_watermark=high_watermark).segment_count
    assert sum(sizes[count:]) >= min(retention_bytes, sum(sizes))
    assert count == 0 or count == len(sizes) or segments[count].base_offset <= high_watermark
