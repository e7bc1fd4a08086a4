"""Settings of SASL: how clients log in at this node, and this node at others.

Most keys belong to one mechanism of one listener, as `listener.name.external.plain.sasl.jaas.config`;
`BrokerSettings.for_mechanism` has the values for it.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from core_broker.service.settings import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Check,
    Settings,
    at_least,
    one_of,
    optional,
    setting,
)
from core_broker.settings.jaas import JaasLogin, parse_jaas

OFFERED: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SASL_PROTOCOLS: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
NO_KERBEROS: Final = f"Kerberos (GSSAPI) is not supported; use one of {', '.join(OFFERED)}"
NO_CLASSES: Final = "classes cannot be loaded; remove it"
FROM_A_FILE: Final = "tokens are not requested; write one to the file of sasl.oauthbearer.token.endpoint.url"
REFUSED: Final = {
    "sasl.kerberos.*": NO_KERBEROS,
    "sasl.login.class": NO_CLASSES,
    "sasl.client.callback.handler.class": NO_CLASSES,
    "sasl.oauthbearer.assertion.*": FROM_A_FILE,
    "sasl.oauthbearer.client.credentials.*": FROM_A_FILE,
}

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_VALIDATORS: Final = tuple(
    f"{_PACKAGE}.{name}"
    for name in ("OAuthBearerValidatorCallbackHandler", "secured.OAuthBearerValidatorCallbackHandler")
)
_LOGINS: Final = tuple(
    f"{_PACKAGE}.{name}" for name in ("OAuthBearerLoginCallbackHandler", "secured.OAuthBearerLoginCallbackHandler")
)
_VERIFIED: Final = "the signature of a token is always verified"
_READ_AGAIN: Final = "a token is read again from its file at every login"
_KEY_URL: Final = Check(
    accepts=lambda url: _is_url(url, ("https", "http", "file")), allowed="a URL with https, http or file"
)
_TOKEN_FILE: Final = Check(accepts=lambda url: _is_url(url, ("file",)), allowed=f"the URL of a file ({FROM_A_FILE})")


class TokenSettings(Settings):
    """What a signed token must have to be accepted, at a listener of a broker or at an HTTP service."""

    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(optional(STRING), default=None, check=_KEY_URL)
    """Where the public keys of the identity provider are (JWKS). OAUTHBEARER needs it: no token is accepted without a
    verified signature."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(LONG, default=3_600_000, check=at_least(1))
    """How often these keys are read again."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(LONG, default=100, check=at_least(1))
    """The first pause after they could not be read; each further one is twice as long."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(LONG, default=10_000, check=at_least(1))
    """The longest pause."""
    sasl_oauthbearer_clock_skew_seconds: int = setting(INT, default=30, check=at_least(0))
    """How far the clock of the identity provider may be from the one of this machine."""
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(LIST, default=())
    """Audiences (aud) of which a token must have one. Empty: a token with an audience is refused."""
    sasl_oauthbearer_expected_issuer: str | None = setting(optional(STRING), default=None)
    """Issuer (iss) that a token must have. Not set: any."""
    sasl_oauthbearer_scope_claim_name: str = setting(STRING, default="scope")
    """Claim with the scopes of a token."""
    sasl_oauthbearer_sub_claim_name: str = setting(STRING, default="sub")
    """Claim with the name of the user."""


