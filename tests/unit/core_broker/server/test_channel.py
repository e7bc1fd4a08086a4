"""A plain channel: the socket, and nothing else."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from core_broker.server.channel import PlainChannel


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def test_bytes_go_both_ways(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    ours, theirs = pair
    channel = PlainChannel(ours, asyncio.get_running_loop())
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert channel.write(b"head ", 0) == 5
        assert channel.send_file(descriptor, 2, 3) == 3
    finally:
        os.close(descriptor)
    assert (channel.has_unsent, channel.flush()) == (False, True)
    assert theirs.recv(100) == b"head 234"
    theirs.sendall(b"request")
    view = memoryview(bytearray(100))
    assert channel.read_into(view) == 7
    assert bytes(view[:7]) == b"request"
    channel.close()


async def test_the_end_is_noticed_without_taking_bytes(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    channel = PlainChannel(ours, asyncio.get_running_loop())
    with pytest.raises(BlockingIOError):
        channel.is_closed_by_client()
    theirs.sendall(b"x")
    assert not channel.is_closed_by_client()
    assert channel.read_into(memoryview(bytearray(10))) == 1
    theirs.close()
    assert channel.is_closed_by_client()
    channel.close()


async def test_readers_and_writers_are_called_until_they_are_stopped(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    channel = PlainChannel(ours, asyncio.get_running_loop())
    readable, writable = asyncio.Event(), asyncio.Event()
    channel.start_reading(readable.set)
    channel.start_writing(writable.set)
    theirs.sendall(b"x")
    await asyncio.wait_for(asyncio.gather(readable.wait(), writable.wait()), 10)
    channel.stop_reading()
    channel.stop_writing()
    readable.clear()
    writable.clear()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not readable.is_set()
    assert not writable.is_set()
    channel.close()
