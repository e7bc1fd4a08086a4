"""FileStreamSource: each line that is appended to a file becomes a record.

| case | behaviour |
|---|---|
| offsets | `{"filename": path}` → `{"position": bytes}` after the line, as in Kafka's own connector |
| missing file | waits for it |
| unfinished last line | waits for its end |
| truncated file | starts over (Kafka's own does not notice) |
| rotated file | reads the old one to its end, then the new one from its start (Kafka's own does not notice) |
"""

import logging
import os
import select
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple, cast

from typing_extensions import override

from connect.api.data import STRING
from connect.api.errors import ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceOffset, SourcePartition, SourceTask
from connectors.file.config import FileStreamSourceConfig
from core_broker.service.clock import SystemClock

log = logging.getLogger(__name__)

BLOCK_BYTES = 1 << 20
IDLE_SECONDS = 0.1
MISSING_SECONDS = 1.0
CLOCK = SystemClock()


class Lines(NamedTuple):
    """Whole lines, and the position after each."""

    texts: list[str]
    positions: list[int]


class LineBuffer:
    """Splits blocks of bytes into lines, as Java ends them: by line feed, carriage return, or both."""

    def __init__(self, position: int, *, line_max_bytes: int) -> None:
        self._position = position
        self._line_max_bytes = line_max_bytes
        self._rest = b""
        self._lines: list[bytes] = []
        self._next = 0

    @property
    def has_lines(self) -> bool:
        """Whether `take` returns lines."""
        return self._next < len(self._lines)

    @property
    def read_position(self) -> int:
        """The position after the last block, including lines that were not taken yet."""
        return self._position + sum(map(len, self._lines[self._next :])) + len(self._rest)

    def feed(self, block: bytes) -> None:
        """Add a block; only when `has_lines` is false."""
        lines = (self._rest + block).splitlines(keepends=True)
        # A carriage return at the end may be half of a line end.
        is_whole = bool(lines) and lines[-1].endswith(b"\n")
        self._rest = b"" if is_whole or not lines else lines.pop()
        if len(self._rest) > self._line_max_bytes:
            raise ConnectError(
                f"a line at position {self._position + sum(map(len, lines))} is longer than "
                f"line.max.bytes={self._line_max_bytes}: if it is a text file, allow longer lines"
            )
        self._lines, self._next = lines, 0

    def finish(self) -> None:
        """There are no more blocks: what is left is the last line."""
        self._lines = [*self._lines[self._next :], *([self._rest] if self._rest else [])]
        self._rest, self._next = b"", 0

    def take(self, count: int) -> Lines:
        """The next lines, without their ends."""
        lines = self._lines[self._next : self._next + count]
        self._next += len(lines)
        positions = list(accumulate(map(len, lines), initial=self._position))[1:]
        self._position = positions[-1] if positions else self._position
        return Lines([str(line, "utf-8", "replace").rstrip("\r\n") for line in lines], positions)


