"""`caudal down`: stops a platform, wherever it was started."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from deploy.commands.options import DataOption
from deploy.launcher.lock import lock_holder
from deploy.launcher.plan import SPARK
from deploy.launcher.request import DEFAULT_DATA
from deploy.terminal.output import done, examples, failure, note, waiting

EPILOG: Final = examples(
    "caudal down",
    "caudal down --data ~/river --timeout 10",
    "Everything is stopped in order and keeps its data; `caudal up` continues with it.",
)

_LOOK_S: Final = 0.1
_KILL_TIMEOUT_S: Final = 10.0


def down(
    *,
    data: DataOption = DEFAULT_DATA,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long it may take before it is killed.")
    ] = 90.0,
) -> None:
    """Stop a platform: its services, in the reverse order of their start, and its Spark."""
    from deploy.launcher.spark import kill_engine

    folder = data.expanduser().absolute()
    pid = lock_holder(folder)
    if not pid:
        note(f"no platform runs in {escape(str(folder))}")
        return
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        failure(f"the platform in {folder} belongs to another user (process {pid})")
        raise typer.Exit(1) from None
    except ProcessLookupError:
        pass  # it has just ended
    with waiting(f"stopping the platform in {escape(str(folder))}"):
        has_ended = _has_ended(folder, pid, timeout)
    if not has_ended:
        failure(f"the platform (process {pid}) did not stop within {timeout:g} s and is killed")
        # The kernel kills the services of a launcher that is killed; Spark is a process of its own.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        kill_engine(folder / SPARK)
        if not _has_ended(folder, pid, _KILL_TIMEOUT_S):
            failure(f"process {pid} cannot be killed", [f"see its state:  `ps -o pid,stat,wchan -p {pid}`"])
            raise typer.Exit(1)
    done(f"platform in [bold]{escape(str(folder))}[/] stopped")


def _has_ended(folder: Path, pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while lock_holder(folder) == pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True
