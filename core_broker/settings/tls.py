"""Settings of TLS: certificates, whom the broker trusts, and what it negotiates."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from core_broker.service.settings import (
    BOOLEAN,
    CLASS,
    LIST,
    PASSWORD,
    STRING,
    Check,
    Settings,
    one_of,
    optional,
    setting,
    some_of,
)

CLIENT_AUTH_NONE: Final = "none"
STORE_KEYS: Final = frozenset(
    {
        "ssl.key.location",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""What may change while a listener is open, under its prefix `listener.name.<name>.` only."""

_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_UPPER: Final = replace(STRING, read=str.upper)
_LOWER: Final = replace(STRING, read=str.lower)
_HTTPS: Final = Check(accepts=lambda value: value in ("https", ""), allowed="https, or empty to accept any name")
_OPENSSL: Final = "OpenSSL does this"
_VERSIONS: Final = "ssl.enabled.protocols decides"


class TlsSettings(Settings):
    """TLS of listeners and of connections to other nodes; each key may be set for one listener."""

    ssl_keystore_type: str = setting(_UPPER, default="JKS", check=one_of(*_STORE_TYPES))
    """Format of the key store. Not set: that of the file. JKS files cannot be read; convert them to PKCS12."""
    ssl_keystore_location: str | None = setting(optional(STRING), default=None)
    """File with the certificate that is shown to the other side, the certificates above it, and its key."""
    ssl_key_location: str | None = setting(optional(STRING), default=None)
    """PEM file with the key, where ssl.keystore.location has certificates only, as in secrets of Kubernetes."""
    ssl_keystore_password: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Password of a PKCS12 key store."""
    ssl_key_password: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Password of an encrypted key (PEM)."""
    ssl_keystore_key: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """The key itself (PEM, PKCS#8), instead of a file."""
    ssl_keystore_certificate_chain: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """The certificate of ssl.keystore.key and those above it (PEM)."""
    ssl_truststore_type: str = setting(_UPPER, default="JKS", check=one_of(*_STORE_TYPES))
    """Format of the trust store. Not set: that of the file. JKS files cannot be read; convert them to PKCS12."""
    ssl_truststore_location: str | None = setting(optional(STRING), default=None)
    """File with the certificate authorities that certificates of the other side must come from. There is no default:
    public authorities are never trusted."""
    ssl_truststore_password: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """Password of a PKCS12 trust store."""
    ssl_truststore_certificates: str | None = setting(optional(PASSWORD), default=None, sensitive=True)
    """The certificate authorities themselves (PEM), instead of a file."""
    ssl_client_auth: str = setting(STRING, default=CLIENT_AUTH_NONE, check=one_of("required", "requested", "none"))
    """Whether clients must show a certificate. For a SASL_SSL listener it must be set with the listener's prefix."""
    ssl_enabled_protocols: tuple[str, ...] = setting(
        LIST, default=("TLSv1.2", "TLSv1.3"), check=some_of("TLSv1.2", "TLSv1.3")
    )
    """Versions of TLS that may be negotiated."""
    ssl_cipher_suites: tuple[str, ...] = setting(LIST, default=())
    """Cipher suites that may be negotiated, in Java's names. Empty: those of OpenSSL."""
    ssl_endpoint_identification_algorithm: str = setting(_LOWER, default="https", check=_HTTPS)
    """Whether this node, as a client of another, compares the host name with the other's certificate."""
    ssl_principal_mapping_rules: str = setting(STRING, default="DEFAULT")
    """How the subject of a client's certificate becomes its principal: RULE:pattern/replacement/[LU], separated by
    commas; DEFAULT is the whole subject. If no rule matches, the connection is closed."""
    ssl_allow_dn_changes: bool = setting(BOOLEAN, default=False)
    """Whether a new certificate of an open listener may have another subject."""
    ssl_allow_san_changes: bool = setting(BOOLEAN, default=False)
    """Whether a new certificate of an open listener may lack alternative names of the old one."""

    ssl_protocol: str = setting(STRING, default="TLSv1.3", without_effect=_VERSIONS)
    """Version of TLS."""
    ssl_provider: str | None = setting(optional(STRING), default=None, without_effect=_OPENSSL)
    """Security provider of Java."""
    ssl_keymanager_algorithm: str = setting(STRING, default="SunX509", without_effect=_OPENSSL)
    """Key manager of Java."""
    ssl_trustmanager_algorithm: str = setting(STRING, default="PKIX", without_effect=_OPENSSL)
    """Trust manager of Java."""
    ssl_secure_random_implementation: str | None = setting(optional(STRING), default=None, without_effect=_OPENSSL)
    """Random number generator of Java."""
    ssl_engine_factory_class: str | None = setting(optional(CLASS), default=None, without_effect=_OPENSSL)
    """Factory of TLS engines of Java."""


