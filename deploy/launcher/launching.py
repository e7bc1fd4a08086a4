"""Runs a launcher, in the foreground or in the background: preflight, then the services until they stop."""

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
from deploy.launcher.supervisor import supervise

log = logging.getLogger(__name__)

LAUNCHER: Final = "launcher"
"""The name of its own log."""


def launch(plan: Plan, *, emit: Emit, is_background: bool = False) -> int:
    """Run the platform until a signal stops it; returns the exit code of the process."""
    try:
        with ready_to_start(plan) as settled:
            file = LogFile(plan.log_of(LAUNCHER))
            file.begin()
            if is_background:
                with file.path.open("ab") as errors:
                    os.dup2(errors.fileno(), sys.stderr.fileno())
            logs.configure(style="text", stream=cast("TextIO", LogStream(file)))
            log.info("launcher started", extra={"data": str(plan.data), "ports": dict(settled.ports)})
            asyncio.run(supervise(settled, emit=emit, clock=SystemClock()))
    except Refused as refusal:
        emit(Failed(text=refusal.text, next_steps=refusal.next_steps, tail=refusal.tail))
        return 1
    return 0
