"""PKCS12 stores for Java clients, each with a password in a file beside it: `NAME.p12` and `NAME.p12.password`."""

import secrets
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12

from deploy.certificates.authority import Authority, AuthorityError
from deploy.certificates.private_files import write_private

TRUST_STORE: Final = "truststore.p12"


def password_file(store: Path) -> Path:
    """The file with the password of a store."""
    return store.with_name(f"{store.name}.password")


def write_trust_store(authority: Authority) -> Path:
    """Write the store with the authority that clients trust; returns its file. Raises AuthorityError and OSError."""
    file = authority.folder / TRUST_STORE
    own = pkcs12.PKCS12Certificate(authority.certificate, b"caudal")
    write_private(file, pkcs12.serialize_java_truststore([own], _encryption(file)))
    return file


def write_key_store(authority: Authority, name: str) -> Path:
    """Write the store with a certificate, the authority's and the key. Raises AuthorityError and OSError."""
    issued = authority.find(name)
    content = issued.file.read_bytes()
    first, *above = x509.load_pem_x509_certificates(content)
    key = serialization.load_pem_private_key(content, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise AuthorityError(f"the key in {issued.file} is not one of ours")
    file = issued.file.with_suffix(".p12")
    write_private(file, pkcs12.serialize_key_and_certificates(name.encode(), key, first, above, _encryption(file)))
    return file


def _encryption(store: Path) -> serialization.KeySerializationEncryption:
    """Encryption with the password of a store, which is made once."""
    file = password_file(store)
    if not file.exists():
        write_private(file, f"{secrets.token_urlsafe(24)}\n".encode())
    return serialization.BestAvailableEncryption(file.read_text(encoding="ascii").strip().encode())
