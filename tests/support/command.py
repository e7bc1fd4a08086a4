"""The `caudal` command as a user types it."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from deploy.cli import main


class Printed(NamedTuple):
    """What a command wrote."""

    stdout: str
    stderr: str


class Caudal:
    """The command, run inside this process, which saves half a second each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: str = "", code: int = 0) -> Printed:
        """Run a command and expect its exit code."""
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
            returned = main(words)
        printed = Printed(stdout.getvalue(), stderr.getvalue())
        assert returned == code, f"{words}\n{printed.stdout}\n{printed.stderr}"
        return printed

    def json(self, *words: str, stdin: str = "", code: int = 0) -> Any:
        """Run a command and read its JSON."""
        return json.loads(self(*words, "-o", "json", stdin=stdin, code=code).stdout)
