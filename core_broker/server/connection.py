"""One client connection: reads frames, has them answered in order, writes the responses.

The socket is driven directly, through a channel (no streams, no transport): requests that arrive together and are
answered at once cost one read and one write. While a response is outstanding, nothing more is read, so a client that
sends without reading fills its own socket and not our memory. The exception are producers: their records are in the log
before they are committed, so the next few requests need not wait for that; the responses are still sent in order. Large
parts of responses go from the page cache to the socket by sendfile, except through TLS.
"""

import asyncio
import errno
import logging
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final, Protocol

import msgspec

from core_broker.handlers.api import Answer, Appended
from core_broker.handlers.context import Services
from core_broker.handlers.fetch_response import Chunk
from core_broker.handlers.produce import AcksNoneFailed
from core_broker.handlers.session import Session
from core_broker.handlers.table import BY_KEY
from core_broker.log.segment_chain import LogSlice
from core_broker.metrics import RequestStats
from core_broker.protocol.frames import HEADER_BYTES_MIN, SIZE_BYTES, unpack_header
from core_broker.protocol.primitives import DecodeError
from core_broker.server.authentication import Reply
from core_broker.server.channel import Channel
from core_broker.server.dispatch import UnknownRequest, dispatch
from core_broker.server.logins import SECONDS_MAX as LOGIN_SECONDS_MAX
from core_broker.server.logins import Login
from core_broker.server.memory import SMALL_BYTES, RequestMemory
from core_broker.server.turns import Turns
from core_broker.settings.network import ENCRYPTED

log = logging.getLogger(__name__)
request_log = logging.getLogger("core_broker.requests")

_unpack_size = struct.Struct(">i").unpack_from
_unpack_key = struct.Struct(">h").unpack_from
_PRODUCE: Final = 0
_AUTHENTICATE: Final = 36
_UNCOMMITTED_MAX: Final = 16
"""Produce requests of one connection whose records are in the log and not committed; the next one waits."""
_SENDFILE_BYTES_MAX: Final = 1 << 20
_ANSWERS_QUEUED_MAX: Final = 64
"""Responses to requests that arrived together are sent together, up to this many."""
_TLS_HANDSHAKE: Final = 0x1603
"""How a connection with TLS begins."""
_GONE: Final = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTUNREACH})


Dispatch = Callable[[memoryview, tuple[int, int, int], Session, Services], Answer | Appended | Awaitable[Answer]]
"""Answers one request, as `core_broker.server.dispatch.dispatch` does."""


class ConnectionOwner(Protocol):
    """What a connection needs from its server, which imports this module."""

    loop: asyncio.AbstractEventLoop
    services: Services
    memory: RequestMemory
    turns: Turns
    receive_view: memoryview
    request_bytes_max: int
    logs_requests: bool
    tick: int
    stats: dict[int, RequestStats]
    """The counters of each API, by key; one that is missing is added."""

    def forget(self, connection: "Connection") -> None:
        """Forget a connection."""

    def memory_is_short(self) -> None:
        """A connection has to wait until others have finished their requests."""


