"""The certificates of listeners, renewed while they are open; the next connections get the new ones."""

import asyncio
import logging
import ssl
from collections.abc import Iterable
from typing import Final

import msgspec
from cryptography import x509

from core_broker.errors import BrokerError, ErrorCode
from core_broker.security.principal_mapping import PrincipalMapping
from core_broker.security.stores import StoreError, check_renewal, store_files
from core_broker.security.tls import check_acceptance, client_context, principal_mapping, server_context, server_store
from core_broker.service.settings import SettingsError
from core_broker.settings import BrokerSettings, Listener
from core_broker.settings.network import ENCRYPTED
from core_broker.settings.tls import STORE_KEYS, server_problems

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 5.0

Signature = tuple[tuple[int, int, int] | None, ...]
"""Time, size and inode of each file."""


class ListenerTls(msgspec.Struct):
    """TLS of one listener."""

    settings: BrokerSettings
    """Those of the listener; if they could not be used, it still has what it had."""
    context: ssl.SSLContext
    certificate: x509.Certificate
    mapping: PrincipalMapping
    signature: Signature
    """Of the files as they were when they were last looked at."""


class Certificates:
    """TLS of all listeners that use it."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._by_listener: dict[str, ListenerTls] = {}
        self._overrides = settings.listener_overrides
        self._changes: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()

    def load(self, listeners: Iterable[Listener]) -> None:
        """Load everything for the start; raises BrokerError with what is wrong."""
        for listener in listeners:
            if self._settings.security_protocol(listener.name) in ENCRYPTED:
                try:
                    self._by_listener[listener.name] = _load(self._settings.for_listener(listener.name))
                except (StoreError, SettingsError) as error:
                    reason = f"listener {listener.name}: {error}"
                    raise BrokerError(ErrorCode.INVALID_CONFIG, reason) from None

    def of(self, listener_name: str) -> ListenerTls | None:
        """TLS of a listener; None if it is not encrypted."""
        return self._by_listener.get(listener_name)

    def configure(self, settings: BrokerSettings) -> None:
        """Apply changed stores in the background; everything else about TLS stays as it was at the start."""
        if settings.listener_overrides == self._overrides:
            return  # nothing else about stores can change at run time
        self._overrides = settings.listener_overrides
        for name, tls in self._by_listener.items():
            try:
                wanted = _with_stores_of(self._settings.for_listener(name), settings.for_listener(name))
            except SettingsError as error:
                _report(name, str(error))
                continue
            if wanted != tls.settings:
                task = asyncio.ensure_future(self._renew(name, wanted))
                self._changes.add(task)
                task.add_done_callback(self._changes.discard)

    async def check(self, settings: BrokerSettings) -> None:
        """Raise BrokerError unless these settings could be applied; `configure` would keep the old stores instead."""
        for name, tls in tuple(self._by_listener.items()):
            try:
                wanted = _with_stores_of(self._settings.for_listener(name), settings.for_listener(name))
                if wanted != tls.settings:
                    await asyncio.to_thread(_check_change, tls, wanted, name)
            except (StoreError, SettingsError) as error:
                # The error of Kafka for brokers (KAFKA-13609).
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"listener {name}: {error}") from None

    async def watch(self, seconds: float = _CHECK_SECONDS) -> None:
        """Load the stores again whenever their files change."""
        while True:
            await asyncio.sleep(seconds)
            for name, tls in self._by_listener.items():
                if await asyncio.to_thread(signature_of, tls.settings) != tls.signature:
                    await self._renew(name, tls.settings)

    async def _renew(self, name: str, settings: BrokerSettings) -> None:
        """Use other stores for new connections; those that cannot be used leave everything as it is."""
        async with self._one_at_a_time:
            tls = self._by_listener[name]
            # Files that cannot be used are tried again when they change.
            tls.settings, tls.signature = settings, await asyncio.to_thread(signature_of, settings)
            try:
                renewed = await asyncio.to_thread(_load_renewed, tls.certificate, settings)
            except StoreError as error:
                _report(name, str(error))
                return
            self._by_listener[name] = renewed
        log.info("certificates renewed", extra={"listener": name})


def _report(name: str, reason: str) -> None:
    log.error(
        "cannot use the new certificates; new connections still get the old ones",
        extra={"listener": name, "reason": reason},
    )


def _check_change(old: ListenerTls, settings: BrokerSettings, name: str) -> None:
    """Raise StoreError unless a listener could use these settings.

    If nodes connect to each other through it, those with the new stores must get along with those with the old ones.
    """
    for key, reason in server_problems(settings):
        raise StoreError(key, reason)
    new = _load_renewed(old.certificate, settings)
    if any(connection.listener == name for connection in settings.node_connections):
        new_client = client_context(settings)
        check_acceptance(old.context, new_client, new=new_client)
        try:
            old_client = client_context(old.settings)
        except StoreError:
            return  # the files of the old stores are gone or broken, which is what this change may be for
        check_acceptance(new.context, old_client, new=new.context)


def _load_renewed(old: x509.Certificate, settings: BrokerSettings) -> ListenerTls:
    renewed = _load(settings)
    check_renewal(old, renewed.certificate, settings)
    return renewed


def _load(settings: BrokerSettings) -> ListenerTls:
    # Before the files are read: a change meanwhile is found at the next look.
    signature = signature_of(settings)
    store = server_store(settings)
    return ListenerTls(
        settings, server_context(settings, store), store.certificate, principal_mapping(settings), signature
    )


def signature_of(settings: BrokerSettings) -> Signature:
    """What tells whether the files of the stores have changed."""
    found: list[tuple[int, int, int] | None] = []
    for path in store_files(settings):
        try:
            stat = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def _with_stores_of(settings: BrokerSettings, other: BrokerSettings) -> BrokerSettings:
    names = (settings.DEFINITIONS[key].name for key in STORE_KEYS if other.is_set(key))
    return settings.replace(**{name: getattr(other, name) for name in names})
