"""Settings of logins and access rules, for every HTTP service."""

from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import override

from core_broker.client.settings import ClientSettings
from core_broker.service.settings import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Check,
    Problem,
    Properties,
    at_least,
    between,
    gathered,
    setting,
    some_of,
)
from core_broker.service.web.settings import WebSettings
from core_broker.settings.authorization import PRINCIPALS, TYPED, AuditSettings
from core_broker.settings.sasl import TokenSettings

NONE: Final = "NONE"
BASIC: Final = "BASIC"
BEARER: Final = "BEARER"
CERTIFICATE: Final = "CERTIFICATE"

_BOOTSTRAP: Final = "bootstrap.servers"
_OWN_USER: Final = ("sasl.username", "sasl.password", "sasl.jaas.config")
_REALM: Final = Check(
    accepts=lambda text: text.isascii() and text.isprintable() and not set('"\\') & set(text),
    allowed="printable ASCII without quotation marks and backslashes",
)
_PATHS: Final = Check(
    accepts=lambda paths: all(path.startswith("/") for path in paths), allowed="paths that begin with a slash"
)


class AccessSettings(WebSettings, TokenSettings, AuditSettings):
    """Who may use an HTTP service, and how callers prove who they are."""

    authentication_method: tuple[str, ...] = setting(
        LIST, default=(NONE,), check=some_of(NONE, BASIC, BEARER, CERTIFICATE)
    )
    """How callers log in: BASIC (name and password of a user of the Kafka cluster), BEARER (a signed token),
    CERTIFICATE (of the TLS connection); several may be given. NONE: not at all, everything is open to everyone."""
    authentication_realm: str = setting(STRING, default="Caudal", check=_REALM)
    """Name of the protected area, which clients show when they ask for a password."""
    authentication_skip_paths: tuple[str, ...] = setting(LIST, default=(), check=_PATHS)
    """Paths that need no login, exactly as they are sent, such as `/health`."""
    authentication_kafka_properties: Properties = gathered("authentication.kafka.", default=())
    """The cluster whose users may log in with BASIC, and the login there, in librdkafka's names:
    `authentication.kafka.bootstrap.servers`, `.security.protocol`, `.sasl.mechanism` (SCRAM-SHA-256, SCRAM-SHA-512 or
    PLAIN), `.ssl.ca.location`, ..."""
    authentication_kafka_timeout_ms: int = setting(INT, default=5_000, check=between(100, 60_000))
    """How long a login at the cluster may take."""
    authentication_kafka_max_logins: int = setting(INT, default=8, check=between(1, 256))
    """How many logins at the cluster may go on at once."""
    authentication_cache_ttl_ms: int = setting(LONG, default=60_000, check=at_least(0))
    """How long a right password is remembered: the time until a changed password or a deleted user is noticed. 0: it is
    checked at every request."""
    authentication_cache_max_entries: int = setting(INT, default=10_000, check=at_least(1))
    """How many right passwords and tokens are remembered."""
    authentication_failures_per_minute: int = setting(INT, default=60, check=at_least(1))
    """How often a login may fail per minute for one address, and for one user name; then it has to wait (429)."""

    ssl_principal_mapping_rules: str = setting(STRING, default="DEFAULT")
    """Rules that make the name of a user from the subject of a certificate, as those of the broker:
    `RULE:^CN=([^,]+),.*$/$1/,DEFAULT`."""

    @property
    def methods(self) -> frozenset[str]:
        """How callers may log in; empty if they need not."""
        return frozenset(self.authentication_method) - {NONE}

    def own_cluster(self) -> Mapping[str, str]:
        """The cluster of the service itself, which checks passwords unless authentication.kafka.* names another."""
        return {}

    def password_cluster(self) -> ClientSettings | None:
        """The cluster that checks passwords, without a user; None if there is none. Raises PropertyRefused."""
        given = dict(self.authentication_kafka_properties)
        if _BOOTSTRAP not in given:
            given = {**self.own_cluster(), **given}
        servers = given.pop(_BOOTSTRAP, "")
        if not servers:
            return None
        from core_broker.client.java_properties import to_librdkafka  # not for services without passwords

        properties = to_librdkafka((key, value) for key, value in given.items() if key not in _OWN_USER)
        return ClientSettings(
            bootstrap_servers=servers,
            client_id="caudal-login",
            timeout_ms=self.authentication_kafka_timeout_ms,
            properties=properties,
        )

    @override
    def problems(self) -> Iterable[Problem]:
        """Each method needs what it checks callers with."""
        yield from super().problems()
        methods = self.methods
        if methods and NONE in self.authentication_method:
            yield self._problem("authentication.method", "NONE cannot be combined with other methods")
        if BASIC in methods and (reason := self._password_problem()):
            yield Problem(key="authentication.kafka.*", value="******", reason=reason)
        if BEARER in methods and self.sasl_oauthbearer_jwks_endpoint_url is None:
            reason = "must be the address of the identity provider's keys for authentication.method=BEARER"
            yield self._problem("sasl.oauthbearer.jwks.endpoint.url", reason)
        if CERTIFICATE in methods and self.client_authentication == NONE:
            reason = "must be set for authentication.method=CERTIFICATE: the authorities of callers' certificates"
            yield self._problem("ssl.ca.location", reason)
        if CERTIFICATE in methods and not any(listener.startswith("https:") for listener in self.listeners):
            yield self._problem("listeners", "authentication.method=CERTIFICATE needs a listener with https")

    def _problem(self, key: str, reason: str) -> Problem:
        return Problem(key=key, value=self.text_of(key) or "", reason=reason)

    def _password_problem(self) -> str | None:
        from core_broker.client.connection import SUPPORTED_MECHANISMS, mechanism_of
        from core_broker.client.java_properties import PropertyRefused

        try:
            cluster = self.password_cluster()
        except PropertyRefused as error:
            return str(error)
        if cluster is None:
            return "authentication.kafka.bootstrap.servers must be the cluster whose users may log in with BASIC"
        if not cluster.properties.get("security.protocol", "").upper().startswith("SASL_"):
            return "authentication.kafka.security.protocol must be SASL_SSL or SASL_PLAINTEXT"
        if mechanism_of(cluster.properties) not in SUPPORTED_MECHANISMS:
            return f"authentication.kafka.sasl.mechanism must be one of {', '.join(SUPPORTED_MECHANISMS)}"
        return None


class RuleSettings(AccessSettings):
    """The same for a service that has access rules."""

    authorization_enable: bool = setting(BOOLEAN, default=True)
    """Enforce access rules where callers log in (authentication.method). Otherwise each of them may do everything."""
    super_users: tuple[str, ...] = setting(PRINCIPALS, default=(), check=TYPED)
    """Users that may do everything, separated by semicolons, such as User:admin;User:CN=ops,O=Acme."""
    allow_everyone_if_no_acl_found: bool = setting(BOOLEAN, default=False)
    """Allow everything on a resource as long as no access rule applies to it, for anyone. Otherwise only super users
    can use such a resource."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Rules are about callers with a name."""
        yield from super().problems()
        if not self.methods:
            for key in ("authorization.enable", "super.users"):
                if self.is_set(key) and self.text_of(key) not in ("false", ""):
                    yield self._problem(key, "access rules need callers that log in: set authentication.method")
