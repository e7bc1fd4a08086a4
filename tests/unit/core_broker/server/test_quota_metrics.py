"""Metrics of client quotas, with a bounded number of labels."""

from core_broker.protocol.stored.metadata import ClientQuotaRecord, EntityData
from core_broker.security.quota_limits import QuotaKey
from core_broker.security.quotas import ClientQuotas
from core_broker.server.quota_metrics import CLIENTS_MAX, quota_families
from core_broker.service.clock import ManualClock

MB = 1_000_000


def quotas_of(clock: ManualClock, *limits: tuple[QuotaKey, float, str, str | None]) -> ClientQuotas:
    quotas = ClientQuotas(clock)
    quotas.follow(
        {
            ("quota", number): ClientQuotaRecord(entity=[EntityData(kind, name)], key=key, value=value)
            for number, (key, value, kind, name) in enumerate(limits)
        }
    )
    return quotas


def samples(quotas: ClientQuotas, clock: ManualClock, name: str) -> dict[tuple[str, ...], float]:
    found = {family.name: family for family in quota_families(quotas, clock)}
    return dict(found[f"kafka_server_quota_{name}"].samples)


def test_each_measured_client_has_its_use_and_its_throttle_time() -> None:
    clock = ManualClock()
    quotas = quotas_of(
        clock,
        (QuotaKey.PRODUCER_BYTE_RATE, MB, "user", "al ice"),
        (QuotaKey.REQUEST_PERCENTAGE, 50, "client-id", "app"),
        (QuotaKey.CONTROLLER_MUTATION_RATE, 1, "client-id", "app"),
    )
    quotas.record_bytes(QuotaKey.PRODUCER_BYTE_RATE, "al ice", "app", 20 * MB)
    quotas.record_time("al ice", "app", 1.0)
    quotas.mutations("al ice", "app", is_strict=True).charge("t", 20)
    producer, app = ("Produce", "al%20ice", ""), ("Request", "", "app")
    assert samples(quotas, clock, "byte_rate") == {producer: 2 * MB}
    assert samples(quotas, clock, "request_time") == {app: 10}
    assert samples(quotas, clock, "mutation_rate") == {("ControllerMutation", "", "app"): 2}
    assert samples(quotas, clock, "throttle_time")[producer] == 10_000
    assert samples(quotas, clock, "throttle_time")[app] == 0


def test_only_the_most_recent_clients_have_metrics() -> None:
    clock = ManualClock()
    quotas = quotas_of(clock, (QuotaKey.PRODUCER_BYTE_RATE, MB, "client-id", None))
    for number in range(CLIENTS_MAX + 10):
        quotas.record_bytes(QuotaKey.PRODUCER_BYTE_RATE, "alice", f"app-{number}", 1)
    found = samples(quotas, clock, "byte_rate")
    assert len(found) == CLIENTS_MAX
    assert ("Produce", "", f"app-{CLIENTS_MAX + 9}") in found


def test_the_time_of_exempt_requests_has_a_metric_of_its_own() -> None:
    clock = ManualClock()
    quotas = quotas_of(clock)
    quotas.record_exempt_time(1.0)
    (family,) = (f for f in quota_families(quotas, clock) if f.name == "kafka_server_request_exempt_request_time")
    assert family.samples == [((), 10)]
