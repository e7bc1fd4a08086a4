"""All listeners and connections of a broker."""

import asyncio
import logging
import socket
from collections import Counter
from typing import Final

from core_broker.handlers.context import Services
from core_broker.handlers.table import BY_KEY
from core_broker.metrics import BrokerMetrics, RequestStats
from core_broker.server.connection import Connection
from core_broker.server.dispatch import Client
from core_broker.server.listener import BoundListener
from core_broker.server.memory import RequestMemory
from core_broker.server.turns import Turns
from core_broker.settings import BrokerSettings, Listener

log = logging.getLogger(__name__)

_RECEIVE_BYTES: Final = 128 * 1024
_UNLIMITED: Final = 1 << 62


class Server:
    """Accepts connections within the limits, and closes the idle ones."""

    def __init__(self, settings: BrokerSettings, metrics: BrokerMetrics) -> None:
        self.loop = asyncio.get_running_loop()
        self.services: Services
        self.receive_view = memoryview(bytearray(_RECEIVE_BYTES))
        limit = settings.queued_max_request_bytes
        self.memory = RequestMemory(limit if limit > 0 else _UNLIMITED)
        self.turns = Turns(self.loop)
        self.request_bytes_max = settings.socket_request_max_bytes
        self.logs_requests = settings.request_log_enable
        self.tick = 0
        self._settings = settings
        self._metrics = metrics
        self._stats: dict[int, RequestStats] = {}
        self._listeners: list[BoundListener] = []
        self._controller_listeners: list[BoundListener] = []
        self._connections: set[Connection] = set()
        self._per_host: Counter[str] = Counter()
        self.stalled_seconds = 5.0
        """A client that pauses for this long inside a large request is disconnected when memory is short."""
        self._watch: asyncio.TimerHandle | None = None
        self._second_ends = 0.0
        self._accepted_before = 0
        self._limits_per_host = _overrides(settings.max_connections_per_ip_overrides)

    def configure(self, settings: BrokerSettings) -> None:
        """Apply settings that changed at run time: connection limits and the request log."""
        self._settings = settings
        self.logs_requests = settings.request_log_enable
        self._limits_per_host = _overrides(settings.max_connections_per_ip_overrides)

    @property
    def listeners(self) -> list[Listener]:
        """The bound listeners of clients, with their actual ports."""
        return [bound.listener for bound in self._listeners]

    @property
    def controller_listeners(self) -> list[Listener]:
        """The bound listeners of the other nodes, with their actual ports."""
        return [bound.listener for bound in self._controller_listeners]

    async def bind(self) -> None:
        """Bind the ports; no connection is accepted before `start` and `start_controller`."""
        settings = self._settings
        for listener in settings.listeners:
            bound = await BoundListener.bind(
                listener, self._accept, pace=self._pace, backlog=settings.socket_listen_backlog_size
            )
            is_controller = listener.name in settings.controller_listener_names
            (self._controller_listeners if is_controller else self._listeners).append(bound)

    def start_controller(self, services: Services) -> None:
        """Start accepting other nodes: a quorum needs that before it has a leader, and a broker before it can start."""
        self.services = services
        for listener in self._controller_listeners:
            listener.start()

    def start(self, services: Services) -> None:
        """Start accepting clients."""
        self.services = services
        for listener in self._listeners:
            listener.start()

    async def run(self) -> None:
        """Close connections that have been silent for too long."""
        idle_seconds = self._settings.connections_max_idle_ms / 1000
        ticks_max = 10
        while True:
            await asyncio.sleep(idle_seconds / ticks_max)
            self.tick += 1
            for connection in [c for c in self._connections if self.tick - c.last_tick > ticks_max]:
                connection.close("idle for longer than connections.max.idle.ms")

    def close_to_clients(self) -> None:
        """Stop serving clients; other nodes still need the controller of this one."""
        for listener in self._listeners:
            listener.close()
        for connection in [c for c in self._connections if not c.client.is_controller_listener]:
            connection.close()

    def close(self) -> None:
        """Stop listening and close every connection."""
        if self._watch is not None:
            self._watch.cancel()
        for listener in (*self._listeners, *self._controller_listeners):
            listener.close()
        for connection in tuple(self._connections):
            connection.close()

    def memory_is_short(self) -> None:
        """Watch for clients that paused inside a request while other requests wait for memory."""
        if self._watch is None:
            self._watch = self.loop.call_later(self.stalled_seconds / 2, self._close_stalled)

    def _close_stalled(self) -> None:
        self._watch = None
        if not self.memory.is_short:
            return
        oldest = self.loop.time() - self.stalled_seconds
        for connection in [c for c in self._connections if c.reserved and c.received_at < oldest]:
            connection.close("stalled inside a request while other requests wait for memory")
        self.memory_is_short()

    def forget(self, connection: Connection) -> None:
        """Forget a closed connection."""
        self._connections.discard(connection)
        host = connection.client.host
        self._per_host[host] -= 1
        if self._per_host[host] <= 0:
            del self._per_host[host]
        self._metrics.connections_open -= 1

    def stats(self, key: int) -> RequestStats:
        """The counters of an API."""
        stats = self._stats.get(key)
        if stats is None:
            stats = self._stats[key] = self._metrics.request(BY_KEY[key].name)
        return stats

    def _accept(self, sock: socket.socket, bound: BoundListener) -> None:
        try:
            peer, local = sock.getpeername(), sock.getsockname()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, size in (
                (socket.SO_RCVBUF, self._settings.socket_receive_buffer_bytes),
                (socket.SO_SNDBUF, self._settings.socket_send_buffer_bytes),
            ):
                if size > 0:
                    sock.setsockopt(socket.SOL_SOCKET, option, size)
        except OSError:
            sock.close()
            return
        host = peer[0]
        if not self._admits(host):
            self._metrics.connections_refused += 1
            log.warning("connection refused: too many connections", extra={"client": host})
            sock.close()
            return
        is_controller = bound in self._controller_listeners
        client = Client(host, peer[1], bound.listener.name, local[0], is_controller_listener=is_controller)
        self._per_host[host] += 1
        self._metrics.connections_open += 1
        self._metrics.connections_accepted += 1
        self._connections.add(Connection(sock, client, self))

    def _pace(self) -> float:
        """Limit the connections accepted per second (max.connection.creation.rate)."""
        now = self.loop.time()
        if now >= self._second_ends:
            self._second_ends = now + 1.0
            self._accepted_before = self._metrics.connections_accepted
        accepted = self._metrics.connections_accepted - self._accepted_before
        return 0.0 if accepted < self._settings.max_connection_creation_rate else self._second_ends - now

    def _admits(self, host: str) -> bool:
        limit = self._limits_per_host.get(host, self._settings.max_connections_per_ip)
        return len(self._connections) < self._settings.max_connections and self._per_host[host] < limit


def _overrides(entries: tuple[str, ...]) -> dict[str, int]:
    """Parse `address:count` entries."""
    return {host: int(count) for host, _, count in (entry.rpartition(":") for entry in entries)}
