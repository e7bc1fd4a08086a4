"""Finds out who sends a request: by the Authorization header, or else by the certificate of the connection.

A header that cannot be accepted is refused, even if there is a certificate, too: a client that sends one means it.
"""

import base64
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from core_broker.protocol.principals import Principal
from core_broker.security.audit import AuditLog, audit_log_of, to_service_log
from core_broker.service.clock import Clock, SystemClock
from core_broker.service.metrics import Family, counter
from core_broker.service.web.asgi import Scope
from core_broker.service.web.connections import get_connection
from core_broker.web_access.callers import BearerCredentials, Caller, PasswordCredentials, host_of
from core_broker.web_access.errors import AccessError, Refused, TooManyFailures
from core_broker.web_access.failure_limits import FailureLimits
from core_broker.web_access.passwords import Passwords, PasswordVerifier
from core_broker.web_access.settings import BASIC, BEARER, CERTIFICATE, AccessSettings

if TYPE_CHECKING:
    from core_broker.web_access.certificates import Certificates
    from core_broker.web_access.cluster_passwords import ClusterPasswords
    from core_broker.web_access.tokens import Tokens

log = logging.getLogger(__name__)

_HEADER_BYTES_MAX: Final = 8192
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_METHODS: Final = {b"basic": BASIC, b"bearer": BEARER}
_NO_METHOD: Final = "NONE"
_NO_LOGIN: Final = "The request needs a login"
_UNSUPPORTED: Final = (
    f"The request needs one Authorization header, of at most {_HEADER_BYTES_MAX} bytes, with a scheme of this service"
)
_WRONG_PASSWORD: Final = "The user name or the password is wrong"


