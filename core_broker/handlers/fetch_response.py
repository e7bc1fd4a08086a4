"""The response to Fetch, encoded by hand: headers in memory, large record data as parts of log files, not copied."""

import os
import struct
from typing import Final, TypeAlias

import msgspec

from core_broker.cluster.replicas.throttle import ReplicationQuota
from core_broker.errors import ErrorCode
from core_broker.handlers.current_leader import NO_ENDPOINTS, LeaderAndEpoch, encode_leader
from core_broker.handlers.fetch_sessions import FetchEntry
from core_broker.log.segment_chain import LogSlice
from core_broker.metrics import TopicTraffic
from core_broker.protocol.frames import finish_response, start_response
from core_broker.protocol.primitives import uvarint

SENDFILE_BYTES_MIN: Final = 48 * 1024
"""Below this size a read into memory is cheaper than sendfile."""

Chunk: TypeAlias = bytearray | bytes | LogSlice


class ReadResult(msgspec.Struct, gc=False):
    """The result for one partition of a fetch."""

    entry: FetchEntry
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    start_offset: int = -1
    data: LogSlice | None = None
    aborted: list[tuple[int, int]] | None = None
    """Producer id and first offset of the aborted transactions in the data; None unless requested."""
    diverging: tuple[int, int] | None = None
    """Epoch and end offset where the reader's log diverges from ours (KIP-595)."""
    traffic: TopicTraffic | None = None
    quota: ReplicationQuota | None = None
    """The throttle that the data for a follower counts for."""
    preferred_read_replica: int = -1
    """The broker that the consumer should read from instead (KIP-392)."""
    leader: LeaderAndEpoch | None = None
    """The current leader, with an error that says there is another one (KIP-951)."""

    @property
    def has_changed(self) -> bool:
        """Whether an incremental response must include the partition."""
        entry = self.entry
        return (
            self.data is not None
            or self.error != ErrorCode.NONE
            or self.diverging is not None
            or self.preferred_read_replica >= 0
            or entry.sent_error
            or entry.sent_high_watermark != self.high_watermark
            or entry.sent_start_offset != self.start_offset
        )


class FetchResponse:
    """A response under construction."""

    __slots__ = ("_flexible", "_out", "_pack_count", "_size", "_version", "chunks")

    def __init__(self, version: int, correlation_id: int) -> None:
        self._version = version
        self._flexible = version >= 12
        self._pack_count = _compact_count if self._flexible else _INT32
        """Encodes the length of an array or of bytes, which are encoded alike; -1 is null."""
        self._out = start_response(correlation_id, flexible=self._flexible)
        self._size = 0
        """Bytes of the completed chunks, without `_out`."""
        self.chunks: list[Chunk] = []

    def build(
        self,
        results: list[ReadResult],
        session_id: int,
        error: ErrorCode = ErrorCode.NONE,
        endpoints: bytes = NO_ENDPOINTS,
        throttle_ms: int = 0,
    ) -> list[Chunk]:
        """The complete response as a list of byte strings and parts of files; `endpoints` is the tagged end."""
        out = self._out
        is_newer = self._version >= 7
        out += _THROTTLE_ERROR_SESSION(throttle_ms, error, session_id) if is_newer else _THROTTLE(throttle_ms)
        topics = _by_topic(results)
        out += self._pack_count(len(topics))
        for group in topics:
            self._topic(group)
        if self._flexible:
            self._out += endpoints
        if self._out:
            self.chunks.append(self._out)
            self._size += len(self._out)
        first = self.chunks[0]
        assert isinstance(first, bytearray)
        finish_response(first, self._size - len(first))
        return self.chunks

    def _topic(self, results: list[ReadResult]) -> None:
        entry = results[0].entry
        if self._version >= 13:
            self._out += entry.topic_id
        else:
            name = entry.topic.encode()
            self._out += uvarint(len(name) + 1) if self._flexible else _INT16(len(name))
            self._out += name
        self._out += self._pack_count(len(results))
        for result in results:
            out = self._out
            out += _PARTITION(result.entry.partition, result.error, result.high_watermark, result.last_stable_offset)
            if self._version >= 5:
                out += _INT64(result.start_offset)
            out += self._pack_count(-1 if result.aborted is None else len(result.aborted))
            for producer_id, first_offset in result.aborted or ():
                out += _TWO_INT64(producer_id, first_offset)
                if self._flexible:
                    out.append(0)
            if self._version >= 11:
                out += _INT32(result.preferred_read_replica)
            self._records(result.data)
            if self._flexible:
                self._out += b"\x00" if result.data is not None else _tags(result)
        if self._flexible:
            self._out.append(0)

    def _records(self, data: LogSlice | None) -> None:
        length = 0 if data is None else data.length
        self._out += self._pack_count(length)
        if data is None:
            return
        if length < SENDFILE_BYTES_MIN:
            records = os.pread(data.file.fd, length, data.position)
            if len(records) != length:
                raise OSError(f"expected {length} bytes at position {data.position} of a log file, got {len(records)}")
            self._out += records
            return
        self.chunks.append(self._out)
        self.chunks.append(data)
        self._size += length + len(self._out)
        self._out = bytearray()


def _compact_count(count: int) -> bytes:
    return uvarint(count + 1)


def _tags(result: ReadResult) -> bytes:
    """The tagged fields of a partition, which come without data."""
    if result.diverging is not None:
        return b"\x01\x00\x0d" + _EPOCH_END(*result.diverging, 0)
    if result.leader is not None:
        return b"\x01\x01" + encode_leader(result.leader)
    return b"\x00"


def _by_topic(results: list[ReadResult]) -> list[list[ReadResult]]:
    """Group adjacent results of the same topic."""
    groups: list[list[ReadResult]] = []
    last: tuple[str, bytes] | None = None
    for result in results:
        key = (result.entry.topic, result.entry.topic_id)
        if key == last:
            groups[-1].append(result)
        else:
            groups.append([result])
            last = key
    return groups


_THROTTLE_ERROR_SESSION: Final = struct.Struct(">ihi").pack
_THROTTLE: Final = struct.Struct(">i").pack
_PARTITION: Final = struct.Struct(">ihqq").pack
_EPOCH_END: Final = struct.Struct(">iqb").pack
_INT16: Final = struct.Struct(">h").pack
_INT32: Final = struct.Struct(">i").pack
_INT64: Final = struct.Struct(">q").pack
_TWO_INT64: Final = struct.Struct(">qq").pack
