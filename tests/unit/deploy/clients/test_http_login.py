import base64

import pytest

from deploy.clients.http_login import HttpLogin

SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "ann"}
PASSWORD = {**SCRAM, "sasl.password": "hush:hush"}
LOCAL, REMOTE = "http://localhost:8081", "http://registry.example:8081"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_of_the_cluster_become_basic(mechanism: str) -> None:
    sent = HttpLogin(properties={**PASSWORD, "sasl.mechanisms": mechanism}).authorization("https://registry.example")
    assert sent is not None
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ann:hush:hush"


def test_a_password_goes_over_https_or_to_this_machine_unless_the_user_insists() -> None:
    login = HttpLogin(properties=PASSWORD)
    assert login.authorization(LOCAL) is not None
    assert login.authorization("http://[::1]:8081") is not None
    assert login.authorization(REMOTE) is None
    assert login.authorization("http://localhost.example:8081") is None
    assert login.authorization("http://localhost@registry.example:8081") is None
    assert HttpLogin(properties=PASSWORD, insists=True).authorization(REMOTE) is not None


@pytest.mark.parametrize(
    "properties", [{}, {**PASSWORD, "security.protocol": "SSL"}, {**PASSWORD, "sasl.mechanisms": "GSSAPI"}]
)
def test_what_does_not_log_in_at_the_cluster_does_not_here(properties: dict[str, str]) -> None:
    assert HttpLogin(properties=properties).authorization(LOCAL) is None


def test_the_password_is_not_shown() -> None:
    assert "hush" not in repr(HttpLogin(properties=PASSWORD))
