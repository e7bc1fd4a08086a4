"""The public keys of an identity provider (JWKS, RFC 7517), from a file or a URL of the settings.

They are read again from time to time, and when a token names a key that is not known. Keys that were read are kept when
a refresh fails. A token that causes a refresh waits for it, at a broker as at an HTTP service: the identity provider
may just have begun to use the key, and many clients take a refusal for an answer.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from typing_extensions import override

from core_broker.security.sasl.jwt import KeySource, PublicKey
from core_broker.service.clock import Clock
from core_broker.settings.sasl import TokenSettings

log = logging.getLogger(__name__)

SCHEMES: Final = ("https", "http", "file")
_BYTES_MAX: Final = 1 << 20
_SECONDS_MAX: Final = 10.0
_KEYS_MAX: Final = 200
_RSA_BITS: Final = range(2048, 8193 + 12)
_BITS_PER_CHARACTER: Final = 6
_CURVES: Final = ("P-256", "P-384", "P-521")
_UNKNOWN_KEPT_MAX: Final = 16
_UNKNOWN_INTERVAL_SECONDS: Final = 60.0
_KEY_ID_LENGTH_MAX: Final = 1000
_WAITING_MAX: Final = 1000
_WAITING_SECONDS_MAX: Final = 5.0
_FIELDS: Final = ("kty", "kid", "alg", "n", "e", "crv", "x", "y")
"""What is read of a key; the private part, should there be one, is not."""

Fetch = Callable[[], Awaitable[bytes]]


class KeysUnavailable(Exception):
    """The keys cannot be read; the message says why."""


class RefreshTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When keys are read again."""

    interval_seconds: float = 3600.0
    retry_seconds: float = 0.1
    """The pause after a failure, doubled after each further one."""
    retry_seconds_max: float = 10.0
    gap_seconds: float = 1.0
    """The shortest pause after keys were read, however many tokens name unknown keys."""


def times_of(settings: TokenSettings) -> RefreshTimes:
    """The times of these settings."""
    return RefreshTimes(
        interval_seconds=settings.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000,
        retry_seconds=settings.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms / 1000,
        retry_seconds_max=settings.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms / 1000,
    )


class JsonWebKeys(KeySource):
    """The keys at one place."""

    def __init__(self, url: str, clock: Clock, times: RefreshTimes, *, fetch: Fetch | None = None) -> None:
        self.url = url
        self._clock = clock
        self._times = times
        self._fetch = fetch or fetcher(url)
        self._keys: Mapping[str, PublicKey] = {}
        self._nameless: tuple[PublicKey, ...] = ()
        self._wanted = asyncio.Event()
        self._begun = self._ended = 0
        """How many refreshes have begun, and how many have ended."""
        self._has_ended = asyncio.Event()
        """Set when another refresh has ended."""
        self._waiting = 0
        self.generation = 0
        """How often keys were read: others may be found after each time."""
        self._unknown: OrderedDict[str, float] = OrderedDict()
        """Ids that were not found, and when they last caused a refresh."""

    @property
    def is_required_at_start(self) -> bool:
        """Whether a broker must not start without these keys: a file of this machine is there or is an error."""
        return urlsplit(self.url).scheme == "file"

    @override
    def find(self, key_id: str | None) -> PublicKey | None:
        if key_id is None:
            everything = (*self._keys.values(), *self._nameless)
            return everything[0] if len(everything) == 1 else None
        found = self._keys.get(key_id)
        if found is None:
            self._look_for(key_id)
        return found

    async def load(self) -> None:
        """Read the keys now. Raises KeysUnavailable, and the former keys remain."""
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                data = await self._fetch()
        except TimeoutError:
            raise KeysUnavailable(f"{self.url} did not answer within {_SECONDS_MAX:.0f} s") from None
        self._keys, self._nameless = parse_keys(data)
        self.generation += 1
        log.info("keys of OAUTHBEARER read", extra={"url": self.url, "keys": len(self._keys) + len(self._nameless)})

    async def run(self) -> None:
        """Read the keys again and again."""
        failures = 0
        while True:
            self._wanted.clear()  # before the keys are read: who asks from now on may need newer ones
            self._begun += 1
            try:
                await self.load()
                failures = 0
                pause = self._times.interval_seconds
            except KeysUnavailable as error:
                log.warning("keys of OAUTHBEARER cannot be read", extra={"url": self.url, "reason": str(error)})
                pause = min(self._times.retry_seconds * 2 ** min(failures, 30), self._times.retry_seconds_max)
                failures += 1
            self._ended = self._begun
            self._has_ended.set()
            self._has_ended = asyncio.Event()
            await self._wait(pause)

    async def refreshed(self) -> bool:
        """Wait for the refresh that an unknown key has caused; False if none is coming, or too many wait already."""
        needed = self._begun + 1 if self._wanted.is_set() else self._begun
        if self._ended >= needed or self._waiting >= _WAITING_MAX:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(_WAITING_SECONDS_MAX):
                while self._ended < needed:
                    await self._has_ended.wait()
                return True
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1

    async def _wait(self, seconds: float) -> None:
        """Wait for the time of the next refresh, or for a token with an unknown key."""
        await asyncio.sleep(min(self._times.gap_seconds, seconds))
        try:
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
        except TimeoutError:
            pass

    def _look_for(self, key_id: str) -> None:
        """Refresh because of an unknown key, but seldom: any client can send tokens with invented ids."""
        if len(key_id) > _KEY_ID_LENGTH_MAX:
            return
        now = self._clock.monotonic()
        since = self._unknown.get(key_id)
        if since is not None and now - since < _UNKNOWN_INTERVAL_SECONDS:
            return
        self._unknown[key_id] = now
        self._unknown.move_to_end(key_id)
        if len(self._unknown) > _UNKNOWN_KEPT_MAX:
            self._unknown.popitem(last=False)
        self._wanted.set()


