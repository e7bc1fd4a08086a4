"""Key stores and trust stores: certificates and keys from PEM or PKCS12, in files or in the settings."""

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    pkcs12,
)

from core_broker.security.distinguished_names import format_subject
from core_broker.settings.tls import TlsSettings, has_keystore, has_truststore

STORE_BYTES_MAX: Final = 16 << 20
_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----\s+(?:[\w-]+: [^\n]*\n\s*)*"
    r"(?P<data>[A-Za-z0-9+/=\s]+)-----END (?P=label)-----"
)
_KEY_LABELS: Final = frozenset({"PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"})
_CERTIFICATE_LABELS: Final = frozenset({"CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"})
_JKS_STARTS: Final = (bytes.fromhex("feedfeed"), bytes.fromhex("cececece"))
_DER_SEQUENCE: Final = b"\x30"

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey


class StoreError(Exception):
    """A store cannot be used; `key` is the setting to look at. The text never contains a secret."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        super().__init__(f"{key}: {reason}")


class KeyStore(msgspec.Struct, frozen=True):
    """A certificate, those above it, and its key."""

    chain: tuple[x509.Certificate, ...]
    """The certificate itself first."""
    key: PrivateKey

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate that is shown to the other side."""
        return self.chain[0]

    def pem(self) -> bytes:
        """Key and chain, for OpenSSL."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return b"".join((key, *(certificate.public_bytes(Encoding.PEM) for certificate in self.chain)))


def store_files(settings: TlsSettings) -> tuple[Path, ...]:
    """The files that these settings name."""
    locations = (settings.ssl_keystore_location, settings.ssl_key_location, settings.ssl_truststore_location)
    return tuple(Path(location) for location in locations if location)


def load_key_store(settings: TlsSettings) -> KeyStore | None:
    """The key store of a listener, None if it has none. Raises StoreError."""
    if not has_keystore(settings):
        return None
    if settings.ssl_keystore_location is None:
        chain = _certificates(settings.ssl_keystore_certificate_chain or "", "ssl.keystore.certificate.chain")
        key = _pem_key(settings.ssl_keystore_key or "", settings.ssl_key_password, "ssl.keystore.key")
        return _checked(KeyStore(chain, key), "ssl.keystore.certificate.chain")
    where = "ssl.keystore.location"
    data = _read(settings.ssl_keystore_location, where)
    kind = settings.ssl_keystore_type if settings.is_set("ssl.keystore.type") else None
    if not _is_pem(data, kind, where, settings.ssl_keystore_location):
        if settings.ssl_key_location:
            raise StoreError("ssl.key.location", "must not be set for PKCS12, which has the key itself")
        return _checked(_pkcs12_key_store(data, settings.ssl_keystore_password, settings.ssl_keystore_location), where)
    if settings.ssl_keystore_password:
        reason = "must not be set for PEM; the password of an encrypted key is ssl.key.password"
        raise StoreError("ssl.keystore.password", reason)
    text = _text(data, where, settings.ssl_keystore_location)
    chain = _certificates(text, where)
    if settings.ssl_key_location:
        where = "ssl.key.location"
        text = _text(_read(settings.ssl_key_location, where), where, settings.ssl_key_location)
    return _checked(KeyStore(chain, _pem_key(text, settings.ssl_key_password, where)), where)


def load_trust_store(settings: TlsSettings) -> tuple[x509.Certificate, ...]:
    """The certificate authorities to trust; none if there is no trust store. Raises StoreError."""
    if not has_truststore(settings):
        return ()
    location, where = settings.ssl_truststore_location, "ssl.truststore.location"
    if location is None:
        return _certificates(settings.ssl_truststore_certificates or "", "ssl.truststore.certificates")
    data = _read(location, where)
    kind = settings.ssl_truststore_type if settings.is_set("ssl.truststore.type") else None
    if not _is_pem(data, kind, where, location):
        return _pkcs12_authorities(data, settings.ssl_truststore_password, location)
    if settings.ssl_truststore_password:
        raise StoreError("ssl.truststore.password", "must not be set for PEM")
    return _certificates(_text(data, where, location), where)


def check_renewal(old: x509.Certificate, new: x509.Certificate, settings: TlsSettings) -> None:
    """Raise StoreError if an open listener may not go from one certificate to the other, as in Kafka."""
    subjects = [format_subject(found.subject.public_bytes()) for found in (old, new)]
    if not settings.ssl_allow_dn_changes and subjects[0].lower() != subjects[1].lower():
        change = f"from {subjects[0]!r} to {subjects[1]!r}"
        reason = f"the subject of the certificate must not change {change}, unless ssl.allow.dn.changes is true"
        raise StoreError("ssl.keystore.location", reason)
    missing = _alternative_names(old) - _alternative_names(new)
    if not settings.ssl_allow_san_changes and missing:
        names = ", ".join(sorted(missing))
        reason = f"the new certificate lacks {names}; add them, or set ssl.allow.san.changes to true"
        raise StoreError("ssl.keystore.location", reason)


def _alternative_names(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(getattr(name, "value", name)) for name in found.value}


def _read(location: str, where: str) -> bytes:
    path = Path(location)
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
            raise StoreError(where, f"cannot read {location}: it is not a file")
        with path.open("rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise StoreError(where, f"cannot read {location}: {error.strerror}") from None
    if len(data) > STORE_BYTES_MAX:
        raise StoreError(where, f"{location} is larger than {STORE_BYTES_MAX} bytes")
    return data


def _is_pem(data: bytes, kind: str | None, where: str, location: str) -> bool:
    """Whether a file is PEM rather than PKCS12. The content decides; an explicit type must not contradict it."""
    if data.startswith(_JKS_STARTS):
        convert = f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 -deststoretype PKCS12"
        raise StoreError(where, f"{location} is a JKS file, which cannot be read; convert it: {convert}")
    is_pem = b"-----BEGIN " in data
    if not is_pem and not data.startswith(_DER_SEQUENCE):
        raise StoreError(where, f"{location} is neither PEM nor PKCS12")
    # Java, too, reads PKCS12 files if the type is JKS.
    if kind is not None and is_pem != (kind == "PEM"):
        actual = "PEM" if is_pem else "PKCS12"
        key = where.replace("location", "type")
        raise StoreError(key, f"is {kind}, but {location} is a {actual} file; set it to {actual}")
    return is_pem


def _text(data: bytes, where: str, location: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StoreError(where, f"{location} is not a text file (UTF-8)") from None


def _blocks(text: str, labels: frozenset[str], where: str) -> Iterator[bytes]:
    """The content of the PEM blocks with one of these labels."""
    for match in _BLOCK.finditer(text):
        if match["label"] in labels:
            try:
                yield base64.b64decode("".join(match["data"].split()), validate=True)
            except binascii.Error:
                raise StoreError(where, f"a block {match['label']} is not valid base64") from None


def _certificates(text: str, where: str) -> tuple[x509.Certificate, ...]:
    try:
        found = tuple(x509.load_der_x509_certificate(der) for der in _blocks(text, _CERTIFICATE_LABELS, where))
    except ValueError as error:
        raise StoreError(where, f"contains a certificate that cannot be read: {error}") from None
    if not found:
        raise StoreError(where, "contains no certificate (-----BEGIN CERTIFICATE-----)")
    return found


def _pem_key(text: str, password: str | None, where: str) -> PrivateKey:
    keys = list(_blocks(text, _KEY_LABELS, where))
    if len(keys) != 1:
        raise StoreError(where, f"must contain one private key (-----BEGIN PRIVATE KEY-----), not {len(keys)}")
    is_encrypted = "BEGIN ENCRYPTED PRIVATE KEY" in text
    if is_encrypted and not password:
        raise StoreError("ssl.key.password", f"must be set, because the key in {where} is encrypted")
    try:
        key = load_der_private_key(keys[0], password.encode() if is_encrypted and password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The library's own text is left out: it knows nothing that an operator can act on.
        if is_encrypted:
            raise StoreError("ssl.key.password", f"does not decrypt the key in {where}") from None
        reason = "contains a key that cannot be read; convert it with openssl pkcs8 -topk8"
        raise StoreError(where, reason) from None
    return _usable(key, where)


def _pkcs12(data: bytes, password: str | None, location: str, store: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        hint = "is wrong" if password else "must be set"
        raise StoreError(f"ssl.{store}.password", f"{hint}, or {location} is damaged") from None


def _pkcs12_key_store(data: bytes, password: str | None, location: str) -> KeyStore:
    found = _pkcs12(data, password, location, "keystore")
    if found.key is None or found.cert is None:
        raise StoreError("ssl.keystore.location", f"{location} contains no key with a certificate")
    others = [entry.certificate for entry in found.additional_certs]
    chain = [found.cert.certificate]
    # The chain in order, as the other side expects it: each one was signed with the key of the next.
    while above := next((other for other in others if other.subject == chain[-1].issuer), None):
        others.remove(above)
        chain.append(above)
    return KeyStore(tuple(chain), _usable(found.key, "ssl.keystore.location"))


def _pkcs12_authorities(data: bytes, password: str | None, location: str) -> tuple[x509.Certificate, ...]:
    found = _pkcs12(data, password, location, "truststore")
    entries = (*((found.cert,) if found.cert is not None else ()), *found.additional_certs)
    if not entries:
        raise StoreError("ssl.truststore.location", f"{location} contains no certificate")
    return tuple(entry.certificate for entry in entries)


def _usable(key: object, where: str) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise StoreError(where, "contains a key that cannot sign; use RSA, EC or Ed25519")
    return key


def _checked(store: KeyStore, where: str) -> KeyStore:
    """Raise StoreError unless key and certificate belong together."""
    shown = store.certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if store.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != shown:
        raise StoreError(where, "the first certificate does not belong to the key")
    return store
