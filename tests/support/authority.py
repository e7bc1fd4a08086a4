"""A folder with a certificate authority of a test, and the stores (PEM) that nodes and clients get from it."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.certificates import Authority


class AuthorityFolder:
    """Issues certificates; its own one is in `trust_store`."""

    def __init__(self, folder: Path, name: str = "Test authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._authority = Authority(name)
        self.trust_store = self._authority.save(folder / "authority.pem")

    def issue(
        self,
        common_name: str,
        *,
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
        has_expired: bool = False,
        file: Path | None = None,
    ) -> Path:
        """A file with a new certificate for a subject `CN=common_name`, and with its key; replaces one in place."""
        identity = self._authority.issue(f"CN={common_name}", hosts=hosts, has_expired=has_expired)
        return identity.save(file or self.folder / f"{common_name}.pem")

    def issue_pkcs12(self, common_name: str, password: str, *, has_expired: bool = False) -> Path:
        """The same as a PKCS12 store."""
        identity = self._authority.issue(f"CN={common_name}", hosts=[], has_expired=has_expired)
        file = self.folder / f"{common_name}.p12"
        file.write_bytes(identity.pkcs12(password))
        return file
