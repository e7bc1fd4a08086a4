"""`security/` in the folder of a platform: its authority, its passwords, and the files by which clients log in.

What is there is used again; only certificates that expire soon, or lack a host, are replaced.
"""

import secrets
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy.certificates.authority import Authority, AuthorityError, alternative_name
from deploy.certificates.java_stores import write_trust_store
from deploy.certificates.private_files import private_folder, write_private

FOLDER_NAME: Final = "security"
ADMIN: Final = "admin"
"""The user who may do everything."""
LAUNCHER: Final = "launcher"
"""The launcher by its certificate: it creates the users, and asks services for their health."""
NODE: Final = "broker"
"""Brokers as clients of the registry."""
TOKEN_SECRET: Final = "delegation-tokens"
RENEWED_BEFORE_DAYS: Final = 30
"""A start renews certificates that expire sooner than this."""
_PASSWORD_BYTES: Final = 24
_BACKSLASH: Final = "\\"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::", "*")


class SecurityFolder:
    """The folder of one platform."""

    def __init__(self, data: Path) -> None:
        self.path = data / FOLDER_NAME
        self.authority = Authority(self.path)

    @property
    def is_set_up(self) -> bool:
        """Whether the platform was started secured before."""
        return self.password_file(ADMIN).exists()

    @property
    def authority_file(self) -> Path:
        """The certificate that clients trust."""
        return self.authority.certificate_file

    @property
    def client_config(self) -> Path:
        """The properties file by which Kafka's clients and the tools log in as the administrator."""
        return self.path / f"{ADMIN}.properties"

    @property
    def curl_config(self) -> Path:
        """The same for `curl --config`."""
        return self.path / f"{ADMIN}.curl"

    @property
    def librdkafka_config(self) -> Path:
        """The same for kcat and confluent-kafka."""
        return self.path / f"{ADMIN}.librdkafka"

    @property
    def certificate_config(self) -> Path:
        """The same with a certificate instead of the password, for kcat with a librdkafka older than 2.6.1."""
        return self.path / f"{ADMIN}-certificate.librdkafka"

    @property
    def java_config(self) -> Path:
        """The same with a PKCS12 trust store, for Java clients that cannot read PEM."""
        return self.path / f"{ADMIN}-pkcs12.properties"

    def certificate(self, name: str) -> Path:
        """The file with the certificate of a service, and its key."""
        return self.authority.file_of(name)

    def password_file(self, user: str) -> Path:
        """The file with the password of a user."""
        return self.path / "passwords" / user

    def password(self, user: str) -> str:
        """The password of a user. Raises OSError."""
        return self.password_file(user).read_text(encoding="utf-8").strip()

    def secrets_file(self, service: str) -> Path:
        """The properties file with the secret settings of a service."""
        return self.path / "services" / f"{service}.properties"

    def done_file(self, what: str) -> Path:
        """Exists once the users and rules are in what it is called after: the cluster, or the registry."""
        return self.path / "done" / what

    def prepare(self, *, certificates: Iterable[str], users: Sequence[str], hosts: Sequence[str]) -> None:
        """Make what is missing. Raises AuthorityError and OSError."""
        for folder in ("", "passwords", "services", "certificates", "done"):
            private_folder(self.path / folder)
        if not self.authority.exists:
            self.authority.create()
        write_trust_store(self.authority)
        for name in dict.fromkeys((*certificates, NODE, LAUNCHER, ADMIN)):
            self._prepare_certificate(name, hosts)
        # The administrator's comes last: with it the folder counts as set up.
        for user in (TOKEN_SECRET, *users, ADMIN):
            if not self.password_file(user).exists():
                password = f"{secrets.token_urlsafe(_PASSWORD_BYTES)}\n".encode()
                write_private(self.password_file(user), password, replaces=False)

    def write_secrets(self, service: str, settings: Mapping[str, str]) -> Path:
        """Write the secret settings of a service; returns the file. Raises OSError."""
        file = self.secrets_file(service)
        lines = (f"{key}={value.replace(_BACKSLASH, 2 * _BACKSLASH)}\n" for key, value in settings.items())
        write_private(file, "".join(lines).encode())
        return file

    def launcher_tls(self) -> ssl.SSLContext:
        """TLS of a client that is the launcher. Raises OSError."""
        context = ssl.create_default_context(cafile=str(self.authority_file))
        context.load_cert_chain(self.certificate(LAUNCHER))
        return context

    def certificate_properties(self, name: str) -> dict[str, str]:
        """A Kafka client that logs in with a certificate, in librdkafka's names."""
        own = str(self.certificate(name))
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority_file),
            "ssl.certificate.location": own,
            "ssl.key.location": own,
        }

    def _prepare_certificate(self, name: str, hosts: Sequence[str]) -> None:
        own_hosts = () if name in (LAUNCHER, ADMIN) else hosts
        if not self.authority.file_of(name).exists():
            self.authority.issue(name, hosts=own_hosts)
            return
        found = self.authority.find(name)
        missing = [host for host in own_hosts if host not in found.hosts]
        if missing or self.authority.days_left(found) < RENEWED_BEFORE_DAYS:
            self.authority.renew(name, hosts=(*found.hosts, *missing))


def hosts_of(host: str) -> list[str]:
    """The names and addresses by which services on an address are reached."""
    given = [host.strip("[]")] if host.strip("[]") not in _EVERY_ADDRESS else []
    machine = [name for name in (socket.gethostname(), socket.getfqdn()) if _is_host(name)]
    return list(dict.fromkeys((*_LOOPBACK, *machine, *given)))


def _is_host(name: str) -> bool:
    """Whether a certificate can be for it: names of machines may contain anything."""
    try:
        alternative_name(name)
    except AuthorityError:
        return False
    return True
