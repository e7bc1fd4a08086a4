"""A program on a terminal: what it shows, and keys that are typed."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Final, Self

_ESCAPES: Final = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])")
_CURSOR_QUESTION: Final = b"\x1b[6n"
_CURSOR_ANSWER: Final = b"\x1b[1;1R"
_TAKE_TERMINAL: Final = """
import fcntl, os, sys, termios

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes stdin the terminal of the session, so that Ctrl-C reaches the program."""


class PtyProcess:
    """A process whose stdin and outputs are a terminal of 100 by 30; it ends with the block."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._own)

    @property
    def text(self) -> str:
        """What it has shown, without what moves the cursor and colours the text."""
        return _ESCAPES.sub("", self._seen)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._own, keys.encode())

    def wait_for(self, text: str, *, timeout_s: float = 30.0, after: int = 0) -> int:
        """Wait until it has shown a text; returns where the text ends."""
        deadline = time.monotonic() + timeout_s
        while (found := self.text.find(text, after)) < 0:
            if time.monotonic() > deadline or not self._read(0.1):
                raise AssertionError(f"{text!r} was not shown in:\n{self.text}")
        return found + len(text)

    def wait(self, *, timeout_s: float = 30.0) -> int:
        """Wait for its end; the exit code."""
        deadline = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        return self._process.wait(timeout=1)

    def _read(self, timeout_s: float) -> bool:
        """Read what there is; False when it has ended."""
        ready, _, _ = select.select([self._own], [], [], timeout_s)
        if not ready:
            return True
        try:
            data = os.read(self._own, 65536)
        except OSError:
            return False
        if _CURSOR_QUESTION in data:
            os.write(self._own, _CURSOR_ANSWER)
        self._seen += data.decode(errors="replace")
        return bool(data)