class Login:
    """How callers of one service log in."""

    def __init__(
        self,
        settings: AccessSettings,
        clock: Clock,
        *,
        passwords: Sequence[PasswordVerifier] = (),
        cluster: "ClusterPasswords | None" = None,
        tokens: "Tokens | None" = None,
        certificates: "Certificates | None" = None,
    ) -> None:
        """`passwords` are asked before the cluster."""
        self.methods = settings.methods
        self.realm = settings.authentication_realm
        self.skip_paths = frozenset(path.encode() for path in settings.authentication_skip_paths)
        self.audit = AuditLog(clock, to_service_log)
        """Where refusals and changes are written."""
        self._settings = settings
        self._clock = clock
        self._cluster = cluster
        entries_max = settings.authentication_cache_max_entries
        self._passwords = Passwords(
            passwords if cluster is None else (*passwords, cluster),
            clock,
            FailureLimits(clock, per_minute=settings.authentication_failures_per_minute),
            ttl_seconds=settings.authentication_cache_ttl_ms / 1000,
            entries_max=entries_max,
        )
        self._tokens = tokens
        self._certificates = certificates
        self._counts: Counter[tuple[str, ...]] = Counter()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Run what logins need while the block runs: threads, keys of tokens, the audit log.

        Raises ValueError if the keys are a file that cannot be read, OSError if the audit log cannot be written.
        """
        async with AsyncExitStack() as stack:
            if self.methods:
                self._warn_of_plain_listeners()
                self.audit = stack.enter_context(audit_log_of(self._settings, self._clock))
            if self._cluster is not None:
                stack.enter_context(self._cluster)
            if self._tokens is not None:
                await stack.enter_async_context(self._tokens.running())
            yield self

    def _warn_of_plain_listeners(self) -> None:
        for listener in self._settings.listeners:
            if listener.startswith("http:") and urlsplit(listener).hostname not in _THIS_MACHINE:
                log.warning("passwords and tokens cross the network readable", extra={"listener": listener})

    @property
    def is_required(self) -> bool:
        """Whether callers have to log in."""
        return bool(self.methods)

    def families(self) -> Iterable[Family]:
        """How callers logged in, for `/metrics`."""
        if not self.is_required:
            return
        yield Family(
            name="caudal_http_logins_total",
            help="Requests by the method of their login; the outcome is ok or the status of the refusal.",
            kind="counter",
            labels=("method", "outcome"),
            samples=[(key, count) for key, count in list(self._counts.items())],
        )
        if BASIC in self.methods:
            text = "Passwords that were checked, because the answer was not remembered."
            yield counter("caudal_http_password_checks_total", text, self._passwords.asked)

    async def identify(self, scope: Scope) -> Caller:
        """Who sends a request. Raises Refused, TooManyFailures or Unavailable."""
        method, credentials = self._method_of(scope)
        host = host_of(scope)
        try:
            match method:
                case "BASIC":
                    caller = await self._by_password(credentials, host)
                case "BEARER":
                    caller = await self._by_token(credentials, host)
                case "CERTIFICATE":
                    caller = self._by_certificate(scope, host)
                case _:
                    raise Refused(_UNSUPPORTED if credentials else _NO_LOGIN)
        except AccessError as error:
            self._counts[method, str(error.status)] += 1
            if isinstance(error, Refused) and error.reason:
                self.audit.login_refused(error.user, host, method=method, reason=error.reason)
            raise
        self._counts[method, "ok"] += 1
        return caller

    def _method_of(self, scope: Scope) -> tuple[str, bytes]:
        """How a caller wants to log in, and its credentials."""
        headers = [value for name, value in scope["headers"] if name == b"authorization"]
        if not headers:
            return (CERTIFICATE if CERTIFICATE in self.methods else _NO_METHOD), b""
        scheme, _, credentials = headers[0].partition(b" ")
        method = _METHODS.get(scheme.lower())
        if method not in self.methods or len(headers) > 1 or len(headers[0]) > _HEADER_BYTES_MAX:
            return _NO_METHOD, headers[0] or b"?"
        return method, credentials.strip(b" ")

    async def _by_password(self, credentials: bytes, host: str) -> Caller:
        user, password = _read_basic(credentials)
        try:
            is_right = await self._passwords.are_right(user, password, host)
        except TooManyFailures:
            self.audit.login_refused(user, host, method=BASIC, reason="too many failed logins")
            raise
        if not is_right:
            raise Refused(_WRONG_PASSWORD, user=user, reason="the user name or the password is wrong")
        return Caller(Principal("User", user), host, PasswordCredentials(user, password))

    async def _by_token(self, credentials: bytes, host: str) -> Caller:
        assert self._tokens is not None, "it was made for this method"
        token = credentials.decode("latin-1")
        valid = await self._tokens.check(token)
        return Caller(Principal("User", valid.subject), host, BearerCredentials(token, valid.expires_at_ms))

    def _by_certificate(self, scope: Scope, host: str) -> Caller:
        assert self._certificates is not None, "it was made for this method"
        connection = get_connection(scope)
        certificate = None if connection is None else connection.peer_certificate()
        if certificate is None:
            raise Refused(_NO_LOGIN)
        return Caller(self._certificates.owner_of(certificate), host)


def login_of(
    settings: AccessSettings, *, passwords: Sequence[PasswordVerifier] = (), clock: Clock | None = None
) -> Login:
    """The login that the settings ask for; `passwords` are asked before the cluster. Raises ValueError."""
    # What a method needs is imported with it: services start in a fraction of a second.
    clock = clock or SystemClock()
    cluster = tokens = certificates = None
    if BASIC in settings.methods and (found := settings.password_cluster()):
        from core_broker.web_access.cluster_passwords import ClusterPasswords

        cluster = ClusterPasswords(found, logins_max=settings.authentication_kafka_max_logins)
    if BEARER in settings.methods:
        from core_broker.web_access.tokens import tokens_of

        tokens = tokens_of(settings, clock)
    if CERTIFICATE in settings.methods:
        from core_broker.web_access.certificates import Certificates

        certificates = Certificates(settings.ssl_principal_mapping_rules, clock)
    return Login(settings, clock, passwords=passwords, cluster=cluster, tokens=tokens, certificates=certificates)


def _read_basic(credentials: bytes) -> tuple[str, str]:
    """Name and password (RFC 7617). Raises Refused; what the cluster could not have is wrong without asking it."""
    try:
        decoded = base64.b64decode(credentials, validate=True)
        if base64.b64encode(decoded) != credentials:
            raise ValueError("superfluous padding or bits")
        user, _, password = decoded.decode().partition(":")
    except ValueError:
        raise Refused(_WRONG_PASSWORD, reason="the credentials are not base64 of UTF-8") from None
    if not user or not password or any(character < " " or character == "\x7f" for character in user + password):
        reason = "the user name or the password is empty, or has control characters"
        raise Refused(_WRONG_PASSWORD, user=user, reason=reason)
    return user, password
