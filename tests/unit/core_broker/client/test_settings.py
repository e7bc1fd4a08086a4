from core_broker.client.settings import ClientSettings


def test_what_the_user_says_wins_over_what_a_caller_needs() -> None:
    settings = ClientSettings(bootstrap_servers="h:1", properties={"linger.ms": "9", "security.protocol": "SSL"})
    assert settings.configuration({"linger.ms": 5, "acks": "all"}) == {
        "bootstrap.servers": "h:1",
        "client.id": "caudal",
        "socket.timeout.ms": 15_000,
        "linger.ms": "9",
        "acks": "all",
        "security.protocol": "SSL",
    }
