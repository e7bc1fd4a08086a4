"""Reads log files as they grow: the last lines of each, and new ones, merged in the order of time."""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

_BLOCK_BYTES: Final = 1 << 16
_READ_BYTES_MAX: Final = 1 << 20
_LINE_BYTES_MAX: Final = 1 << 20
_MOMENT = re.compile(rb'^(?:\{"time": ")?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d\.\d+)')
"""At the head of a line, in the styles of text and of JSON."""


class LogLine(NamedTuple):
    """A line of a log."""

    moment: str
    """Its time, or that of the line before it."""
    name: str
    text: str


class LogReader:
    """One log file, read from where the last read ended; a file that was replaced is read from its beginning."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._file: IO[bytes] | None = None
        self._unfinished = b""
        self._moment = ""

    def last_lines(self, count: int) -> list[LogLine]:
        """The last lines of the file; the next read continues after them."""
        file = self._open()
        if file is None:
            return []
        # Blocks from the end of the file, until they contain enough whole lines.
        position = file.seek(0, os.SEEK_END)
        text = b""
        while position and text.count(b"\n") <= count:
            size = min(_BLOCK_BYTES, position)
            position -= size
            file.seek(position)
            text = file.read(size) + text
        file.seek(0, os.SEEK_END)
        whole = text[: text.rfind(b"\n") + 1]
        self._unfinished = text[len(whole) :]
        return self._lines(whole.splitlines()[-count:] if count else [])

    def new_lines(self) -> list[LogLine]:
        """Whole lines since the last read."""
        if self._file is None:
            return self._read() if self._open() else []
        lines = self._read()
        if self._is_replaced():
            lines += self._read()  # its end
            self.close()
            lines += self.new_lines()
        return lines

    def _open(self) -> IO[bytes] | None:
        self.close()
        with suppress(FileNotFoundError):
            self._file = self._path.open("rb")
        return self._file

    def close(self) -> None:
        """Close the file."""
        self._unfinished = b""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _is_replaced(self) -> bool:
        assert self._file is not None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) or here.st_size < self._file.tell()

    def _read(self) -> list[LogLine]:
        assert self._file is not None
        *lines, self._unfinished = (self._unfinished + self._file.read(_READ_BYTES_MAX)).split(b"\n")
        if len(self._unfinished) > _LINE_BYTES_MAX:
            lines, self._unfinished = [*lines, self._unfinished], b""
        return self._lines(lines)

    def _lines(self, lines: Iterable[bytes]) -> list[LogLine]:
        found = []
        for line in lines:
            if at := _MOMENT.match(line):
                self._moment = f"{at[1].decode()} {at[2].decode()}"
            found.append(LogLine(self._moment, self._name, line.decode(errors="replace").rstrip("\r")))
        return found


class LogReaders:
    """Several logs, merged."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._readers = [LogReader(name, path) for name, path in paths.items()]

    def last_lines(self, count: int) -> list[LogLine]:
        """The last lines of each, in the order of time."""
        return _in_order(reader.last_lines(count) for reader in self._readers)

    def new_lines(self) -> list[LogLine]:
        """Lines since the last read, in the order of time."""
        return _in_order(reader.new_lines() for reader in self._readers)

    def close(self) -> None:
        """Close all files."""
        for reader in self._readers:
            reader.close()


def _in_order(found: Iterable[list[LogLine]]) -> list[LogLine]:
    """Sorting is stable: the lines of one log keep their order."""
    return sorted((line for lines in found for line in lines), key=lambda line: line.moment)
