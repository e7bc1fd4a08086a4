"""What Java and Python workers print: kept in a file that does not grow without end, off the engine's own outputs."""

import logging
import logging.handlers
import os
import threading
from contextlib import closing
from pathlib import Path
from typing import Final

_FILE_BYTES: Final = 5_000_000
_LINE_BYTES_MAX: Final = 10_000


def output_kept(path: Path) -> int:
    """A file descriptor to print to; what is written there ends up in the file."""
    reading, writing = os.pipe()
    threading.Thread(target=_keep, args=(reading, path), name="output", daemon=True).start()
    return writing


def _keep(reading: int, path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8")
    with closing(handler), os.fdopen(reading, "rb") as source:
        while line := source.readline(_LINE_BYTES_MAX):
            text = line.decode(errors="replace").rstrip("\n")
            handler.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))
