"""FileStreamSource: each line that is added to a file becomes a record.

| topic | what it does |
|---|---|
| offsets | `{"filename": path}` → `{"position": bytes}` behind the line, as Kafka's own connector has them |
| missing file | waits for it |
| unfinished last line | waits for its end |
| truncated file | begins again at its start (Kafka's own does not notice) |
| rotated file | reads the old one to its end, then the new one from its start (Kafka's own does not notice) |
"""

import logging
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

from typing_extensions import override

from connect.api.data import STRING
from connect.api.errors import ConnectError, RetriableError
from connect.api.record import SourceRecord
from connect.api.source import SourceConnector, SourceOffset, SourcePartition, SourceTask
from connectors.file.config import FileStreamSourceConfig
from connectors.file.lines import LineBuffer
from core_broker.service.clock import SystemClock

log = logging.getLogger(__name__)

BLOCK_BYTES = 1 << 20
IDLE_SECONDS = 0.1
MISSING_SECONDS = 1.0
CLOCK = SystemClock()


class FileStreamSourceTask(SourceTask):
    """Follows one file, or the standard input."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.file.FileStreamSourceTask"
    config: FileStreamSourceConfig
    _stream: BinaryIO | None = None
    _buffer: LineBuffer
    _partition: SourcePartition
    _has_told_missing = False

    @override
    def start(self) -> None:
        """Go on behind the line that was committed last."""
        self._partition = {"filename": self.config.file} if self.config.file else {}
        offset = self.context.offset(self._partition) if self.config.file else None
        self._begin(0 if offset is None else _position(offset))

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

    def _begin(self, position: int) -> None:
        self._buffer = LineBuffer(position, line_max_bytes=self.config.line_max_bytes)

    def _fill(self) -> bool:
        """Read until there is a whole line; False when there is none now."""
        try:
            if self.config.file is None:
                return self._fill_from_standard_input()
            return self._fill_from_file(Path(self.config.file))
        except OSError as error:
            self.stop()
            raise RetriableError(f"{self.config.file or 'the standard input'} cannot be read: {error}") from error

    def _fill_from_file(self, path: Path) -> bool:
        if self._stream is None and not self._open(path):
            return False
        stream = cast("BinaryIO", self._stream)
        while not self._buffer.has_lines:
            block = stream.read(BLOCK_BYTES)
            if not block:
                return self._turn(path, stream)
            self._buffer.feed(block)
        return True

    def _open(self, path: Path) -> bool:
        try:
            stream = path.open("rb", buffering=0)
        except FileNotFoundError:
            if not self._has_told_missing:
                log.warning("the file to read is not there yet", extra={"file": str(path)})
                self._has_told_missing = True
            self.context.wait(MISSING_SECONDS)
            return False
        self._stream = cast("BinaryIO", stream)
        position = self._buffer.read_position
        if position > os.fstat(stream.fileno()).st_size:
            self._start_again(path, "shorter than what was read of it")
            position = 0
        stream.seek(position)
        return True

    def _turn(self, path: Path, stream: BinaryIO) -> bool:
        """The end is reached: see whether the file was truncated or replaced; else wait a little."""
        mine = os.fstat(stream.fileno())
        if mine.st_size < stream.tell():
            self._start_again(path, "truncated")
            stream.seek(0)
            return False
        try:
            named = path.stat()
        except FileNotFoundError:
            named = mine
        if (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            return self._leave(path, stream)
        self.context.wait(IDLE_SECONDS)
        return False

    def _leave(self, path: Path, stream: BinaryIO) -> bool:
        """Another file has the name now: finish the old one, and begin the new one with the next poll."""
        block = stream.read(BLOCK_BYTES)
        if block:
            self._buffer.feed(block)
            return self._buffer.has_lines
        self._buffer.finish()
        if self._buffer.has_lines:
            return True
        self.stop()
        self._start_again(path, "replaced by another file of the same name")
        return False

    def _start_again(self, path: Path, reason: str) -> None:
        log.warning("reading the file again from its start", extra={"file": str(path), "reason": reason})
        self._begin(0)

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
        """Accept positions that could be some; the task starts a file again that is shorter."""
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
