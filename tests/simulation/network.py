"""The network between nodes and clients: frames as on the wire, with latency, loss, cuts, resets and late duplicates.

A connection keeps its requests in order and a server answers them one after the other, as real ones do. What is sent
into a cut arrives when the cut is healed, unless the sender has given up by then; what a paused process has not read
yet is answered when it goes on, although its client has given up.
"""

import asyncio
import os
import random
import struct
from collections import deque
from collections.abc import Callable, Collection
from itertools import count
from typing import Any, Final

from typing_extensions import override

from core_broker.handlers.api import Answer
from core_broker.handlers.context import Services
from core_broker.handlers.produce import AcksNoneFailed
from core_broker.handlers.session import Session
from core_broker.handlers.table import BROKER_BY_KEY, CONTROLLER_BY_KEY
from core_broker.log.segment_chain import LogSlice
from core_broker.metrics import BrokerMetrics
from core_broker.peers.peers import Address, PeerError, PeerRefusedError, Peers, response_type
from core_broker.protocol.fields import Message, decode, encoder
from core_broker.protocol.frames import SIZE_BYTES, unpack_header
from core_broker.protocol.messages.offset_commit import OffsetCommitRequest
from core_broker.protocol.primitives import DecodeError, skip_tagged_fields
from core_broker.server.dispatch import UnknownRequest, dispatch
from core_broker.server.server import Server
from core_broker.settings import BrokerSettings, Listener
from tests.simulation.virtual_loop import Life, VirtualLoop

_CORRELATION_ID_BYTES: Final = 4
_pack_header = struct.Struct(">hhih").pack
_RETRANSMIT_SECONDS: Final = (0.2, 0.4, 0.8, 1.6, 3.2)


class Network:
    """Everything between the machines. A machine has a number: that of its node, or that of a client."""

    def __init__(self, loop: VirtualLoop, rng: random.Random, *, on_problem: Callable[[str], None]) -> None:
        self.loop = loop
        self.rng = rng
        self.on_problem = on_problem
        self.latency = 0.0005
        self.loss = 0.0
        """How many requests or responses are lost, with their connection. Some requests arrive later all the same."""
        self.duplicates = 0.0
        """How many requests are delivered a second time, some time later."""
        self.cut: set[tuple[int, int]] = set()
        """Pairs of machines, of which the first cannot reach the second."""
        self.servers: dict[Address, SimulatedServer] = {}
        """The listening processes."""
        self.connections: list[_Connection] = []
        self.sent = 0
        self.digest = 0
        """Changes with every frame that is sent: two runs are the same if it is the same at the end."""
        self.correlation_ids = count(1)
        self.answering: dict[_ServerSide, float] = {}
        """Requests that a server has read and not answered, and since when."""

    def delay(self) -> float:
        """How long the next frame takes."""
        return self.rng.expovariate(1 / self.latency)

    def is_cut(self, sender: int, receiver: int) -> bool:
        """Whether nothing arrives."""
        return (sender, receiver) in self.cut

    def note(self, frame: bytes | bytearray) -> None:
        """Count a frame."""
        self.sent += 1
        self.digest = hash((self.digest, bytes(frame), self.loop.time()))

    def reset(self, life: Life, *, ports: Collection[int] | None = None) -> None:
        """Break the connections to a process that has ended, or to some of its ports.

        The kernel says so, unless its machine is gone, too.
        """
        is_silent = self.rng.random() < 0.5
        for connection in [c for c in self.connections if c.server is not None and c.server.life is life]:
            if ports is not None and connection.address.port not in ports:
                continue
            if not is_silent and not self.is_cut(connection.server_number, connection.client_number):
                self.loop.call_in(connection.life.context, self.delay(), connection.fail, "connection reset")
        self.connections = [c for c in self.connections if not c.is_over and not c.life.is_dead]