class SaslSettings(TokenSettings):
    """SASL of listeners and of connections to other nodes."""

    sasl_enabled_mechanisms: tuple[str, ...] = setting(LIST, default=("GSSAPI",))
    """Mechanisms by which clients may log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. A listener with SASL
    needs this key, because Kafka's default is not supported."""
    sasl_jaas_config: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Users and passwords of PLAIN (user_<name>="password"), and as which user this node logs in at others. Must be set
    for one mechanism of a listener, as listener.name.<listener>.<mechanism>.sasl.jaas.config."""
    sasl_mechanism_inter_broker_protocol: str = setting(STRING, default="GSSAPI")
    """Mechanism by which brokers log in at each other."""
    sasl_mechanism_controller_protocol: str = setting(STRING, default="GSSAPI")
    """Mechanism by which nodes log in at controllers."""
    sasl_server_max_receive_size: int = setting(INT, default=524_288, check=at_least(1))
    """Maximum size of a request of a client that has not logged in yet."""
    connections_max_reauth_ms: int = setting(LONG, default=0, check=at_least(0))
    """After how long a client must log in again (KIP-368), or it is disconnected. 0: never, unless a token
    expires."""
    connection_failed_authentication_delay_ms: int = setting(
        INT, default=100, check=Check(accepts=lambda value: 0 <= value <= 60_000, allowed="between 0 and 60000")
    )
    """How long a client that failed to log in waits for the answer, so that passwords cannot be tried out quickly."""

    sasl_oauthbearer_token_endpoint_url: str | None = setting(optional(STRING), default=None, check=_TOKEN_FILE)
    """File with the token by which this node logs in at others, as file:///path."""

    sasl_server_callback_handler_class: str | None = setting(
        optional(CLASS), default=None, check=one_of(*_VALIDATORS), without_effect=_VERIFIED
    )
    """Accepted for the validator of signed tokens, which needs no class here."""
    sasl_oauthbearer_jwt_validator_class: str = setting(
        CLASS,
        default=f"{_PACKAGE}.DefaultJwtValidator",
        check=one_of(f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator"),
        without_effect=_VERIFIED,
    )
    """Accepted for the validators of signed tokens."""
    sasl_oauthbearer_jwt_retriever_class: str = setting(
        CLASS,
        default=f"{_PACKAGE}.DefaultJwtRetriever",
        check=one_of(f"{_PACKAGE}.DefaultJwtRetriever", f"{_PACKAGE}.FileJwtRetriever"),
        without_effect=_READ_AGAIN,
    )
    """Accepted for Kafka's own classes."""
    sasl_oauthbearer_header_urlencode: bool = setting(BOOLEAN, default=False, without_effect=_READ_AGAIN)
    """How credentials are sent to an identity provider."""
    sasl_login_callback_handler_class: str | None = setting(
        optional(CLASS), default=None, check=one_of(*_LOGINS), without_effect=_READ_AGAIN
    )
    """Accepted for the login by a token."""
    sasl_login_connect_timeout_ms: int | None = setting(optional(INT), default=None, without_effect=_READ_AGAIN)
    """Time to connect to an identity provider."""
    sasl_login_read_timeout_ms: int | None = setting(optional(INT), default=None, without_effect=_READ_AGAIN)
    """Time to wait for a token."""
    sasl_login_retry_backoff_ms: int = setting(LONG, default=100, without_effect=_READ_AGAIN)
    """Pause before a token is requested again."""
    sasl_login_retry_backoff_max_ms: int = setting(LONG, default=10_000, without_effect=_READ_AGAIN)
    """Longest pause before a token is requested again."""
    sasl_login_refresh_buffer_seconds: int = setting(SHORT, default=300, without_effect=_READ_AGAIN)
    """How long before its end a token is replaced."""
    sasl_login_refresh_min_period_seconds: int = setting(SHORT, default=60, without_effect=_READ_AGAIN)
    """How long a token is used at least."""
    sasl_login_refresh_window_factor: float = setting(DOUBLE, default=0.8, without_effect=_READ_AGAIN)
    """After what part of its life a token is replaced."""
    sasl_login_refresh_window_jitter: float = setting(DOUBLE, default=0.05, without_effect=_READ_AGAIN)
    """Random part of that time."""

    @property
    def jaas_login(self) -> JaasLogin | None:
        """What sasl.jaas.config says; of settings for one mechanism."""
        return None if self.sasl_jaas_config is None else parse_jaas(self.sasl_jaas_config)


def server_problems(mechanism: str, settings: SaslSettings) -> Iterator[tuple[str, str]]:
    """Why clients could not log in with a mechanism, given its settings: each with the key that must change."""
    if mechanism not in OFFERED:
        reason = NO_KERBEROS if mechanism == "GSSAPI" else f"mechanisms are {', '.join(OFFERED)}"
        yield "sasl.enabled.mechanisms", f"{reason}; set the mechanisms of this listener"
        return
    try:
        login = settings.jaas_login
    except ValueError as error:
        yield "sasl.jaas.config", str(error)
        return
    if login is not None and not login.accepts(mechanism):
        yield "sasl.jaas.config", f"must name the login module of {mechanism}"
    elif mechanism == "PLAIN" and (login is None or not login.users):
        yield "sasl.jaas.config", 'must contain a user of PLAIN, as user_<name>="password"'
    if mechanism == "OAUTHBEARER" and settings.sasl_oauthbearer_jwks_endpoint_url is None:
        reason = (
            "must be the address of the identity provider's keys: a token without a verified signature proves nothing"
        )
        yield "sasl.oauthbearer.jwks.endpoint.url", reason


def client_problems(mechanism: str, settings: SaslSettings) -> Iterator[tuple[str, str]]:
    """Why this node could not log in at others with a mechanism, given its settings."""
    if mechanism not in OFFERED:
        return  # reported for the server
    if mechanism == "OAUTHBEARER":
        if settings.sasl_oauthbearer_token_endpoint_url is None:
            yield "sasl.oauthbearer.token.endpoint.url", "must be the file with the token by which this node logs in"
        return
    try:
        login = settings.jaas_login
    except ValueError:
        return  # reported for the server
    if login is None or not login.username or not login.password:
        yield "sasl.jaas.config", "must contain username and password, by which this node logs in at others"


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(text)
        is_file = parts.scheme == "file"
        return parts.scheme in schemes and (parts.path.startswith("/") if is_file else bool(parts.hostname))
    except ValueError:
        return False
