"""Reads the key stores of Java programs, as PEM texts: PKCS12 is understood, JKS is refused with the way to convert it.

Java calls a store JKS unless it is said otherwise, and reads PKCS12 there, too; so the first byte of the file decides.
"""

from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_DER_SEQUENCE: Final = b"\x30"
"""How every PKCS12 file begins."""
_STORE_BYTES_MAX: Final = 16 * 1024 * 1024


class StoreKind(Enum):
    """The format of a key store."""

    PEM = auto()
    PKCS12 = auto()
    JKS = auto()


class UnreadableStore(ValueError):
    """The store cannot be read; the message says why and what to do."""


class KeyPair(NamedTuple):
    """A private key and its certificate chain, as PEM."""

    key: str
    certificates: str


def kind_of(location: str, declared: str) -> StoreKind:
    """The format of a store file, given what its `type` setting says (empty when there is none)."""
    match declared.strip().upper():
        case "PEM":
            return StoreKind.PEM
        case "PKCS12":
            return StoreKind.PKCS12
        case _:
            return StoreKind.PKCS12 if _first_byte(location) == _DER_SEQUENCE else StoreKind.JKS


def read_certificates(location: str, password: str) -> str:
    """Every certificate of a PKCS12 store; raises UnreadableStore."""
    if not (certificates := _certificates(_load(location, password))):
        raise UnreadableStore(f"{location} has no certificate")
    return certificates


def read_key_pair(location: str, password: str) -> KeyPair:
    """The key of a PKCS12 store and its certificates; raises UnreadableStore."""
    store = _load(location, password)
    if store.key is None or store.cert is None:
        raise UnreadableStore(f"{location} has no private key with a certificate")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(key.decode(), _certificates(store))


def _load(location: str, password: str) -> "PKCS12KeyAndCertificates":
    content = _read(location)
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise UnreadableStore(
            "PKCS12 needs the package cryptography: install it, or make a PEM file with"
            f' "openssl pkcs12 -in {location} -out store.pem -nodes"'
        ) from None
    try:
        return pkcs12.load_pkcs12(content, password.encode() or None)
    except ValueError:
        raise UnreadableStore(f"{location} is not a PKCS12 store, or its password is wrong") from None


def _certificates(store: "PKCS12KeyAndCertificates") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    found = [*([store.cert] if store.cert else []), *store.additional_certs]
    return "".join(item.certificate.public_bytes(Encoding.PEM).decode() for item in found)


def _first_byte(location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            return file.read(1)
    except OSError:
        return b""


def _read(location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            content = file.read(_STORE_BYTES_MAX + 1)
    except OSError as error:
        raise UnreadableStore(f"{location} cannot be read: {error.strerror}") from error
    if len(content) > _STORE_BYTES_MAX:
        raise UnreadableStore(f"{location} is too large for a key store")
    return content