class FileStreamSourceTask(SourceTask):
    """Follows one file, or the standard input."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.file.FileStreamSourceTask"
    config: FileStreamSourceConfig
    _stream: BinaryIO | None = None
    _buffer: LineBuffer
    _partition: SourcePartition
    _has_warned = False

    @override
    def start(self) -> None:
        """Continue after the line that was committed last."""
        self._partition = {"filename": self.config.file} if self.config.file else {}
        offset = self.context.offset(self._partition) if self.config.file else None
        self._buffer = self._new_buffer(0 if offset is None else _position(offset))

    @override
    def poll(self) -> Sequence[SourceRecord]:
        """The next lines, or none after a short wait."""
        if not self._buffer.has_lines and not self._fill():
            return []
        texts, positions = self._buffer.take(self.config.batch_size)
        topic, partition, now = self.config.topic, self._partition, CLOCK.now_ms()
        is_file = self.config.file is not None
        return [
            SourceRecord(
                topic=topic,
                value_schema=STRING,
                value=text,
                timestamp_ms=now,
                source_partition=partition,
                source_offset={"position": position} if is_file else {},
            )
            for text, position in zip(texts, positions, strict=True)
        ]

    @override
    def stop(self) -> None:
        """Close the file."""
        if self._stream is not None and self.config.file is not None:
            self._stream.close()
        self._stream = None

    def _new_buffer(self, position: int) -> LineBuffer:
        return LineBuffer(position, line_max_bytes=self.config.line_max_bytes)

    def _fill(self) -> bool:
        """Read until there is a whole line; False when there is none now."""
        try:
            if self.config.file is None:
                return self._fill_from_standard_input()
            return self._fill_from_file(Path(self.config.file))
        except OSError as error:
            self.stop()
            raise RetriableError(f"cannot read {self.config.file or 'the standard input'}: {error}") from error

    def _fill_from_file(self, path: Path) -> bool:
        if self._stream is None and not self._open(path):
            return False
        stream = cast("BinaryIO", self._stream)
        while not self._buffer.has_lines:
            block = stream.read(BLOCK_BYTES)
            if not block:
                return self._handle_end(path, stream)
            self._buffer.feed(block)
        return True

    def _open(self, path: Path) -> bool:
        try:
            stream = path.open("rb", buffering=0)
        except FileNotFoundError:
            if not self._has_warned:
                log.warning("the file to read does not exist yet", extra={"file": str(path)})
                self._has_warned = True
            self.context.wait(MISSING_SECONDS)
            return False
        self._stream = cast("BinaryIO", stream)
        position = self._buffer.read_position
        if position > os.fstat(stream.fileno()).st_size:
            self._start_over(path, "shorter than what was read of it")
            position = 0
        stream.seek(position)
        return True

    def _handle_end(self, path: Path, stream: BinaryIO) -> bool:
        """At the end of the file, see whether it was truncated or replaced; else wait a little."""
        opened = os.fstat(stream.fileno())
        if opened.st_size < stream.tell():
            self._start_over(path, "truncated")
            stream.seek(0)
            return False
        try:
            named = path.stat()
        except FileNotFoundError:
            named = opened
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            return self._finish_replaced(path, stream)
        self.context.wait(IDLE_SECONDS)
        return False

    def _finish_replaced(self, path: Path, stream: BinaryIO) -> bool:
        """Another file has the name now: read the old one to its end, and begin the new one with the next poll."""
        block = stream.read(BLOCK_BYTES)
        if block:
            self._buffer.feed(block)
            return self._buffer.has_lines
        self._buffer.finish()
        if self._buffer.has_lines:
            return True
        self.stop()
        self._start_over(path, "replaced by another file of the same name")
        return False

    def _start_over(self, path: Path, reason: str) -> None:
        log.warning("reading the file from its beginning", extra={"file": str(path), "reason": reason})
        self._buffer = self._new_buffer(0)

    def _fill_from_standard_input(self) -> bool:
        self._stream = sys.stdin.buffer
        while not self._buffer.has_lines:
            ready, _, _ = select.select([self._stream], [], [], IDLE_SECONDS)
            if not ready:
                return False
            block = os.read(self._stream.fileno(), BLOCK_BYTES)
            if not block:
                self.context.wait(MISSING_SECONDS)
                return False
            self._buffer.feed(block)
        return True


class FileStreamSourceConnector(SourceConnector):
    """Lines of one file into one topic; offsets name exactly what was read, except from the standard input."""

    config_class = FileStreamSourceConfig
    task_class: ClassVar[type[SourceTask]] = FileStreamSourceTask
    aliases = ("org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSource")
    is_exactly_once = True

    @override
    def alter_offsets(self, offsets: Sequence[tuple[SourcePartition, SourceOffset | None]]) -> bool:
        """Accept any position: the task reads a file that is shorter from its beginning."""
        if not self.config.given.get("file"):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            if offset is not None:
                _position(offset)
                if "filename" not in partition:
                    raise ConnectError("Partition objects should contain the key 'filename'")
        return True


def _position(offset: SourceOffset) -> int:
    position = offset.get("position")
    if "position" not in offset:
        raise ConnectError("Offset objects should either be null or contain the key 'position'")
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
    return position
