"""The life of a launcher, in the foreground or in the background: preflight, services, the end."""

import asyncio
import logging
import os
import sys
from typing import Final, TextIO, cast

from core_broker.service import logs
from core_broker.service.clock import SystemClock
from deploy.launcher.events import Emit, Failed
from deploy.launcher.log_files import LogFile, LogStream
from deploy.launcher.plan import Plan
from deploy.launcher.preflight import ready_to_start
from deploy.launcher.request import Refused
from deploy.launcher.supervisor import Supervisor

log = logging.getLogger(__name__)

LAUNCHER: Final = "launcher"
"""The name of its own log."""


def launch(plan: Plan, *, emit: Emit, is_background: bool = False) -> int:
    """Run the platform until a signal stops it; returns the exit code of the process."""
    try:
        with ready_to_start(plan) as settled:
            _log_to(plan, with_stderr=is_background)
            log.info("launcher started", extra={"data": str(plan.data), "ports": dict(settled.ports)})
            asyncio.run(_supervise(settled, emit))
    except Refused as refusal:
        emit(Failed(text=refusal.text, next_steps=refusal.next_steps, tail=refusal.tail))
        return 1
    return 0


async def _supervise(plan: Plan, emit: Emit) -> None:
    await Supervisor(plan, emit=emit, clock=SystemClock()).run()


def _log_to(plan: Plan, *, with_stderr: bool) -> None:
    """Write what the launcher does to a log; in the background also its stderr."""
    file = LogFile(plan.log_of(LAUNCHER))
    file.begin()
    if with_stderr:
        with file.path.open("ab") as errors:
            os.dup2(errors.fileno(), sys.stderr.fileno())
    logs.configure(style="text", stream=cast("TextIO", LogStream(file)))
