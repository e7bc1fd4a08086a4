"""A channel with TLS.

OpenSSL works on memory, and this module moves the bytes: one system call carries many records of 16 KiB, and the socket
stays ours, so that looking at it, closing it and waiting for it are as without TLS. Decrypted bytes can wait where the
event loop does not see them; the channel then calls the reader itself. Records from log files are read into memory,
because the kernel's sendfile would send them as they are.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

RECORD_BYTES: Final = 16 * 1024
"""Maximum content of one record."""
_RECORD_ON_WIRE_BYTES: Final = RECORD_BYTES + 512
"""The same with header, tag and padding, generously."""
_RECORD_TYPES: Final = range(0x14, 0x18)
_RECEIVE_BYTES: Final = 128 * 1024
_WRITE_BYTES_MAX: Final = 128 * 1024
"""How much is encrypted before it is sent; what a connection may hold unsent."""
_MORE_BYTES_MAX: Final = 32 * 1024
"""Less than this is kept back while more follows."""

# Used by one connection at a time, for as long as one call takes.
_received = memoryview(bytearray(_RECEIVE_BYTES))
_from_file = memoryview(bytearray(_WRITE_BYTES_MAX))


class TlsChannel:
    """A channel whose handshake is made by `shake_hands`."""

    __slots__ = (
        "_fd",
        "_has_ended",
        "_has_more",
        "_held",
        "_incoming",
        "_is_open",
        "_is_reading",
        "_is_scheduled",
        "_is_writing",
        "_loop",
        "_on_readable",
        "_outgoing",
        "_socket",
        "_tls",
        "_unsent",
    )

    turn_bytes_max = 256 * 1024

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._unsent = memoryview(b"")
        self._held = memoryview(b"")
        """Decrypted bytes that arrived while nothing was to be read: at most one record."""
        self._has_more = False
        """Whether there may be decrypted or decryptable bytes that `read_into` has not returned."""
        self._has_ended = False
        self._on_readable = _nothing
        self._is_open = False
        """Whether the handshake is complete."""
        self._is_reading = False
        self._is_scheduled = False
        self._is_writing = False

    # -- handshake -------------------------------------------------------------------------------------------------

    def shake_hands(self) -> bool:
        """Continue the handshake with what has arrived; True once it is complete.

        Raises OSError, of which ssl.SSLError is a kind, if it has failed; the other side has got an alert then.
        """
        try:
            if not self._receive(_RECEIVE_BYTES):
                raise ConnectionResetError(errno.ECONNRESET, "the client closed the connection during the handshake")
        except (BlockingIOError, InterruptedError):
            return False
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        else:
            self._is_open = True
            self._has_more = self._incoming.pending > 0
            return True
        finally:
            self._send()

    @property
    def speaks_tls(self) -> bool:
        """Whether what `shake_hands` has just received is TLS at all."""
        return _received[0] in _RECORD_TYPES

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate of the other side (DER); None if it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read_into(self, view: memoryview, /) -> int:
        """See `Channel`."""
        filled = self._take_held(view) if self._held else 0
        if self._has_more:
            filled = self._decrypt_into(view, filled)
        if filled == len(view) or self._has_ended:
            return filled
        try:
            # No more than fits, and the record that was incomplete: the rest stays in the socket.
            count = self._receive(min(len(view) - filled + _RECORD_ON_WIRE_BYTES, _RECEIVE_BYTES))
        except (BlockingIOError, InterruptedError):
            if filled:
                return filled
            raise
        if count == 0:
            self._end()
        else:
            filled = self._decrypt_into(view, filled)
        if filled or self._has_ended:
            return filled
        raise BlockingIOError(errno.EAGAIN, "a record is incomplete")

    def _take_held(self, view: memoryview) -> int:
        count = min(len(view), len(self._held))
        view[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _decrypt_into(self, view: memoryview, filled: int) -> int:
        """Decrypt what has arrived; returns how much of the buffer is filled."""
        size, tls, incoming = len(view), self._tls, self._incoming
        # Typeshed knows neither that any writable buffer will do, nor that the result is a number then.
        read = cast("Callable[[int, memoryview], int]", tls.read)
        self._has_more = False
        try:
            while incoming.pending or tls.pending():
                if filled == size:
                    self._has_more = True
                    break
                count = read(size - filled, view[filled:])
                if count == 0:
                    self._end()
                    break
                filled += count
        except ssl.SSLWantReadError:
            pass  # the last record is incomplete
        if self._outgoing.pending:
            self._send()  # a reply of TLS itself
        return filled

    def _end(self) -> None:
        self._has_ended = self._has_more = True  # the reader is still to see it

    def _receive(self, count: int) -> int:
        count = self._socket.recv_into(_received, count)
        self._incoming.write(_received[:count])
        return count

    def is_closed_by_client(self) -> bool:
        """See `Channel`. It takes a record from the stream and holds it: the end of the stream is encrypted, too."""
        if self._held or (self._has_more and not self._has_ended):
            return False
        count = self.read_into(_from_file[:RECORD_BYTES])
        self._held = memoryview(bytes(_from_file[:count]))
        return count == 0

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        """See `Channel`."""
        self._on_readable = on_readable
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._fd, self._ready)
        self._read_on()

    def stop_reading(self) -> None:
        """See `Channel`."""
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._fd)

    def _ready(self) -> None:
        if self._is_reading:
            self._on_readable()
            self._read_on()

    def _read_on(self) -> None:
        """Call the reader again for what the event loop cannot see."""
        if self._is_reading and not self._is_scheduled and (self._held or self._has_more):
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled)

    def _scheduled(self) -> None:
        self._is_scheduled = False
        self._ready()

    # -- writing ---------------------------------------------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        """See `Channel`."""
        return bool(self._unsent) or self._outgoing.pending > 0

    def write(self, data: bytes | bytearray | memoryview, flags: int, /) -> int:
        """See `Channel`."""
        self._require_room()
        part = memoryview(data)[:_WRITE_BYTES_MAX]
        self._encrypt(part)
        if not flags & socket.MSG_MORE or self._outgoing.pending > _MORE_BYTES_MAX:
            self._send()
        return len(part)

    def send_file(self, descriptor: int, position: int, count: int, /) -> int:
        """See `Channel`."""
        self._require_room()
        count = os.preadv(descriptor, [_from_file[: min(count, _WRITE_BYTES_MAX)]], position)
        self._encrypt(_from_file[:count])
        self._send()
        return count

    def flush(self) -> bool:
        """See `Channel`."""
        self._send()
        return not self._unsent

    def _require_room(self) -> None:
        """Raise BlockingIOError unless everything that was accepted has been sent, or is kept back for more."""
        if self._unsent and not self.flush():
            raise BlockingIOError(errno.EAGAIN, "the socket is full")

    def _encrypt(self, data: memoryview) -> None:
        position, size, write = 0, len(data), self._tls.write
        while position < size:
            position += write(data[position:])

    def _send(self) -> None:
        """Send as much as the socket accepts."""
        try:
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            if not self._unsent and self._outgoing.pending:
                self._unsent = memoryview(self._outgoing.read())
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        """See `Channel`."""
        self._is_writing = True
        self._loop.add_writer(self._fd, on_writable)

    def stop_writing(self) -> None:
        """See `Channel`."""
        self._is_writing = False
        self._loop.remove_writer(self._fd)

    def close(self) -> None:
        """See `Channel`. The other side learns that nothing was cut off, if the socket accepts that at once."""
        self.stop_reading()
        if self._is_writing:
            self.stop_writing()
        if self._is_open:
            with suppress(OSError):  # of which ssl.SSLError is a kind: the other side has not answered
                self._tls.unwrap()
            with suppress(OSError):
                self._send()
        self._socket.close()


def _nothing() -> None:
    """The reader before there is one."""
