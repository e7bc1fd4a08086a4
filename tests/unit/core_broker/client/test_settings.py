import pytest

from core_broker.client.settings import ClientSettings


def test_what_the_user_says_wins_over_what_a_caller_needs() -> None:
    settings = ClientSettings(bootstrap_servers="h:1", properties={"linger.ms": "9", "security.protocol": "SSL"})
    assert settings.configuration({"linger.ms": 5, "acks": "all"}) == {
        "bootstrap.servers": "h:1",
        "client.id": "caudal",
        "api.version.request.timeout.ms": 5_000,
        "socket.timeout.ms": 10_000,
        "linger.ms": "9",
        "acks": "all",
        "security.protocol": "SSL",
    }


@pytest.mark.parametrize(("call_ms", "request_ms"), [(300, 1_000), (3_000, 3_000), (60_000, 10_000)])
def test_a_silent_broker_is_not_waited_for_longer_than_others_need_to_replace_it(call_ms: int, request_ms: int) -> None:
    assert ClientSettings(timeout_ms=call_ms).configuration()["socket.timeout.ms"] == request_ms
