import base64
import json
from collections.abc import Iterator

import pytest

from core_broker.client import oauth
from core_broker.client.errors import NotAllowed, Rejected, Unreachable
from core_broker.client.oauth import fetch_token, is_this_machine
from tests.support.scripted_http import ScriptedHttp


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    oauth._kept.clear()


def properties(url: str, secret: str = "hush") -> dict[str, str]:
    names = {"token.endpoint.url": f"{url}/token", "client.id": "shop", "client.secret": secret, "scope": "kafka"}
    return {f"sasl.oauthbearer.{name}": value for name, value in names.items()}


def answer(token: str, **more: object) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, **more}).encode()


def test_a_token_is_asked_for_with_the_clients_id_and_secret() -> None:
    with ScriptedHttp(answer("t", expires_in=300)) as provider:
        assert fetch_token(properties(provider.url, secret="h:ü")) == "t"
        (request,) = provider.requests
    assert (request.method, request.target) == ("POST", "/token")
    assert request.body == b"grant_type=client_credentials&scope=kafka"
    assert base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"shop:h%3A%C3%BC"


def test_a_token_is_used_again_until_half_its_life_is_over() -> None:
    with ScriptedHttp(answer("first", expires_in=300), answer("second")) as provider:
        assert [fetch_token(properties(provider.url)) for _ in range(2)] == ["first", "first"]
    oauth._kept.clear()
    with ScriptedHttp(answer("short", expires_in=-1), answer("next")) as provider:
        assert [fetch_token(properties(provider.url)) for _ in range(2)] == ["short", "next"]


def test_a_refusal_says_why_and_not_the_secret() -> None:
    with (
        ScriptedHttp((401, b'{"error": "invalid_client", "error_description": "no such client"}')) as provider,
        pytest.raises(NotAllowed, match="HTTP 401 no such client") as raised,
    ):
        fetch_token(properties(provider.url))
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "status"), [(b"{}", 200), (b"nonsense", 200), (b'{"access_token": 7}', 200), (b"[]", 503)]
)
def test_an_answer_without_a_token_is_an_error(content: bytes, status: int) -> None:
    with ScriptedHttp((status, content)) as provider, pytest.raises((Rejected, NotAllowed)):
        fetch_token(properties(provider.url))


def test_the_secret_does_not_go_to_another_machine_without_tls() -> None:
    with pytest.raises(Rejected, match="must be https"):
        fetch_token(properties("http://id.example"))


def test_silence_is_no_refusal() -> None:
    with ScriptedHttp(None) as provider, pytest.raises(Unreachable):
        fetch_token(properties(provider.url))


def test_this_machine_is_known_by_its_names() -> None:
    assert [host for host in ("localhost", "127.0.0.1", "::1", "127.9.9.9") if not is_this_machine(host)] == []
    assert [host for host in ("example.org", "10.0.0.1", "", None, "localhost.example") if is_this_machine(host)] == []
