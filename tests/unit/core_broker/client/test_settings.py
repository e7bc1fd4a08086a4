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


def test_a_token_is_asked_for_when_it_is_needed_and_never_shown() -> None:
    given = [("first", 1.0), ("second", 2.0)]
    settings = ClientSettings(token=lambda: given.pop(0))
    callback = settings.configuration()["oauth_cb"]
    assert [callback(""), callback("")] == [("first", 1.0), ("second", 2.0)]
    assert "token" not in repr(settings)
