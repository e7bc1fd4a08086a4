"""Ends a process together with its parent, however that ends."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies (`PR_SET_PDEATHSIG`), and exit if it is already dead.

    The kernel watches the thread that started this process, not the parent process: keep that thread alive.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)