def parse_keys(data: bytes) -> tuple[dict[str, PublicKey], tuple[PublicKey, ...]]:
    """The keys of a set that can check signatures: those with an id, and the others. Raises KeysUnavailable."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise KeysUnavailable("the key set is not JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list) or len(entries) > _KEYS_MAX:
        raise KeysUnavailable(f'the key set is not an object with a list "keys" of at most {_KEYS_MAX}')
    named: dict[str, PublicKey] = {}
    nameless = []
    for entry in entries:
        key = _public_key(entry)
        if key is None:
            continue
        if isinstance(entry.get("kid"), str):
            named[entry["kid"]] = key
        else:
            nameless.append(key)
    if not named and not nameless:
        raise KeysUnavailable("the key set contains no RSA or EC key for signatures")
    return named, tuple(nameless)


def _public_key(entry: Any) -> PublicKey | None:
    """A key, None if it is not one that can check signatures; a shared secret (kty=oct) never can."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    fields = {name: entry[name] for name in _FIELDS if isinstance(entry.get(name), str)}
    try:
        if entry.get("kty") == "RSA" and len(fields.get("n", "")) * _BITS_PER_CHARACTER in _RSA_BITS:
            return RSAKey.import_key(fields)
        if entry.get("kty") == "EC" and entry.get("crv") in _CURVES:
            return ECKey.import_key(fields)
    except (JoseError, ValueError, TypeError):
        log.warning("a key of OAUTHBEARER cannot be read", extra={"kid": str(entry.get("kid"))[:100]})
    return None


def fetcher(url: str) -> Fetch:
    """How to read a document from a file or over HTTP, within limits of size and time."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = Path(url2pathname(parts.path))
        return lambda: asyncio.to_thread(_read_file, path)
    return lambda: _download(url)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise KeysUnavailable(f"{path}: {error.strerror}") from None
    _check_size(len(data))
    return data


async def _download(url: str) -> bytes:
    import httpx2

    data = bytearray()
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=_SECONDS_MAX) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise KeysUnavailable(f"{url} answered with status {response.status_code}")
            async for part in response.aiter_bytes():
                data += part
                _check_size(len(data))
    except httpx2.HTTPError as error:
        raise KeysUnavailable(f"{url}: {type(error).__name__}: {error}") from None
    return bytes(data)


def _check_size(count: int) -> None:
    if count > _BYTES_MAX:
        raise KeysUnavailable(f"the key set is larger than {_BYTES_MAX} bytes")
