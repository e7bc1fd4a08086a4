"""The physical limits of this machine: what moving a gigabyte costs when nothing is done with it."""

import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Final

from tests.benchmarks.measure import GB, Row, best_of_three

_CHUNK: Final = 1 << 20


def limits(stream_bytes: int) -> list[Row]:
    """Loopback TCP and sendfile, each with one sender and one receiver process."""
    tcp = "sendall of 1 MiB to a process that throws it away"
    file = "os.sendfile of 1 MiB from the page cache to the same process"
    return [
        _measure("limit: loopback TCP", _send_memory, stream_bytes, tcp),
        _measure("limit: sendfile", _send_file, stream_bytes, file),
    ]


def echo(rounds: int) -> list[Row]:
    """What a request costs a process that does nothing with it: the floor under "one in flight"."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = multiprocessing.get_context("spawn").Process(target=_echo, args=(listener.getsockname()[1],))
    server.start()
    connection, _ = listener.accept()
    with listener, connection:
        watch = best_of_three(server.pid or 0, lambda: _ping(connection, rounds))
    server.join(30)
    result = f"{watch.cpu_seconds / rounds * 1e6:.1f} µs of its CPU, {rounds / watch.seconds / 1000:.1f} k requests/s"
    how = f"a Python process that sends back the 200 B it receives, best of 3; {watch.note()}"
    return [Row(what="limit: echo, one in flight", result=result, how=how)]


def _ping(connection: socket.socket, rounds: int) -> None:
    message = bytes(200)
    for _ in range(rounds):
        connection.sendall(message)
        connection.recv(200)


def _echo(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def _measure(what: str, send: Callable[[socket.socket, int], None], size: int, how: str) -> Row:
    listener = socket.create_server(("127.0.0.1", 0))
    receiver = multiprocessing.get_context("spawn").Process(target=_swallow, args=(listener.getsockname()[1],))
    receiver.start()
    connection, _ = listener.accept()
    with listener, connection:
        started, cpu = time.perf_counter(), time.process_time()
        send(connection, size)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        seconds, spent = time.perf_counter() - started, time.process_time() - cpu
    receiver.join(30)
    return Row(what=what, result=f"{size / seconds / GB:.2f} GB/s, {spent / size * GB:.2f} CPU-s/GB (sender)", how=how)


def _swallow(port: int) -> None:
    buffer = bytearray(_CHUNK)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while connection.recv_into(buffer):
            pass
        connection.sendall(b".")


def _send_memory(connection: socket.socket, size: int) -> None:
    chunk = bytes(_CHUNK)
    for _ in range(max(1, size // _CHUNK)):
        connection.sendall(chunk)


def _send_file(connection: socket.socket, size: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(64 * _CHUNK))
        file.flush()
        left = size
        position = 0
        while left > 0:
            sent = os.sendfile(connection.fileno(), file.fileno(), position, min(_CHUNK, left))
            left -= sent
            position = (position + sent) % (63 * _CHUNK)
