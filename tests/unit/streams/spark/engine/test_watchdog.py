import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import psutil
import pytest

from streams.spark.engine.folder import EngineFolder
from tests.support.admin import eventually
from tests.support.service import REPOSITORY
from tests.support.spark_engine import is_alive

pytestmark = pytest.mark.processes

_HOST: Final = """
import subprocess, sys
from pathlib import Path
from streams.spark.engine.folder import EngineFolder, FolderLock
from streams.spark.engine.watchdog import family_memory, start_watchdog
lock = FolderLock.try_acquire(EngineFolder(Path(sys.argv[1])))
start_watchdog(lock.fileno())
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, *family_memory(), flush=True)
sys.stdin.read()
"""


def test_what_a_killed_engine_has_started_is_ended_before_another_one_may_begin(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", _HOST, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    ) as host:
        assert host.stdout is not None
        pid, memory, processes = map(int, host.stdout.readline().split())
        child = psutil.Process(pid)
        assert is_alive(child)
        assert memory > 1_000_000
        assert processes == 2
        host.send_signal(signal.SIGKILL)
    eventually(lambda: not folder.is_locked(), timeout_s=120)
    assert not is_alive(child)
