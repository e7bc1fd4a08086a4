"""Cuts between namespaces, seen by real connections."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from tests.chaos.namespaces import PORTS, NamespaceNetwork, can_make_namespaces
from tests.chaos.network import BROKER, CLIENTS, CONTROLLER
from tests.support.patience import eventually

pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="namespaces need root and iproute2")

SERVE = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(self.request.recv(1))
class Server(socketserver.ThreadingTCPServer): allow_reuse_address = True
Server((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
"""
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.5) as connection:
    connection.sendall(b"x")
    assert connection.recv(1) == b"x"
"""


@pytest.fixture
def network() -> Iterator[NamespaceNetwork]:
    """Two nodes, the first of which answers on both ports."""
    network = NamespaceNetwork([1, 2])
    servers = [
        subprocess.Popen(network.command(1, [sys.executable, "-c", SERVE, network.host(1), str(port)]))
        for port in PORTS.values()
    ]
    try:
        yield network
    finally:
        for server in servers:
            server.kill()
            server.wait()
        network.close()


def reaches(network: NamespaceNetwork, source: int, channel: str = BROKER) -> bool:
    ask = [sys.executable, "-c", ASK, network.host(1), str(PORTS[channel])]
    return subprocess.run(network.command(source, ask), capture_output=True, check=False).returncode == 0


def test_a_cut_drops_one_direction_of_one_pair_until_it_heals(network: NamespaceNetwork) -> None:
    for channel in (BROKER, CONTROLLER):
        eventually(partial(reaches, network, 2, channel))
    for pair in ((2, 1), (1, 2)):
        network.cut([pair])
        assert not reaches(network, 2)
        assert reaches(network, CLIENTS)
        network.heal()
        assert reaches(network, 2)


def test_one_channel_can_be_cut_alone(network: NamespaceNetwork) -> None:
    for channel in (BROKER, CONTROLLER):
        eventually(partial(reaches, network, CLIENTS, channel))
    network.cut([(CLIENTS, 1)], [BROKER])
    assert not reaches(network, CLIENTS, BROKER)
    assert reaches(network, CLIENTS, CONTROLLER)
