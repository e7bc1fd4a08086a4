"""FileStreamSink: each record becomes a line at the end of a file; offsets are committed when lines are on disk."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO, ClassVar, cast

from typing_extensions import override

from connect.api.errors import ConfigError, RetriableError
from connect.api.record import SinkRecord
from connect.api.sink import SinkConnector, SinkTask, TopicPartition
from connect.api.values import text_of
from connectors.file.config import FileStreamSinkConfig

_PERMANENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)
"""Errors that waiting does not resolve, unlike a full disk."""


class FileStreamSinkTask(SinkTask):
    """Appends lines to a file or to the standard output. At least once: a crash may repeat lines, but loses none."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.file.FileStreamSinkTask"
    config: FileStreamSinkConfig
    _stream: BinaryIO | None = None

    @override
    def start(self) -> None:
        """Open the file."""
        self._open()

    @override
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write all lines at once; a batch that fails leaves nothing behind."""
        if not records:
            return
        lines = [
            record.value if type(record.value) is str else text_of(record.value_schema, record.value)
            for record in records
        ]
        lines.append("")
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
        try:
            self._write(self._stream or self._open(), data)
        except OSError as error:
            self.stop()
            raise RetriableError(f"cannot write to {self.config.file or 'the standard output'}: {error}") from error

    @override
    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make the lines durable."""
        if self._stream is None or self.config.file is None:
            return
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise RetriableError(f"cannot sync {self.config.file} to disk: {error}") from error

    @override
    def stop(self) -> None:
        """Close the file."""
        if self._stream is not None and self.config.file is not None:
            self._stream.close()
        self._stream = None

    def _open(self) -> BinaryIO:
        if self.config.file is None:
            self._stream = sys.stdout.buffer
            return self._stream
        try:
            stream = cast("BinaryIO", io.FileIO(self.config.file, "ab"))
        except _PERMANENT as error:
            text = f"Couldn't find or create file '{self.config.file}' for FileStreamSinkTask: {error}"
            raise ConfigError(text) from error
        except OSError as error:
            raise RetriableError(f"cannot open {self.config.file}: {error}") from error
        self._stream = stream
        return stream

    def _write(self, stream: BinaryIO, data: bytes) -> None:
        if self.config.file is None:
            stream.write(data)
            stream.flush()
            return
        before = os.fstat(stream.fileno()).st_size
        written = 0
        try:
            while written < len(data):
                written += stream.write(data[written:])
        except OSError:
            # Half a batch, on a full disk for instance, would stay before the same records when they are put again.
            os.ftruncate(stream.fileno(), before)
            raise


class FileStreamSinkConnector(SinkConnector):
    """Records of topics as lines of one file, each value as text."""

    config_class = FileStreamSinkConfig
    task_class: ClassVar[type[SinkTask]] = FileStreamSinkTask
    tasks_limit = 1
    aliases = ("org.apache.kafka.connect.file.FileStreamSinkConnector", "FileStreamSink")

    @override
    def alter_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Accept any offsets: the file does not contain them."""
        return True
