"""A body of JSON objects, one after the other, cut into the objects while it still arrives."""

import re
from collections.abc import Iterator

from rest_proxy.errors import ProxyError, too_large

_MAX_CHEAP_DEPTH = 6
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _pattern(depth: int) -> bytes:
    """A pattern for objects that hold other objects up to this depth; each byte is looked at once."""
    inner = b"" if depth == 0 else b"|" + _pattern(depth - 1)
    return rb'\{[^"{}]*+(?:(?:' + _STRING + inner + rb')[^"{}]*+)*+\}'


_NEXT = re.compile(rb"[ \t\r\n]*+(" + _pattern(_MAX_CHEAP_DEPTH) + rb")", re.DOTALL)
_BEGIN = re.compile(rb"[^ \t\r\n]")
_MARK = re.compile(rb'["{}]')
_END_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class Splitter:
    """Finds where objects end; whether they are well-formed inside is for whoever reads them.

    An object that arrives bit by bit is looked at once, not once for each bit. Raises ProxyError where no object can
    follow; the rest of the body has no meaning then.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._partial = bytearray()
        self._end = _EndFinder()

    @property
    def begun(self) -> int:
        """How many bytes there are of an object that has not come to its end."""
        return len(self._partial)

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """The objects that are complete with these bytes; to be used up before the next call."""
        start = 0
        if self._partial:
            start = self._end.find(chunk, 0)
            self._keep(chunk if start < 0 else chunk[:start])
            if start < 0:
                return
            yield self._take()
        while True:
            while found := _NEXT.match(chunk, start):
                start = found.end()
                yield self._checked(found[1])
            begin = _BEGIN.search(chunk, start)
            if begin is None:
                return
            start = self._find_end(chunk, begin.start())
            if start < 0:
                self._keep(chunk[begin.start() :])
                return
            yield self._checked(chunk[begin.start() : start])

    def finish(self) -> None:
        """The body is over; raises ProxyError when it ends in the middle of an object."""
        if self._partial:
            raise ProxyError(400, f"The body ends in the middle of a record, after {len(self._partial)} bytes of it")

    def _find_end(self, chunk: bytes, start: int) -> int:
        """Where an object ends that is deeper than the pattern goes, or -1 when it is not complete."""
        if not chunk.startswith(b"{", start):
            told = chunk[start : start + 20].decode(errors="replace")
            raise ProxyError(400, f"Error processing JSON: a record must be an object, not {told!r}")
        self._end = _EndFinder()
        return self._end.find(chunk, start)

    def _keep(self, part: bytes) -> None:
        self._partial += part
        if len(self._partial) > self._max_bytes:
            raise self._too_large()

    def _take(self) -> bytes:
        text, self._partial = bytes(self._partial), bytearray()
        return text

    def _checked(self, text: bytes) -> bytes:
        if len(text) > self._max_bytes:
            raise self._too_large()
        return text

    def _too_large(self) -> ProxyError:
        most = f"{self._max_bytes} bytes (request.max.bytes)"
        return too_large(f"Produce request size is larger than allowed threshold: a record has more than {most}")


class _EndFinder:
    """Knows how deep inside an object the bytes seen so far have led."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def find(self, chunk: bytes, start: int) -> int:
        """Where the object ends, or -1 when that is not in this chunk."""
        position = start
        if self._is_in_string:
            position = self._after_string(chunk, position)
        while position >= 0 and (mark := _MARK.search(chunk, position)):
            position = mark.end()
            match mark[0]:
                case b'"':
                    self._is_in_string = True
                    position = self._after_string(chunk, position)
                case b"{":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth == 0:
                        return position
        return -1

    def _after_string(self, chunk: bytes, position: int) -> int:
        """Where the string that was begun ends, or -1 when that is not in this chunk."""
        if self._is_escaped and position < len(chunk):
            self._is_escaped = False
            position += 1
        found = _END_OF_STRING.match(chunk, position)
        if found is None:
            backslashes = len(chunk) - max(position, len(chunk.rstrip(b"\\")))
            self._is_escaped ^= backslashes % 2 == 1
            return -1
        self._is_in_string = False
        return found.end()
