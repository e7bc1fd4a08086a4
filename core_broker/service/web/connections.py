"""The state of a client's connection, for responses that must not get lost."""

import os
import socket
from typing import Any

from core_broker.service.web.asgi import Scope

_KEY = "caudal.connection"


class HttpConnection:
    """A client's connection; it may be asked about after it has closed."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.is_broken = False
        """Whether it closed with unsent data: the client left before it had read everything."""

    def peer_certificate(self) -> bytes | None:
        """The certificate (DER) that the client has shown and TLS has verified; None if there is none."""
        encrypted = self._transport.get_extra_info("ssl_object")
        found = None if encrypted is None else encrypted.getpeercert(binary_form=True)
        return found if isinstance(found, bytes) else None

    def has_hung_up(self) -> bool:
        """Whether the client has closed the connection, even if the event loop has not noticed yet."""
        if self._transport.is_closing():
            return True
        try:
            # Peek through a duplicate: asyncio lends its socket without `recv`, and the bytes must stay for it to read.
            with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as peeking:
                return not peeking.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


def attach_connection(scope: Any, connection: HttpConnection) -> None:
    """Make the connection available to the handler of a request."""
    scope[_KEY] = connection


def get_connection(scope: Scope) -> HttpConnection | None:
    """The connection of a request; None if the request has none, as in tests without a server."""
    found = scope.get(_KEY)
    return found if isinstance(found, HttpConnection) else None
