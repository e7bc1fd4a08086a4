"""The use of clients against their quotas, by a clock that is moved by hand."""

import pytest

from core_broker.errors import BrokerError, ErrorCode
from core_broker.protocol.fields import Message
from core_broker.protocol.stored.metadata import ClientQuotaRecord, EntityData, TopicRecord
from core_broker.security.quota_limits import QuotaKey
from core_broker.security.quotas import MEASURED_MAX, UNLIMITED, ClientQuotas, MutationQuota, Window
from core_broker.service.clock import ManualClock

MB = 1_000_000
PRODUCE = QuotaKey.PRODUCER_BYTE_RATE


def carried(*quotas: tuple[str, float, dict[str, str | None]]) -> dict[tuple[object, ...], Message]:
    """Quotas as the metadata keeps them."""
    return {
        ("quota", number): ClientQuotaRecord(
            entity=[EntityData(kind, name) for kind, name in entity.items()], key=key, value=value
        )
        for number, (key, value, entity) in enumerate(quotas)
    }


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def quotas(clock: ManualClock) -> ClientQuotas:
    return ClientQuotas(clock)


def test_without_quotas_nothing_is_measured(quotas: ClientQuotas) -> None:
    quotas.follow(carried())
    assert not quotas.is_active
    assert quotas.record_bytes(PRODUCE, "alice", "app", 1 << 40) == 0
    assert list(quotas.recently_measured(10)) == []


def test_a_quota_of_an_address_measures_no_requests(quotas: ClientQuotas) -> None:
    quotas.follow(carried((QuotaKey.CONNECTION_CREATION_RATE, 5, {"ip": None})))
    assert not quotas.is_active


def test_a_producer_that_sends_20_mb_at_1_mb_per_second_is_throttled_for_10_seconds(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": "alice"})))
    assert quotas.is_active
    assert quotas.record_bytes(PRODUCE, "alice", "app", 20 * MB) == 10_000
    assert quotas.record_bytes(PRODUCE, "bob", "app", 20 * MB) == 0


def test_the_clients_of_a_user_share_the_quota_of_the_user(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": "alice"})))
    assert quotas.record_bytes(PRODUCE, "alice", "one", 10 * MB) == 0
    assert quotas.record_bytes(PRODUCE, "alice", "two", MB) == 1000


def test_each_user_has_the_default_quota_for_itself(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": None})))
    assert quotas.record_bytes(PRODUCE, "alice", "app", 10 * MB) == 0
    assert quotas.record_bytes(PRODUCE, "bob", "app", 10 * MB) == 0
    assert quotas.record_bytes(PRODUCE, "bob", "app", MB) == 1000


def test_what_was_used_counts_for_a_new_limit(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, 10 * MB, {"user": "alice"})))
    assert quotas.record_bytes(PRODUCE, "alice", "app", 20 * MB) == 0
    quotas.follow(carried((PRODUCE, MB, {"user": "alice"})))
    assert quotas.record_bytes(PRODUCE, "alice", "app", 0) == 10_000
    quotas.follow(carried())
    assert quotas.record_bytes(PRODUCE, "alice", "app", 20 * MB) == 0


def test_other_records_of_the_metadata_change_no_quota(quotas: ClientQuotas) -> None:
    before = carried((PRODUCE, MB, {"user": "alice"}))
    quotas.follow(before)
    limits = quotas.limits
    quotas.follow(before, [TopicRecord()])
    assert quotas.limits is limits
    quotas.follow({}, [TopicRecord(), ClientQuotaRecord(remove=True)])
    assert not quotas.is_active


def test_a_throttle_never_takes_more_than_the_response_can_say(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, 1, {"user": "alice"})))
    assert quotas.record_bytes(PRODUCE, "alice", "app", 1 << 40) == 2**31 - 1


def test_a_response_that_is_not_sent_does_not_count(quotas: ClientQuotas) -> None:
    quotas.follow(carried((QuotaKey.CONSUMER_BYTE_RATE, MB, {"client-id": "app"})))
    assert quotas.record_response("alice", "app", 10 * MB, is_throttled=False) == (0, True)
    assert quotas.record_response("alice", "app", 5 * MB, is_throttled=False) == (5000, False)
    assert quotas.record_response("alice", "app", 0, is_throttled=False) == (0, True)


def test_a_response_waits_for_another_quota_of_its_client(quotas: ClientQuotas) -> None:
    quotas.follow(carried((QuotaKey.CONSUMER_BYTE_RATE, MB, {"client-id": "app"})))
    assert quotas.record_response("alice", "app", 10 * MB, is_throttled=True) == (0, False)
    assert quotas.record_response("alice", "other", 10 * MB, is_throttled=True) == (0, False)
    assert quotas.record_response("alice", "app", 10 * MB, is_throttled=False) == (0, True)


def test_a_batch_larger_than_the_quota_of_a_window_is_sent_all_the_same(quotas: ClientQuotas) -> None:
    quotas.follow(carried((QuotaKey.CONSUMER_BYTE_RATE, 1000, {"user": "alice"})))
    assert quotas.record_response("alice", "app", 20_000, is_throttled=False) == (10_000, True)
    assert quotas.record_response("alice", "app", 20_000, is_throttled=False) == (30_000, False)


def test_a_fetch_reads_no_more_than_a_window_allows(quotas: ClientQuotas) -> None:
    quotas.follow(carried((QuotaKey.CONSUMER_BYTE_RATE, 1000, {"user": "alice"})))
    assert quotas.fetch_bytes_max("alice", "app") == 10_000
    assert quotas.fetch_bytes_max("bob", "app") == 2**31 - 1