def server_problems(settings: TlsSettings) -> Iterator[tuple[str, str]]:
    """Keys, with the reason, that keep a listener from using TLS with these settings."""
    if not has_keystore(settings):
        reason = "must be set: a server needs a certificate and its key (or ssl.keystore.key, for PEM in the settings)"
        yield "ssl.keystore.location", reason
    if settings.ssl_client_auth != CLIENT_AUTH_NONE and not has_truststore(settings):
        reason = "must be set if ssl.client.auth is not none: the authorities that clients' certificates come from"
        yield "ssl.truststore.location", reason
    yield from store_problems(settings)


def store_problems(settings: TlsSettings) -> Iterator[tuple[str, str]]:
    """Keys, with the reason, that contradict each other in the description of key store and trust store."""
    if bool(settings.ssl_keystore_key) != bool(settings.ssl_keystore_certificate_chain):
        yield "ssl.keystore.key", "must be set together with ssl.keystore.certificate.chain"
    if settings.ssl_key_location and not settings.ssl_keystore_location:
        yield "ssl.key.location", "must not be set without ssl.keystore.location, the file with its certificate"
    if (settings.ssl_keystore_key or settings.ssl_keystore_certificate_chain) and settings.ssl_keystore_location:
        yield "ssl.keystore.location", "must not be set together with ssl.keystore.key; remove one of them"
    if settings.ssl_truststore_certificates and settings.ssl_truststore_location:
        yield "ssl.truststore.location", "must not be set together with ssl.truststore.certificates; remove one of them"
    is_pem_key = bool(settings.ssl_keystore_key or settings.ssl_keystore_certificate_chain)
    yield from _type_problems(settings, "keystore", is_inline=is_pem_key)
    yield from _type_problems(settings, "truststore", is_inline=bool(settings.ssl_truststore_certificates))


def _type_problems(settings: TlsSettings, store: str, *, is_inline: bool) -> Iterator[tuple[str, str]]:
    location = getattr(settings, f"ssl_{store}_location")
    password = getattr(settings, f"ssl_{store}_password")
    kind = getattr(settings, f"ssl_{store}_type")
    is_kind_set = settings.is_set(f"ssl.{store}.type")
    if is_inline and is_kind_set and kind != "PEM":
        yield f"ssl.{store}.type", "must be PEM for certificates in the settings"
    if password and (is_inline or (is_kind_set and kind == "PEM")):
        reason = "must not be set for PEM; the password of an encrypted key is ssl.key.password"
        yield f"ssl.{store}.password", reason
    elif password and not location:
        yield f"ssl.{store}.password", f"must not be set without ssl.{store}.location"
    if store == "keystore" and location and not password and is_kind_set and kind != "PEM":
        yield f"ssl.{store}.password", f"must be set for ssl.{store}.type={kind}"


def has_keystore(settings: TlsSettings) -> bool:
    """Whether there is a certificate to show."""
    return bool(settings.ssl_keystore_location or settings.ssl_keystore_key or settings.ssl_keystore_certificate_chain)


def has_truststore(settings: TlsSettings) -> bool:
    """Whether certificates of the other side can be trusted."""
    return bool(settings.ssl_truststore_location or settings.ssl_truststore_certificates)
