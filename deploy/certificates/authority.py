"""A certificate authority in a folder: its key, its certificate, and those that it has issued, as PEM files.

The files: `ca.key`, `ca.crt`, and `certificates/NAME.pem` with a key, its certificate and that of the authority. One
file holds all three, so that a renewal is one step for services that watch it.
"""

import datetime as dt
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from core_broker.service.clock import Clock, SystemClock
from deploy.certificates.private_files import is_private, private_folder, write_private

AUTHORITY_DAYS: Final = 3650
DAYS: Final = 365
DAYS_MAX: Final = 3650
HOSTS_MAX: Final = 100
_EARLIER: Final = dt.timedelta(hours=1)
"""Certificates are valid from this long ago: clocks of other machines may be behind."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST: Final = re.compile(
    r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
)
_HOST_LENGTH_MAX: Final = 253
_FILE_BYTES_MAX: Final = 1 << 20

Key = ec.EllipticCurvePrivateKey


class AuthorityError(Exception):
    """There is no such authority or certificate, or it cannot be used or made; the message says why."""

    def __init__(self, text: str, next_step: str = "") -> None:
        super().__init__(text)
        self.next_step = next_step
        """What to do about it; a command is in backticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate of the authority."""

    name: str
    """Of its file, and of the user that it stands for (CN)."""
    file: Path
    hosts: tuple[str, ...]
    """The names and addresses of a server; empty for a client."""
    not_before: dt.datetime
    not_after: dt.datetime
    serial: str
    fingerprint: str
    """SHA-256."""


class Authority:
    """The authority of a folder."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder = folder
        self.certificate_file = folder / "ca.crt"
        self.key_file = folder / "ca.key"
        self._clock = clock or SystemClock()

    def create(self, *, common_name: str = "Caudal", days: int = AUTHORITY_DAYS) -> Self:
        """Make its key and certificate. Raises AuthorityError if there is one, and OSError."""
        for file in (self.key_file, self.certificate_file):
            if file.exists():
                raise AuthorityError(f"{file} exists already: all that it has signed would not be trusted any more")
        private_folder(self.folder)
        key, name = _new_key(), _subject(common_name)
        certificate = (
            self._builder(name, name, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        write_private(self.key_file, _key_pem(key), replaces=False)
        write_private(self.certificate_file, _pem(certificate), replaces=False)
        return self

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self.certificate_file.exists()

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate that others trust. Raises AuthorityError."""
        try:
            return x509.load_pem_x509_certificate(_read(self.certificate_file))
        except FileNotFoundError:
            raise AuthorityError(
                f"there is no certificate authority in {self.folder}",
                "make one:  `caudal certificate init --folder DIR`, or with a platform:  `caudal up --secure`",
            ) from None
        except (OSError, ValueError) as error:
            raise AuthorityError(f"{self.certificate_file} cannot be read: {error}") from None

    def file_of(self, name: str) -> Path:
        """The file of a certificate. Raises AuthorityError if nothing can be called so."""
        if not _NAME.fullmatch(name):
            raise AuthorityError(
                f"{name!r} is not a name for a certificate: letters, digits, - . _, at most 64 of them"
            )
        return self.folder / "certificates" / f"{name}.pem"

    def issue(self, name: str, *, hosts: Sequence[str] = (), days: int = DAYS, replaces: bool = False) -> Issued:
        """Make a key and a certificate: for a server, if it has hosts, else for a client.

        Raises AuthorityError, also if there is one and it is not to be replaced, and OSError.
        """
        file = self.file_of(name)
        if file.exists() and not replaces:
            raise AuthorityError(f"{file} exists already", f"replace it:  `caudal certificate renew {name}`")
        names = [alternative_name(host) for host in dict.fromkeys(hosts)]
        if len(names) > HOSTS_MAX:
            raise AuthorityError(f"a certificate can be for at most {HOSTS_MAX} hosts")
        authority, signer = self.certificate, self._key()
        key = _new_key()
        builder = (
            self._builder(
                _subject(name), authority.subject, key.public_key(), days, until=authority.not_valid_after_utc
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(_purposes(is_server=bool(names)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(signer, hashes.SHA256())
        private_folder(file.parent)
        write_private(file, _key_pem(key) + _pem(certificate) + _pem(authority), replaces=replaces)
        return self.find(name)

    def renew(self, name: str, *, hosts: Sequence[str] | None = None, days: int = DAYS) -> Issued:
        """Replace a certificate and its key by new ones, for the same hosts unless others are given."""
        found = self.find(name)
        return self.issue(name, hosts=found.hosts if hosts is None else hosts, days=days, replaces=True)

    def find(self, name: str) -> Issued:
        """A certificate by its name. Raises AuthorityError."""
        file = self.file_of(name)
        try:
            certificate = x509.load_pem_x509_certificate(_read(file))
        except FileNotFoundError:
            known = ", ".join(one.name for one in self.issued()) or "none"
            raise AuthorityError(f"there is no certificate {name!r} in {self.folder}; there are: {known}") from None
        except (OSError, ValueError) as error:
            raise AuthorityError(f"{file} cannot be read: {error}") from None
        return describe(certificate, name=name, file=file)

    def issued(self) -> list[Issued]:
        """All certificates, by name. Raises AuthorityError."""
        return [self.find(file.stem) for file in sorted((self.folder / "certificates").glob("*.pem"))]

    def own(self) -> Issued:
        """The authority's own certificate. Raises AuthorityError."""
        return describe(self.certificate, name="ca", file=self.certificate_file)

    def days_left(self, certificate: Issued) -> int:
        """Whole days until a certificate expires; negative afterwards."""
        return (certificate.not_after - self._now()).days

    def _key(self) -> Key:
        try:
            if not is_private(self.key_file):
                raise AuthorityError(
                    f"others than their owner may use {self.key_file}", f"shut them out:  `chmod 600 {self.key_file}`"
                )
            key = serialization.load_pem_private_key(_read(self.key_file), None)
        except FileNotFoundError:
            raise AuthorityError(f"the key of the authority is not here: {self.key_file}") from None
        except (OSError, ValueError, TypeError) as error:
            raise AuthorityError(f"{self.key_file} cannot be read: {error}") from None
        if not isinstance(key, Key):
            raise AuthorityError(f"{self.key_file} is not a key of an elliptic curve, as ours are")
        return key

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        public: ec.EllipticCurvePublicKey,
        days: int,
        *,
        until: dt.datetime | None = None,
    ) -> x509.CertificateBuilder:
        now = self._now()
        end = now + dt.timedelta(days=days)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(end if until is None else min(end, until))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock.now_ms() // 1000, dt.UTC)


def describe(certificate: x509.Certificate, *, name: str, file: Path) -> Issued:
    """What there is to say about a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts: tuple[str, ...] = ()
    else:
        addresses = map(str, found.get_values_for_type(x509.IPAddress))
        hosts = (*found.get_values_for_type(x509.DNSName), *addresses)
    return Issued(
        name=name,
        file=file,
        hosts=hosts,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        serial=f"{certificate.serial_number:x}",
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":"),
    )


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_FILE_BYTES_MAX)


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def alternative_name(host: str) -> x509.GeneralName:
    """An address, or the name of a host, as certificates have it. Raises AuthorityError."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        if len(host) > _HOST_LENGTH_MAX or not _HOST.fullmatch(host):
            raise AuthorityError(f"{host!r} is neither an address nor the name of a host") from None
        return x509.DNSName(host)


def _new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: Key) -> bytes:
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, serialization.NoEncryption())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _purposes(*, is_server: bool) -> x509.ExtendedKeyUsage:
    """A service is a client of others, too."""
    servers = [ExtendedKeyUsageOID.SERVER_AUTH] if is_server else []
    return x509.ExtendedKeyUsage([*servers, ExtendedKeyUsageOID.CLIENT_AUTH])
