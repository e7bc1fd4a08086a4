"""`caudal quickstart`: starts the platform, and shows what it does, step by step."""

import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from deploy.launcher.request import DATA_VARIABLE, DEFAULT_DATA
from deploy.stack import BROKERS_MAX, broker_number
from deploy.terminal.output import examples, failure, note

EPILOG: Final = examples(
    "caudal quickstart                      starts a platform in ./caudal-platform, shows it, and leaves it running",
    "caudal quickstart --exit               the same on temporary data; exit code 0 only when every result was right",
    "caudal quickstart --data ~/river       on the platform of a folder, started if it does not run",
    "caudal quickstart --secure             on an encrypted platform with users",
    "caudal quickstart --brokers 3          on a cluster, of which a broker is killed at the end",
    "Each step shows the commands that do the same by hand. The tour can be taken again and again.",
)

_DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        "-d",
        envvar=DATA_VARIABLE,
        metavar="DIR",
        help="Folder of the platform: one that runs there is used, else one is started.",
        show_default=f"{DEFAULT_DATA}; with --exit a temporary folder",
    ),
]
_PortsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ports",
        metavar="any|NAME=PORT",
        help="Ports of a platform that is started, as caudal up takes them. Repeat it for more.",
        show_default="the usual ones, or others where they are taken",
    ),
]
_BrokersOption = Annotated[
    int | None,
    typer.Option(
        "--brokers",
        metavar="N",
        min=1,
        max=BROKERS_MAX,
        help="Brokers of a platform that is started; of a cluster, one is killed at the end of the tour.",
        show_default="1",
    ),
]
_SecureOption = Annotated[
    bool,
    typer.Option("--secure", help="A platform that is started is encrypted, and lets in only users; see caudal up."),
]
_ExitOption = Annotated[
    bool,
    typer.Option(
        "--exit",
        help="Stop the platform afterwards, unless it ran before; the default without a terminal, and with ONCE=1.",
    ),
]
_BROKERS_MIN: Final = 3
"""With fewer, a cluster cannot go on without one."""
_SparkOption = Annotated[bool, typer.Option("--no-spark", help="Leave Spark out; the rest takes a few seconds.")]


def quickstart(
    *,
    data: _DataOption = None,
    ports: _PortsOption = None,
    brokers: _BrokersOption = None,
    secure: _SecureOption = False,
    exit_: _ExitOption = False,
    no_spark: _SparkOption = False,
) -> None:
    """Show the whole platform at work, step by step: each is done for real, checked, and shown with its command."""
    is_temporary = exit_ or bool(os.environ.get("ONCE")) or not sys.stdin.isatty()
    given = Start(ports=tuple(ports or ()), brokers=brokers, secure=secure)
    if data is not None or not is_temporary:
        folder = (data or DEFAULT_DATA).expanduser().absolute()
        succeeded = _tour(folder, given, stays=not is_temporary, no_spark=no_spark)
    else:
        # Temporary data is kept only if a step has failed.
        folder = Path(tempfile.mkdtemp(prefix="caudal-quickstart-"))
        succeeded = _tour(folder, given, stays=False, no_spark=no_spark)
        if succeeded or not any(folder.iterdir()):
            shutil.rmtree(folder)
        else:
            note(f"its data and logs are kept in {folder}")
    raise typer.Exit(0 if succeeded else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a platform is started, unless one runs already."""

    ports: tuple[str, ...]
    brokers: int | None
    secure: bool


def _tour(data: Path, given: Start, *, stays: bool, no_spark: bool) -> bool:
    """Take the tour on the platform of a folder; stop it if it was started for the tour and should not stay."""
    from deploy.commands.down import down
    from deploy.launcher import state
    from deploy.quickstart.addresses import data_option, program

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a platform started for the tour is stopped
    was_running = state.read(data) is not None
    try:
        return _tour_on(data, given, stays=stays or was_running, no_spark=no_spark)
    except KeyboardInterrupt:
        if stays and state.read(data) is not None:
            note(f"the platform keeps running; stop it with  {program()} down{data_option(data)}")
        raise
    finally:
        if not (stays or was_running) and state.read(data) is not None:
            down(data=data)


def _tour_on(data: Path, given: Start, *, stays: bool, no_spark: bool) -> bool:
    from deploy.launcher.request import Refused
    from deploy.launcher.spark import missing_java
    from deploy.quickstart import platform, screen, steps
    from deploy.quickstart.tour import StepFailed, Tour

    begun = time.monotonic()
    screen.title("Caudal", "the whole platform at work, step by step")
    try:
        before = platform.running(data)
        found = before or platform.start(data, given.ports, brokers=given.brokers, secure=given.secure)
        if found is None:
            return False
        if before and given.brokers:
            note("the platform runs already: --brokers is ignored, and no broker is killed")
        if before and given.secure and not before.is_secure:
            raise Refused("the platform runs already, and is not secured", ["stop it first:  `caudal down`"])
        tour = Tour(
            addresses=platform.addresses_of(found),
            spark_problem="--no-spark was given" if no_spark else missing_java() or None,
            may_kill_brokers=before is None and sum(map(bool, map(broker_number, found.services))) >= _BROKERS_MIN,
        )
    except Refused as error:
        failure(error.text, error.next_steps)
        return False
    except StepFailed as error:
        failure(str(error), [f"read its log:  `{error.log}`"] if error.log else [])
        return False
    if not steps.take(tour, steps.steps_of(tour)):
        return False
    steps.show_result(tour, seconds=time.monotonic() - begun)
    steps.show_next(tour, stays=stays)
    return True
