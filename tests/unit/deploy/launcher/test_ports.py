import os
import socket
import sys

import pytest

from deploy.launcher.ports import HeldPort, owner_of

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who has a port")


def test_any_free_port_is_a_real_one() -> None:
    held = HeldPort.acquire("localhost", 0)
    assert held.port > 0
    held.release()


def test_a_service_listens_on_a_port_that_is_kept_for_it() -> None:
    held = HeldPort.acquire("localhost", 0)
    for _ in range(2):
        with socket.create_server(("127.0.0.1", held.port)) as service:
            socket.create_connection(service.getsockname()).close()
    held.release()


@needs_proc
def test_a_held_port_is_not_given_to_a_process_that_asks_for_any() -> None:
    held = HeldPort.acquire("", 0)
    for _ in range(50):
        with socket.create_server(("127.0.0.1", 0)) as other:
            assert other.getsockname()[1] != held.port
    held.release()


@pytest.mark.parametrize("bind", ["localhost", "", "127.0.0.1"])
def test_a_port_that_a_process_listens_on_is_in_use(bind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError, match="in use"):
        HeldPort.acquire(bind, other.getsockname()[1])


def test_an_address_that_is_not_of_this_machine_has_no_ports() -> None:
    with pytest.raises(OSError):
        HeldPort.acquire("203.0.113.7", 0)


@needs_proc
def test_the_owner_of_a_port_is_reported_with_its_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        assert f"process {os.getpid()} (" in str(owner_of(ours.getsockname()[1]))


def test_a_port_without_a_listener_has_no_owner() -> None:
    held = HeldPort.acquire("127.0.0.1", 0)
    assert owner_of(held.port) is None
    held.release()
