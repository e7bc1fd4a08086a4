"""Certificates for tests: an authority with certificates for servers and clients, and one that signed itself."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_FROM = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_EXPIRED = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
_TO = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Files (PEM) with a certificate for 127.0.0.1, and with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_FROM)
        .not_valid_after(_TO)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, secret = folder / "certificate.pem", folder / "key.pem"
    shown.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return shown, secret


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, those above it, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    above: tuple[x509.Certificate, ...] = ()

    @property
    def chain_pem(self) -> str:
        """The certificate and those above it."""
        chain = (self.certificate, *self.above)
        return "".join(found.public_bytes(serialization.Encoding.PEM).decode() for found in chain)

    def key_pem(self, password: str | None = None) -> str:
        """The key (PKCS#8)."""
        encryption = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(pem, pkcs8, encryption).decode()

    def pkcs12(self, password: str) -> bytes:
        """Everything in one PKCS12 store."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, self.above, encryption)

    def save(self, path: Path, password: str | None = None) -> Path:
        """Write key and certificates into one PEM file, which is replaced as a whole."""
        new = path.with_suffix(".new")
        new.write_text(self.key_pem(password) + self.chain_pem)
        new.replace(path)
        return path


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "Test authority", issuer: "Authority | None" = None) -> None:
        self._identity: Identity = _issue(
            _name(f"CN={name}"), None if issuer is None else issuer._identity, is_authority=True
        )

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate that others trust."""
        return self._identity.certificate

    @property
    def pem(self) -> str:
        """The same as text."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def save(self, path: Path) -> Path:
        """Write the certificate into a PEM file."""
        path.write_text(self.pem)
        return path

    def issue(
        self,
        subject: str = "CN=broker,O=Acme",
        *,
        hosts: Sequence[str] = ("127.0.0.1",),
        has_expired: bool = False,
        expires: dt.datetime = _TO,
    ) -> Identity:
        """A certificate for a subject, written as Kafka writes it: the most significant part comes last."""
        return _issue(_name(subject), self._identity, hosts=hosts, to=_EXPIRED if has_expired else expires)


def _name(subject: str) -> x509.Name:
    return x509.Name.from_rfc4514_string(subject)


def _issue(
    subject: x509.Name,
    issuer: Identity | None,
    *,
    hosts: Sequence[str] = (),
    to: dt.datetime = _TO,
    is_authority: bool = False,
) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(to)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    signer = key if issuer is None else issuer.key
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    if hosts:
        names = [_alternative_name(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    above = () if issuer is None else (issuer.certificate,)
    return Identity(builder.sign(signer, hashes.SHA256()), key, above)


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
