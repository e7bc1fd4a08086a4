"""Splits a body of concatenated JSON objects into the objects while it is still arriving."""

import re
from collections.abc import Iterator

from rest_proxy.errors import ProxyError, too_large

_MAX_CHEAP_DEPTH = 6
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _pattern(depth: int) -> bytes:
    """A pattern for objects that hold other objects up to this depth; it does not backtrack: each byte is read once."""
    inner = b"" if depth == 0 else b"|" + _pattern(depth - 1)
    return rb'\{[^"{}]*+(?:(?:' + _STRING + inner + rb')[^"{}]*+)*+\}'


_NEXT = re.compile(rb"[ \t\r\n]*+(" + _pattern(_MAX_CHEAP_DEPTH) + rb")", re.DOTALL)
_BEGIN = re.compile(rb"[^ \t\r\n]")
_MARK = re.compile(rb'["{}]')
_END_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class Splitter:
    """Finds where objects end; it does not check whether they are well-formed inside.

    An object that arrives in pieces is scanned once, not again for each piece. Raises ProxyError where no object can
    follow; the rest of the body has no meaning then.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._partial = bytearray()
        self._end = _EndFinder()

    @property
    def partial_bytes(self) -> int:
        """The number of bytes received of an object that is not complete yet."""
        return len(self._partial)

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the objects that are complete with these bytes; exhaust it before the next call."""
        start = 0
        # First complete the object that earlier chunks began.
        if self._partial:
            start = self._end.find(chunk, 0)
            self._keep(chunk if start < 0 else chunk[:start])
            if start < 0:
                return
            text, self._partial = bytes(self._partial), bytearray()
            yield text
        while True:
            # The pattern is the fast way: it finds complete objects that are not nested too deeply for it.
            while found := _NEXT.match(chunk, start):
                start = found.end()
                yield self._check_size(found[1])
            begin = _BEGIN.search(chunk, start)
            if begin is None:
                return
            if not chunk.startswith(b"{", begin.start()):
                shown = chunk[begin.start() : begin.start() + 20].decode(errors="replace")
                raise ProxyError(400, f"Error processing JSON: a record must be an object, not {shown!r}")
            # What follows is nested more deeply, or incomplete.
            self._end = _EndFinder()
            start = self._end.find(chunk, begin.start())
            if start < 0:
                self._keep(chunk[begin.start() :])
                return
            yield self._check_size(chunk[begin.start() : start])

    def finish(self) -> None:
        """Call at the end of the body; raises ProxyError when it ends in the middle of an object."""
        if self._partial:
            raise ProxyError(400, f"The body ends in the middle of a record, after {len(self._partial)} bytes of it")

    def _keep(self, part: bytes) -> None:
        self._partial += part
        if len(self._partial) > self._max_bytes:
            raise self._too_large()

    def _check_size(self, text: bytes) -> bytes:
        if len(text) > self._max_bytes:
            raise self._too_large()
        return text

    def _too_large(self) -> ProxyError:
        limit = f"{self._max_bytes} bytes (request.max.bytes)"
        return too_large(f"Produce request size is larger than allowed threshold: a record has more than {limit}")


class _EndFinder:
    """Finds the end of an object that arrives in pieces: it remembers the depth, and whether it is in a string."""

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
        """Where the current string ends, or -1 when that is not in this chunk."""
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
