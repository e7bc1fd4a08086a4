"""All listeners and connections of a broker."""

import asyncio
import logging
import socket
from functools import partial
from typing import Final

from core_broker.handlers.context import Services
from core_broker.handlers.session import Session
from core_broker.handlers.table import BY_KEY
from core_broker.metrics import BrokerMetrics, RequestStats
from core_broker.security.principal_mapping import NoRuleApplies, PrincipalMapping
from core_broker.security.sasl.listener import SaslListeners
from core_broker.security.tls import certificate_principal, check_unexpired
from core_broker.server.certificates import Certificates
from core_broker.server.channel import Channel, PlainChannel
from core_broker.server.connection import Connection
from core_broker.server.connection_limits import ConnectionLimits
from core_broker.server.handshakes import Handshakes
from core_broker.server.listener import BoundListener
from core_broker.server.logins import Logins
from core_broker.server.memory import RequestMemory
from core_broker.server.tls_channel import TlsChannel
from core_broker.server.turns import Turns
from core_broker.settings import BrokerSettings, Listener
from core_broker.settings.sasl import SASL_PROTOCOLS

log = logging.getLogger(__name__)

_RECEIVE_BYTES: Final = 128 * 1024
_UNLIMITED: Final = 1 << 62
_HELD_MAX: Final = 1000
"""Connections of addresses over their quota that are kept for a while; further ones are closed at once."""


