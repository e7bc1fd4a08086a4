"""Ports: whether they are free, who has them, and keeping them for services that are started again and again.

A port is kept by a socket that is bound but does not listen. On Linux a service may listen there beside it, since both
set SO_REUSEADDR, while a process that asks for any free port is not given this one. Elsewhere the port is only checked.
"""

import socket
import sys
from contextlib import ExitStack, suppress
from typing import Final, Self

from deploy.launcher.listeners import listeners

_CAN_BE_SHARED: Final = sys.platform == "linux"


class HeldPort:
    """A port that is ours to give to a service."""

    def __init__(self, port: int, sockets: ExitStack) -> None:
        self.port = port
        self._sockets = sockets

    @classmethod
    def acquire(cls, bind: str, port: int) -> Self:
        """Take a port (0: any free one) on an address (empty: every one); OSError when it is not free."""
        with ExitStack() as sockets:
            for family, address in _addresses(bind, port):
                with suppress(_NoSuchAddress):
                    port = sockets.enter_context(_bound(family, address, port)).getsockname()[1]
            if not port:
                raise OSError(f"{bind} is not an address of this machine")
            return cls(port, sockets.pop_all() if _CAN_BE_SHARED else ExitStack())

    def release(self) -> None:
        """Let it go."""
        self._sockets.close()


def owner_of(port: int) -> str | None:
    """Who listens on a port, such as `process 4711 (java -jar shop.jar)`; None where the system does not tell."""
    found = listeners([port]).get(port)
    return str(found) if found else None


class _NoSuchAddress(OSError):
    """The machine has no such kind of address."""


def _addresses(bind: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    host = bind.strip("[]") or None
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), tuple(address)) for family, _, _, _, address in found))


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
    """Names such as localhost may have an address of version 6 where the machine itself has none."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
