"""TLS handshakes in progress: limited in number and in time, and one step per round of the event loop."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from core_broker.metrics import BrokerMetrics
from core_broker.server.tls_channel import TlsChannel
from core_broker.server.turns import Turns

log = logging.getLogger(__name__)

HANDSHAKES_MAX: Final = 1000
"""With more than this the oldest is given up: a client that wants to connect takes milliseconds."""
_SECONDS_MAX: Final = 10.0
_HINTS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not accepted",
    "NO_SHARED_CIPHER": "the client allows none of the cipher suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has shown no certificate, but ssl.client.auth is required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client does not accept the broker's certificate, which has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept the broker's certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the authority of the broker's certificate",
    "UNSUPPORTED_PROTOCOL": "the client allows none of ssl.enabled.protocols",
}
_NOT_TLS: Final = "the client does not use TLS; change its security.protocol to that of the listener"


class Handshakes:
    """The handshakes of all listeners."""

    def __init__(
        self,
        turns: Turns,
        metrics: BrokerMetrics,
        *,
        seconds_max: float = _SECONDS_MAX,
        count_max: int = HANDSHAKES_MAX,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._turns = turns
        self._metrics = metrics
        self._seconds_max = seconds_max
        self._count_max = count_max
        self._running: dict[_Handshake, None] = {}

    def __len__(self) -> int:
        return len(self._running)

    def begin(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        description: dict[str, str],
        on_end: Callable[[TlsChannel | None], None],
    ) -> None:
        """Shake hands; `on_end` gets the channel, or None if it failed. `description` is for the log."""
        if len(self._running) >= self._count_max:
            next(iter(self._running)).fail(f"more than {self._count_max} clients are shaking hands")
        channel = TlsChannel(sock, context, self._loop)

        def end(self_: "_Handshake", reason: str) -> None:
            self._running.pop(self_, None)
            if reason:
                self._metrics.login(description["listener"], "TLS").failed += 1
                log.info("TLS handshake failed", extra={**description, "reason": reason})
            on_end(None if reason else channel)

        handshake = _Handshake(channel, self._turns, end)
        self._running[handshake] = None
        handshake.start(self._loop, self._seconds_max)

    def close(self) -> None:
        """Give up all of them."""
        for handshake in tuple(self._running):
            handshake.fail("the broker stops")


class _Handshake:
    """One handshake."""

    def __init__(self, channel: TlsChannel, turns: Turns, on_end: "Callable[[_Handshake, str], None]") -> None:
        self._channel = channel
        self._turns = turns
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False

    def start(self, loop: asyncio.AbstractEventLoop, seconds_max: float) -> None:
        self._timer = loop.call_later(seconds_max, self.fail, f"not complete within {seconds_max:.0f} s")
        self._channel.start_reading(self._on_readable)

    def fail(self, reason: str) -> None:
        if not self._has_ended:
            self._channel.close()
            self._end(reason)

    def _on_readable(self) -> None:
        # A step can be a signature, which takes up to milliseconds: requests of open connections go first.
        self._channel.stop_reading()
        self._turns.add(self._step)

    def _step(self) -> None:
        if self._has_ended:
            return
        try:
            is_complete = self._channel.shake_hands()
        except OSError as error:
            self.fail(self._why(error))
            return
        if self._channel.has_unsent:
            self._channel.start_writing(self._on_writable)
        if is_complete:
            self._channel.stop_writing()
            self._end("")
        else:
            self._channel.start_reading(self._on_readable)

    def _on_writable(self) -> None:
        if self._channel.flush():
            self._channel.stop_writing()

    def _why(self, error: OSError) -> str:
        if not isinstance(error, ssl.SSLError):
            return error.strerror or str(error)
        if not self._channel.speaks_tls:
            return _NOT_TLS
        hint = _HINTS.get(error.reason or "")
        detail = getattr(error, "verify_message", None) or error.reason or str(error)
        return f"{hint} ({detail})" if hint else str(detail)

    def _end(self, reason: str) -> None:
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._on_end(self, reason)