class SimulatedPeers(Peers):
    """What a node or a client sends through the network."""

    def __init__(self, network: Network, number: int, life: Life) -> None:
        super().__init__(client_id=f"node-{number}")
        self._name = f"node-{number}".encode()
        self._network = network
        self._number = number
        self._life = life
        self._open: dict[tuple[Address, str], _Connection] = {}
        self._locks: dict[tuple[Address, str], asyncio.Lock] = {}
        self._is_closed = False

    @override
    async def call(
        self,
        address: Address,
        request: Message,
        *,
        timeout_seconds: float,
        purpose: str = "",
        version: int | None = None,
    ) -> Message:
        deadline = self._network.loop.time() + timeout_seconds
        connection = self._open.get((address, purpose))
        try:
            if connection is None or connection.is_over or connection.is_stuck:
                async with asyncio.timeout_at(deadline):
                    connection = await self._connection_to(address, purpose)
            version = _version_of(type(request), connection) if version is None else version
            frame = _encode(request, version, next(self._network.correlation_ids), self._name)
            answer = await connection.exchange(frame, deadline)
        except TimeoutError:
            if connection is not None:
                connection.drop_if_stuck()
            name = type(request).__name__
            raise PeerError(f"{address} did not answer {name} within {timeout_seconds:g} seconds") from None
        try:
            position = _CORRELATION_ID_BYTES
            if version >= request.FLEXIBLE_SINCE:
                position = skip_tagged_fields(answer, position, len(answer))
            return decode(response_type(type(request)), version, answer, position)
        except (DecodeError, IndexError) as error:
            self._network.on_problem(f"the response to {type(request).__name__} cannot be decoded: {error!r}")
            raise PeerError(str(error)) from error

    async def _connection_to(self, address: Address, purpose: str) -> "_Connection":
        async with self._locks.setdefault((address, purpose), asyncio.Lock()):
            connection = self._open.get((address, purpose))
            if connection is not None:
                connection.drop_if_stuck()
                if not connection.is_over:
                    return connection
            if self._is_closed:
                raise PeerError(f"{address}: closed")
            connection = _Connection(self._network, self._number, self._life, address)
            await connection.open()
            self._open[address, purpose] = connection
            self._network.connections.append(connection)
            return connection

    @override
    async def close(self) -> None:
        self._is_closed = True
        for connection in self._open.values():
            connection.fail("closed")


class SimulatedServer(Server):
    """A node's server: the same parts, without sockets."""

    def __init__(self, settings: BrokerSettings, metrics: BrokerMetrics, network: Network, life: Life) -> None:
        super().__init__(settings, metrics)
        self.network = network
        self.life = life
        self.number = settings.node_id
        self.accepting: set[str] = set()
        self.backlog: list[_ServerSide] = []
        """Connections whose listener is bound, but not served yet."""
        names = settings.controller_listener_names
        self._for_clients = [found for found in settings.listeners if found.name not in names]
        self._for_nodes = [found for found in settings.listeners if found.name in names]

    @property
    @override
    def listeners(self) -> list[Listener]:
        return self._for_clients

    @property
    @override
    def controller_listeners(self) -> list[Listener]:
        return self._for_nodes

    @override
    async def bind(self) -> None:
        for listener in (*self._for_clients, *self._for_nodes):
            self.network.servers[Address(listener.host, listener.port)] = self

    def listener_at(self, address: Address) -> Listener:
        """The listener with an address."""
        return next(found for found in (*self._for_clients, *self._for_nodes) if found.port == address.port)

    @override
    def start_controller(self, services: Services) -> None:
        self.services = services
        self._accept_on(self._for_nodes)

    @override
    def start(self, services: Services) -> None:
        self.services = services
        self._accept_on(self._for_clients)

    def _accept_on(self, listeners: list[Listener]) -> None:
        self.accepting |= {listener.name for listener in listeners}
        waiting, self.backlog = self.backlog, []
        for side in waiting:
            side.serve()

    @override
    async def run(self) -> None:
        await asyncio.Event().wait()

    @override
    def close_to_clients(self) -> None:
        ports = {listener.port for listener in self._for_clients}
        kept = {a: s for a, s in self.network.servers.items() if s is not self or a.port not in ports}
        self.network.servers = kept
        self.network.reset(self.life, ports=ports)

    @override
    def close(self) -> None:
        self.network.servers = {a: s for a, s in self.network.servers.items() if s is not self}
        self.network.reset(self.life)