class Connection:
    """A client connection from accept to close."""

    __slots__ = (
        "_awaits_admission",
        "_blocked",
        "_channel",
        "_closed",
        "_closes_when_sent",
        "_filled",
        "_inbox",
        "_is_pipelining",
        "_login",
        "_login_timer",
        "_muted",
        "_out",
        "_owner",
        "_pending",
        "_throttle",
        "dispatch",
        "last_tick",
        "received_at",
        "reserved",
        "session",
    )

    def __init__(
        self,
        channel: Channel,
        session: Session,
        owner: ConnectionOwner,
        dispatch: Dispatch = dispatch,
        *,
        login: Login | None = None,
    ) -> None:
        self._channel = channel
        self._owner = owner
        self.session = session
        self.dispatch = dispatch
        """What answers the frames of this connection; another function may take over for the next frame."""
        self.last_tick = owner.tick
        self._inbox: memoryview | None = None
        self._filled = 0
        self._out: deque[Chunk | memoryview] = deque()
        self._pending: deque[tuple[_Request, asyncio.Future[Answer]]] = deque()
        """Requests without a response yet; all but the last have been handled, and wait for the commit of records."""
        self._is_pipelining = False
        """Whether further requests of a producer may be handled before the pending ones are answered."""
        self._blocked = False
        self._muted = False
        self._closed = False
        self._awaits_admission = False
        self._throttle: asyncio.TimerHandle | None = None
        """The end of the time for which a quota of the client forbids to read."""
        self.reserved = 0
        """Size of the large frame being received, reserved from the budget of all connections; 0 if there is none."""
        self.received_at = 0.0
        """When the last part of it arrived."""
        self._login = login
        """How the client logs in; None if it need not."""
        self._login_timer: asyncio.TimerHandle | None = None
        self._closes_when_sent = ""
        """Why to close once everything is sent; empty to go on."""
        if login is not None:
            self._restart_login_timer()
        channel.start_reading(self._on_readable)

    def close(self, reason: str = "") -> None:
        """Close the connection and cancel what it waits for."""
        if self._closed:
            return
        self._closed = True
        if self._throttle is not None:
            self._throttle.cancel()
        if self._login_timer is not None:
            self._login_timer.cancel()
        self._channel.close()
        self._out.clear()
        for _, future in self._pending:
            future.cancel()
        self._pending.clear()
        if self._awaits_admission:
            self._owner.memory.forget(self._on_admitted)
        if self._inbox is not None:
            inbox, self._inbox = self._inbox, None
            self._owner.memory.give(inbox)
        self._release_reservation()
        self._owner.forget(self)
        if reason:
            log.info("connection closed", extra={"client": self._peer(), "reason": reason})

    @property
    def _is_busy(self) -> bool:
        """Whether the next request has to wait for a response that is not computed or not written to the socket, or for
        the end of a throttle."""
        return self._blocked or self._throttle is not None or (bool(self._pending) and not self._is_pipelining)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        if (self._pending or self._blocked or self._throttle) and self._is_busy:
            self._mute_while_busy()
            return
        if self.reserved:
            # A large request is read in turns, until the socket is empty.
            self._mute()
            self._owner.turns.add(self._read_large)
            return
        try:
            if self._inbox is None:
                self._read_into_shared()
            else:
                self._read_into_inbox(self._inbox)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._close_on_error(error)

    def _read_into_shared(self) -> None:
        """The usual case: whole requests are answered directly from a buffer that all connections share."""
        view = self._owner.receive_view
        count = self._channel.read_into(view)
        if count == 0:
            self.close()
            return
        self.last_tick = self._owner.tick
        consumed = self._answer_frames(view, count)
        if consumed < count and not self._closed:
            self._keep(view[consumed:count])
        self._flush()

    def _read_large(self) -> None:
        """Read a part of a large request, and answer it once it is complete."""
        inbox = self._inbox
        if inbox is None or self._is_busy:
            return  # closed since this turn was requested, or to be continued after a response
        try:
            self._read_into_inbox(inbox)
        except (BlockingIOError, InterruptedError):
            self._unmute()
            return
        except OSError as error:
            self._close_on_error(error)
            return
        if self._closed or self._is_busy:
            return
        if self.reserved:
            self._owner.turns.add(self._read_large)
        else:
            self._unmute()

    def _read_into_inbox(self, inbox: memoryview) -> None:
        """Continue to receive a request that did not arrive in one piece."""
        # A buffer can be many times larger than its request; reading more than this could take several turns.
        end = max(self.reserved, self._filled + SMALL_BYTES)
        count = self._channel.read_into(inbox[self._filled : end])
        if count == 0:
            self.close()
            return
        self.last_tick = self._owner.tick
        self.received_at = self._owner.loop.time()
        self._filled += count
        self._answer_inbox()
        self._flush()

    def _answer_inbox(self) -> None:
        """Answer the complete requests in the inbox and keep the rest."""
        inbox = self._inbox
        if inbox is None:
            return
        filled = self._filled
        consumed = self._answer_frames(inbox, filled)
        if self._closed:
            return
        if consumed == 0:
            if not self._is_busy:
                self._make_room()
            return
        self._inbox = None
        self._release_reservation()
        if consumed < filled:
            self._keep(inbox[consumed:filled])
        self._owner.memory.give(inbox)

    def _answer_frames(self, view: memoryview, end: int) -> int:
        """Answer complete frames one after another; returns the position of the first unanswered byte."""
        start = 0
        pending, out = self._pending, self._out
        size_min, size_max = HEADER_BYTES_MIN, self._owner.request_bytes_max
        if self._login is not None:
            size_min, size_max = self._frame_bytes
        while end - start >= SIZE_BYTES:
            size: int = _unpack_size(view, start)[0]
            if not size_min <= size <= size_max:
                self._refuse_size(size, size_max)
                return start
            begin = start + SIZE_BYTES
            stop = begin + size
            if stop > end:
                return start
            # Without a login there is a header; during one nothing is pending.
            if pending and _unpack_key(view, begin)[0] != _PRODUCE:
                self._is_pipelining = False
                return start
            frame = view[begin:stop]
            start = stop
            if self._login is None:
                self._answer(frame)
            else:
                self._answer_after_login(frame, self._login)
                size_min, size_max = self._frame_bytes
            if len(out) > _ANSWERS_QUEUED_MAX:
                self._flush()
            if (pending or self._blocked or self._throttle or self._closed) and (self._is_busy or self._closed):
                return start
        return start

    def _keep(self, rest: memoryview) -> None:
        """Move bytes that cannot be answered yet out of a buffer that is about to be reused."""
        inbox = self._owner.memory.take(len(rest), max(self._size_needed(rest), len(rest)))
        inbox[: len(rest)] = rest
        self._inbox = inbox
        self._filled = len(rest)
        if not self._is_busy:
            self._make_room()

    def _make_room(self) -> None:
        """Prepare for the rest of a frame: reserve its size if it is large, and enlarge a full inbox."""
        inbox = self._inbox
        if inbox is None or self._closed:
            return
        needed = self._size_needed(inbox[: self._filled])
        if needed > SMALL_BYTES and not self.reserved and not self._reserve(needed):
            return
        if self._filled == len(inbox):
            # Double what has arrived rather than trust the announced length: a client could announce huge frames on
            # many connections and send nothing.
            bigger = self._owner.memory.take(min(needed, max(2 * self._filled, SMALL_BYTES)), needed)
            bigger[: self._filled] = inbox
            self._inbox = bigger
            self._owner.memory.give(inbox)

    def _reserve(self, needed: int) -> bool:
        """Reserve memory for a large frame; until that succeeds, nothing more is read."""
        self.received_at = self._owner.loop.time()
        if self._owner.memory.reserve(needed, self._on_admitted):
            self.reserved = needed
            return True
        self._awaits_admission = True
        self._mute()
        self._owner.memory_is_short()
        return False

    def _on_admitted(self) -> None:
        """The memory was reserved after a wait; continue reading."""
        self._awaits_admission = False
        assert self._inbox is not None
        self.reserved = self._size_needed(self._inbox[: self._filled])
        self.received_at = self._owner.loop.time()
        self._make_room()
        self._unmute()

    def _size_needed(self, rest: memoryview) -> int:
        """The length of the frame at the start of `rest`, as far as known, within the allowed range."""
        if len(rest) < SIZE_BYTES:
            return SIZE_BYTES
        size: int = _unpack_size(rest, 0)[0]
        size_min, size_max = self._frame_bytes
        return SIZE_BYTES + min(max(size, size_min), size_max)

    @property
    def _frame_bytes(self) -> tuple[int, int]:
        """The sizes of frames that may come next."""
        limits = None if self._login is None else self._login.frame_bytes
        return limits or (HEADER_BYTES_MIN, self._owner.request_bytes_max)

    def _release_reservation(self) -> None:
        if self.reserved:
            size, self.reserved = self.reserved, 0
            self._owner.memory.release(size)

    # -- pausing to read -------------------------------------------------------------------------------------------

    def _mute_while_busy(self) -> None:
        """Leave more input in the socket while a response is outstanding, but notice a closed connection."""
        try:
            if self._channel.is_closed_by_client():
                self.close()
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._close_on_error(error)
            return
        self._mute()

    def _mute(self) -> None:
        if not self._muted:
            self._muted = True
            self._channel.stop_reading()

    def _unmute(self) -> None:
        if self._muted and not self._closed and not self._awaits_admission:
            self._muted = False
            self._channel.start_reading(self._on_readable)

    def throttle(self, seconds: float) -> None:
        """Answer what was handled by now, but read and handle nothing more for this time (KIP-219).

        The client knows from the response, and sends nothing meanwhile; if it does all the same, its own socket fills.
        """
        if self._closed:
            return
        ends_at = self._owner.loop.time() + seconds
        if self._throttle is not None:
            if self._throttle.when() >= ends_at:
                return
            self._throttle.cancel()
        self._throttle = self._owner.loop.call_at(ends_at, self._end_throttle)
        if seconds * 1000 > self._owner.services.settings.connections_max_idle_ms:
            extra = {"client": self._peer(), "seconds": round(seconds)}
            log.warning(
                "a quota throttles a client for longer than connections.max.idle.ms: it will be cut", extra=extra
            )

    def _end_throttle(self) -> None:
        self._throttle = None
        self.received_at = self._owner.loop.time()
        if not self._is_busy:
            self._resume()

    # -- answering -------------------------------------------------------------------------------------------------

    def _answer(self, frame: memoryview) -> None:
        header = unpack_header(frame, 0)
        request = _Request(perf_counter(), len(frame), *header)
        try:
            answer = self.dispatch(frame, header, self.session, self._owner.services)
        except (DecodeError, UnknownRequest) as error:
            self._refuse(str(error))
            return
        except AcksNoneFailed:
            self.close("a produce request with acks=0 failed")
            return
        except Exception:
            log.exception("request failed", extra={"client": self._peer(), "api": request.api_name})
            self.close("internal error")
            return
        kind = type(answer)
        is_ready = kind is bytearray or kind is list or answer is None
        if is_ready and not self._pending:  # the usual case
            self._count(request)
            self._queue(answer)  # type: ignore[arg-type]  # an awaitable has none of these types
            return
        loop = self._owner.loop
        if kind is Appended:
            assert isinstance(answer, Appended)
            future: asyncio.Future[Answer] = loop.create_task(answer.response)
        elif is_ready:  # but not the ones before it
            future = loop.create_future()
            future.set_result(answer)  # type: ignore[arg-type]  # as above
        elif isinstance(answer, asyncio.Future):
            future = answer
        else:
            future = loop.create_task(answer)  # type: ignore[arg-type]  # handlers return nothing else
        request.is_handled = is_ready or kind is Appended
        self._pending.append((request, future))
        self._is_pipelining = request.is_handled and len(self._pending) < _UNCOMMITTED_MAX
        future.add_done_callback(self._on_answer)

    def _answer_after_login(self, frame: memoryview, login: Login) -> None:
        """Answer a frame of a connection whose client has to log in."""
        began, size = perf_counter(), len(frame)
        reply = login.receive(frame)
        if reply is None:
            self._answer(frame)
            return
        if self._login_timer is not None:
            self._restart_login_timer()
        if isinstance(reply, Reply) and not reply.closes:
            self._count(_Request(began, size, reply.key, 0, 0))
            self._queue(reply.response)
            self._stop_login_timer(login)
        elif isinstance(reply, Reply) and reply.response is None and reply.delay_seconds == 0:
            self.close(reply.reason)
        else:
            self._reply_later(reply, login, _Request(began, size, _AUTHENTICATE, 0, 0))

    def _reply_later(self, reply: Reply | Awaitable[Reply], login: Login, request: "_Request") -> None:
        """Reply when a thread has computed the answer, or a failure has been delayed; meanwhile nothing is read."""
        future = self._owner.loop.create_task(self._reply(reply, login))
        self._pending.append((request, future))
        self._is_pipelining = False
        future.add_done_callback(self._on_answer)

    async def _reply(self, reply: Reply | Awaitable[Reply], login: Login) -> Answer:
        if not isinstance(reply, Reply):
            reply = await reply
        if reply.closes:
            await login.delay(reply)
            self._closes_when_sent = reply.reason or "authentication failed"
        self._stop_login_timer(login)
        return reply.response

    def _restart_login_timer(self) -> None:
        if self._login_timer is not None:
            self._login_timer.cancel()
        self._login_timer = self._owner.loop.call_later(
            LOGIN_SECONDS_MAX, self.close, f"the client did not log in within {LOGIN_SECONDS_MAX:.0f} s"
        )

    def _stop_login_timer(self, login: Login) -> None:
        """Let a client that has logged in take its time."""
        if self._login_timer is not None and not login.is_in_progress:
            self._login_timer.cancel()
            self._login_timer = None

    def _on_answer(self, _: "asyncio.Future[Answer]") -> None:
        """Send the responses that took time and have none before them, and continue with the next requests."""
        if not self._pending or not self._pending[0][1].done():
            return
        while self._pending and self._pending[0][1].done():
            self._take_response(*self._pending.popleft())
        if not self._closed:
            self._is_pipelining = bool(self._pending) and self._pending[-1][0].is_handled
            self._resume()

    def _take_response(self, request: "_Request", future: "asyncio.Future[Answer]") -> None:
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            self.close("the request was cancelled")
        elif isinstance(error, AcksNoneFailed):
            self.close("a produce request with acks=0 failed")
        elif isinstance(error, UnknownRequest):
            self._refuse(str(error))
        elif error is not None:
            log.error("request failed", exc_info=error, extra={"client": self._peer(), "api": request.api_name})
            self.close("internal error")
        else:
            self._count(request)
            self._queue(future.result())

    def _resume(self) -> None:
        """Answer the requests waiting in the inbox, and read again."""
        self._flush()
        if self._closes_when_sent and not self._out:
            self.close(self._closes_when_sent)
        if self._closed or self._is_busy or self._awaits_admission:
            return
        self._answer_inbox()
        self._flush()
        if not self._is_busy:
            self._unmute()

    def _queue(self, answer: Answer) -> None:
        session = self.session
        if session.throttle_ms:
            self.throttle(session.throttle_ms / 1000)
            session.throttle_ms = 0
        if isinstance(answer, bytearray):
            self._out.append(answer)
        elif answer is not None:
            self._out.extend(answer)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write as much as the socket accepts; the rest follows when it is writable again."""
        if not self._out or self._blocked or self._closed:
            return
        self.last_tick = self._owner.tick
        try:
            done = self._write()
        except (BlockingIOError, InterruptedError):
            done = False
        except OSError as error:
            self._close_on_error(error)
            return
        if not done:
            self._blocked = True
            self._channel.start_writing(self._on_writable)

    def _on_writable(self) -> None:
        self.last_tick = self._owner.tick
        try:
            if not self._write():
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._close_on_error(error)
            return
        self._channel.stop_writing()
        self._blocked = False
        if not self._is_busy:
            self._resume()

    def _write(self) -> bool:
        """Send from the queue until it is empty (True) or other connections must have a turn (False)."""
        out = self._out
        turn_max = self._channel.turn_bytes_max
        written = 0
        while out:
            if written > turn_max:
                return False
            chunk = out[0]
            if isinstance(chunk, LogSlice):
                written += self._send_file(chunk)
            else:
                written += self._send_bytes(chunk)
        return not self._channel.has_unsent or self._channel.flush()

    def _send_file(self, part: LogSlice) -> int:
        count = self._channel.send_file(part.file.fd, part.position, min(part.length, _SENDFILE_BYTES_MAX))
        if count == 0:
            raise OSError(errno.EIO, "a log file is shorter than the response announced from it")
        if count == part.length:
            self._out.popleft()
        else:
            self._out[0] = LogSlice(part.file, part.position + count, part.length - count, part.next_offset)
        return count

    def _send_bytes(self, chunk: bytes | bytearray | memoryview) -> int:
        out = self._out
        if len(out) > 1 and not isinstance(out[1], LogSlice):
            chunk = self._join_small()
        more = socket.MSG_MORE if len(out) > 1 else 0
        count = self._channel.write(chunk, more)
        if count == len(chunk):
            out.popleft()
        else:
            out[0] = memoryview(chunk)[count:]
        return count

    def _join_small(self) -> bytearray:
        """Join the responses to requests that arrived together into one write."""
        out = self._out
        joined = bytearray()
        while out and len(joined) < SMALL_BYTES and not isinstance(out[0], LogSlice):
            chunk = out.popleft()
            assert not isinstance(chunk, LogSlice)
            joined += chunk
        out.appendleft(joined)
        return joined

    # -- closing and accounting ------------------------------------------------------------------------------------

    def _refuse_size(self, size: int, size_max: int) -> None:
        """Refuse a frame before any of it is read."""
        login = self._login
        if login is not None and login.is_in_progress and size > HEADER_BYTES_MIN:
            self._reply_later(login.refuse_size(size), login, _Request(perf_counter(), 0, _AUTHENTICATE, 0, 0))
        else:
            self._refuse(_why_not_a_frame(size, size_max, self.session))

    def _refuse(self, reason: str) -> None:
        self._owner.services.metrics.frames_refused += 1
        log.warning(
            "request refused", extra={"client": self._peer(), "software": self.session.software, "reason": reason}
        )
        self.close()

    def _close_on_error(self, error: OSError) -> None:
        """Close after a socket error; a client that disconnected is normal, anything else is logged."""
        self.close("" if error.errno in _GONE else str(error))

    def _peer(self) -> str:
        return f"{self.session.host}:{self.session.port}"

    def _count(self, request: "_Request") -> None:
        """Count an answered request, and log it if the request log is on."""
        stats = self._owner.stats[request.key]
        seconds = perf_counter() - request.began
        stats.count += 1
        stats.seconds += seconds
        if seconds > stats.seconds_max:
            stats.seconds_max = seconds
        if self._owner.logs_requests:
            request_log.info(
                "request",
                extra={
                    "api": request.api_name,
                    "version": request.version,
                    "correlation_id": request.correlation_id,
                    "client": self._peer(),
                    "principal": str(self.session.principal),
                    "software": self.session.software,
                    "bytes": request.size_bytes,
                    "ms": round(seconds * 1000, 3),
                },
            )


def _why_not_a_frame(size: int, size_max: int, session: Session) -> str:
    if size >> 16 == _TLS_HANDSHAKE and session.security_protocol not in ENCRYPTED:
        name, protocol = session.listener_name, session.security_protocol
        return f"the client uses TLS, but the listener {name} is {protocol}; change the client's security.protocol"
    return f"the frame has {size} bytes; {HEADER_BYTES_MIN} to {size_max} are allowed"


class _Request(msgspec.Struct, gc=False):
    """What is kept about a request until it is answered."""

    began: float
    size_bytes: int
    key: int
    version: int
    correlation_id: int
    is_handled: bool = False
    """Whether all that is missing is the commit of its records, or the responses before it."""

    @property
    def api_name(self) -> str:
        """The name of the API, or its key if it is unknown."""
        return BY_KEY[self.key].name if self.key in BY_KEY else str(self.key)
