"""Finds out who sends a request: by the Authorization header, or by the certificate of the connection."""

import asyncio
import base64
import binascii
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from core_broker.protocol.principals import Principal
from core_broker.security.principal_mapping import NoRuleApplies, PrincipalMapping
from core_broker.security.sasl.jwks import JsonWebKeys, KeysUnavailable, times_of
from core_broker.security.sasl.jwt import InvalidToken, TokenValidator, rules_of
from core_broker.security.tls import certificate_principal
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.metrics import Family
from core_broker.service.web.asgi import Scope
from core_broker.service.web.connections import get_connection
from core_broker.web_access.callers import BearerCredentials, Caller, PasswordCredentials, host_of
from core_broker.web_access.cluster_passwords import ClusterPasswords
from core_broker.web_access.passwords import Passwords, PasswordVerifier
from core_broker.web_access.settings import BASIC, BEARER, CERTIFICATE, AccessSettings

log = logging.getLogger(__name__)

_HEADER_BYTES_MAX: Final = 8192


class Refused(Exception):
    """A request must not be handled; the message is for the caller, and says nothing about users."""

    def __init__(self, message: str, *, error: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error = error
        """The error of a token (RFC 6750)."""


class Login:
    """How callers of one service log in."""

    def __init__(
        self,
        settings: AccessSettings,
        clock: Clock,
        *,
        passwords: Sequence[PasswordVerifier] = (),
        keys: JsonWebKeys | None = None,
    ) -> None:
        """Raises ValueError if a rule of ssl.principal.mapping.rules cannot be read."""
        self.methods = settings.methods
        self.realm = settings.authentication_realm
        self.skip_paths = frozenset(path.encode() for path in settings.authentication_skip_paths)
        self.passwords = Passwords(
            passwords,
            clock,
            ttl_seconds=settings.authentication_cache_ttl_ms / 1000,
            entries_max=settings.authentication_cache_max_entries,
        )
        self._counts: dict[tuple[str, ...], float] = {}
        self._mapping = PrincipalMapping(settings.ssl_principal_mapping_rules)
        self._keys = keys
        self._tokens = None if keys is None else TokenValidator(keys, rules_of(settings), clock)

    def families(self) -> Iterable[Family]:
        """How callers logged in, for `/metrics`."""
        if self.methods:
            samples: list[tuple[tuple[str, ...], float]] = list(self._counts.items())
            yield Family(
                name="caudal_http_logins_total",
                help="Requests by how their caller logged in, and what became of it.",
                kind="counter",
                labels=("method", "outcome"),
                samples=samples,
            )

    @property
    def is_required(self) -> bool:
        """Whether anybody has to log in."""
        return bool(self.methods)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Login"]:
        """Keep the keys of tokens up to date while the block runs."""
        if self._keys is None:
            yield self
            return
        if self._keys.is_required_at_start:
            try:
                await self._keys.load()
            except KeysUnavailable as error:
                raise ValueError(f"sasl.oauthbearer.jwks.endpoint.url={self._keys.url}: {error}") from None
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._keys.run())
            try:
                yield self
            finally:
                task.cancel()

    async def identify(self, scope: Scope) -> Caller:
        """Who sends a request. Raises Refused or Unavailable."""
        headers = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(headers) > 1:
            raise Refused("The request has more than one Authorization header")
        if headers:
            return await self._by_header(headers[0], host_of(scope))
        if CERTIFICATE in self.methods and (principal := self._by_certificate(scope)):
            return Caller(principal, host_of(scope))
        raise Refused("The request needs a login")

    async def _by_header(self, header: bytes, host: str) -> Caller:
        if len(header) > _HEADER_BYTES_MAX:
            raise Refused("The Authorization header is too long")
        scheme, _, rest = header.partition(b" ")
        match scheme.lower():
            case b"basic" if BASIC in self.methods:
                return await self._by_password(rest.strip(b" "), host)
            case b"bearer" if BEARER in self.methods:
                return self._by_token(rest.strip(b" "), host)
        raise Refused("The Authorization header has a scheme that is not supported here")

    async def _by_password(self, encoded: bytes, host: str) -> Caller:
        user, password = _read_basic(encoded)
        if not self.passwords.are_remembered(user, password) and not await self.passwords.verify(user, password):
            raise Refused("The user name or the password is wrong")
        return Caller(Principal("User", user), host, PasswordCredentials(user, password))

    def _by_token(self, encoded: bytes, host: str) -> Caller:
        assert self._tokens is not None, "settings without keys are refused"
        try:
            token = encoded.decode("ascii")
            valid = self._tokens.validate(token)
        except (InvalidToken, UnicodeDecodeError) as error:
            raise Refused("The token is not valid", error="invalid_token") from error
        return Caller(Principal("User", valid.subject), host, BearerCredentials(token, valid.expires_at_ms))

    def _by_certificate(self, scope: Scope) -> Principal | None:
        connection = get_connection(scope)
        der = None if connection is None else connection.peer_certificate()
        if der is None:
            return None
        try:
            return certificate_principal(der, self._mapping)
        except (NoRuleApplies, ValueError) as error:
            raise Refused("The certificate has no user here") from error


def login_of(
    settings: AccessSettings, *, passwords: Sequence[PasswordVerifier] = (), clock: Clock | None = None
) -> Login:
    """The login that the settings ask for; `passwords` are asked before the cluster. Raises ValueError."""
    clock = clock or SystemClock()
    verifiers = list(passwords)
    if BASIC in settings.methods and (cluster := settings.password_cluster()):
        verifiers.append(ClusterPasswords(cluster, logins_max=settings.authentication_kafka_max_logins))
    url = settings.sasl_oauthbearer_jwks_endpoint_url
    keys = JsonWebKeys(url, clock, times_of(settings)) if BEARER in settings.methods and url else None
    return Login(settings, clock, passwords=verifiers, keys=keys)


def _read_basic(encoded: bytes) -> tuple[str, str]:
    """Name and password (RFC 7617)."""
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise Refused("The Authorization header is not valid") from None
    if not user or not colon or not password or any(ord(c) < 32 or ord(c) == 127 for c in user + password):
        raise Refused("The user name or the password is wrong")
    return user, password
