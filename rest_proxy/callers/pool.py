"""Keeps the clients of callers between their requests: a bounded number, for a bounded time.

Clients belong to a principal and to what it has logged in with. A changed password has clients of its own; those of the
old one are closed when they are idle. A newer token of the same principal replaces an older one in its clients, and
with the last token that was valid they are closed.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from core_broker.service.clock import Clock, SystemClock
from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.web_access.callers import Caller, PasswordCredentials, caller_of
from rest_proxy.callers.clients import Clients, Shared
from rest_proxy.errors import ProxyError, too_many
from rest_proxy.identity import CallerIdentity

log = logging.getLogger(__name__)

_LEASE: Final = "caudal.rest_proxy.lease"
_TOKEN: Final = b""
_NO_LOGIN: Final = "The request needs a login"
_BY_CERTIFICATE: Final = (
    "A certificate proves who you are to this proxy, but it cannot pass that on to the Kafka cluster:"
    " log in with a password or a token"
)

_Key: TypeAlias = tuple[str, bytes]
"""A principal, and a digest of its password."""


class _Entry:
    """The clients of one caller."""

    def __init__(self, key: _Key, identity: CallerIdentity, clients: Clients) -> None:
        self.key = key
        self.identity = identity
        self.clients = clients
        self.in_use = 0
        self.timer: asyncio.TimerHandle | None = None


class Lease:
    """The clients of one request: they are not closed until it ends. Requests that need none take none."""

    def __init__(self, pool: "ClientPool", caller: Caller) -> None:
        self._pool = pool
        self._caller = caller
        self._entry: _Entry | None = None

    @property
    def clients(self) -> Clients:
        """The clients; raises ProxyError if the caller cannot have any."""
        if self._entry is None:
            self._entry = self._pool.acquire(self._caller)
        return self._entry.clients

    def release(self) -> None:
        """The request has ended."""
        if self._entry is not None:
            self._pool.release(self._entry)


class ClientPool:
    """The clients of all callers, and those of the proxy itself. For use in one event loop."""

    def __init__(self, own: Clients, shared: Shared, *, clock: Clock | None = None) -> None:
        self._own = own
        self._shared = shared
        self._limit = shared.settings.caller_clients_max
        self._idle_seconds = shared.settings.caller_clients_idle_timeout_ms / 1000
        self._clock = clock or SystemClock()
        self._digest_key = secrets.token_bytes(32)
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        """Those that were used last at the end."""
        self._identities: WeakValueDictionary[_Key, CallerIdentity] = WeakValueDictionary()
        """Also those that only consumer instances still use."""
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """For how many callers there are clients."""
        return len(self._entries)

    def of(self, scope: Scope) -> Clients:
        """The clients for a request; raises ProxyError."""
        lease: Lease | None = scope.get(_LEASE)
        return self._own if lease is None else lease.clients

    def around(self, app: Application) -> Application:
        """Wrap an app, whose callers have logged in, so that `of` gives each of them clients of its own."""

        async def lend(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            lease = scope[_LEASE] = Lease(self, caller_of(scope))
            try:
                await app(scope, receive, send)
            finally:
                lease.release()

        return lend

    async def close(self) -> None:
        """Close the clients of all callers."""
        for entry in list(self._entries.values()):
            self._close(entry)
        await asyncio.gather(*self._closing)

    # --- leases ---

    def acquire(self, caller: Caller) -> _Entry:
        """The clients of a caller, for a request; raises ProxyError."""
        credentials = caller.credentials
        if credentials is None:
            raise ProxyError(401, _NO_LOGIN) if caller.is_anonymous else ProxyError(40301, _BY_CERTIFICATE)
        key = self._key(caller)
        entry = self._entries.get(key)
        if entry is None:
            self._make_room()
            owner = str(caller.principal)
            identity = self._identities.get(key) or CallerIdentity(
                self._shared.settings, owner, credentials, clock=self._clock
            )
            self._identities[key] = identity
            clients = Clients(identity, self._shared, own=self._own, clock=self._clock)
            entry = self._entries[key] = _Entry(key, identity, clients)
        entry.identity.renew(credentials)
        entry.in_use += 1
        self._entries.move_to_end(key)
        if entry.timer is not None:
            entry.timer.cancel()
        return entry

    def release(self, entry: _Entry) -> None:
        """A request with these clients has ended."""
        entry.in_use -= 1
        if not entry.in_use:
            left = (entry.identity.expires_at_ms - self._clock.now_ms()) / 1000
            seconds = max(0.0, min(self._idle_seconds, left))
            entry.timer = asyncio.get_running_loop().call_later(seconds, self._close, entry)

    def _key(self, caller: Caller) -> _Key:
        principal, credentials = str(caller.principal), caller.credentials
        if not isinstance(credentials, PasswordCredentials):
            return principal, _TOKEN
        return principal, hmac.digest(self._digest_key, credentials.password.encode(), hashlib.sha256)

    def _make_room(self) -> None:
        if len(self._entries) < self._limit:
            return
        idle = next((entry for entry in self._entries.values() if not entry.in_use), None)
        if idle is None:
            raise too_many(f"Requests of {self._limit} callers are in progress (caller.clients.max); try again later")
        self._close(idle)

    def _close(self, entry: _Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        if self._entries.pop(entry.key, None) is None:
            return
        log.debug("clients of a caller are closed", extra={"caller": entry.identity.owner})
        closing = asyncio.get_running_loop().create_task(entry.clients.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
