import os
import socket

from deploy.launcher.listeners import listeners, parse_listening

_TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0
   1: 0100007F:2384 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 100 0 0 10 0
"""


def test_only_listening_sockets_are_read() -> None:
    assert list(parse_listening(_TABLE)) == [("4711", 9092)]


def test_process_that_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = listeners([port])
    assert found[port].pid == os.getpid()
    assert str(found[port]).startswith(f"process {os.getpid()} (")


def test_port_that_is_bound_but_not_listened_at_is_free() -> None:
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        assert listeners([kept.getsockname()[1]]) == {}
