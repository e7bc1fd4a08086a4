"""Unit tests start no processes unless they say so: `make test-unit` leaves out those that do, and stays quick."""

import sys
from typing import Any, Final

import pytest

_STARTS: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system"}
)
_PROTOC: Final = "schema_registry.formats.protobuf_worker"
"""Runs as a function of the registry; it is started once, in a tenth of a second, by the first test with Protobuf."""
_may_start = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """From here on, a test that is not marked can start no process."""
    global _may_start  # noqa: PLW0603 - the interpreter asks at every audited event: the answer must be quick
    _may_start = item.get_closest_marker("processes") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """What ends here may have been started by another test."""
    global _may_start  # noqa: PLW0603
    _may_start = True


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if not _may_start and event in _STARTS and _PROTOC not in str(arguments):
        pytest.fail("a unit test that starts a process is marked with `pytest.mark.processes`")


sys.addaudithook(_refuse)
