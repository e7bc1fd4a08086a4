import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core_broker.client.reachability import Reachability
from core_broker.protocol.principals import Principal
from core_broker.service.clock import ManualClock
from core_broker.service.web.asgi import Receive, Scope, Send
from core_broker.web_access.callers import BearerCredentials, Caller, Credentials, PasswordCredentials, set_caller
from rest_proxy.callers.clients import Clients, Shared
from rest_proxy.callers.pool import ClientPool
from rest_proxy.consume.instances.instances import Instances
from rest_proxy.consume.readers import ReaderPool
from rest_proxy.consume.streams import Streams
from rest_proxy.errors import ProxyError
from rest_proxy.formats.codecs import Codecs
from rest_proxy.identity import Identity
from rest_proxy.metrics import ProxyMetrics
from rest_proxy.produce.async_producer import InFlight
from rest_proxy.settings import ProxySettings
from tests.support.web_login import Received, no_body, scope_of

SETTINGS = ProxySettings.parse(
    {
        "bootstrap.servers": "127.0.0.1:1",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.username": "proxy",
        "client.sasl.password": "own secret",
        "authentication.method": "BASIC,BEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "https://id.example/keys",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "caller.clients.max": "2",
        "caller.clients.idle.timeout.ms": "100",
        "state.dir": "",
    }
)


class Pool(ClientPool):
    """A pool in front of no cluster, with a clock of its own."""

    def __init__(self, readers: ReaderPool) -> None:
        reachability = Reachability(SETTINGS.kafka())
        self.clock = ManualClock(1_000_000)
        self.shared = Shared(
            settings=SETTINGS,
            metrics=ProxyMetrics(),
            reachability=reachability,
            codecs=Codecs(SETTINGS.registry()),
            in_flight=InFlight(),
            readers=readers,
            streams=Streams(readers, limit=1, heartbeat_ms=1000),
            instances=Instances(SETTINGS, reachability=reachability),
        )
        self.own = Clients(Identity(SETTINGS), self.shared)
        super().__init__(self.own, self.shared, clock=self.clock)


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with ReaderPool(SETTINGS) as readers:
        made = Pool(readers)
        yield made
        await made.close()


def caller(name: str, credentials: Credentials | None) -> Caller:
    return Caller(Principal("User", name), "10.0.0.1", credentials)


def with_password(name: str, password: str = "secret") -> Caller:
    return caller(name, PasswordCredentials(name, password))


def with_token(name: str, expires_at_ms: int) -> Caller:
    return caller(name, BearerCredentials(f"token until {expires_at_ms}", expires_at_ms))


def used(pool: Pool, who: Caller) -> Clients:
    """The clients of a request that has ended."""
    entry = pool.acquire(who)
    pool.release(entry)
    return entry.clients


async def test_a_caller_meets_its_own_clients_again_and_no_others(pool: Pool) -> None:
    alice = used(pool, with_password("alice"))
    assert used(pool, with_password("alice")) is alice
    assert alice.identity.owner == "User:alice"
    assert dict(alice.identity.kafka().properties)["sasl.username"] == "alice"
    assert used(pool, with_password("bob")) is not alice


async def test_another_password_has_other_clients(pool: Pool) -> None:
    old = used(pool, with_password("alice", "old"))
    new = used(pool, with_password("alice", "new"))
    assert new is not old
    assert dict(new.identity.kafka().properties)["sasl.password"] == "new"
    assert pool.count == 2


async def test_a_newer_token_takes_the_place_of_an_older_one(pool: Pool) -> None:
    first = used(pool, with_token("alice", 2_000_000))
    assert used(pool, with_token("alice", 3_000_000)) is first
    assert used(pool, with_token("alice", 2_500_000)) is first
    token = first.identity.kafka().token
    assert token is not None
    assert token() == ("token until 3000000", 3000.0)
    assert used(pool, with_token("bob", 3_000_000)) is not first


async def test_clients_are_closed_with_the_last_token(pool: Pool) -> None:
    entry = pool.acquire(with_token("alice", 1_000_050))
    pool.clock.advance(60)
    assert entry.identity.has_expired
    assert pool.count == 1, "a request still uses them"
    pool.release(entry)
    await asyncio.sleep(0.01)
    assert pool.count == 0


async def test_idle_clients_make_room_and_used_ones_do_not(pool: Pool) -> None:
    alice = pool.acquire(with_password("alice"))
    used(pool, with_password("bob"))
    carol = pool.acquire(with_password("carol"))
    assert pool.count == 2
    with pytest.raises(ProxyError, match=r"caller\.clients\.max") as caught:
        pool.acquire(with_password("dave"))
    assert (caught.value.status, caught.value.retry_after_seconds) == (429, 1)
    assert pool.acquire(with_password("alice")) is alice
    pool.release(carol)
    assert pool.acquire(with_password("dave")).clients.identity.owner == "User:dave"


async def test_clients_that_stay_idle_are_closed(pool: Pool) -> None:
    used(pool, with_password("alice"))
    async with asyncio.timeout(30):
        while pool.count:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def test_an_identity_lives_as_long_as_something_uses_it(pool: Pool) -> None:
    identity = used(pool, with_password("alice")).identity
    for name in ("bob", "carol"):
        used(pool, with_password(name))
    assert used(pool, with_password("alice")).identity is identity


@pytest.mark.parametrize(
    ("who", "status", "code"), [(caller("alice", None), 403, 40301), (Caller(), 401, 401)], ids=["certificate", "none"]
)
async def test_callers_without_a_password_or_token_get_no_clients(
    pool: Pool, who: Caller, status: int, code: int
) -> None:
    with pytest.raises(ProxyError) as caught:
        pool.acquire(who)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert pool.count == 0


async def test_a_request_takes_clients_when_it_needs_them_and_keeps_them_to_its_end(pool: Pool) -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(pool.count)
        seen.append(pool.of(scope))
        assert pool.of(scope) is seen[1]
        with pytest.raises(ProxyError):
            for name in ("bob", "carol"):
                pool.acquire(with_password(name))

    scope = scope_of()
    set_caller(scope, with_password("alice"))
    await pool.around(app)(scope, no_body, Received().send)
    assert seen[0] == 0
    assert seen[1].identity.owner == "User:alice"
    assert used(pool, with_password("dave")) is not pool.own


async def test_without_logins_there_is_one_set_of_clients(pool: Pool) -> None:
    assert pool.of(scope_of()) is pool.own
