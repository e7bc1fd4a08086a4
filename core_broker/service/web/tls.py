"""TLS of https listeners, with certificates that are renewed while the service runs."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from core_broker.service.web.settings import WebSettings

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 5.0
_CLIENT_AUTHENTICATION: Final = {
    "NONE": ssl.CERT_NONE,
    "REQUESTED": ssl.CERT_OPTIONAL,
    "REQUIRED": ssl.CERT_REQUIRED,
}

_Signature = tuple[tuple[int, int, int] | None, ...]
"""Time, size and inode of each file."""


class RenewedContext(ssl.SSLContext):
    """A context whose connections are those of the newest certificates; asyncio and uvloop ask it for each of them."""

    alpn: tuple[str, ...] = ()
    """The protocols that are offered inside of TLS; none: HTTP/1.1, without a word."""
    _newest: ssl.SSLContext
    _signature: _Signature = ()

    def load(self, settings: WebSettings) -> None:
        """Use the certificates that the files have now. Raises OSError, and everything stays as it was."""
        signature = _signature_of(settings)  # before the files are read: a change meanwhile is found at the next look
        newest = _context(settings)
        if self.alpn:
            newest.set_alpn_protocols(list(self.alpn))
        self._newest = newest
        self._signature = signature

    @override
    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self._newest.wrap_bio(*args, **kwargs)

    async def watch(self, settings: WebSettings, *, seconds: float = _CHECK_SECONDS) -> None:
        """Load the files again whenever they change; those that cannot be used leave everything as it is."""
        looked_at = self._signature
        while True:
            await asyncio.sleep(seconds)
            found = await asyncio.to_thread(_signature_of, settings)
            if found == looked_at:
                continue
            looked_at = found  # files that cannot be used are tried again when they change
            try:
                await asyncio.to_thread(self.load, settings)
            except OSError as error:
                # OpenSSL's text names no content of the files.
                message = "cannot use the new certificates; new connections still get the old ones"
                log.error(message, extra={"reason": str(error)})
            else:
                log.info("certificates renewed", extra={"certificate": settings.ssl_certificate_location})


def listener_context(settings: WebSettings, *, alpn: tuple[str, ...] = ()) -> RenewedContext:
    """The context of the https listeners of a service. Raises OSError."""
    context = RenewedContext(ssl.PROTOCOL_TLS_SERVER)
    context.alpn = alpn
    context.load(settings)
    return context


def _context(settings: WebSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    assert settings.ssl_certificate_location, "settings of https without a certificate are refused"
    # Without a password OpenSSL would ask for it on the terminal.
    password = settings.ssl_key_password or ""
    context.load_cert_chain(settings.ssl_certificate_location, settings.ssl_key_location, lambda: password)
    if settings.ssl_ca_location:
        context.load_verify_locations(settings.ssl_ca_location)
    context.verify_mode = _CLIENT_AUTHENTICATION[settings.client_authentication]
    if context.verify_mode is not ssl.CERT_NONE:
        # A resumed session would not ask for the certificate again, and so not notice that its authority was removed.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _signature_of(settings: WebSettings) -> _Signature:
    found: list[tuple[int, int, int] | None] = []
    for path in (settings.ssl_certificate_location, settings.ssl_key_location, settings.ssl_ca_location):
        try:
            stat = Path(path or "").stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)
