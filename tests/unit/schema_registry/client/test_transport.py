import base64
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from schema_registry.client import errors
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.client.transport import Transport
from tests.support.patience import PATIENCE_S
from tests.support.scripted_http import ScriptedHttp

OK = (200, b"{}")
NOT_FOUND = (404, b'{"error_code":40401,"message":"Subject \'s\' not found."}')
BROKEN = (500, b'{"error_code":50001,"message":"Error in the backend data store"}')


def _closed_url() -> str:
    """An address without a listener."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def _transport(*urls: str, **settings: object) -> Iterator[Transport]:
    properties = {"url": ",".join(urls), "retries.wait.ms": 1, "max.retries": 2, **settings}
    transport = Transport(RegistryClientSettings.parse(properties))
    try:
        yield transport
    finally:
        transport.close()


def test_the_next_address_is_tried_and_then_kept() -> None:
    with ScriptedHttp(OK) as server, _transport(_closed_url(), server.url) as transport:
        assert transport.send("GET", "/a") == b"{}"
        assert transport._first == 1
        assert transport.send("GET", "/b") == b"{}"
        assert server.targets == ["GET /a", "GET /b"]


def test_server_errors_are_answered_by_the_next_address() -> None:
    with ScriptedHttp(BROKEN) as bad, ScriptedHttp(OK) as good, _transport(bad.url, good.url) as transport:
        transport.send("GET", "/")
        assert (len(bad.requests), len(good.requests)) == (1, 1)


@pytest.mark.parametrize("failure", [BROKEN, (429, b""), (503, b"<html>"), None])
def test_what_may_pass_is_tried_again(failure: tuple[int, bytes] | None) -> None:
    with ScriptedHttp(failure, failure, OK) as server, _transport(server.url) as transport:
        assert transport.send("POST", "/subjects/s", body={}) == b"{}"
        assert len(server.requests) == 3


def test_patience_has_an_end() -> None:
    with ScriptedHttp(BROKEN) as server, _transport(server.url) as transport:
        with pytest.raises(errors.RegistryUnreachable, match="backend data store") as failure:
            transport.send("GET", "/")
        assert (len(server.requests), failure.value.code, failure.value.retriable) == (3, 50001, True)


@pytest.mark.parametrize("failure", [BROKEN, None])
def test_a_delete_that_may_have_happened_is_not_repeated(failure: tuple[int, bytes] | None) -> None:
    with ScriptedHttp(failure) as server, _transport(server.url) as transport:
        with pytest.raises(errors.RegistryUnreachable):
            transport.send("DELETE", "/subjects/s", repeatable=False)
        assert len(server.requests) == 1


def test_a_delete_that_never_left_goes_to_the_next_address() -> None:
    with ScriptedHttp((200, b"[1]")) as server, _transport(_closed_url(), server.url) as transport:
        assert transport.send("DELETE", "/subjects/s", repeatable=False) == b"[1]"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (NOT_FOUND, errors.SchemaNotFound, 40401),
        ((404, b"not json"), errors.SchemaNotFound, 404),
        ((409, b'{"error_code":40901,"message":"no"}'), errors.IncompatibleSchema, 40901),
        ((422, b'{"error_code":42201,"message":"bad"}'), errors.Refused, 42201),
        ((401, b""), errors.NotAllowed, 401),
        ((403, b'{"error_code":40301,"message":"no"}'), errors.NotAllowed, 40301),
        ((302, b""), errors.Refused, 302),
        ((418, b'["odd"]'), errors.Refused, 418),
    ],
)
def test_refusals_are_raised_by_kind_and_not_retried(
    answer: tuple[int, bytes], kind: type[errors.ClientError], code: int
) -> None:
    with ScriptedHttp(answer) as server, _transport(server.url) as transport:
        with pytest.raises(kind) as refusal:
            transport.send("GET", "/")
        assert (refusal.value.code, len(server.requests)) == (code, 1)


def test_a_registry_that_does_not_answer_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        with _transport(url, **{"request.timeout.ms": 50, "max.retries": 0}) as transport:
            begun = time.monotonic()
            with pytest.raises(errors.RegistryUnreachable, match=url):
                transport.send("GET", "/")
            assert time.monotonic() - begun < PATIENCE_S


def test_basic_credentials_are_sent() -> None:
    with ScriptedHttp(OK) as server, _transport(server.url, **{"basic.auth.user.info": "ann:p:w"}) as transport:
        transport.send("GET", "/")
        assert server.requests[0].headers["Authorization"] == f"Basic {base64.b64encode(b'ann:p:w').decode()}"


def test_tokens_and_cloud_headers_are_sent() -> None:
    settings = {"bearer.auth.token": "abc", "bearer.auth.logical.cluster": "lsrc-1"}
    with ScriptedHttp(OK) as server, _transport(server.url, **settings) as transport:
        transport.send("GET", "/")
        headers = {name.lower(): value for name, value in server.requests[0].headers.items()}
        assert (headers["authorization"], headers["target-sr-cluster"]) == ("Bearer abc", "lsrc-1")


def test_bodies_are_json_and_only_true_flags_are_sent() -> None:
    with ScriptedHttp(OK) as server, _transport(server.url) as transport:
        transport.send("POST", "/x", body={"schema": "é"}, query={"normalize": True, "deleted": False, "limit": 3})
        request = server.requests[0]
        assert request.target == "/x?normalize=true&limit=3"
        assert request.body == '{"schema":"é"}'.encode()
        assert request.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"


def test_environment_proxies_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", _closed_url())
    monkeypatch.setenv("ALL_PROXY", _closed_url())
    with ScriptedHttp(OK) as server, _transport(server.url) as transport:
        assert transport.send("GET", "/") == b"{}"
