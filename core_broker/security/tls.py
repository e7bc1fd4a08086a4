"""TLS as the settings want it: contexts for listeners and for connections to other nodes, and who a certificate is."""

import os
import ssl
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from core_broker.protocol.principals import ANONYMOUS, Principal
from core_broker.security.distinguished_names import format_subject
from core_broker.security.principal_mapping import PrincipalMapping
from core_broker.security.stores import KeyStore, StoreError, load_key_store, load_trust_store
from core_broker.settings.tls import TlsSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_HANDSHAKE_STEPS_MAX: Final = 10
_NO_CHECK_TIME: Final = ssl.VerifyFlags(0x200000)
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name."""
_TLS13_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


def server_store(settings: TlsSettings) -> KeyStore:
    """The certificate that a listener shows. Raises StoreError."""
    store = load_key_store(settings)
    if store is None:
        raise StoreError("ssl.keystore.location", "must be set: a server needs a certificate and its key")
    return store


def server_context(settings: TlsSettings, store: KeyStore) -> ssl.SSLContext:
    """The context of a listener with these settings. Raises StoreError."""
    authorities = load_trust_store(settings)
    wanted = _CLIENT_AUTH[settings.ssl_client_auth]
    if wanted != ssl.CERT_NONE and not authorities:
        raise StoreError("ssl.truststore.location", "must be set if ssl.client.auth is not none")
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    _show(context, store)
    if wanted != ssl.CERT_NONE:
        _trust(context, authorities)
        # A resumed session does not ask for the certificate again, and so would not notice that it has expired. With
        # TLS 1.2 clients can still resume by session id, which Python cannot switch off: the server looks at the
        # certificate itself (`check_unexpired`). A change of the stores ends them, because a new context knows none.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    context.verify_mode = wanted
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of connections to other nodes; they must be given the host name. Raises StoreError."""
    authorities = load_trust_store(settings)
    if not authorities:
        reason = "must be set: the authorities that certificates of other nodes come from"
        raise StoreError("ssl.truststore.location", reason)
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, authorities)
    store = load_key_store(settings)
    if store is not None:
        _show(context, store)
    return context


def check_acceptance(server: ssl.SSLContext, client: ssl.SSLContext, *, new: ssl.SSLContext) -> None:
    """Raise StoreError unless two nodes with these contexts accept each other's certificates, whatever their names.

    The `new` one of them, which is of no use afterwards, accepts that the other's certificate has expired.
    """
    client.check_hostname = False
    new.verify_flags |= _NO_CHECK_TIME
    inbox, outbox = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [server.wrap_bio(inbox, outbox, server_side=True), client.wrap_bio(outbox, inbox)]
    for _ in range(_HANDSHAKE_STEPS_MAX):
        for side in tuple(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                reason = getattr(error, "verify_message", None) or error.reason
                text = f"nodes with this store and nodes with the one in use would not accept each other ({reason})"
                raise StoreError(
                    "ssl.keystore.location", f"{text}; add both authorities to the trust stores first"
                ) from None
            waiting.remove(side)


def certificate_principal(der: bytes | None, mapping: PrincipalMapping) -> Principal:
    """The principal of a client that has shown this certificate. Raises NoRuleApplies or ValueError."""
    if der is None:
        return ANONYMOUS
    subject = x509.load_der_x509_certificate(der).subject
    return Principal("User", mapping.name_of(format_subject(subject.public_bytes())))


def check_unexpired(der: bytes | None, now_ms: int) -> None:
    """Raise ValueError if a certificate has expired: a session that is resumed does not look at it again."""
    if der is not None and x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp() * 1000 <= now_ms:
        raise ValueError("the certificate has expired")


def principal_mapping(settings: TlsSettings) -> PrincipalMapping:
    """The rules of these settings. Raises StoreError."""
    try:
        return PrincipalMapping(settings.ssl_principal_mapping_rules)
    except ValueError as error:
        raise StoreError("ssl.principal.mapping.rules", str(error)) from None


def _context(protocol: int, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    versions = sorted(_VERSIONS[name] for name in settings.ssl_enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # As in Java, every certificate of a trust store is trusted, not only those that signed themselves.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.ssl_cipher_suites:
        _choose_ciphers(context, settings.ssl_cipher_suites)
    return context


def _choose_ciphers(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Restrict the cipher suites. Those of TLS 1.3 cannot be chosen one by one: all or none."""
    key = "ssl.cipher.suites"
    newer, older = _TLS13_SUITES.intersection(suites), [name for name in suites if name not in _TLS13_SUITES]
    if newer and newer != _TLS13_SUITES:
        missing = ", ".join(sorted(_TLS13_SUITES - newer))
        raise StoreError(key, f"must contain all suites of TLS 1.3 or none of them; {missing} is missing")
    if older:
        try:
            context.set_ciphers(":".join(map(openssl_name, older)))
        except ssl.SSLError:
            raise StoreError(key, f"OpenSSL has none of {', '.join(older)}") from None
    if not newer:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise StoreError(key, "contains no suite of the versions in ssl.enabled.protocols")


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2: `TLS_RSA_WITH_AES_128_GCM_SHA256` is `AES128-GCM-SHA256`."""
    exchange, found, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return suite
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("_SHA256")
    name = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return name.replace("_", "-")


def _trust(context: ssl.SSLContext, authorities: Sequence[x509.Certificate]) -> None:
    context.load_verify_locations(cadata=b"".join(found.public_bytes(Encoding.DER) for found in authorities))


def _show(context: ssl.SSLContext, store: KeyStore) -> None:
    """Give OpenSSL the certificate and its key. It reads files only: this one is in memory, and in no directory."""
    descriptor = os.memfd_create("key store", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(store.pem())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise StoreError("ssl.keystore.location", f"OpenSSL refuses the certificate: {error.reason}") from None
    finally:
        os.close(descriptor)
