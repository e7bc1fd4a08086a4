"""A network of the kernel's that can be cut: every node, and all clients, have a network namespace of their own.

Only root may make namespaces; elsewhere the proxies of `network.py` do. A cut drops packets where they arrive, so that
the sender learns nothing: it sends them again until the cut heals or its patience ends, as over a broken cable.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

from tests.chaos.network import BROKER, CHANNELS, CLIENTS, CONTROLLER

PORTS: Final = {BROKER: 9092, CONTROLLER: 9093}
"""Each node has an address of its own, so all have the same ports."""

_numbers: Final = count()
"""The kernel removes a namespace's devices some time after it; their names must not be used again at once."""
_LOCAL_PRIORITY: Final = "1000"
_CUT_PRIORITY: Final = "100"


class NamespaceNetwork:
    """A bridge, and a namespace behind it for each of the nodes and one for the clients."""

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
        bridge = self._prefix
        _ip("link", "add", bridge, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for member in self._members:
            name, outside = self._namespace(member), f"{self._prefix}v{member}"
            _ip("netns", "add", name)
            _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", outside, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{self.host(member)}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _ip("-n", name, "link", "set", device, "up")
            # What cuts a connection has to be asked before the table of local addresses, which is first by default.
            _ip("-n", name, "rule", "add", "priority", _LOCAL_PRIORITY, "lookup", "local")
            _ip("-n", name, "rule", "del", "priority", "0")

    def host(self, member: int) -> str:
        """The address of a node, or of the clients."""
        return f"10.77.0.{member or 254}"

    def command(self, member: int, command: Sequence[str]) -> list[str]:
        """A command that runs as a node, or as a client."""
        return ["ip", "netns", "exec", self._namespace(member), *command]

    def _namespace(self, member: int) -> str:
        return f"{self._prefix}n{member}"

    def cut(self, pairs: Iterable[tuple[int, int]], channels: Iterable[str] = CHANNELS) -> None:
        """Drop what the first node of each pair sends to the second."""
        ports = [(side, str(PORTS[channel])) for channel in channels for side in ("sport", "dport")]
        for source, target in pairs:
            for side, port in ports:
                rule = ["priority", _CUT_PRIORITY, "from", self.host(source), "ipproto", "tcp", side, port, "blackhole"]
                _ip("-n", self._namespace(target), "rule", "add", *rule)
                self._cuts.append(["-n", self._namespace(target), "rule", "del", *rule])

    def heal(self) -> None:
        """Undo every cut."""
        while self._cuts:
            _ip(*self._cuts.pop())

    def close(self) -> None:
        """Remove everything; processes that still run in a namespace keep it without its cable."""
        for member in self._members:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", self._namespace(member))
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._prefix)


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
