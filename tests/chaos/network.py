"""A network that can be cut: every connection to a broker passes through a proxy that knows who opened it.

Each node advertises its proxy. Who connects is found by the owner of the connecting socket, so that brokers need no
addresses of their own, and clients can be cut off from a broker, or brokers from each other, in one direction or both.
A cut stalls bytes as a network does: they arrive when it heals, unless the connection is reset then.
"""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import uvloop

CLIENTS: Final = 0
"""The side of all clients in a link; brokers have their node ids."""

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
CHANNELS: Final = (BROKER, CONTROLLER)
"""A node is reached as a broker and as a controller."""

_CHUNK_BYTES: Final = 65536


class _Link:
    """One direction between two nodes."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0
        self.drops = False
        self.writers: set[asyncio.StreamWriter] = set()


_Direction = tuple[int, int, str]
"""From which node, to which, and over which channel the connection was opened."""


class ProxyNetwork:
    """The proxies of a cluster, served by a thread of their own."""

    can_delay = True
    hosts = ["127.0.0.1"]
    """The addresses of all nodes."""

    def __init__(self, *, seed: int) -> None:
        self.broker_pids: Callable[[], Mapping[int, int]] = dict
        """Gives the node of each running broker's process."""
        self._random = random.Random(seed)
        self._loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self._links: dict[_Direction, _Link] = {}
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def listener(self, _node: int, _channel: str, port: int) -> str:
        """Where a node listens."""
        return f"127.0.0.1:{port}"

    def advertised(self, node: int, channel: str, port: int) -> str:
        """Open a proxy for a port of a node; returns where others reach it."""

        async def begin() -> str:
            server = await asyncio.start_server(
                lambda reader, writer: self._accept(reader, writer, (node, port, channel)), "127.0.0.1", 0
            )
            self._servers.append(server)
            return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

        return asyncio.run_coroutine_threadsafe(begin(), self._loop).result(10)

    def command(self, _member: int, command: Sequence[str]) -> list[str]:
        """A command that runs as a node."""
        return list(command)

    def close(self) -> None:
        """Stop forwarding."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(10)

    # -- faults --

    def cut(self, pairs: Iterable[tuple[int, int]], channels: Iterable[str] = CHANNELS) -> None:
        """Stall the bytes from the first node of each pair to the second."""
        self._change(pairs, lambda link: link.is_open.clear(), channels)

    def delay(self, pairs: Iterable[tuple[int, int]], seconds: float) -> None:
        """Make each chunk of bytes take longer."""
        self._change(pairs, lambda link: setattr(link, "delay_s", seconds))

    def drop(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Drop bytes; the receiver notices only when `heal` resets the connection."""
        self._change(pairs, lambda link: setattr(link, "drops", True))

    def heal(self) -> None:
        """Undo every fault. Connections that lost bytes are reset, and half of those that stalled."""

        def restore() -> None:
            for link in self._links.values():
                if link.drops or (not link.is_open.is_set() and self._random.random() < 0.5):
                    for writer in tuple(link.writers):
                        writer.transport.abort()
                link.drops, link.delay_s = False, 0.0
                link.is_open.set()

        self._call(restore)

    def _change(
        self,
        pairs: Iterable[tuple[int, int]],
        change: Callable[[_Link], None],
        channels: Iterable[str] = CHANNELS,
    ) -> None:
        names = tuple(channels)
        chosen = [(*pair, name) for pair in pairs for name in names]

        def apply() -> None:
            for direction in chosen:
                change(self._link(direction))

        self._call(apply)

    def _call(self, work: Callable[[], None]) -> None:
        done = threading.Event()

        def carry_out() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(carry_out)
        assert done.wait(10), "the proxies hang"

    def _link(self, direction: _Direction) -> _Link:
        return self._links.setdefault(direction, _Link())

    # -- forwarding --

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: tuple[int, int, str]
    ) -> None:
        node, port, channel = target
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # First, because nodes try to reach a dead one many times a second, and to find out who asks takes time.
            upstream = await asyncio.open_connection("127.0.0.1", port)
            peer_port = writer.get_extra_info("peername")[1]
            own_port = writer.get_extra_info("sockname")[1]
            source = owner_of_connection(peer_port, own_port, self.broker_pids())
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, upstream[1], (source, node, channel)))
                pumps.create_task(self._pump(upstream[0], writer, (node, source, channel)))
        except OSError:
            pass
        finally:
            writer.close()
            self._connections.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: _Direction) -> None:
        link = self._link(direction)
        link.writers.add(writer)
        try:
            while data := await reader.read(_CHUNK_BYTES):
                if not link.is_open.is_set():
                    await link.is_open.wait()
                    # A sender that gave up meanwhile would have reset the connection: its bytes are lost.
                    if reader.at_eof():
                        return
                if link.delay_s:
                    await asyncio.sleep(link.delay_s)
                if writer.is_closing():
                    return
                if not link.drops:
                    writer.write(data)
                    await writer.drain()
            await link.is_open.wait()  # the end of a connection does not pass through a cut either
        except OSError:
            pass
        finally:
            link.writers.discard(writer)
            writer.close()


def owner_of_connection(port: int, remote_port: int, broker_pids: Mapping[int, int]) -> int:
    """The node whose process has the socket that is bound to a port; CLIENTS if no broker has."""
    inode = _socket_inode(port, remote_port)
    if inode is not None:
        name = f"socket:[{inode}]"
        for pid, node in broker_pids.items():
            if _has_open(pid, name):
                return node
    return CLIENTS


def _socket_inode(port: int, remote_port: int) -> str | None:
    """The inode of a connection on this machine. It is searched as text: the list may have thousands of lines."""
    connections = Path("/proc/net/tcp").read_text()
    found = connections.find(f" 0100007F:{port:04X} 0100007F:{remote_port:04X} ")
    if found < 0:
        return None
    return connections[connections.rfind("\n", 0, found) + 1 :].split(maxsplit=10)[9]


def _has_open(pid: int, name: str) -> bool:
    # Without pathlib, which takes ten times as long: a process has hundreds of files, and everybody waits meanwhile.
    folder = f"/proc/{pid}/fd/"
    try:
        return any(_target(folder + number) == name for number in os.listdir(folder))  # noqa: PTH208
    except OSError:  # it ended meanwhile
        return False


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)  # noqa: PTH115
    except OSError:  # closed meanwhile
        return None
