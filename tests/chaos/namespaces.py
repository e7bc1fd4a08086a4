"""A network of the kernel's that can be cut: every node, and all clients, have a network namespace of their own.

Only root may make namespaces; elsewhere the proxies of `network.py` do. A cut drops packets where they arrive, so that
the sender learns nothing: it sends them again until the cut heals or its patience ends, as over a broken cable.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from tests.chaos.network import BROKER, CHANNELS, CLIENTS, CONTROLLER

PORTS: Final = {BROKER: 9092, CONTROLLER: 9093}
"""Each node has an address of its own, so all have the same ports."""

_numbers: Final = count()
"""The kernel removes a namespace's devices some time after it; their names must not be used again at once."""
_LOCAL_PRIORITY: Final = "1000"
_CUT_PRIORITY: Final = "100"
_NETWORK_NAMESPACE: Final = 0x40000000
"""CLONE_NEWNET of the kernel."""
_BRIDGE: Final = "bridge"


class NamespaceNetwork:
    """A namespace with a bridge, and behind it one for each of the nodes and one for the clients."""

    can_delay = False
    """A delay needs a queueing discipline that many kernels lack."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._prefix = f"c{os.getpid()}x{next(_numbers)}"
        self._members = [CLIENTS, *nodes]
        self._cuts: list[list[str]] = []
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        middle = self._namespace(_BRIDGE)
        _ip("netns", "add", middle)
        _ip("-n", middle, "link", "add", _BRIDGE, "type", "bridge")
        _ip("-n", middle, "link", "set", _BRIDGE, "up")
        for member in self._members:
            name, outside = self._namespace(member), f"to{member}"
            _ip("netns", "add", name)
            _ip("-n", middle, "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", middle, "link", "set", outside, "master", _BRIDGE, "up")
            _ip("-n", name, "addr", "add", f"{self.host(member)}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _ip("-n", name, "link", "set", device, "up")
            # What cuts a connection has to be asked before the table of local addresses, which is first by default.
            _ip("-n", name, "rule", "add", "priority", _LOCAL_PRIORITY, "lookup", "local")
            _ip("-n", name, "rule", "del", "priority", "0")

    @property
    def hosts(self) -> list[str]:
        """The addresses of all nodes."""
        return [self.host(member) for member in self._members]

    def host(self, member: int) -> str:
        """The address of a node, or of the clients."""
        return f"10.77.0.{member or 254}"

    def listener(self, node: int, channel: str, _port: int) -> str:
        """Where a node listens."""
        return f"{self.host(node)}:{PORTS[channel]}"

    def advertised(self, node: int, channel: str, _port: int) -> str:
        """Where others reach a node."""
        return f"{self.host(node)}:{PORTS[channel]}"

    def command(self, member: int, command: Sequence[str]) -> list[str]:
        """A command that runs as a node, or as a client."""
        return ["ip", "netns", "exec", self._namespace(member), *command]

    def enter(self) -> None:
        """Make this thread, and the threads and processes it starts from now on, a client."""
        with Path("/run/netns", self._namespace(CLIENTS)).open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NETWORK_NAMESPACE) != 0:
                raise OSError(ctypes.get_errno(), "cannot enter the clients' namespace")

    def _namespace(self, member: int | str) -> str:
        return f"{self._prefix}n{member}"

    def cut(self, pairs: Iterable[tuple[int, int]], channels: Iterable[str] = CHANNELS) -> None:
        """Drop what the first node of each pair sends to the second."""
        ports = [(side, str(PORTS[channel])) for channel in channels for side in ("sport", "dport")]
        for source, target in pairs:
            for side, port in ports:
                rule = ["priority", _CUT_PRIORITY, "from", self.host(source), "ipproto", "tcp", side, port, "blackhole"]
                _ip("-n", self._namespace(target), "rule", "add", *rule)
                self._cuts.append(["-n", self._namespace(target), "rule", "del", *rule])

    def drop(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Drop packets: what every cut here does."""
        self.cut(pairs)

    def heal(self) -> None:
        """Undo every cut."""
        while self._cuts:
            _ip(*self._cuts.pop())

    def close(self) -> None:
        """Remove everything; processes that still run in a namespace keep it without its cable."""
        for name in [self._namespace(_BRIDGE), *map(self._namespace, self._members)]:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


def can_make_namespaces() -> bool:
    """Whether this process may make namespaces whose packets it can drop."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    try:
        network = NamespaceNetwork([1])
    except subprocess.CalledProcessError:
        return False
    try:
        network.cut([(CLIENTS, 1)])
    except subprocess.CalledProcessError:
        return False
    finally:
        network.close()
    return True


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=10)
