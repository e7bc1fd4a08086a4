"""Runs one service under a launcher: `python -m deploy.launcher.child LAUNCHER_PID broker --set key=value`.

The kernel kills the service when its launcher ends, in whatever way, so that the next launcher finds free ports and
folders.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from core_broker.service.commandline import parse_arguments
from deploy.services import run_service

_PR_SET_PDEATHSIG: Final = 1


def main(arguments: Sequence[str]) -> int:
    """Run the service; the exit code is its own."""
    launcher, name, *words = arguments
    die_with(int(launcher))
    parsed = parse_arguments(words)
    assert parsed is not None, "the launcher knows the arguments of services"
    return run_service(name, parsed)


def die_with(launcher: int) -> None:
    """Have the kernel kill this process when the launcher dies; end now if that has happened already.

    The kernel looks at the thread that started this process: the launcher starts services from its main thread.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
