import signal
import subprocess
import sys
from typing import Final

import pytest

from tests.support.service import REPOSITORY

pytestmark = pytest.mark.processes

_WAITING: Final = """
import sys, threading, time
from streams.spark.engine.host import install_signal_handlers
stopping = threading.Event()
install_signal_handlers(stopping)
print("up", flush=True)
while not stopping.wait(0.1):
    pass
print("stopping", flush=True)
while True:
    time.sleep(0.1)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_to_end_and_the_second_ends(number: signal.Signals) -> None:
    command = [sys.executable, "-c", _WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGHUP)
        process.send_signal(number)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(number)
        assert process.wait(60) == 128 + number