class Server:
    """Accepts connections within the limits, and closes the idle ones."""

    def __init__(self, settings: BrokerSettings, metrics: BrokerMetrics) -> None:
        self.loop = asyncio.get_running_loop()
        self.services: Services
        self._sasl: SaslListeners | None = None
        self._logins: Logins | None = None
        self.receive_view = memoryview(bytearray(_RECEIVE_BYTES))
        limit = settings.queued_max_request_bytes
        self.memory = RequestMemory(limit if limit > 0 else _UNLIMITED)
        self.turns = Turns(self.loop)
        self.request_bytes_max = settings.socket_request_max_bytes
        self.logs_requests = settings.request_log_enable
        self.tick = 0
        self._settings = settings
        self._metrics = metrics
        self.stats: dict[int, RequestStats] = _StatsByApi(metrics)
        self._listeners: list[BoundListener] = []
        self._controller_listeners: list[BoundListener] = []
        self._connections: dict[Connection, None] = {}
        """By the time at which they were accepted."""
        self._held: dict[socket.socket, asyncio.TimerHandle] = {}
        """Connections of addresses over their quota: not read, and closed after a while."""
        of_controllers = [item.name for item in settings.listeners if item.name in settings.controller_listener_names]
        self._limits = ConnectionLimits(settings, [listener.name for listener in settings.broker_listeners])
        self._controller_limits = ConnectionLimits(settings, of_controllers)
        self._certificates = Certificates(settings)
        self._handshakes = Handshakes(self.turns, metrics)
        self.stalled_seconds = 5.0
        """A client that pauses for this long inside a large request is disconnected when memory is short."""
        self._watch: asyncio.TimerHandle | None = None

    def configure(self, settings: BrokerSettings) -> None:
        """Apply settings that changed at run time: connection limits and the request log."""
        self._settings = settings
        self.logs_requests = settings.request_log_enable
        self._limits.configure(settings)
        self._controller_limits.configure(settings)
        self._certificates.configure(settings)

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
        self._certificates.load(settings.listeners)
        for listener in settings.listeners:
            is_controller = listener.name in settings.controller_listener_names
            bound = await BoundListener.bind(
                listener,
                self._accept,
                pace=partial(self._pace, listener.name, is_controller=is_controller),
                backlog=settings.socket_listen_backlog_size,
            )
            (self._controller_listeners if is_controller else self._listeners).append(bound)

    def use_sasl(self, listeners: SaslListeners) -> None:
        """How clients log in; to be set before listeners with SASL are started."""
        self._sasl = listeners

    def start_controller(self, services: Services) -> None:
        """Start accepting other nodes: a quorum needs that before it has a leader, and a broker before it can start.

        Listeners that are not in early.start.listeners follow with `start_other_controller_listeners`.
        """
        self.services = services
        self._start_controller_listeners(early=True)

    def start_other_controller_listeners(self) -> None:
        """Start accepting other nodes on the listeners that have waited for the ACLs."""
        self._start_controller_listeners(early=False)

    def _start_controller_listeners(self, *, early: bool) -> None:
        for bound in self._controller_listeners:
            if (bound.listener.name in self._settings.early_controller_listeners) is early:
                bound.start()

    def start(self, services: Services) -> None:
        """Start accepting clients."""
        self.services = services
        for listener in self._listeners:
            listener.start()

    async def check_stores(self, settings: BrokerSettings) -> None:
        """Raise BrokerError unless open listeners could use the key stores and trust stores of other settings."""
        await self._certificates.check(settings)

    async def watch_certificates(self) -> None:
        """Use renewed certificates for new connections."""
        await self._certificates.watch()

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
        self._handshakes.close()  # a node that is shaking hands with the controller tries again
        for connection in [c for c in self._connections if not c.session.is_controller_listener]:
            connection.close()

    def close(self) -> None:
        """Stop listening and close every connection."""
        if self._watch is not None:
            self._watch.cancel()
        for listener in (*self._listeners, *self._controller_listeners):
            listener.close()
        self._handshakes.close()
        if self._logins is not None:
            self._logins.close()
        for connection in tuple(self._connections):
            connection.close()
        for sock in tuple(self._held):
            self._release(sock)

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
        del self._connections[connection]
        self._count_out(connection.session)

    def _count_out(self, session: Session) -> None:
        self._limits_of(session.is_controller_listener).closed(session.listener_name, session.host)
        self._metrics.connections_open -= 1

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
        is_controller = bound in self._controller_listeners
        limits = self._limits_of(is_controller)
        wait_seconds = self._address_wait_seconds(limits, host)
        if wait_seconds > 0 or not limits.admits(host):
            self._refuse(sock, host, wait_seconds)
            return
        name = bound.listener.name
        session = Session(
            host=host,
            port=peer[1],
            listener_name=name,
            security_protocol=self._settings.security_protocol(name) or "PLAINTEXT",
            local_host=local[0],
            is_controller_listener=is_controller,
        )
        limits.opened(name, host, self.loop.time())
        self._metrics.connections_open += 1
        self._metrics.connections_accepted += 1
        tls = self._certificates.of(name)
        if tls is None:
            self._open(PlainChannel(sock, self.loop), session)
            return

        def on_end(channel: TlsChannel | None) -> None:
            if channel is None:
                self._count_out(session)
            else:
                self._identify(channel, session, tls.mapping)

        description = {"client": f"{host}:{peer[1]}", "listener": name}
        self._handshakes.begin(sock, tls.context, description, on_end)

    def _identify(self, channel: TlsChannel, session: Session, mapping: PrincipalMapping) -> None:
        """Go on with a connection whose handshake is complete."""
        if session.security_protocol == "SSL":
            stats = self._metrics.login(session.listener_name, "TLS")
            try:
                check_unexpired(channel.peer_certificate, self.services.clock.now_ms())
                session.principal = certificate_principal(channel.peer_certificate, mapping)
            except (NoRuleApplies, ValueError) as error:
                stats.failed += 1
                extra = {"client": f"{session.host}:{session.port}", "reason": str(error)}
                log.info("connection closed: the client's certificate is of no use", extra=extra)
                channel.close()
                self._count_out(session)
                return
            stats.succeeded += 1
        self._open(channel, session)

    def _open(self, channel: Channel, session: Session) -> None:
        login = None
        if session.security_protocol in SASL_PROTOCOLS:
            login = self._logins_of_all().of(session)
            assert login is not None, "a listener with SASL has mechanisms"
        self._connections[Connection(channel, session, self, login=login)] = None
        limits = self._limits_of(session.is_controller_listener)
        if limits.is_exceeded:
            self._close_least_used(limits, is_controller=session.is_controller_listener)

    def _logins_of_all(self) -> Logins:
        if self._logins is None:
            assert self._sasl is not None, "set before the listeners are started"
            self._logins = Logins(self._sasl, self.services)
        return self._logins

    def _limits_of(self, is_controller: bool) -> ConnectionLimits:
        return self._controller_limits if is_controller else self._limits

    def _pace(self, listener: str, *, is_controller: bool) -> float:
        """How long a listener has to wait before it accepts the next connection."""
        return self._limits_of(is_controller).wait_seconds(listener, self.loop.time())

    def _address_wait_seconds(self, limits: ConnectionLimits, host: str) -> float:
        """How long an address is kept waiting by its quota of new connections."""
        quotas = self.services.quotas.limits
        rate_max = quotas.find_address(host) if quotas.has_addresses else None
        return 0.0 if rate_max is None else limits.address_wait_seconds(host, rate_max, self.loop.time())

    def _refuse(self, sock: socket.socket, host: str, wait_seconds: float) -> None:
        """Close a connection; one that came too fast only after a while, so that its client cannot try at once."""
        self._metrics.connections_refused += 1
        if wait_seconds <= 0 or len(self._held) >= _HELD_MAX:
            log.warning("connection refused: too many connections", extra={"client": host})
            sock.close()
            return
        log.info("connection refused: connections are opened too fast", extra={"client": host})
        self._held[sock] = self.loop.call_later(wait_seconds, self._release, sock)

    def _release(self, sock: socket.socket) -> None:
        self._held.pop(sock).cancel()
        sock.close()

    def _close_least_used(self, limits: ConnectionLimits, *, is_controller: bool) -> None:
        """Close the connection that has been silent for the longest time, to make up for one of another broker."""
        sessions = ((connection, connection.session) for connection in self._connections)
        candidates = [
            connection
            for connection, session in sessions
            if session.is_controller_listener == is_controller and not limits.is_protected(session.listener_name)
        ]
        if candidates:
            min(candidates, key=lambda connection: connection.last_tick).close(
                "closed for another broker: max.connections is reached"
            )


class _StatsByApi(dict[int, RequestStats]):
    """The counters of each API, by key; made for its first request."""

    def __init__(self, metrics: BrokerMetrics) -> None:
        super().__init__()
        self._metrics = metrics

    def __missing__(self, key: int) -> RequestStats:
        stats = self[key] = self._metrics.request(BY_KEY[key].name)
        return stats
