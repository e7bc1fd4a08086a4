"""The limiter of replication throttles, without a clock of its own."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.cluster.replicas.throttle import ReplicationQuota, ReplicationThrottles
from core_broker.settings import BrokerSettings, TopicSettings

SAMPLES = 11
START = 1000.0


def quota(limit: int, *, samples: int = SAMPLES) -> ReplicationQuota:
    made = ReplicationQuota(samples_max=samples, sample_seconds=1)
    made.bytes_per_second = limit
    return made


def test_without_a_limit_it_is_never_used_up() -> None:
    unlimited = ReplicationQuota(samples_max=SAMPLES, sample_seconds=1)
    unlimited.record(2**62, START)
    assert not unlimited.is_limited
    assert not unlimited.is_used_up(START)
    assert unlimited.seconds_until_room(START) == 0


def test_the_rate_is_that_of_at_least_one_sample() -> None:
    used = quota(100)
    used.record(100, START)
    assert not used.is_used_up(START)
    used.record(1, START + 0.5)
    assert used.is_used_up(START + 0.5)
    assert used.is_used_up(START + 1)
    assert not used.is_used_up(START + 1.02)


def test_too_much_at_once_is_made_up_for_later() -> None:
    used = quota(100)
    used.record(500, START)
    assert used.is_used_up(START + 4.99)
    assert used.seconds_until_room(START + 2) == pytest.approx(3)
    assert not used.is_used_up(START + 5)


def test_samples_that_left_the_window_count_no_longer() -> None:
    used = quota(100)
    used.record(1_000_000, START)
    assert used.is_used_up(START + SAMPLES - 0.01)
    assert used.seconds_until_room(START + 1) == pytest.approx(SAMPLES - 1)
    assert not used.is_used_up(START + SAMPLES)


def test_a_limit_of_zero_lets_a_fetch_through_once_in_a_window() -> None:
    used = quota(0)
    assert not used.is_used_up(START)
    used.record(1, START)
    assert used.seconds_until_room(START) == SAMPLES
    assert not used.is_used_up(START + SAMPLES)


def test_a_new_limit_counts_at_once() -> None:
    used = quota(100)
    used.record(500, START)
    assert used.is_used_up(START + 1)
    used.bytes_per_second = 1000
    assert not used.is_used_up(START + 1)


def test_the_samples_are_bounded() -> None:
    used = quota(100, samples=3)
    for step in range(1000):
        used.record(1, START + step * 0.7)
    assert len(used._bytes.samples) <= 4
    assert used._bytes.total == sum(sample.amount for sample in used._bytes.samples)


@given(
    limit=st.integers(1, 1000),
    records=st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 3)), min_size=1, max_size=30),
)
def test_there_is_room_exactly_when_it_was_announced(limit: int, records: list[tuple[int, float]]) -> None:
    used, now = quota(limit), START
    for size_bytes, pause in records:
        used.record(size_bytes, now)
        now += pause
    wait = used.seconds_until_room(now)
    assert (wait > 0) == used.is_used_up(now)
    if wait > 0.01:
        assert used.is_used_up(now + wait - 0.01)
    assert not used.is_used_up(now + wait + 0.001)


@given(limit=st.integers(100, 10_000), fetch_bytes=st.integers(1, 5000), step=st.floats(0.01, 0.5))
def test_what_passes_stays_within_the_limit(limit: int, fetch_bytes: int, step: float) -> None:
    def passed() -> Iterator[int]:
        used, now = quota(limit), START
        while now < START + 60:
            if not used.is_used_up(now):
                used.record(fetch_bytes, now)
                yield fetch_bytes
            now += step

    # Six windows of 11 seconds; in each of them one fetch is let through whole although it is too much.
    assert sum(passed()) <= 6 * (limit * SAMPLES + fetch_bytes)


def test_each_side_has_its_own_list_and_limit() -> None:
    settings = BrokerSettings(leader_replication_throttled_rate=10, follower_replication_throttled_rate=20)
    throttles = ReplicationThrottles(settings)
    assert (throttles.leader.bytes_per_second, throttles.follower.bytes_per_second) == (10, 20)
    topic = TopicSettings(
        leader_replication_throttled_replicas=("0:1", "1:2"), follower_replication_throttled_replicas=("*",)
    )
    assert throttles.of_leader(topic, 0, 1) is throttles.leader
    assert throttles.of_leader(topic, 1, 1) is None
    assert throttles.of_leader(topic, 1, 2) is throttles.leader
    assert throttles.of_follower(topic, 7, 9) is throttles.follower
    assert throttles.of_follower(TopicSettings(), 0, 1) is None


def test_the_window_is_that_of_the_settings() -> None:
    settings = BrokerSettings(
        replication_quota_window_num=2, replication_quota_window_size_seconds=3, leader_replication_throttled_rate=1
    )
    leader = ReplicationThrottles(settings).leader
    leader.record(1000, START)
    assert leader.seconds_until_room(START) == 6
