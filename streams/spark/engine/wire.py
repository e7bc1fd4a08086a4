"""Messages on a socket: four bytes of length, then JSON. A peer that sends anything else is disconnected."""

import contextlib
import socket
import struct
import threading
from typing import Final, TypeVar

import msgspec

from streams.spark.engine.messages import MESSAGE_BYTES_MAX

_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = 1 << 20

T = TypeVar("T")


class BrokenMessage(Exception):
    """The peer sent something other than a message, or a message is too long."""


class Channel:
    """One end of a connection. One thread receives; any may send."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._sending = threading.Lock()

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; raises `BrokenMessage` when it is too long, OSError when the peer is gone."""
        body = msgspec.json.encode(message)
        if len(body) > MESSAGE_BYTES_MAX:
            raise BrokenMessage(f"a message of {len(body)} bytes is too long; at most {MESSAGE_BYTES_MAX} are allowed")
        with self._sending:
            self._peer.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self, kind: type[T]) -> T | None:
        """The next message; None when the peer has hung up."""
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        if length > MESSAGE_BYTES_MAX:
            raise BrokenMessage(f"a message of {length} bytes is too long; at most {MESSAGE_BYTES_MAX} are allowed")
        body = self._exactly(length)
        if body is None:
            return None
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise BrokenMessage(f"not a message: {error}") from error

    def wait_at_most(self, seconds: float | None) -> None:
        """How long sending and receiving may take; None for as long as the peer is there."""
        self._peer.settimeout(seconds)

    def close(self) -> None:
        """Hang up; a thread that is receiving gets None."""
        with contextlib.suppress(OSError):  # the peer was faster
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()

    def _exactly(self, count: int) -> bytes | None:
        """Exactly `count` bytes, or None if the peer hangs up first."""
        parts = bytearray()
        while len(parts) < count:
            try:
                part = self._peer.recv(min(count - len(parts), _CHUNK))
            except ConnectionError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)
