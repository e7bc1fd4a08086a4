"""A client that costs next to nothing: requests are encoded once, answers are counted and thrown away."""

import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Final, Self

from core_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from core_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from core_broker.protocol.records import Record, build_batch
from tests.support.wire import frame

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 11


class RawClient:
    """One connection that keeps a number of requests in flight."""

    def __init__(self, bootstrap: str, context: ssl.SSLContext | None = None) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self.bytes_received = 0
        self._buffer = bytearray(4 << 20)
        self._head = b""
        self._left = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.socket.close()

    def repeat(self, request: bytes, count: int, *, in_flight: int) -> None:
        """Send the same request `count` times and wait for all answers."""
        many = request * in_flight
        sent = done = 0
        while done < count:
            room = min(in_flight - (sent - done), count - sent)
            if room:
                self.socket.sendall(memoryview(many)[: room * len(request)])
                sent += room
            done += self._receive()

    def run(self, requests: Iterator[bytes], *, in_flight: int) -> None:
        """Send different requests, so many at a time, and wait for all answers."""
        waiting = 0
        more = True
        while more or waiting:
            while more and waiting < in_flight:
                request = next(requests, None)
                if request is None:
                    more = False
                else:
                    self.socket.sendall(request)
                    waiting += 1
            if waiting:
                waiting -= self._receive()

    def _receive(self) -> int:
        """Take what has come; returns how many answers are complete with it."""
        size = self.socket.recv_into(self._buffer)
        if not size:
            raise ConnectionError("the broker closed the connection")
        self.bytes_received += size
        done = position = 0
        while position < size:
            if not self._left:
                position = self._take_head(position, size)
                continue
            step = min(self._left, size - position)
            self._left -= step
            position += step
            done += not self._left
        return done

    def _take_head(self, position: int, size: int) -> int:
        step = min(4 - len(self._head), size - position)
        self._head += self._buffer[position : position + step]
        if len(self._head) == 4:
            (self._left,) = struct.unpack(">i", self._head)
            self._head = b""
        return position + step


def produce_request(topic: str, partition: int, *, records: int, record_bytes: int, acks: int = 1) -> bytes:
    """A produce request with one batch, not compressed."""
    batch = build_batch([Record(-1, 1_700_000_000_000, None, bytes(record_bytes)) for _ in range(records)])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))])
    return frame(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)


def fetch_request(topic: str, partition: int, offset: int, *, max_bytes: int) -> bytes:
    """A fetch of one partition that does not wait, outside of a session."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return frame(request, FETCH_VERSION)
