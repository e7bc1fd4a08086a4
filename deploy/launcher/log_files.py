"""Log files that cannot fill a disk: they roll at a size, and few old ones are kept."""

import io
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from typing_extensions import override

LOG_BYTES_MAX: Final = 50 << 20
OLD_FILES: Final = 2
_TAIL_LINES: Final = 40
_TAIL_LINE_BYTES_MAX: Final = 2_000


class LogFile:
    """One log: `NAME.log`, and older ones beside it as `NAME.log.1`, `NAME.log.2`; its last lines are remembered."""

    def __init__(self, path: Path, *, bytes_max: int = LOG_BYTES_MAX) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._unfinished = b""
        self._file: IO[bytes] | None = None
        self._size = 0

    def begin(self) -> None:
        """Begin a new file, unless the old one is empty; if that fails, the next line tries again."""
        self.close()
        with suppress(OSError):
            self._begin()

    def _begin(self) -> None:
        if self.path.exists() and self.path.stat().st_size:
            for number in range(OLD_FILES, 0, -1):
                older = old_file(self.path, number - 1)
                if older.exists():
                    older.replace(old_file(self.path, number))
        self._file = self.path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, data: bytes) -> None:
        """Write output of a service; on a full disk lines are lost, but no service stops."""
        *lines, rest = (self._unfinished + data).split(b"\n")
        self._tail.extend(line[:_TAIL_LINE_BYTES_MAX] for line in lines)
        self._unfinished = rest[:_TAIL_LINE_BYTES_MAX]
        try:
            if self._file is None or self._size + len(data) > self._bytes_max:
                self.close()
                self._begin()
            assert self._file is not None
            self._file.write(data)
            self._size += len(data)
        except OSError:
            self.close()

    def note(self, text: str, *, now_ms: int) -> None:
        """Write a line of the launcher between those of the service, in the same style."""
        seconds, milliseconds = divmod(now_ms, 1000)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
        self.write(f"{moment}.{milliseconds:03d} INFO    launcher: {text}\n".encode())

    def last_lines(self, count: int) -> list[str]:
        """The last lines that were written."""
        unfinished = [self._unfinished] if self._unfinished else []
        lines = [*self._tail, *unfinished][-count:]
        return [line.decode(errors="replace") for line in lines]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def old_file(path: Path, number: int) -> Path:
    """An older file of a log; 0 is the log itself."""
    return path.with_name(f"{path.name}.{number}") if number else path


class LogStream(io.TextIOBase):
    """A log as a stream of text, for Python's own logs."""

    def __init__(self, log: LogFile) -> None:
        self._log = log

    @override
    def write(self, text: str) -> int:
        self._log.write(text.encode())
        return len(text)

    @override
    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override] # typeshed's lines are of any kind
        for line in lines:
            self.write(line)
