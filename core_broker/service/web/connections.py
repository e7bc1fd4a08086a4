"""What the machine knows of a client's connection, for answers that must not be lost."""

import os
import socket
from typing import Any

from core_broker.service.web.asgi import Scope

_KEY = "caudal.connection"


class Connection:
    """A client's connection, for as long as somebody asks about it."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.is_broken = False
        """Whether it ended with data on its way: the client went without having read all that was sent."""

    def has_hung_up(self) -> bool:
        """Whether the client has closed it, which the event loop may not have heard of yet."""
        if self._transport.is_closing():
            return True
        try:
            with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as peeking:
                return not peeking.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True


def remember(connection: Connection, scope: Any) -> None:
    """Hand it on with a request."""
    scope[_KEY] = connection


def connection_of(scope: Scope) -> Connection | None:
    """The connection that a request came by; None where there is none, such as in a test."""
    found = scope.get(_KEY)
    return found if isinstance(found, Connection) else None
