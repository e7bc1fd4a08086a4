"""Texts of statements from files and stdin."""

import sys
from pathlib import Path
from typing import Final

_BYTES_MAX: Final = 64_000_000


class Unreadable(Exception):
    """A text cannot be read; the message says why, and `steps` what to do."""

    def __init__(self, message: str, *steps: str) -> None:
        super().__init__(message)
        self.steps = steps


def read_text(file: str) -> str:
    """The text of a file, or of stdin (-). Raises Unreadable."""
    try:
        if file == "-":
            content = sys.stdin.buffer.read(_BYTES_MAX + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_BYTES_MAX + 1)
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(
            f"{file} is not UTF-8: line {line} has a byte that is not part of a character", "save it as UTF-8"
        ) from None
