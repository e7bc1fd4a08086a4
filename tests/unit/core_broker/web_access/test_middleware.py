"""The outermost layer: who gets through, what others are told, and how they are counted."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from core_broker.service.clock import ManualClock
from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.errors import envelope
from core_broker.web_access.callers import caller_of
from core_broker.web_access.login import Login
from core_broker.web_access.middleware import with_login
from core_broker.web_access.settings import AccessSettings
from tests.support.web_login import KnownUsers, Received, basic, no_body, scope_of


class App:
    """An application that notes its callers."""

    def __init__(self) -> None:
        self.callers: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.callers.append(str(caller_of(scope).principal) if scope["type"] == "http" else scope["type"])
        if scope["type"] == "http":
            await envelope(200, 0, "ok")(scope, receive, send)


def protected(
    app: Application,
    users: KnownUsers,
    counts: RequestCounts | None = None,
    origins: Sequence[str] = (),
    **values: Any,
) -> Application:
    values = {"authentication_method": ("BASIC", "BEARER"), "authentication_skip_paths": ("/health",), **values}
    login = Login(AccessSettings(**values), ManualClock(), passwords=[users])
    return with_login(app, login, counts=counts, origins=origins)


async def answer(app: Application, *authorization: str, path: str = "/things", **more: Any) -> Received:
    received = Received()
    await app({**scope_of(*authorization, path=path), **more}, no_body, received.send)
    return received


async def test_a_caller_with_a_login_gets_through() -> None:
    app = App()
    assert (await answer(protected(app, KnownUsers()), basic("alice", "secret"))).status == 200
    assert app.callers == ["User:alice"]


async def test_others_are_asked_for_one_in_the_common_form() -> None:
    app = App()
    refused = await answer(protected(app, KnownUsers(), authentication_realm="Shop"))
    assert refused.status == 401
    assert json.loads(refused.body) == {"error_code": 401, "message": "The request needs a login"}
    assert refused.headers("www-authenticate") == ['Basic realm="Shop", charset="UTF-8"', 'Bearer realm="Shop"']
    assert not app.callers


async def test_a_wrong_token_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    from core_broker.web_access.errors import Refused

    async def refuse(*_: object) -> None:
        raise Refused("The token is not valid", token_error="invalid_token")

    monkeypatch.setattr(Login, "identify", refuse)
    refused = await answer(protected(App(), KnownUsers()), "Bearer x")
    assert refused.headers("www-authenticate")[1] == 'Bearer realm="Caudal", error="invalid_token"'


async def test_paths_without_login_are_exact() -> None:
    app = App()
    wrapped = protected(app, KnownUsers())
    assert (await answer(wrapped, path="/health")).status == 200
    assert app.callers == ["User:ANONYMOUS"]
    for path in ("/health/", "//health", "/health/../things", "/healthy", "/%68ealth", "/HEALTH", "/x?/health"):
        assert (await answer(wrapped, path=path)).status == 401, path


async def test_a_path_without_login_does_not_check_one_either() -> None:
    users = KnownUsers()
    assert (await answer(protected(App(), users), basic("alice", "wrong"), path="/health")).status == 200
    assert users.asked == 0


async def test_too_many_failures_and_an_absent_cluster_say_when_to_come_back() -> None:
    users = KnownUsers()
    wrapped = protected(App(), users, authentication_failures_per_minute=1)
    users.is_available = False
    absent = await answer(wrapped, basic("alice", "secret"))
    assert (absent.status, absent.headers("retry-after")) == (503, ["1"])
    users.is_available = True
    assert (await answer(wrapped, basic("alice", "guess"))).status == 401
    limited = await answer(wrapped, basic("alice", "another"))
    assert (limited.status, limited.headers("retry-after")) == (429, ["60"])


async def test_refused_requests_are_counted() -> None:
    counts = RequestCounts("test")
    await answer(protected(App(), KnownUsers(), counts))
    (requests, *_) = counts.families()
    assert requests.samples == [(("GET", "other", "401"), 1)]


async def test_a_client_that_waits_to_send_its_body_is_disconnected() -> None:
    headers = [(b"expect", b"100-continue")]
    assert (await answer(protected(App(), KnownUsers()), headers=headers)).headers("connection") == ["close"]
    assert (await answer(protected(App(), KnownUsers()))).headers("connection") == []


@pytest.mark.parametrize(
    "method,headers,status",
    [
        ("POST", {}, 200),
        ("POST", {"origin": "https://evil.example"}, 403),
        ("DELETE", {"origin": "null"}, 403),
        ("POST", {"origin": "https://test"}, 200),
        ("POST", {"origin": "https://shop.example"}, 200),
        ("POST", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", {"sec-fetch-site": "same-site", "origin": "https://test"}, 403),
        ("POST", {"sec-fetch-site": "same-origin", "origin": "https://behind-a-proxy"}, 200),
        ("POST", {"sec-fetch-site": "cross-site", "origin": "https://shop.example"}, 200),
        ("GET", {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 200),
    ],
)
async def test_a_page_of_another_origin_cannot_use_the_login_of_a_browser(
    method: str, headers: dict[str, str], status: int
) -> None:
    wrapped = protected(App(), KnownUsers(), origins=("https://shop.example",))
    sent = {"host": "test", "authorization": basic("alice", "secret"), **headers}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    assert (await answer(wrapped, method=method, headers=raw)).status == status


def test_without_logins_the_app_is_not_wrapped_at_all() -> None:
    app = App()
    assert with_login(app, Login(AccessSettings(), ManualClock())) is app


async def test_what_is_no_request_is_passed_on() -> None:
    app = App()
    await protected(app, KnownUsers())({"type": "lifespan"}, no_body, Received().send)
    assert app.callers == ["lifespan"]


async def test_a_refusal_of_the_app_itself_says_how_to_log_in_too() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await envelope(401, 40101, "The cluster does not know you")(scope, receive, send)

    refused = await answer(protected(app, KnownUsers(), authentication_realm="Shop"), basic("alice", "secret"))
    assert refused.status == 401
    assert refused.headers("www-authenticate") == ['Basic realm="Shop", charset="UTF-8"', 'Bearer realm="Shop"']
