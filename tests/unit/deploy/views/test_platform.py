import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.views.platform import memory_of

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells memory so"),
]


def test_a_process_takes_some_memory() -> None:
    assert memory_of(os.getpid()) > 1 << 20


def test_what_a_process_has_started_counts_with_it() -> None:
    code = "import sys; filled = bytearray(b'x' * (64 << 20)); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert memory_of(os.getpid()) > memory_of(child.pid) > 64 << 20
        child.communicate()


def test_a_process_that_is_gone_takes_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert memory_of(child.pid) == 0
