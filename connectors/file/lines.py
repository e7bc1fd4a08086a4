"""Lines of a stream of bytes, as Java ends them: by line feed, carriage return, or both."""

from itertools import accumulate
from typing import NamedTuple

from connect.api.errors import ConnectError


class Lines(NamedTuple):
    """Whole lines and the position behind each."""

    texts: list[str]
    positions: list[int]


class LineBuffer:
    """Takes blocks, gives whole lines and where they end; an unfinished line is held back."""

    def __init__(self, position: int, *, line_max_bytes: int) -> None:
        self._position = position
        self._line_max_bytes = line_max_bytes
        self._rest = b""
        self._lines: list[bytes] = []
        self._next = 0

    @property
    def has_lines(self) -> bool:
        """Whether `take` gives something."""
        return self._next < len(self._lines)

    @property
    def read_position(self) -> int:
        """How far blocks have been taken, unfinished and untaken lines included."""
        return self._position + sum(map(len, self._lines[self._next :])) + len(self._rest)

    def feed(self, block: bytes) -> None:
        """Add what was read; call it when `has_lines` is false."""
        lines = (self._rest + block).splitlines(keepends=True)
        # A carriage return at the end may be half of an ending.
        is_whole = bool(lines) and lines[-1].endswith(b"\n")
        self._rest = b"" if is_whole or not lines else lines.pop()
        if len(self._rest) > self._line_max_bytes:
            raise ConnectError(
                f"a line at position {self._position + sum(map(len, lines))} is longer than "
                f"line.max.bytes={self._line_max_bytes}: is this a file of lines? If so, allow longer ones"
            )
        self._lines, self._next = lines, 0

    def finish(self) -> None:
        """Nothing more comes: what is held back is the last line."""
        self._lines = [*self._lines[self._next :], *([self._rest] if self._rest else [])]
        self._rest, self._next = b"", 0

    def take(self, count: int) -> Lines:
        """The next lines, without their endings."""
        lines = self._lines[self._next : self._next + count]
        self._next += len(lines)
        positions = list(accumulate(map(len, lines), initial=self._position))[1:]
        self._position = positions[-1] if positions else self._position
        return Lines([str(line, "utf-8", "replace").rstrip("\r\n") for line in lines], positions)
