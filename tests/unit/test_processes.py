"""The rule that keeps `make test-unit` quick: a unit test starts a process only when it is marked."""

import os
import subprocess
from collections.abc import Callable

import pytest


def _spawn() -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def _run() -> None:
    subprocess.run(["true"], check=True)


_STARTS = pytest.mark.parametrize("start", [_run, _spawn])


@_STARTS
def test_a_unit_test_cannot_start_a_process(start: Callable[[], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match="marked"):
        start()


@_STARTS
@pytest.mark.processes
def test_one_that_is_marked_can(start: Callable[[], None]) -> None:
    start()
