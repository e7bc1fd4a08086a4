"""Keys of an identity provider: which are read, from where, and when again."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from core_broker.security.sasl.jwks import Fetch, JsonWebKeys, KeysUnavailable, RefreshTimes, fetcher, parse_keys
from core_broker.service.clock import ManualClock
from tests.support.sasl_world import key_set, signing_key

OLD, NEW = signing_key("old"), signing_key("new", "ES256")
AT_ONCE = RefreshTimes(interval_seconds=3600, retry_seconds=0.001, retry_seconds_max=0.002, gap_seconds=0)


class Provider:
    """An identity provider that counts how often it is asked."""

    def __init__(self, *answers: bytes | str) -> None:
        self.answers = list(answers)
        self.asked = asyncio.Semaphore(0)
        self.count = 0

    async def fetch(self) -> bytes:
        """The next answer, the last one again and again; text is a failure."""
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.count += 1
        self.asked.release()
        if isinstance(answer, str):
            raise KeysUnavailable(answer)
        return answer


def keys_of(fetch: Fetch, clock: ManualClock | None = None) -> JsonWebKeys:
    return JsonWebKeys("https://id/keys", clock or ManualClock(), AT_ONCE, fetch=fetch)


@asynccontextmanager
async def refreshing(keys: JsonWebKeys) -> AsyncIterator[None]:
    task = asyncio.create_task(keys.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def entry(key: RSAKey | ECKey | OctKey, **changes: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **changes}


def parsed(*entries: object) -> dict[str, RSAKey | ECKey]:
    return parse_keys(json.dumps({"keys": entries}).encode())[0]


def test_keys_are_found_by_their_ids() -> None:
    named, nameless = parse_keys(key_set(OLD, NEW))
    assert set(named) == {"old", "new"}
    assert nameless == ()


def test_a_shared_secret_is_never_a_key() -> None:
    """Algorithm confusion: a set that mixes kinds must not make an HMAC possible."""
    secret = OctKey.generate_key(256, {"kid": "secret"})
    assert set(parsed(secret.as_dict(private=True), entry(OLD))) == {"old"}


def test_the_private_part_of_a_key_is_not_read() -> None:
    found = parsed(OLD.as_dict(private=True))["old"]
    assert not found.is_private


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        {},
        {"kty": "RSA", "kid": "x"},
        {"kty": "RSA", "kid": "x", "n": "*" * 342, "e": "AQAB"},
        {"kty": "EC", "kid": "x", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "EC", "kid": "x", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": 5, "kid": []},
        entry(OLD, use="enc", kid="x"),
        {"kty": "RSA", "kid": "x", "n": "v" * 171, "e": "AQAB"},
    ],
    ids=["text", "empty", "half", "no base64", "curve", "no point", "types", "encryption", "1024 bits"],
)
def test_what_is_no_key_for_signatures_is_left_out(wrong: object) -> None:
    assert set(parsed(wrong, entry(OLD))) == {"old"}


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys":5}', b'{"keys":[]}', b"\xff", b"[" * 100_000])
def test_a_set_without_keys_is_an_error(data: bytes) -> None:
    with pytest.raises(KeysUnavailable):
        parse_keys(data)


def test_a_set_with_very_many_keys_is_an_error() -> None:
    with pytest.raises(KeysUnavailable, match="at most 200"):
        parsed(*[{}] * 201)


async def test_without_an_id_the_only_key_is_meant() -> None:
    nameless = {name: value for name, value in entry(OLD).items() if name != "kid"}
    keys = keys_of(Provider(json.dumps({"keys": [nameless]}).encode()).fetch)
    await keys.load()
    assert keys.find(None) is not None
    keys = keys_of(Provider(key_set(OLD, NEW)).fetch)
    await keys.load()
    assert keys.find(None) is None


async def test_an_unknown_key_causes_a_refresh() -> None:
    provider = Provider(key_set(OLD), key_set(OLD, NEW))
    keys = keys_of(provider.fetch)
    async with refreshing(keys):
        await provider.asked.acquire()
        await _idle()
        assert keys.find("old") is not None
        assert keys.find("new") is None
        await provider.asked.acquire()
        await _idle()
        assert keys.find("new") is not None


async def test_the_same_unknown_key_causes_one_refresh_a_minute() -> None:
    clock = ManualClock()
    provider = Provider(key_set(OLD))
    keys = keys_of(provider.fetch, clock)
    async with refreshing(keys):
        await provider.asked.acquire()
        await _idle()
        for expected in (2, 3):
            for _ in range(5):
                keys.find("invented")
                await _idle()
            assert provider.count == expected
            clock.advance(60_000)
        keys.find("x" * 1001)
        await _idle()
        assert provider.count == 3


async def test_a_key_that_is_missed_during_a_refresh_causes_another_one() -> None:
    """The provider may have sent its answer before it had the key."""
    provider = Provider(key_set(OLD), key_set(OLD, NEW))
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def fetch() -> bytes:
        found = await provider.fetch()
        reading.set()
        await go_on.wait()
        return found

    keys = keys_of(fetch)
    async with asyncio.timeout(10), refreshing(keys):
        await reading.wait()
        assert keys.find("new") is None
        go_on.set()
        assert await keys.refreshed()
        assert keys.find("new") is not None


async def test_a_wait_for_keys_ends_with_the_refresh_even_if_it_fails() -> None:
    provider = Provider(key_set(OLD), "out of order", key_set(OLD))
    keys = keys_of(provider.fetch)
    async with asyncio.timeout(10), refreshing(keys):
        await provider.asked.acquire()
        await _idle()
        assert keys.find("new") is None
        assert await keys.refreshed()
        assert keys.find("new") is None


async def test_nothing_is_waited_for_where_no_refresh_is_coming() -> None:
    keys = keys_of(Provider(key_set(OLD)).fetch)
    assert not await keys.refreshed()


async def test_keys_are_kept_when_a_refresh_fails() -> None:
    provider = Provider(key_set(OLD), "out of order", "out of order", key_set(NEW))
    keys = keys_of(provider.fetch)
    async with refreshing(keys):
        await provider.asked.acquire()
        await _idle()
        keys.find("unknown")
        await provider.asked.acquire()
        assert keys.find("old") is not None
        for _ in range(2):
            await provider.asked.acquire()
        await _idle()
        assert keys.find("new") is not None
        assert keys.find("old") is None


async def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys with space.json"
    file.write_bytes(key_set(OLD))
    keys = JsonWebKeys(file.as_uri(), ManualClock(), AT_ONCE)
    assert keys.is_required_at_start
    await keys.load()
    assert keys.find("old") is not None


async def test_a_file_must_be_there_and_small(tmp_path: Path) -> None:
    with pytest.raises(KeysUnavailable, match="No such file"):
        await fetcher((tmp_path / "missing").as_uri())()
    (tmp_path / "large").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(KeysUnavailable, match="larger than"):
        await fetcher((tmp_path / "large").as_uri())()


class Site(asyncio.Protocol):
    """A web server with one answer."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(self.answer)
        self.transport.close()


@asynccontextmanager
async def site(answer: bytes) -> AsyncIterator[str]:
    server = await asyncio.get_running_loop().create_server(lambda: Site(answer), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"


async def test_keys_are_read_over_http() -> None:
    body = key_set(OLD)
    async with site(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)) as url:
        assert await fetcher(url)() == body


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * ((1 << 20) + 1), "larger than"),
        (b"no HTTP", "Error"),
    ],
    ids=["missing", "redirected", "large", "no http"],
)
async def test_an_answer_that_is_no_key_set_is_an_error(answer: bytes, reason: str) -> None:
    """CVE-2025-27817: a redirection must not lead anywhere else."""
    async with site(answer) as url:
        with pytest.raises(KeysUnavailable, match=reason):
            await fetcher(url)()


async def _idle() -> None:
    """Let the refresh do what it can."""
    for _ in range(50):
        await asyncio.sleep(0)