class _Connection:
    """The client's end of a connection."""

    def __init__(self, network: Network, number: int, life: Life, address: Address) -> None:
        self.network = network
        self.client_number = number
        self.server_number = int(address.host.rpartition(".")[2])
        self.life = life
        self.address = address
        self.server: SimulatedServer | None = None
        self.side: _ServerSide | None = None
        self.is_over = False
        self._in_flight: dict[int, tuple[asyncio.Future[memoryview], asyncio.TimerHandle]] = {}
        self._arrival = 0.0
        self._return = 0.0

    async def open(self) -> None:
        network = self.network
        for pause in (0.0, *_RETRANSMIT_SECONDS):
            await asyncio.sleep(pause + network.delay() * 2)
            if not self._is_cut_either_way():
                break
        else:
            await asyncio.sleep(60)
        server = network.servers.get(self.address)
        if server is None or server.life.is_dead:
            self.is_over = True
            await asyncio.sleep(network.delay())
            raise PeerRefusedError(f"cannot connect to {self.address}: connection refused")
        self.server = server
        self.side = _ServerSide(self, server, server.listener_at(self.address))

    def _is_cut_either_way(self) -> bool:
        numbers = (self.client_number, self.server_number)
        return self.network.is_cut(*numbers) or self.network.is_cut(*reversed(numbers))

    async def exchange(self, frame: bytearray, deadline: float) -> memoryview:
        if self.is_over or self.side is None:
            raise PeerError(f"{self.address}: connection lost")
        network, loop = self.network, self.network.loop
        correlation_id = unpack_header(frame, SIZE_BYTES)[2]
        future: asyncio.Future[memoryview] = loop.create_future()
        self._in_flight[correlation_id] = (future, loop.call_at(deadline, _expire, future, context=self.life.context))
        network.note(frame)
        chance = network.rng.random()
        if chance < network.loss / 2:
            loop.call_in(self.life.context, network.delay(), self.fail, "connection reset")
            if chance < network.loss / 4:
                self._transmit_late(frame)
        else:
            self._arrival = max(self._arrival, loop.time() + network.delay())
            self._transmit(frame, self._arrival, 0)
        if network.rng.random() < network.duplicates:
            self._transmit_late(bytearray(frame))
        return await future

    def _transmit_late(self, frame: bytearray) -> None:
        """Deliver a frame after later ones: its client hears nothing of it."""
        assert self.side is not None
        if unpack_header(frame, SIZE_BYTES)[0] == OffsetCommitRequest.API_KEY:
            return  # it has no sequence number: as in Kafka, a late one takes the offset back
        side = _ServerSide(None, self.side.server, self.side.listener)
        network = self.network
        network.loop.call_in(side.server.life.context, network.rng.expovariate(1.0), side.arrive, frame)

    def _transmit(self, frame: bytearray, when: float, attempt: int) -> None:
        """Deliver a frame; into a cut it is sent again and again for a while."""
        network, loop, side = self.network, self.network.loop, self.side
        assert side is not None
        if not network.is_cut(self.client_number, self.server_number):
            loop.call_at(when, side.arrive, frame, context=side.server.life.context)
            if side.server.life.is_dead and self.address in network.servers:
                # The machine is back, and its kernel does not know this connection.
                loop.call_at(when + network.delay(), self.fail, "connection reset", context=self.life.context)
        elif attempt < len(_RETRANSMIT_SECONDS):

            def again() -> None:
                if not self.is_over:
                    self._arrival = max(self._arrival, loop.time() + network.delay())
                    self._transmit(frame, self._arrival, attempt + 1)

            loop.call_later(_RETRANSMIT_SECONDS[attempt], again, context=self.life.context)

    def deliver(self, answer: bytes, attempt: int = 0) -> None:
        """A response leaves the server."""
        network, loop = self.network, self.network.loop
        network.note(answer)
        if network.rng.random() < network.loss / 2:
            if network.rng.random() < 0.5:
                loop.call_in(self.life.context, network.delay(), self.fail, "connection reset")
            return
        if network.is_cut(self.server_number, self.client_number):
            if attempt < len(_RETRANSMIT_SECONDS):
                loop.call_later(_RETRANSMIT_SECONDS[attempt], self.deliver, answer, attempt + 1)
            return
        self._return = max(self._return, loop.time() + network.delay())
        loop.call_at(self._return, self._take, answer, context=self.life.context)

    def _take(self, answer: bytes) -> None:
        (correlation_id,) = struct.unpack_from(">i", answer)
        found = self._in_flight.pop(correlation_id, None)
        if found is not None:
            found[1].cancel()
            if not found[0].done():
                found[0].set_result(memoryview(answer))

    @property
    def is_stuck(self) -> bool:
        """Whether its oldest request is overdue."""
        oldest = next(iter(self._in_flight.values()), None)
        return oldest is not None and oldest[1].when() <= self.network.loop.time()

    def drop_if_stuck(self) -> None:
        """Give the connection up if its oldest request is overdue."""
        if self.is_stuck:
            self.fail("the oldest request timed out")

    def fail(self, reason: str) -> None:
        """Break the connection; the server hears of it if it can."""
        if self.is_over:
            return
        self.is_over = True
        in_flight, self._in_flight = self._in_flight, {}
        for future, timer in in_flight.values():
            timer.cancel()
            if not future.done():
                future.set_exception(PeerError(f"{self.address}: {reason}"))
        side, network = self.side, self.network
        if side is not None and not network.is_cut(self.client_number, self.server_number):
            network.loop.call_in(side.server.life.context, network.delay(), side.close)


