"""TLS of a client of HTTP services, whose certificate may be renewed while it runs."""

import ssl
import threading
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

_Signature = tuple[tuple[int, int, int] | None, ...]
"""Time, size and inode of each file."""


class ClientContext(ssl.SSLContext):
    """A context that shows and trusts what its files have at the time of a connection."""

    _files: tuple[str | None, str | None, str | None]
    _password: str | None
    _lock: threading.Lock
    _signature: _Signature

    @classmethod
    def of_files(cls, ca: str | None, certificate: str | None, key: str | None, password: str | None) -> Self:
        """A context of these files, of which any may be left out: then the system's authorities are trusted, and no
        certificate is shown. Raises OSError."""
        context = cls(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context._files, context._password, context._lock = (ca, certificate, key), password, threading.Lock()
        if ca is None:
            context.load_default_certs()
        context._signature = _signature_of(context._files)  # before the files are read: a change is found later
        context._load()
        return context

    @override
    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        self._renew()
        return super().wrap_socket(*args, **kwargs)

    @override
    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        self._renew()
        return super().wrap_bio(*args, **kwargs)

    def _renew(self) -> None:
        """Read the files again if they have changed; those that cannot be used leave everything as it is."""
        with self._lock:
            if (found := _signature_of(self._files)) == self._signature:
                return
            self._signature = found
            try:
                ClientContext.of_files(
                    *self._files, self._password
                )  # a key of another certificate would spoil this one
                self._load()
            except OSError:
                return  # the old certificate is shown as long as it is accepted

    def _load(self) -> None:
        ca, certificate, key = self._files
        if ca is not None:
            is_directory = Path(ca).is_dir()
            self.load_verify_locations(cafile=None if is_directory else ca, capath=ca if is_directory else None)
        if certificate is not None:
            # Without a password OpenSSL would ask for it on the terminal.
            self.load_cert_chain(certificate, key, self._password or "")


def _signature_of(files: tuple[str | None, ...]) -> _Signature:
    found: list[tuple[int, int, int] | None] = []
    for path in files:
        try:
            stat = Path(path or "").stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)
