"""Ports: whether they are free, which process uses them, and holding them for services that may be restarted.

A port is held by a socket that is bound but does not listen. On Linux a service may listen on it as well, since both
set SO_REUSEADDR, while a process that asks for any free port does not get this one. Elsewhere the port is only checked.
"""

import socket
import sys
from contextlib import ExitStack, suppress
from typing import Final, Self

from deploy.launcher.listeners import listeners

_CAN_BE_SHARED: Final = sys.platform == "linux"


class HeldPort:
    """A port that is reserved for a service."""

    def __init__(self, port: int, sockets: ExitStack) -> None:
        self.port = port
        self._sockets = sockets

    @classmethod
    def acquire(cls, bind: str, port: int) -> Self:
        """Reserve a port (0: any free one) on an address (empty: all); OSError if it is not free."""
        found = socket.getaddrinfo(bind.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        with ExitStack() as sockets:
            for family, address in dict.fromkeys((int(family), address) for family, _, _, _, address in found):
                with suppress(_NoSuchAddress):
                    port = sockets.enter_context(_bound(family, address, port)).getsockname()[1]
            if not port:
                raise OSError(f"{bind} is not an address of this machine")
            return cls(port, sockets.pop_all() if _CAN_BE_SHARED else ExitStack())

    def release(self) -> None:
        """Release the port."""
        self._sockets.close()


def owner_of(port: int) -> str | None:
    """The process that listens on a port, such as `process 4711 (java -jar shop.jar)`; None if it is unknown."""
    found = listeners([port]).get(port)
    return str(found) if found else None


class _NoSuchAddress(OSError):
    """The machine has no such kind of address."""


def _bound(family: int, address: tuple[object, ...], port: int) -> socket.socket:
    try:
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _NoSuchAddress from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        bound.bind((address[0], port, *address[2:]))
    except OSError:
        bound.close()
        if family == socket.AF_INET6 and not _has_ipv6():
            raise _NoSuchAddress from None
        raise
    return bound


def _has_ipv6() -> bool:
    """Names such as localhost may have an IPv6 address although the machine has none."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