class _ServerSide:
    """The server's end of a connection; without a client's end, for a request whose client has given up."""

    def __init__(self, connection: _Connection | None, server: SimulatedServer, listener: Listener) -> None:
        self.connection = connection
        self.server = server
        self.listener = listener
        self._session = Session(
            host=f"10.0.0.{0 if connection is None else connection.client_number}",
            port=1,
            listener_name=listener.name,
            local_host="10.0.0.0",
            is_controller_listener=listener in server.controller_listeners,
        )
        self._queue: deque[bytearray] = deque()
        self._pending: asyncio.Future[Answer] | None = None
        self._is_closed = False

    @property
    def is_controller(self) -> bool:
        """Whether it is a connection to a controller listener."""
        return self._session.is_controller_listener

    def arrive(self, frame: bytearray) -> None:
        """A request has been received."""
        self._queue.append(frame)
        self.serve()

    def close(self) -> None:
        """The client is gone."""
        self._is_closed = True
        self._queue.clear()
        if self._pending is not None:
            self._pending.cancel()

    def serve(self) -> None:
        """Answer the requests that have been received, one after the other."""
        while self._queue and self._pending is None and not self._is_closed:
            if self.listener.name not in self.server.accepting:
                self.server.backlog.append(self)
                return
            self._answer(self._queue.popleft())

    def _answer(self, frame: bytearray) -> None:
        server, network = self.server, self.server.network
        view = memoryview(frame)[SIZE_BYTES:]
        header = unpack_header(view, 0)
        try:
            answer = dispatch(view, header, self._session, server.services)
        except (UnknownRequest, DecodeError, AcksNoneFailed) as error:
            network.on_problem(f"node {server.number} refused request {header}: {error!r}")
            return
        except Exception as error:
            network.on_problem(f"node {server.number} failed request {header}: {error!r}")
            raise
        # As in the receive buffer of a real connection, the next request replaces this one.
        frame[:] = bytes(len(frame))
        if answer is None or isinstance(answer, bytearray | list):
            self._send(answer)
            return
        pending: asyncio.Future[Answer] = (
            answer if isinstance(answer, asyncio.Future) else network.loop.create_task(_as_coroutine(answer))
        )
        self._pending = pending
        network.answering[self] = network.loop.time()
        pending.add_done_callback(self._on_answer)

    def _on_answer(self, future: "asyncio.Future[Answer]") -> None:
        self._pending = None
        self.server.network.answering.pop(self, None)
        if future.cancelled() or self._is_closed:
            return
        error = future.exception()
        if error is not None:
            self.server.network.on_problem(f"node {self.server.number} failed a request: {error!r}")
            return
        self._send(future.result())
        self.serve()

    def _send(self, answer: Answer) -> None:
        if answer is None or self.connection is None or self.connection.is_over:
            return
        chunks = [answer] if isinstance(answer, bytearray) else answer
        parts = [
            os.pread(chunk.file.fd, chunk.length, chunk.position) if isinstance(chunk, LogSlice) else bytes(chunk)
            for chunk in chunks
        ]
        self.connection.deliver(b"".join(parts)[SIZE_BYTES:])


def _expire(future: "asyncio.Future[memoryview]") -> None:
    if not future.done():
        future.set_exception(TimeoutError())


async def _as_coroutine(answer: Any) -> Answer:
    result: Answer = await answer
    return result


def _version_of(request: type[Message], connection: _Connection) -> int:
    """The highest version: all nodes are of the same release."""
    assert request.API_KEY is not None
    assert connection.side is not None
    api = (CONTROLLER_BY_KEY if connection.side.is_controller else BROKER_BY_KEY)[request.API_KEY]
    return min(api.last_version, request.VERSIONS[1])


def _encode(request: Message, version: int, correlation_id: int, client_id: bytes) -> bytearray:
    assert request.API_KEY is not None
    frame = bytearray(SIZE_BYTES)
    frame += _pack_header(request.API_KEY, version, correlation_id, len(client_id))
    frame += client_id
    if version >= request.FLEXIBLE_SINCE:
        frame.append(0)
    encoder(type(request), version)(request, frame)
    struct.pack_into(">i", frame, 0, len(frame) - SIZE_BYTES)
    return frame


__all__ = ["Network", "SimulatedPeers", "SimulatedServer"]