def test_the_time_of_requests_throttles_for_a_sample_at_most(quotas: ClientQuotas, clock: ManualClock) -> None:
    quotas.follow(carried((QuotaKey.REQUEST_PERCENTAGE, 10, {"user": "alice"})))
    assert quotas.record_time("alice", "app", 1.0) == 0
    assert quotas.record_time("alice", "app", 0.05) == 500
    assert quotas.record_time("alice", "app", 9.0) == 1000
    clock.advance(11_000)
    assert quotas.record_time("alice", "app", 0.5) == 0


def test_a_client_that_is_silent_for_an_hour_is_forgotten(quotas: ClientQuotas, clock: ManualClock) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": None})))
    quotas.record_bytes(PRODUCE, "alice", "app", 1)
    clock.advance(3_600_000)
    quotas.record_bytes(PRODUCE, "bob", "app", 1)
    assert [measured.user for measured in quotas.recently_measured(10)] == ["bob"]


def test_clients_that_invent_names_do_not_fill_the_memory(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, 1, {"client-id": None})))
    for number in range(MEASURED_MAX + 100):
        quotas.record_bytes(PRODUCE, "alice", f"app-{number}", 1)
    measured = list(quotas.recently_measured(2 * MEASURED_MAX))
    assert len(measured) == MEASURED_MAX
    assert measured[0].client_id == f"app-{MEASURED_MAX + 99}"


def test_a_shared_quota_is_not_forgotten_for_new_names(quotas: ClientQuotas) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": "alice"}), (PRODUCE, 1, {"client-id": None})))
    quotas.record_bytes(PRODUCE, "alice", "app", 10 * MB)
    for number in range(MEASURED_MAX + 100):
        quotas.record_bytes(PRODUCE, "bob", f"app-{number}", 1)
        if number % 1000 == 0:
            quotas.record_bytes(PRODUCE, "alice", f"app-{number}", 0)
    assert quotas.record_bytes(PRODUCE, "alice", "app", MB) == 1000


def test_the_mean_throttle_time_is_that_of_throttled_responses(quotas: ClientQuotas, clock: ManualClock) -> None:
    quotas.follow(carried((PRODUCE, MB, {"user": "alice"})))
    for size in (10 * MB, MB, 2 * MB):
        quotas.record_bytes(PRODUCE, "alice", "app", size)
    (measured,) = quotas.recently_measured(10)
    assert measured.mean_throttle_ms(clock.monotonic()) == (1000 + 3000) / 2
    clock.advance(11_000)
    assert measured.mean_throttle_ms(clock.monotonic()) == 0


# --- changes of topics ------------------------------------------------------------------------------------------------


def mutations(quotas: ClientQuotas, *, is_strict: bool) -> MutationQuota:
    return quotas.mutations("alice", "app", is_strict=is_strict)


def is_refused(quota: MutationQuota, topic: str, partitions: int) -> bool:
    try:
        quota.charge(topic, partitions)
    except BrokerError as error:
        return error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return False


@pytest.fixture
def mutating(quotas: ClientQuotas) -> ClientQuotas:
    """Five partitions per second, so that 55 may come at once."""
    quotas.follow(carried((QuotaKey.CONTROLLER_MUTATION_RATE, 5, {"user": "alice"})))
    return quotas


def test_one_burst_of_any_size_is_executed_and_the_next_topic_is_refused(mutating: ClientQuotas) -> None:
    quota = mutations(mutating, is_strict=True)
    assert [is_refused(quota, topic, 60) for topic in ("a", "b")] == [False, True]
    assert quota.throttle_ms == 1000


def test_a_refused_client_may_continue_after_the_throttle_time(mutating: ClientQuotas, clock: ManualClock) -> None:
    mutations(mutating, is_strict=True).charge("a", 60)
    clock.advance(999)
    assert is_refused(mutations(mutating, is_strict=True), "b", 1)
    clock.advance(1)
    assert not is_refused(mutations(mutating, is_strict=True), "b", 1)


def test_a_strict_request_that_is_executed_is_not_throttled(mutating: ClientQuotas) -> None:
    quota = mutations(mutating, is_strict=True)
    quota.charge("a", 1000)
    assert quota.throttle_ms == 0


def test_an_old_client_is_throttled_and_never_refused(mutating: ClientQuotas, clock: ManualClock) -> None:
    quota = mutations(mutating, is_strict=False)
    assert not is_refused(quota, "a", 60)
    assert not is_refused(quota, "b", 5)
    assert quota.throttle_ms == 2000
    clock.advance(500)
    assert quota.throttle_ms == 1500


def test_a_topic_that_is_planned_again_is_charged_once(mutating: ClientQuotas) -> None:
    quota = mutations(mutating, is_strict=True)
    for _ in range(3):
        assert not is_refused(quota, "a", 55)
    assert not is_refused(quota, "b", 10)
    for _ in range(3):
        assert is_refused(quota, "c", 1)


def test_without_a_quota_everything_may_change(quotas: ClientQuotas) -> None:
    for quota in (mutations(quotas, is_strict=True), UNLIMITED):
        quota.charge("a", 1 << 30)
        quota.charge("b", 1)
        assert quota.throttle_ms == 0


def test_the_controller_has_a_window_of_its_own(clock: ManualClock) -> None:
    quotas = ClientQuotas(clock, controller_window=Window(samples=2, sample_seconds=3))
    quotas.follow(carried((QuotaKey.CONTROLLER_MUTATION_RATE, 10, {"user": "alice"})))
    quota = mutations(quotas, is_strict=False)
    quota.charge("a", 60)
    assert quota.throttle_ms == 0
    quota.charge("b", 10)
    assert quota.throttle_ms == 1000
