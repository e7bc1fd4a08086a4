"""The bytes of a connection: reading, writing, and waiting for the socket; here without encryption.

A plain channel adds no call of its own to reading and writing: its methods are those of the socket.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Protocol


class Channel(Protocol):
    """What a connection needs from its socket. Nothing waits: BlockingIOError is raised instead."""

    @property
    def turn_bytes_max(self) -> int:
        """After this much output a connection yields to the others."""

    @property
    def has_unsent(self) -> bool:
        """Whether bytes that `write` and `send_file` accepted are not in the socket yet."""

    def read_into(self, view: memoryview, /) -> int:
        """Read into a buffer; 0 at the end of the stream."""

    def write(self, data: bytes | bytearray | memoryview, flags: int, /) -> int:
        """Write the beginning of `data` and return its length; MSG_MORE among the flags: more follows at once."""

    def send_file(self, descriptor: int, position: int, count: int, /) -> int:
        """Write the beginning of a part of a file and return its length."""

    def flush(self) -> bool:
        """Send what is unsent; False if some of it still is."""

    def is_closed_by_client(self) -> bool:
        """Whether the stream has ended, without taking any bytes from it; BlockingIOError if there is nothing yet."""

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` whenever there is something to read."""

    def stop_reading(self) -> None:
        """Leave what arrives where it is."""

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        """Call `on_writable` whenever the socket accepts bytes."""

    def stop_writing(self) -> None:
        """Nothing more is to be written for now."""

    def close(self) -> None:
        """Close the socket."""


class PlainChannel:
    """A channel without encryption."""

    __slots__ = ("_fd", "_is_writing", "_loop", "_socket", "read_into", "send_file", "write")

    has_unsent = False
    turn_bytes_max = 1 << 20

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._is_writing = False
        self.read_into: Callable[[memoryview], int] = sock.recv_into
        self.write: Callable[[bytes | bytearray | memoryview, int], int] = sock.send
        self.send_file: Callable[[int, int, int], int] = partial(os.sendfile, self._fd)

    def flush(self) -> bool:
        """There is never anything unsent."""
        return True

    def is_closed_by_client(self) -> bool:
        """See `Channel`."""
        return not self._socket.recv(1, socket.MSG_PEEK)

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        """See `Channel`."""
        self._loop.add_reader(self._fd, on_readable)

    def stop_reading(self) -> None:
        """See `Channel`."""
        self._loop.remove_reader(self._fd)

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        """See `Channel`."""
        self._is_writing = True
        self._loop.add_writer(self._fd, on_writable)

    def stop_writing(self) -> None:
        """See `Channel`."""
        self._is_writing = False
        self._loop.remove_writer(self._fd)

    def close(self) -> None:
        """See `Channel`."""
        self._loop.remove_reader(self._fd)
        if self._is_writing:
            self._loop.remove_writer(self._fd)
        self._socket.close()
