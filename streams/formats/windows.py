"""Windows in keys: the bytes of the key itself, then when its window starts, for sessions the end before that."""

import struct
from typing import Final

from streams.formats.fitting import Unfit
from streams.model.sources import WindowInfo

Window = tuple[int, int | None]
"""Start and end in milliseconds; the end of a window with a size need not be given."""

_START: Final = struct.Struct(">q")
_SESSION: Final = struct.Struct(">qq")


def suffix_bytes(window: WindowInfo) -> int:
    """How many bytes the window takes behind a key."""
    return _SESSION.size if window.kind == "SESSION" else _START.size


def add_window(key: bytes | None, info: WindowInfo, window: Window | None) -> bytes:
    """A key with its window."""
    if key is None:
        raise Unfit("a windowed key is null")
    if window is None:
        raise Unfit("the window of a windowed key is missing")
    start, end = window
    if info.kind != "SESSION":
        return key + _START.pack(start)
    if end is None:
        raise Unfit("the end of a session is missing")
    return key + _SESSION.pack(end, start)


def split_window(key: bytes, info: WindowInfo) -> tuple[bytes, int, int]:
    """The key without its window, start and end."""
    size = suffix_bytes(info)
    if len(key) < size:
        raise Unfit(f"a windowed key has at least {size} bytes, not {len(key)}")
    inner, suffix = key[:-size], key[-size:]
    if info.kind == "SESSION":
        end, start = _SESSION.unpack(suffix)
        return inner, start, end
    (start,) = _START.unpack(suffix)
    return inner, start, start + (info.size_ms or 0)
