"""Rates over a window and buckets of tokens, with Kafka's arithmetic; time is handed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.security.rates import SampledSum, TokenBucket, WindowRate

MB = 1_000_000
START = 1000.0


def kafka_default() -> WindowRate:
    """11 samples of one second."""
    return WindowRate(samples_max=11, sample_seconds=1)


def test_20_mb_at_once_at_1_mb_per_second_take_10_more_seconds() -> None:
    rate = kafka_default()
    rate.record(20 * MB, START)
    assert rate.throttle_seconds(MB, START) == 10


def test_a_rate_up_to_the_limit_is_not_throttled() -> None:
    rate = kafka_default()
    rate.record(10 * MB, START)
    assert rate.throttle_seconds(MB, START) == 0
    assert rate.throttle_seconds(MB, START, more=1) > 0
    rate.record(1, START)
    assert rate.throttle_seconds(MB, START) == pytest.approx(1e-6)


def test_after_the_throttle_time_the_rate_is_the_limit() -> None:
    rate = kafka_default()
    rate.record(10 * MB + 500_000, START)
    pause = rate.throttle_seconds(MB, START)
    assert pause == 0.5
    assert rate.throttle_seconds(MB, START + pause) == 0


def test_what_is_taken_back_does_not_count() -> None:
    rate = kafka_default()
    rate.record(20 * MB, START)
    rate.record(-20 * MB, START + 0.5)
    assert rate.is_empty
    assert rate.throttle_seconds(1, START + 0.5) == 0


def test_a_sample_counts_until_it_has_left_the_window() -> None:
    rate = kafka_default()
    rate.record(110, START)
    assert rate.rate(START + 10.9) == pytest.approx(110 / 10.9)
    assert rate.throttle_seconds(1, START + 10.9) > 0
    assert rate.rate(START + 11) == 0
    assert rate.throttle_seconds(1, START + 11) == 0


def test_a_window_of_one_sample_has_a_rate() -> None:
    rate = WindowRate(samples_max=1, sample_seconds=1)
    rate.record(5, START)
    assert rate.rate(START) == 5000
    assert rate.throttle_seconds(10, START + 1) == 0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 1000)), max_size=40))
def test_the_rate_is_that_of_the_live_samples(uses: list[tuple[float, int]]) -> None:
    rate, window = kafka_default(), SampledSum(samples_max=11, sample_seconds=1)
    now = START
    for pause, amount in uses:
        now += pause
        rate.record(amount, now)
        window.add(amount, now)
    live = [sample for sample in window.samples if now - sample.started_at < 11]
    elapsed = now - live[0].started_at if live else 0
    assert 10 <= elapsed + max(10 - int(elapsed), 0) < 11
    expected = sum(sample.amount for sample in live) / (elapsed + max(10 - int(elapsed), 0))
    assert rate.rate(now) == pytest.approx(expected)
    assert (rate.throttle_seconds(10, now) > 0) == (expected > 10)


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 100)), max_size=60))
def test_a_sum_is_that_of_its_samples_which_are_bounded(uses: list[tuple[float, int]]) -> None:
    window = SampledSum(samples_max=3, sample_seconds=2)
    now = START
    for pause, amount in uses:
        now += pause
        window.add(amount, now)
        assert window.total == sum(sample.amount for sample in window.samples)
        assert len(window.samples) <= 4


def test_a_bucket_is_full_at_first_and_may_be_exceeded_once() -> None:
    bucket = TokenBucket(burst_seconds=11)
    assert bucket.tokens(5, START) == 55
    bucket.take(65, 5, START)
    assert bucket.throttle_seconds(5, START) == 2
    assert bucket.throttle_seconds(5, START + 2) == 0


def test_a_bucket_refills_to_its_size_and_no_further() -> None:
    bucket = TokenBucket(burst_seconds=11)
    bucket.take(55, 5, START)
    assert bucket.tokens(5, START + 1) == 5
    assert bucket.tokens(5, START + 3600) == 55


def test_a_lower_rate_makes_a_bucket_smaller() -> None:
    bucket = TokenBucket(burst_seconds=10)
    assert bucket.tokens(5, START) == 50
    assert bucket.tokens(1, START) == 10
