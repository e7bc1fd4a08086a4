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
    """A launcher in the background, for the process that waits for it."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes], errors: IO[bytes]) -> None:
        self.process = process
        self._pipe = pipe
        self._errors = errors

    def events(self) -> Iterator[Event]:
        """Its events, until it closes the pipe."""
        return map(decode_event, self._pipe)

    def errors(self) -> list[str]:
        """What it wrote to stderr before it had a log."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").splitlines()


@contextmanager
def start_in_background(request: Request) -> Iterator[Background]:
    """A launcher in a session of its own, which outlives this process."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "deploy.launcher.background", str(writing)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(msgspec.json.encode(request))
        yield Background(process, pipe, errors)


def main(arguments: list[str]) -> int:
    """Run the launcher in this process."""
    emit = EventPipe(int(arguments[0]))
    os.set_inheritable(int(arguments[0]), False)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        return launch(make_plan(request), emit=emit, is_background=True)
    except Refused as refusal:
        emit(Failed(text=refusal.text, next_steps=refusal.next_steps))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
