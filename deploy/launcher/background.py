"""A launcher in the background: `python -m deploy.launcher.background FD`, with the request as JSON on stdin.

It writes events to the pipe that FD names, for the `caudal up --detach` that waits for it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import msgspec

from deploy.launcher.events import Event, EventPipe, Failed, decode_event
from deploy.launcher.launching import launch
from deploy.launcher.plan import make_plan
from deploy.launcher.request import Refused, Request


class Background:
    """A launcher that was started in the background, as the one who waits for it sees it."""

    def __init__(self, process: "subprocess.Popen[bytes]", news: IO[bytes], errors: IO[bytes]) -> None:
        self.process = process
        self._news = news
        self._errors = errors

    def events(self) -> Iterator[Event]:
        """What happens, until the launcher hangs up."""
        for line in self._news:
            yield decode_event(line)

    def errors(self) -> list[str]:
        """What it has written to stderr before it had a log."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").splitlines()


@contextmanager
def start_in_background(request: Request) -> Iterator[Background]:
    """A launcher in a session of its own, which outlives us."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as news, tempfile.TemporaryFile() as errors:
        try:
            process = _spawned(request, pipe=writing, errors=errors)
        finally:
            os.close(writing)
        yield Background(process, news, errors)


def main(arguments: list[str]) -> int:
    """Be that launcher."""
    emit = EventPipe(int(arguments[0]))
    os.set_inheritable(int(arguments[0]), False)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        return launch(make_plan(request), emit=emit, is_background=True)
    except Refused as refusal:
        emit(Failed(text=refusal.text, next_steps=refusal.next_steps))
        return 1


def _spawned(request: Request, *, pipe: int, errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "deploy.launcher.background", str(pipe)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=(pipe,),
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(msgspec.json.encode(request))
    return process


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
